"""Ce que le dépôt promet : un README vrai, une forme simple, une seule dépendance."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import RACINE, Projet

from draft_ticket import AIDE

README = (RACINE / "README.md").read_text(encoding="utf-8")
SCRIPT = (RACINE / "draft_ticket.py").read_text(encoding="utf-8")


def blocs(langage: str) -> list[str]:
    """Les blocs de code du README dans ce langage."""
    return re.findall(rf"```{langage}\n(.*?)```", README, re.DOTALL)


def test_l_aide_du_readme_est_celle_du_script(projet: Projet) -> None:
    assert blocs("text") == [AIDE]
    for option in ("-h", "--aide", "--help"):
        bilan = projet.lancer(option)
        assert (bilan.code, bilan.out, bilan.err) == (0, AIDE, "")


def test_la_session_du_readme_est_celle_que_l_on_obtient(projet: Projet) -> None:
    shutil.copy(RACINE / "tickets" / "ticket-local.json", projet.dossier / "tickets")
    session = next(bloc for bloc in blocs("console") if bloc.startswith("$ "))
    bilan = projet.lancer("ticket-local", "--demo", entree="oui\n")
    obtenu = bilan.out.replace("\nRéponse : \n", "\nRéponse : oui\n")
    assert [ligne.rstrip() for ligne in obtenu.splitlines()] == session.splitlines()[1:]
    assert bilan.code == 0


def test_le_readme_est_court_et_tient_en_deux_commandes() -> None:
    assert README.count("\n") < 130
    commandes = [bloc for bloc in blocs("console") if bloc.startswith("python3 -m venv")]
    assert len(commandes) == 2 and all(commande.count("\n") == 1 for commande in commandes)
    assert commandes[0].endswith("draft_ticket.py ticket-local --demo\n")
    assert commandes[1].endswith("-m pytest -n 2\n")


def test_l_en_tete_du_script_demande_ce_que_demande_le_projet() -> None:
    """`uv run draft_ticket.py` lit l'en-tête (PEP 723), pip lit pyproject.toml."""
    entete = re.match(r"# /// script\n((?:#.*\n)+?)# ///\n", SCRIPT)
    assert entete is not None
    projet = (RACINE / "pyproject.toml").read_text(encoding="utf-8")
    for ligne in entete[1].splitlines():
        assert f"\n{ligne.removeprefix('# ')}\n" in projet
    assert set(re.findall(r"openai-agents==[\d.]+", SCRIPT)) == {"openai-agents==0.24.0"}


@pytest.mark.skipif(shutil.which("git") is None, reason="git n'est pas installé")
def test_les_vrais_tickets_et_les_brouillons_restent_hors_de_git(tmp_path: Path) -> None:
    secrets = ["tickets/client.json", "brouillons/ticket-local.txt", "brouillons/ticket-local.txt~"]
    publics = ["tickets/ticket-local.json", "brouillons/.gitkeep"]
    shutil.copy(RACINE / ".gitignore", tmp_path)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    commande = ["git", "check-ignore", *secrets, *publics]
    ignores = subprocess.run(commande, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ignores.stdout.split() == secrets


def test_la_racine_ne_contient_que_ce_qui_est_convenu() -> None:
    convenus = {"README.md", "brouillons", "draft_ticket.py", "pyproject.toml", "tests", "tickets"}
    presents = {chemin.name for chemin in RACINE.iterdir() if chemin.name[0] not in "._"}
    assert presents == convenus


def test_l_approbation_est_une_constante_et_jamais_permanente() -> None:
    """Et les deux décorateurs se lisent côte à côte, chacun sur son outil."""
    outils = re.findall(r"    @tool\((.*)\)\n    async def (\w+)\(", SCRIPT)
    assert [nom for _, nom in outils] == ["lire_ticket", "enregistrer_brouillon"]
    assert "needs_approval" not in outils[0][0]
    assert outils[1][0].startswith("needs_approval=True, ")
    assert re.findall(r"needs_approval(?!=True)", SCRIPT) == []
    assert "always" not in SCRIPT


def test_chaque_paquet_importe_par_les_essais_est_declare() -> None:
    projet = (RACINE / "pyproject.toml").read_text(encoding="utf-8")
    declares = {nom.replace("-", "_") for nom in re.findall(r'"([\w-]+)==', projet)}
    fichiers = list((RACINE / "tests").glob("*.py"))
    connus = {*sys.stdlib_module_names, *(chemin.stem for chemin in fichiers)}
    connus |= {"draft_ticket", "agents", "openai", "httpx", "pydantic"}  # le script et son SDK
    for chemin in fichiers:
        for noeud in ast.walk(ast.parse(chemin.read_text(encoding="utf-8"))):
            noms = [alias.name for alias in noeud.names] if isinstance(noeud, ast.Import) else []
            noms += [noeud.module or ""] if isinstance(noeud, ast.ImportFrom) else []
            etrangers = {nom.split(".")[0] for nom in noms} - connus
            assert etrangers <= declares, chemin.name
