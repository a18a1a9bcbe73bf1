"""Rien ne part ailleurs que vers l'hôte annoncé, et aucune erreur ne montre la clé, le ticket ou le brouillon."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from conftest import MESSAGE, TEXTE, Bilan, Projet, environnement
from reseau import APIS, CLE, LECTURE, PROPOSITION, ecouter, jouer, phrase, relais, sans_la_cle
from serveur import brouillon, erreur, servir

# Lance le script en notant chaque hôte qu'il cherche à joindre. Sa fin abrupte devient une fin ordinaire :
# un envoi que le SDK ferait en sortant se verrait aussi.
TEMOIN = """
import os, runpy, sys
journal = open(sys.argv[1], "a", buffering=1)
def noter(evenement, details):
    if evenement in ("socket.connect", "socket.sendto"):
        print(details[1][0], file=journal)
    elif evenement in ("socket.getaddrinfo", "socket.gethostbyname"):
        print(details[0].decode() if isinstance(details[0], bytes) else details[0], file=journal)
sys.addaudithook(noter)
os._exit = sys.exit
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def temoin(copie: Path, *argv: str, entree: str, **variables: str) -> tuple[Bilan, set[str]]:
    """Le bilan d'un processus mené jusqu'à sa fin, et les hôtes qu'il a cherché à joindre."""
    journal = copie / "journal"
    commande = [sys.executable, "-c", TEMOIN, str(journal), str(copie / "draft_ticket.py"), "ticket-local", *argv]
    reglages = environnement(PYTHONIOENCODING="utf-8", **variables)
    fini = subprocess.run(commande, input=entree, capture_output=True, encoding="utf-8", env=reglages, timeout=60)
    return Bilan(fini.returncode, fini.stdout, fini.stderr), set(journal.read_text().split())


@pytest.mark.parametrize("api", APIS)
def test_derriere_un_mandataire_seul_l_hote_configure_est_demande(copie: Path, api: str) -> None:
    connexions: list[str] = []
    with servir(LECTURE, PROPOSITION) as serveur, ecouter(relais(serveur, connexions)) as port:
        mandataire = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), f"http://127.0.0.1:{port}")
        mandataire |= {"NO_PROXY": "", "no_proxy": "", "OPENAI_BASE_URL": "http://modele.invalid/v1"}
        bilan, hotes = temoin(copie, "--api", api, "--modele", "m", entree="oui\n", OPENAI_API_KEY=CLE, **mandataire)
    assert (bilan.code, bilan.err) == (0, "")
    assert [urlsplit(chemin).hostname for chemin in serveur.chemins] == ["modele.invalid"] * 2
    assert {ligne.split()[1].split("/v1")[0] for ligne in connexions} == {"http://modele.invalid"}
    assert hotes == {"127.0.0.1"}, "tout passe par le mandataire"


def test_sans_mandataire_aucune_connexion_ne_part_ailleurs_meme_apres_une_panne(copie: Path) -> None:
    with servir(LECTURE, PROPOSITION, erreur(500, "Internal failure")) as serveur:
        reglages = {"OPENAI_BASE_URL": serveur.adresse, "OPENAI_API_KEY": CLE}
        bilan, hotes = temoin(copie, "--modele", "m", entree="non, plus court\n", **reglages)
    assert bilan.code == 1 and len(serveur.recues) == 3
    assert hotes == {"127.0.0.1"}


def test_la_demonstration_n_ouvre_aucune_connexion(copie: Path) -> None:
    bilan, hotes = temoin(copie, "--demo", entree="oui\n", OPENAI_API_KEY=CLE)
    assert (bilan.code, bilan.err) == (0, "")
    assert hotes == set()


@pytest.mark.parametrize("api", APIS)
def test_seuls_id_sujet_et_message_quittent_la_machine(projet: Projet, api: str) -> None:
    projet.ticket(client="Adresse privée", historique=["Note interne"])
    projet.brouillon.write_text("Texte approuvé la veille", encoding="utf-8")
    with servir(LECTURE, PROPOSITION, {**PROPOSITION, "call_id": "encore"}) as serveur:
        bilan = jouer(projet, serveur, "--api", api, entree="non, plus court\noui\n")
    assert bilan.code == 0 and len(serveur.recues) == 3
    assert serveur.recues[0]["model"] == "modele-essai"
    corps = json.dumps(serveur.recues, ensure_ascii=False)
    for reste in ("Adresse privée", "historique", "Note interne", "la veille", str(projet.dossier)):
        assert reste not in corps
    assert json.loads(rendu_par_lire_ticket(serveur.recues[1])) == {
        "id": "ticket-local",
        "sujet": "Lampe abîmée",
        "message": MESSAGE,
    }


def rendu_par_lire_ticket(corps: dict[str, Any]) -> str:
    """Ce que l'outil a rendu au modèle, tel qu'il est parti."""
    if "messages" in corps:
        return str(next(message["content"] for message in corps["messages"] if message["role"] == "tool"))
    return str(next(item["output"] for item in corps["input"] if item.get("type") == "function_call_output"))


# --- L'hôte et le modèle annoncés ----------------------------------------------------------------


@pytest.mark.parametrize("api", APIS)
def test_l_hote_et_le_modele_sont_annonces_sans_les_identifiants_de_l_adresse(projet: Projet, api: str) -> None:
    with servir(LECTURE, erreur(500, "Internal failure")) as serveur:
        hote = urlsplit(serveur.adresse).netloc
        serveur.adresse = f"http://moi:motdepasse@{hote}/v1"
        bilan = jouer(projet, serveur, "--api", api, "--modele", "mistralai/Mistral-7B", "--debug")
    assert f"Partent vers {hote}, modèle mistralai/Mistral-7B : id, sujet, message." in bilan.out.replace("\n  ", " ")
    assert {corps["model"] for corps in serveur.recues} == {"mistralai/Mistral-7B"}
    assert "moi:" not in bilan.out + bilan.err and "motdepasse" not in bilan.out + bilan.err


@pytest.mark.parametrize(
    "adresse", ["ftp://moi:motdepasse@hote/v1", "http://moi:motdepasse@/v1", "motdepasse", "http://["]
)
def test_une_adresse_inutilisable_est_refusee_sans_etre_citee(projet: Projet, adresse: str) -> None:
    bilan = projet.lancer("ticket-local", "--modele", "m", OPENAI_BASE_URL=adresse, OPENAI_API_KEY=CLE)
    assert bilan.code == 2
    phrase(bilan, "OPENAI_BASE_URL|!motdepasse")
    assert "motdepasse" not in bilan.out


# --- La clé --------------------------------------------------------------------------------------

PROPRES = [f" {CLE} ", f"{CLE}\n", f"\t{CLE}\r\n", f"\u00a0{CLE}", f'"{CLE}"', f"'{CLE}'"]
SALES = [f"{CLE[:9]}{signe}{CLE[9:]}" for signe in ("\u2014", " ", "\n", "\u200b", "é", "\x1b[31m")]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("cle", [*PROPRES, *SALES, f"\u201c{CLE}\u201d", f"« {CLE} »", f"Bearer {CLE}"])
def test_une_cle_mal_copiee_est_nettoyee_ou_refusee_et_c_est_dit(projet: Projet, cle: str, api: str) -> None:
    with servir(LECTURE, PROPOSITION) as serveur:
        # Les octets d'un presse-papiers en UTF-8, quelle que soit la langue du système.
        bilan = jouer(projet, serveur, "--api", api, OPENAI_API_KEY=os.fsdecode(cle.encode()))
    sans_la_cle(bilan)
    assert "\x1b" not in bilan.out + bilan.err
    if bilan.code == 2:
        phrase(bilan, "Clé refusée|OPENAI_API_KEY")
        assert serveur.recues == [] and projet.fichiers() == {}
    else:
        assert bilan.code == 0 and "OPENAI_API_KEY" in bilan.out
        assert {entetes["authorization"] for entetes in serveur.entetes} == {f"Bearer {CLE}"}


@pytest.mark.parametrize("cle", ["", " ", "\n"])
def test_sans_cle_la_variable_et_la_demonstration_sont_nommees(projet: Projet, cle: str) -> None:
    bilan = projet.lancer("ticket-local", OPENAI_API_KEY=cle)
    assert bilan.code == 2
    phrase(bilan, "Clé absente|OPENAI_API_KEY|--demo")
    assert "Ticket ticket-local" not in bilan.out and projet.fichiers() == {}


# --- Ce qu'un serveur répète ---------------------------------------------------------------------

TELEPHONE = "06 12 34 56 78"
AUTRE = "Bonjour,\n\nMerci, décrivez l'emballage.\n\nCordialement"
REPETES = {
    "clé entière": f"Incorrect API key provided: {CLE}.",
    "clé masquée": f"Incorrect API key provided: {CLE[:4]}...{CLE[-4:]}.",
    "clé masquée par des étoiles": f"Incorrect API key provided: {CLE[:5]}*********{CLE[-4:]}.",
    "fin de la clé": f"The key ending in {CLE[-4:]} is blocked.",
    "message": f"Bad input: {MESSAGE} Appelez le {TELEPHONE}.",
    "message en JSON": json.dumps({"message": MESSAGE}),
    "message en majuscules": f"Bad input: {MESSAGE.upper()}",
    "sujet": "Bad input: Lampe",
    "numéro de commande": "Unknown order 2026-0412",
    "téléphone": f"Personal data found: {TELEPHONE}",
    "brouillon": f"Bad output: {AUTRE.splitlines()[2]}",
    "brouillon d'avant": f"Bad output: {TEXTE.splitlines()[2]}",
}
A_TAIRE = ("lampe", "2026-0412", "49,90", "abîm", "ab\\u00ee", "06 12", "bien reçu", "emballage")


@pytest.mark.parametrize("api, code", [("responses", 400), ("chat", 500)])
@pytest.mark.parametrize("cas", REPETES)
def test_une_erreur_ne_repete_ni_la_cle_ni_le_ticket_ni_le_brouillon(
    projet: Projet, cas: str, api: str, code: int
) -> None:
    projet.ticket(message=f"{MESSAGE} Appelez le {TELEPHONE}.")
    suivant = brouillon(AUTRE, call_id="encore")
    with servir(LECTURE, PROPOSITION, suivant, erreur(code, REPETES[cas])) as serveur:
        bilan = jouer(projet, serveur, "--api", api, entree="non, plus court\nnon, plus long\noui\n")
    assert bilan.code == 1 and len(serveur.recues) == 4
    assert not [mot for mot in A_TAIRE if mot in phrase(bilan).lower()], bilan.err
    assert projet.fichiers() == {}


@pytest.mark.parametrize("cas", [cas for cas in REPETES if "clé" in cas])
def test_la_trace_de_debug_ne_montre_pas_la_cle(projet: Projet, cas: str) -> None:
    with servir(erreur(400, REPETES[cas])) as serveur:
        bilan = jouer(projet, serveur, "--debug")
    assert bilan.code == 1 and "Traceback" in bilan.err
    sans_la_cle(bilan)


def test_un_mandataire_ne_voit_rien_de_ce_qui_va_a_la_machine_elle_meme(projet: Projet) -> None:
    """Un mandataire d'entreprise ne doit pas recevoir le ticket destiné à un modèle local."""
    with servir(LECTURE, PROPOSITION) as serveur, servir(erreur(500)) as mandataire:
        bilan = jouer(projet, serveur, HTTP_PROXY=mandataire.adresse, http_proxy=mandataire.adresse)
    assert (bilan.code, len(serveur.recues), mandataire.recues) == (0, 2, [])


def test_un_mandataire_vers_un_hote_distant_est_annonce(projet: Projet) -> None:
    with servir(LECTURE, PROPOSITION) as mandataire:
        mandate = mandataire.adresse.removesuffix("/v1")
        bilan = jouer(projet, mandataire, OPENAI_BASE_URL="http://exemple.invalid/v1", http_proxy=mandate)
    assert bilan.code == 0 and len(mandataire.recues) == 2
    assert f"Par le mandataire {mandate.removeprefix('http://')}" in bilan.out.replace("http://", "")


@pytest.mark.parametrize(
    "reglage", [{"http_proxy": "foo://bar"}, {"all_proxy": "socks5://127.0.0.1:9"}, {"SSL_CERT_FILE": "/absent"}]
)
def test_un_reglage_reseau_inutilisable_est_nomme(projet: Projet, reglage: dict[str, str]) -> None:
    with servir(LECTURE) as serveur:
        bilan = jouer(projet, serveur, OPENAI_BASE_URL="https://exemple.invalid/v1", **reglage)
    assert bilan.code == 2 and "Réglage réseau" in bilan.err and bilan.err.count("\n") == 1
