"""Ce que le dépôt promet : un README vrai, une forme simple, une seule dépendance."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import RACINE, Projet, processus

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
    obtenu = bilan.out.replace("votre remarque : \n", "votre remarque : oui\n")
    assert [ligne.rstrip() for ligne in obtenu.splitlines()] == session.splitlines()[1:]
    assert bilan.code == 0


def test_le_readme_est_court_et_tient_en_deux_commandes() -> None:
    assert README.count("\n") < 120
    commandes = [bloc for bloc in blocs("console") if bloc.startswith("python3")]
    assert len(commandes) == 2 and all(commande.count("\n") == 1 for commande in commandes)
    assert commandes[0].endswith("draft_ticket.py ticket-local --demo\n")
    assert commandes[1].endswith("-m pytest\n")


def test_la_version_du_sdk_est_la_meme_partout() -> None:
    projet = (RACINE / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dependencies = ["openai-agents==0.24.0"]' in projet
    assert "openai-agents==0.24.0" in SCRIPT


def test_les_vrais_tickets_et_les_brouillons_restent_hors_de_git() -> None:
    if shutil.which("git") is None or not (RACINE / ".git").exists():
        pytest.fail("ces essais se lancent dans un clone git du projet")
    secrets = ["tickets/client.json", "brouillons/ticket-local.txt", "brouillons/ticket-local.txt~"]
    publics = ["tickets/ticket-local.json", "brouillons/.gitkeep"]
    ignores = subprocess.run(
        ["git", "check-ignore", "--no-index", *secrets, *publics],
        cwd=RACINE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ignores.stdout.split() == secrets


def test_la_racine_ne_contient_que_ce_qui_est_convenu() -> None:
    suivis = subprocess.run(["git", "ls-files"], cwd=RACINE, capture_output=True, text=True, check=True).stdout.split()
    racine = {chemin.split("/")[0] for chemin in suivis if not chemin.startswith(".")}
    assert racine == {"README.md", "brouillons", "draft_ticket.py", "pyproject.toml", "tests", "tickets"}


def test_l_approbation_est_une_constante_et_jamais_permanente() -> None:
    assert "@tool(needs_approval=True, failure_error_function=None)\n    async def enregistrer_brouillon(" in SCRIPT
    assert "always" not in SCRIPT


def test_une_erreur_d_usage_n_attend_pas_le_sdk(copie: Path) -> None:
    (copie / "agents.py").write_text("raise SystemExit('le SDK a été importé')", encoding="utf-8")
    bilan = processus(copie, "Faute")
    assert bilan.code == 2 and "le SDK" not in bilan.err
