"""Rien ne part que vers l'hôte annoncé, par le chemin annoncé, et rien ne montre la clé."""

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
from reseau import (
    APIS,
    CLE,
    CLE_EN_CLAIR,
    LECTURE,
    PROPOSITION,
    certificat,
    ecouter,
    en_tls,
    jouer,
    mandate,
    phrase,
    relais,
    sans_la_cle,
)
from serveur import Serveur, erreur, servir

# Lance le script en notant chaque hôte qu'il cherche à joindre. Sa fin abrupte devient ordinaire :
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
    commande = [
        sys.executable,
        "-c",
        TEMOIN,
        str(journal),
        str(copie / "draft_ticket.py"),
        "ticket-local",
        *argv,
    ]
    reglages = environnement(PYTHONIOENCODING="utf-8", **variables)
    fini = subprocess.run(
        commande, input=entree, capture_output=True, encoding="utf-8", env=reglages, timeout=60
    )
    return Bilan(fini.returncode, fini.stdout, fini.stderr), set(journal.read_text().split())


@pytest.mark.parametrize("api", APIS)
def test_derriere_un_mandataire_seul_l_hote_configure_est_demande(copie: Path, api: str) -> None:
    connexions: list[str] = []
    with servir(LECTURE, PROPOSITION) as serveur, ecouter(relais(serveur, connexions)) as port:
        reglages = mandate(f"http://127.0.0.1:{port}") | {"OPENAI_API_KEY": CLE_EN_CLAIR}
        reglages["OPENAI_BASE_URL"] = "http://modele.invalid/v1"
        bilan, hotes = temoin(copie, "--api", api, "--modele", "m", entree="oui\n", **reglages)
    assert (bilan.code, bilan.err) == (0, "")
    assert [urlsplit(chemin).hostname for chemin in serveur.chemins] == ["modele.invalid"] * 2
    assert {ligne.split()[1].split("/v1")[0] for ligne in connexions} == {"http://modele.invalid"}
    assert f"Par le mandataire 127.0.0.1:{port}." in bilan.out and "non chiffré" in bilan.out
    assert hotes == {"127.0.0.1"}, "tout passe par le mandataire"


def test_sans_mandataire_aucune_connexion_ne_part_ailleurs_meme_apres_une_panne(
    copie: Path,
) -> None:
    with servir(LECTURE, PROPOSITION, erreur(500, "Internal failure")) as serveur:
        reglages = {"OPENAI_BASE_URL": serveur.adresse, "OPENAI_API_KEY": CLE}
        bilan, hotes = temoin(copie, "--modele", "m", entree="non, plus court\n", **reglages)
    assert bilan.code == 3 and len(serveur.recues) == 3
    assert hotes == {"127.0.0.1"}


@pytest.mark.parametrize(
    "reglages",
    [
        {"OPENAI_API_KEY": CLE},
        mandate("socks5://127.0.0.1:1080"),
        {"SSL_CERT_FILE": "/absent", "SSL_CERT_DIR": "/absent"},
        {
            "OPENAI_BASE_URL": "ftp://x",
            "OPENAI_API_BASE": "x",
            "OPENAI_API_KEY": "é",
            "OPENAI_DEFAULT_MODEL": " ",
        },
    ],
    ids=["clé", "SOCKS", "certificats", "adresse"],
)
def test_la_demonstration_n_ouvre_aucune_connexion_et_ne_depend_d_aucun_reglage(
    copie: Path, reglages: dict[str, str]
) -> None:
    bilan, hotes = temoin(copie, "--demo", entree="oui\n", **reglages)
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
    return str(
        next(item["output"] for item in corps["input"] if item.get("type") == "function_call_output")
    )


# --- L'hôte et le modèle annoncés ----------------------------------------------------------------


@pytest.mark.parametrize("api", APIS)
def test_l_hote_et_le_modele_sont_annonces_sans_les_identifiants_de_l_adresse(
    projet: Projet, api: str
) -> None:
    with servir(LECTURE, erreur(500, "Internal failure")) as serveur:
        hote = urlsplit(serveur.adresse).netloc
        serveur.adresse = f"http://moi:motdepasse@{hote}/v1"
        bilan = jouer(projet, serveur, "--api", api, "--modele", "mistralai/Mistral-7B", "--debug")
    assert f"Partent vers {hote}, modèle mistralai/Mistral-7B : id, sujet, message." in bilan.out.replace(
        "\n  ", " "
    )
    assert {corps["model"] for corps in serveur.recues} == {"mistralai/Mistral-7B"}
    assert "moi:" not in bilan.out + bilan.err and "motdepasse" not in bilan.out + bilan.err


@pytest.mark.parametrize(
    "adresse",
    [
        *(
            "ftp://moi:motdepasse@hote/v1",
            "http://moi:motdepasse@/v1",
            "motdepasse",
            "http://[",
            "https://hote:0/v1",
        ),
        *("https://hote/v1?cle=motdepasse", "https://hote/v1#motdepasse", "https://hote/v1?"),
    ],
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
def test_une_cle_mal_copiee_est_nettoyee_ou_refusee(projet: Projet, cle: str, api: str) -> None:
    with servir(LECTURE, PROPOSITION) as serveur:
        # Les octets d'un presse-papiers en UTF-8, quelle que soit la langue du système.
        bilan = jouer(projet, serveur, "--api", api, OPENAI_API_KEY=os.fsdecode(cle.encode()))
    sans_la_cle(bilan)
    assert "\x1b" not in bilan.out + bilan.err
    if bilan.code == 2:
        phrase(bilan, "Clé refusée|OPENAI_API_KEY")
        assert serveur.recues == [] and projet.fichiers() == {}
    else:
        assert bilan.code == 0
        assert {entetes["authorization"] for entetes in serveur.entetes} == {f"Bearer {CLE}"}


@pytest.mark.parametrize("cle", ["", " ", "\n"])
def test_sans_cle_la_variable_et_la_demonstration_sont_nommees(projet: Projet, cle: str) -> None:
    bilan = projet.lancer("ticket-local", OPENAI_API_KEY=cle)
    assert bilan.code == 2
    phrase(bilan, "Clé absente|OPENAI_API_KEY|--demo")
    assert "Ticket ticket-local" not in bilan.out and projet.fichiers() == {}


@pytest.mark.parametrize("entoure", [' "{}" ', "'{}'", "{}\n"])
def test_les_guillemets_et_les_blancs_sont_toleres_autour_de_l_adresse_et_du_modele(
    projet: Projet, entoure: str
) -> None:
    with servir(LECTURE, PROPOSITION) as serveur:
        adresse, serveur.adresse = serveur.adresse, entoure.format(serveur.adresse)
        bilan = jouer(projet, serveur, OPENAI_DEFAULT_MODEL=entoure.format("m"))
    assert (bilan.code, bilan.err) == (0, "")
    assert f"Partent vers {urlsplit(adresse).netloc}, modèle m :" in bilan.out
    assert {corps["model"] for corps in serveur.recues} == {"m"}


def test_l_ancien_nom_de_la_variable_d_adresse_n_est_pas_ignore(projet: Projet) -> None:
    """Le ticket partirait chez OpenAI alors que la personne a nommé un autre serveur."""
    with servir(LECTURE) as serveur:
        bilan = jouer(projet, serveur, OPENAI_BASE_URL="", OPENAI_API_BASE=serveur.adresse)
    assert bilan.code == 2 and serveur.recues == [] and projet.fichiers() == {}
    phrase(bilan, "OPENAI_API_BASE|définissez OPENAI_BASE_URL")


def test_une_cle_d_openai_ne_part_jamais_en_clair(projet: Projet) -> None:
    with servir(LECTURE) as mandataire:
        variables = mandate(mandataire.adresse) | {"OPENAI_BASE_URL": "http://modele.invalid/v1"}
        bilan = jouer(projet, mandataire, **variables)
    assert bilan.code == 2 and mandataire.recues == [] and projet.fichiers() == {}
    phrase(bilan, "en clair|https://|modele.invalid")


# --- Ce qu'un serveur répète ---------------------------------------------------------------------

REPETES = {
    "clé entière": f"Incorrect API key provided: {CLE}.",
    "clé masquée": f"Incorrect API key provided: {CLE[:4]}...{CLE[-4:]}.",
    "clé masquée par des étoiles": f"Incorrect API key provided: {CLE[:5]}*********{CLE[-4:]}.",
    "fin de la clé": f"The key ending in {CLE[-4:]} is blocked.",
}


@pytest.mark.parametrize("api, code", [("responses", 400), ("chat", 500)])
@pytest.mark.parametrize("cas", REPETES)
def test_une_erreur_citee_ne_montre_pas_la_cle(projet: Projet, cas: str, api: str, code: int) -> None:
    with servir(LECTURE, erreur(code, REPETES[cas])) as serveur:
        bilan = jouer(projet, serveur, "--api", api)
    assert bilan.code == 1 and len(serveur.recues) == 2 and projet.fichiers() == {}
    phrase(bilan, "Le serveur dit : |[clé]")


def test_un_mot_du_ticket_dans_l_erreur_ne_cache_pas_la_raison(projet: Projet) -> None:
    """La personne a le ticket sous les yeux ; sans la raison, elle ne peut rien faire."""
    with servir(erreur(400, "Lampe: unknown product 2026-0412")) as serveur:
        bilan = jouer(projet, serveur)
    assert bilan.code == 1 and projet.fichiers() == {}
    phrase(bilan, "Le serveur dit : Lampe: unknown product 2026-0412")


def test_une_cle_de_trois_signes_est_masquee_aussi(projet: Projet) -> None:
    with servir(erreur(500, "bad key xyz here")) as serveur:
        bilan = jouer(projet, serveur, OPENAI_API_KEY="xyz")
    assert bilan.code == 1 and "xyz" not in bilan.out + bilan.err and "[clé]" in bilan.err


@pytest.mark.parametrize("cas", REPETES)
def test_la_trace_de_debug_ne_montre_pas_la_cle(projet: Projet, cas: str) -> None:
    with servir(erreur(400, REPETES[cas])) as serveur:
        bilan = jouer(projet, serveur, "--debug")
    assert bilan.code == 1 and "Traceback" in bilan.err
    sans_la_cle(bilan)


# --- Le réseau décidé une fois -------------------------------------------------------------------


def test_un_mandataire_ne_voit_rien_de_ce_qui_va_a_la_machine_elle_meme(projet: Projet) -> None:
    """Un mandataire d'entreprise ne doit pas recevoir le ticket destiné à un modèle local."""
    with servir(LECTURE, PROPOSITION) as serveur, servir(erreur(500)) as mandataire:
        bilan = jouer(projet, serveur, **mandate(mandataire.adresse))
    assert (bilan.code, len(serveur.recues), mandataire.recues) == (0, 2, [])
    assert "mandataire" not in bilan.out and "non chiffré" not in bilan.out


@pytest.mark.parametrize("variable", ["http_proxy", "all_proxy"])
@pytest.mark.parametrize("schema", ["http://", "", "http://moi:motdepasse@"])
def test_un_mandataire_vers_un_hote_distant_est_annonce(
    projet: Projet, variable: str, schema: str
) -> None:
    with servir(LECTURE, PROPOSITION) as serveur:
        hote = urlsplit(serveur.adresse).netloc
        reglages = {"OPENAI_BASE_URL": "http://exemple.invalid/v1", "OPENAI_API_KEY": "cle"}
        bilan = jouer(projet, serveur, **reglages, **{variable: f"{schema}{hote}"})
    assert bilan.code == 0 and len(serveur.recues) == 2
    assert f"Par le mandataire {hote}." in bilan.out and "motdepasse" not in bilan.out
    assert "non chiffré" in bilan.out


@pytest.mark.parametrize("sans", ["exemple.invalid", "*", ".invalid"])
def test_un_hote_dispense_de_mandataire_ne_passe_pas_par_lui(projet: Projet, sans: str) -> None:
    with servir(LECTURE, PROPOSITION) as serveur:
        reglages = mandate(serveur.adresse) | {"NO_PROXY": sans, "no_proxy": sans}
        reglages |= {"OPENAI_BASE_URL": "http://exemple.invalid/v1", "OPENAI_API_KEY": "cle"}
        bilan = jouer(projet, serveur, **reglages)
    assert bilan.code == 1 and serveur.recues == [] and projet.fichiers() == {}
    assert "mandataire" not in bilan.out + phrase(bilan, "Hôte inconnu : exemple.invalid")


INUTILISABLES = {
    "protocole inconnu": ("https://exemple.invalid/v1", "https_proxy", "foo://bar"),
    "hôte absent": ("https://exemple.invalid/v1", "https_proxy", "http://"),
    "port impossible": ("https://exemple.invalid/v1", "https_proxy", "http://hote:99999"),
    "SOCKS": ("https://exemple.invalid/v1", "all_proxy", "socks5h://moi:motdepasse@127.0.0.1:9"),
}


@pytest.mark.parametrize("cas", INUTILISABLES)
def test_un_reglage_reseau_inutilisable_est_nomme(projet: Projet, cas: str) -> None:
    adresse, variable, valeur = INUTILISABLES[cas]
    bilan = jouer(projet, Serveur(), OPENAI_BASE_URL=adresse, **{variable: valeur})
    assert bilan.code == 2 and "motdepasse" not in bilan.err
    phrase(bilan, f"inutilisable|{variable.upper()}")
    assert "Ticket ticket-local" not in bilan.out and projet.fichiers() == {}


@pytest.mark.parametrize(
    ("variable", "valeur"),
    [("SSL_CERT_FILE", "/absent"), ("SSL_CERT_FILE", __file__), ("SSL_CERT_DIR", "/absent")],
    ids=["fichier-absent", "sans-certificat", "dossier-absent"],
)
def test_des_certificats_inutilisables_sont_nommes_et_rien_ne_part(
    projet: Projet, tmp_path: Path, variable: str, valeur: str
) -> None:
    recus: list[bytes] = []
    contexte, _ = certificat(tmp_path)
    with ecouter(en_tls(contexte, lambda chiffree: recus.append(chiffree.recv(65536)))) as port:
        adresse = f"https://localhost:{port}/v1"
        bilan = jouer(projet, Serveur(), OPENAI_BASE_URL=adresse, **{variable: valeur})
    assert bilan.code == 1 and projet.fichiers() == {}
    phrase(bilan, "Certificat de localhost|SSL_CERT_FILE|!injoignable")
    assert [octets for octets in recus if octets] == []


@pytest.mark.parametrize("api", APIS)
def test_https_vers_la_machine_elle_meme_avec_sa_propre_autorite(
    projet: Projet, tmp_path: Path, api: str
) -> None:
    contexte, fichier = certificat(tmp_path)
    with (
        servir(LECTURE, PROPOSITION) as serveur,
        ecouter(en_tls(contexte, relais(serveur, []))) as port,
    ):
        reglages = {
            "OPENAI_BASE_URL": f"https://localhost:{port}/v1",
            "SSL_CERT_FILE": str(fichier),
        }
        bilan = jouer(projet, serveur, "--api", api, **reglages)
    assert (bilan.code, bilan.err) == (0, "")
    assert projet.fichiers() == {"ticket-local.txt": TEXTE.encode()}
