"""Chaque panne est une phrase en français, avec son code, et laisse le dossier tel quel."""

from __future__ import annotations

import errno
import gc
import io
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import TEXTE, Projet, environnement, processus
from reseau import (
    APIS,
    CLE,
    LECTURE,
    PROPOSITION,
    Cas,
    abimee,
    certificat,
    croiser,
    ecouter,
    en_tls,
    jouer,
    mandate,
    phrase,
    port_ferme,
    relais,
    sans_la_cle,
    verifier,
)
from serveur import Reponse, Serveur, appel, chat, erreur, lecture, prose, responses, servir

import draft_ticket
from draft_ticket import TOURS_MAX

LIMITE: dict[str, Any] = {
    "reponse": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
    "choix": {"finish_reason": "length"},
}
FILTRE: dict[str, Any] = {
    "reponse": {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
    "choix": {"finish_reason": "content_filter"},
}
ECHEC = {"status": "failed", "error": {"code": "server_error", "message": "The model failed"}}
TRONQUE = appel("enregistrer_brouillon", '{"ticket_id": "ticket-local", "texte": "Bonj', "ecrit")
REFUS = {**prose("I cannot help with that."), "refus": True}
DEBIT = (
    "Rate limit reached in organization org-1 on tokens per min. You can increase your rate limit"
    " by adding a payment method to your account at https://platform.openai.com/account/billing."
)


PANNES = {
    "401": Cas([erreur(401, "Incorrect API key provided", "invalid_api_key")], 1,
        "Clé refusée|401|OPENAI_API_KEY"),
    "403": Cas([erreur(403, "Country, region, or territory not supported")], 1,
        "Accès interdit|403"),
    "404 du modèle": Cas([erreur(404, "No such model", "model_not_found")], 1,
        "Modèle inconnu|404|--modele"),
    "404 du modèle, Ollama": Cas([erreur(404, 'model "m" not found, try pulling it first')], 1,
        "Modèle inconnu|404"),
    "404 de /responses": Cas([Reponse({"detail": "Not Found"}, 404)], 1,
        "/responses|--api chat", apis=APIS[:1]),
    "404 de chat": Cas([Reponse("not found", 404)], 1,
        "introuvable|OPENAI_BASE_URL|!--api chat", apis=APIS[1:]),
    "400": Cas([erreur(400, "Unsupported value")], 1,
        "Requête refusée|400|Le serveur dit : Unsupported value"),
    "400, valeur refusée": Cas([erreur(400, "'none' is not supported")], 1,
        "Le serveur dit : 'none' is not"),
    "422, champ refusé": Cas([erreur(422, "Extra inputs are not permitted")], 1,
        "422|Extra inputs|!plus tard"),
    "413": Cas([Reponse("<html>Too large</html>", 413)], 1, "trop long|raccourcissez"),
    "contexte trop long": Cas([erreur(400, "too many", "context_length_exceeded")], 1,
        "trop long|raccourcissez"),
    "contexte, vLLM": Cas([erreur(400, "This model's maximum context length is 8192 tokens.")], 1,
        "trop long"),
    "contexte, llama.cpp": Cas([erreur(400, "the request exceeds the available context size")], 1,
        "trop long"),
    "429 de débit": Cas([erreur(429, "Slow down", "rate_limit_exceeded")], 1,
        "Trop de demandes|429|patientez|!uota"),
    "429 de débit, page de paiement": Cas([erreur(429, DEBIT, "rate_limit_exceeded")], 1,
        "Trop de demandes|!uota"),
    "429 de quota": Cas([erreur(429, "No quota", "insufficient_quota")], 1,
        "Quota épuisé|facturation|!patientez"),
    "429, compte inactif": Cas([erreur(429, "Not active", "billing_not_active")], 1,
        "facturation|!patientez"),
    "500": Cas([erreur(500, "Internal failure")], 1,
        "500|Le serveur dit : Internal failure|plus tard"),
    "503": Cas([erreur(503, "Overloaded", Retry_After="3600")], 1, "503|Overloaded|plus tard"),
    "503 en HTML": Cas([Reponse("<html>Service unavailable</html>", 503)], 1, "503|plus tard"),
    "coupure": Cas([Reponse(responses([LECTURE], "m"), coupure=True)], 1,
        "interrompue|relancez|!injoignable"),
    "page HTML": Cas([Reponse("<html>", 200, {"Content-Type": "text/html"})], 1,
        "illisible|OPENAI_BASE_URL"),
    "objet vide": Cas([Reponse("{}")], 1, "illisible|OPENAI_BASE_URL"),
    "null": Cas([Reponse("null")], 1, "illisible|OPENAI_BASE_URL"),
    "corps vide": Cas([Reponse("")], 1, "illisible|OPENAI_BASE_URL"),
    "JSON tronqué": Cas([Reponse('{"id": "resp_1", "output": [')], 1, "illisible|OPENAI_BASE_URL"),
    "incomplète": Cas([abimee(**LIMITE)], 4, "Aucun brouillon n'a été proposé|incomplète|limite"),
    "proposition entière annoncée coupée": Cas([LECTURE, abimee(PROPOSITION, **LIMITE)], 4,
        "Aucun brouillon|limite", 2),
    "proposition annoncée filtrée": Cas([LECTURE, abimee(PROPOSITION, **FILTRE)], 4,
        "Aucun brouillon", 2),
    "réponse encore en cours": Cas(
        [LECTURE, abimee(PROPOSITION, reponse={"status": "in_progress"}, choix={})], 4,
        "Aucun brouillon", 2, apis=APIS[:1]),
    "réponse annulée": Cas(
        [LECTURE, abimee(PROPOSITION, reponse={"status": "cancelled"}, choix={})], 4,
        "Aucun brouillon", 2, apis=APIS[:1]),
    "appel inachevé": Cas([LECTURE, {**PROPOSITION, "status": "incomplete"}], 4,
        "Aucun brouillon", 2, apis=APIS[:1]),
    "corps imbriqué sans fin": Cas([Reponse("[" * 100_000)], 1, "illisible"),
    "nombre démesuré": Cas([Reponse('{"a": ' + "9" * 5_000 + "}")], 1, "illisible"),
    "corps qui n'est pas de l'UTF-8": Cas([Reponse(b"\xff\xfe\x00")], 1, "illisible"),
    "arguments coupés par la limite": Cas([LECTURE, abimee(TRONQUE, **LIMITE)], 4,
        "Aucun brouillon|compl", 2),
    "filtre de contenu": Cas([abimee(**FILTRE)], 4, "Aucun brouillon n'a été proposé|!longueur"),
    "échec annoncé": Cas([abimee(reponse=ECHEC, choix={})], 1,
        "500|plus tard|The model failed", apis=APIS[:1]),
    "refus du modèle": Cas([REFUS], 4, "Aucun brouillon n'a été proposé|le modèle a refusé"),
    "refus au second tour": Cas([LECTURE, REFUS], 4, "Aucun brouillon n'a été proposé|refusé", 2),
    "outil inconnu": Cas([appel("envoyer", {}, "c")], 4,
        "Aucun brouillon n'a été proposé|outil qui n'existe pas"),
    "arguments illisibles": Cas([appel("lire_ticket", '{"ticket_id": "ti', "c")], 4,
        "Aucun brouillon|illisibles"),
    "tours épuisés": Cas([lecture("ticket-autre")], 4,
        "Aucun brouillon n'a été proposé|tours", TOURS_MAX),
    "404 sur les outils": Cas([erreur(404, "No endpoints support tool use")], 1,
        "Outils refusés|!OPENAI_BASE_URL"),
    "400 sur les outils": Cas([erreur(400, "m does not support tools")], 1,
        "Outils refusés|--modele"),
    "404 d'un déploiement": Cas([erreur(404, "No such API deployment", "DeploymentNotFound")], 1,
        "Modèle inconnu"),
    "404 d'un élément": Cas([LECTURE, erreur(404, "Item 'rs_1' not found.")], 1,
        "Raisonnement perdu|!OPENAI_BASE", 2),
    "404 au second tour": Cas([LECTURE, erreur(404, "Nothing here")], 1,
        "404|!/responses|!OPENAI_BASE_URL", 2),
    "page HTML au second tour": Cas([LECTURE, Reponse("<html>")], 1,
        "illisible|relancez|!OPENAI_BASE_URL", 2),
    "401 au second tour": Cas([LECTURE, erreur(401)], 1,
        "Clé refusée|OPENAI_API_KEY|!OPENAI_BASE_URL", 2),
    "405": Cas([erreur(405)], 1, "/responses|--api chat", apis=APIS[:1]),
    "400 d'une clé": Cas([erreur(400, "API key not valid.")], 1,
        "Clé refusée|400|OPENAI_API_KEY|!autre modèle"),
    "400 du filtre": Cas([erreur(400, "Filtered", "content_filter")], 4,
        "Aucun brouillon|filtre du service"),
    "erreur annoncée 200": Cas([Reponse({"error": {"message": "Overloaded"}})], 1,
        "500|Overloaded"),
    "500 au second tour": Cas([LECTURE, erreur(500, "Internal failure")], 1,
        "500|Internal failure", 2),
    "coupure au second tour": Cas([LECTURE, Reponse(" " * 99, coupure=True)], 1, "interrompue", 2),
}  # fmt: skip


@pytest.mark.parametrize("nom, api", croiser(PANNES))
def test_chaque_panne_est_une_phrase_et_n_ecrit_rien(projet: Projet, nom: str, api: str) -> None:
    if "imbriqué" in nom:
        gc.collect()  # sinon ce que d'autres essais ont laissé finirait au fond de la récursion
    verifier(projet, PANNES[nom], api)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("code", [302, 307, 308])
def test_une_redirection_n_est_jamais_suivie(projet: Projet, api: str, code: int) -> None:
    with servir(LECTURE) as autre:
        verifier(
            projet,
            Cas([Reponse("", code, {"Location": autre.adresse})], 1, "Redirection|OPENAI_BASE_URL"),
            api,
        )
    assert autre.recues == []


def injoignable(projet: Projet, adresse: str, mots: str, *argv: str) -> None:
    """Un serveur dont aucune réponse n'arrive : une phrase, rien d'écrit."""
    serveur = Serveur()
    serveur.adresse = adresse
    bilan = jouer(projet, serveur, *argv)
    assert bilan.code == 1
    phrase(bilan, mots)
    assert projet.fichiers() == {}


@pytest.mark.parametrize("api", APIS)
def test_un_port_ferme_est_injoignable(projet: Projet, api: str) -> None:
    port = port_ferme()
    injoignable(
        projet,
        f"http://127.0.0.1:{port}/v1",
        f"127.0.0.1:{port} est injoignable|OPENAI_BASE_URL",
        "--api",
        api,
    )


@pytest.mark.parametrize("api", APIS)
def test_un_hote_inconnu_est_nomme(projet: Projet, api: str) -> None:
    injoignable(
        projet,
        "https://modele.invalid/v1",
        "Hôte inconnu|modele.invalid|OPENAI_BASE_URL",
        "--api",
        api,
    )


@pytest.mark.parametrize("api", APIS)
def test_un_certificat_non_reconnu_est_dit_et_ne_recoit_rien(
    projet: Projet, tmp_path: Path, api: str
) -> None:
    recus: list[bytes] = []
    contexte, _ = certificat(tmp_path)
    with ecouter(en_tls(contexte, lambda chiffree: recus.append(chiffree.recv(65536)))) as port:
        injoignable(
            projet,
            f"https://localhost:{port}/v1",
            "Certificat|!injoignable|!interrompue",
            "--api",
            api,
        )
    assert [octets for octets in recus if octets] == []


def test_https_vers_un_serveur_http_n_accuse_pas_le_certificat(projet: Projet) -> None:
    with servir(LECTURE) as serveur:
        injoignable(projet, serveur.adresse.replace("http:", "https:"), "OPENAI_BASE_URL|!Certificat")


def muet(connexion: socket.socket) -> None:
    """Reçoit la demande et ne répond pas, jusqu'à ce que le client raccroche."""
    connexion.settimeout(10)
    while connexion.recv(65536):
        pass


def goutte_a_goutte(connexion: socket.socket) -> None:
    """Répond un octet à la fois : chaque lecture réussit, la réponse n'est jamais complète."""
    connexion.recv(65536)
    connexion.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n")
    for _ in range(100):
        connexion.sendall(b" ")
        time.sleep(0.1)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("traiter", [muet, goutte_a_goutte])
def test_une_reponse_qui_n_arrive_pas_rend_la_main_au_bout_du_delai(
    projet: Projet, api: str, traiter: Callable[[socket.socket], None]
) -> None:
    with ecouter(traiter) as port:
        injoignable(
            projet,
            f"http://127.0.0.1:{port}/v1",
            "Pas de réponse|1 s|--delai",
            "--api",
            api,
            "--delai",
            "1",
        )


def test_sans_delai_demande_l_attente_est_d_une_minute() -> None:
    assert draft_ticket.lire_options(["ticket-local"]).delai == 60.0


@pytest.mark.parametrize("schema", ["http", "https"])
@pytest.mark.parametrize("api", APIS)
def test_un_mandataire_mort_est_nomme_sans_ses_identifiants(
    projet: Projet, schema: str, api: str
) -> None:
    port = port_ferme()
    reglages = {"OPENAI_BASE_URL": f"{schema}://modele.invalid/v1", "OPENAI_API_KEY": "cle"}
    bilan = jouer(
        projet,
        Serveur(),
        "--api",
        api,
        **reglages,
        **mandate(f"http://moi:motdepasse@127.0.0.1:{port}"),
    )
    assert bilan.code == 1 and "motdepasse" not in bilan.out + bilan.err
    phrase(bilan, f"Mandataire 127.0.0.1:{port} injoignable|HTTPS_PROXY|!OPENAI_BASE_URL")
    assert f"Par le mandataire 127.0.0.1:{port}." in bilan.out and projet.fichiers() == {}


def test_un_mandataire_qui_refuse_n_accuse_pas_le_serveur(projet: Projet) -> None:
    with servir(LECTURE) as serveur, ecouter(relais(serveur, [])) as port:
        variables = mandate(f"http://127.0.0.1:{port}")
        bilan = jouer(projet, serveur, OPENAI_BASE_URL="https://modele.invalid/v1", **variables)
    assert bilan.code == 1
    phrase(bilan, f"Mandataire 127.0.0.1:{port} injoignable ou fermé|HTTPS_PROXY|!OPENAI_BASE_URL")
    assert serveur.recues == [] and projet.fichiers() == {}


# --- Ce que la phrase cite, et ce que le reste du système voudrait dire --------------------------


@pytest.mark.parametrize("code", [400, 500])
def test_le_serveur_est_cite_sans_danger_sur_200_caracteres_au_plus(projet: Projet, code: int) -> None:
    with servir(
        erreur(code, "\x1b[31mRouge\u202e\r\nEnregistrer ce brouillon ? " + "x" * 500)
    ) as serveur:
        citation = phrase(jouer(projet, serveur)).partition("Le serveur dit : ")[2].rstrip("\n")
    assert citation.startswith("‹U+001B›[31mRouge‹U+202E›")
    assert citation.endswith("x…") and len(citation) <= 200


MOTIF = "Le motif exact"
FORMES: dict[str, Any] = {
    "une chaîne": {"error": MOTIF},
    "une liste": {"error": [MOTIF]},
    "un message objet": {"error": {"message": {"fr": MOTIF}}},
    "vrai, message à côté": {"error": True, "message": MOTIF},
    "detail": {"detail": MOTIF},
    "detail en liste": {"detail": [{"type": "extra", "loc": ["body", "store"], "msg": MOTIF}]},
    "metadata.raw": {
        "error": {"message": "Provider error", "metadata": {"raw": f'{{"message": "{MOTIF}"}}'}}
    },
    "clés inconnues": {"raison": MOTIF},
    "une liste nue": [{"error": {"message": MOTIF}}],
    "du texte": MOTIF,
}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("forme", FORMES)
def test_les_mots_du_serveur_sont_cites_quelle_que_soit_leur_forme(
    projet: Projet, forme: str, api: str
) -> None:
    debut = {"metadata.raw": "Provider error", "detail en liste": "extra body store"}.get(forme, MOTIF)
    mots = f"Requête refusée|Le serveur dit : {debut}|{MOTIF}"
    verifier(projet, Cas([Reponse(FORMES[forme], 400)], 1, mots), api)


@pytest.mark.parametrize("corps", ["<!DOCTYPE html><p>Erreur", "", "[" * 100_000, "{}"])
def test_une_page_html_ou_un_corps_impossible_ne_fait_rien_perdre(projet: Projet, corps: str) -> None:
    gc.collect()  # de même : un corps imbriqué sans fin
    with servir(Reponse(corps, 500)) as serveur:
        bilan = jouer(projet, serveur)
    assert bilan.code == 1 and "DOCTYPE" not in phrase(bilan, "Erreur 500|plus tard")
    assert projet.fichiers() == {}


def test_une_erreur_demesuree_ne_coute_pas_plus_qu_une_autre(
    projet: Projet, monkeypatch: pytest.MonkeyPatch
) -> None:
    longueurs: list[int] = []

    def visible(texte: str) -> str:
        longueurs.append(len(texte))
        return draft_ticket_visible(texte)

    draft_ticket_visible = draft_ticket.visible
    with servir(erreur(400, "long " * 1_000_000)) as serveur, monkeypatch.context() as contexte:
        contexte.setattr(draft_ticket, "visible", visible)
        bilan = jouer(projet, serveur)
    phrase(bilan, "Requête refusée|long long")
    assert max(longueurs) <= 4000


def test_debug_ajoute_la_trace_sans_danger_et_sans_la_cle(projet: Projet) -> None:
    message = f"\x1b[31mIncorrect API key provided: {CLE} ({CLE[:4]}...{CLE[-4:]}), ending in {CLE[-4:]}"
    with servir(erreur(401, message)) as serveur:
        bilan = jouer(projet, serveur, "--debug")
    assert bilan.code == 1 and "Traceback" in bilan.err and "AuthenticationError" in bilan.err
    assert bilan.err.splitlines()[-1].startswith("Clé refusée")
    sans_la_cle(bilan)
    assert "\x1b" not in bilan.err


def test_les_journaux_du_sdk_et_d_asyncio_n_arrivent_pas_a_l_ecran(copie: Path) -> None:
    bavard = {"OPENAI_LOG": "debug", "PYTHONASYNCIODEBUG": "1", "PYTHONIOENCODING": "utf-8"}
    with servir(LECTURE, erreur(500, "Internal failure")) as serveur:
        reglages = {"OPENAI_BASE_URL": serveur.adresse, "OPENAI_API_KEY": CLE, **bavard}
        bilan = processus(copie, "ticket-local", "--modele", "m", **reglages)
    assert bilan.code == 1 and len(serveur.recues) == 2
    phrase(bilan, "500|Internal failure")
    assert list((copie / "brouillons").iterdir()) == []


class SortiePleine(io.StringIO):
    """Une sortie dont le disque se remplit au verdict, quand le brouillon est déjà écrit."""

    def write(self, texte: str) -> int:
        if "Brouillon enregistré" in texte:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(texte)


@pytest.mark.parametrize("api", APIS)
def test_une_panne_apres_l_ecriture_ne_cache_pas_le_brouillon(
    projet: Projet, monkeypatch: pytest.MonkeyPatch, api: str
) -> None:
    with servir(LECTURE, PROPOSITION) as serveur, monkeypatch.context() as contexte:
        contexte.setattr(sys, "stdout", SortiePleine())
        bilan = jouer(projet, serveur, "--api", api)
    assert bilan.code == 0
    assert bilan.err.count("\n") == 1 and bilan.err.startswith("Brouillon enregistré")
    assert projet.fichiers() == {"ticket-local.txt": TEXTE.encode()}


@pytest.mark.parametrize("api", APIS)
def test_une_connexion_fermee_pendant_la_lecture_n_empeche_pas_la_suite(projet: Projet, api: str) -> None:
    construire = chat if api == "chat" else responses
    corps = json.dumps(construire([PROPOSITION], "m"))
    # La moitié annoncée est la réponse entière : elle arrive, puis le serveur raccroche.
    fermee = Reponse(corps + " " * len(corps), entetes={"Content-Length": str(len(corps))}, coupure=True)
    with servir(LECTURE, fermee, {**PROPOSITION, "call_id": "encore"}) as serveur:
        bilan = jouer(projet, serveur, "--api", api, entree="non, plus court\noui\n")
    assert (bilan.code, bilan.err, len(serveur.recues)) == (0, "", 3)
    assert projet.fichiers() == {"ticket-local.txt": TEXTE.encode()}


def test_un_lecteur_parti_est_une_fin_silencieuse(copie: Path) -> None:
    lecteur, ecrivain = os.pipe()
    os.close(lecteur)
    commande = [sys.executable, str(copie / "draft_ticket.py"), "ticket-local", "--demo"]
    fini = subprocess.run(
        commande,
        input=b"oui\n",
        stdout=ecrivain,
        stderr=subprocess.PIPE,
        env=environnement(),
        timeout=60,
    )
    os.close(ecrivain)
    assert (fini.returncode, fini.stderr) == (1, b"")
    assert list((copie / "brouillons").iterdir()) == []


@pytest.mark.parametrize("options", [["--demo"], ["--modele", "m"]])
def test_sans_le_sdk_la_commande_a_taper_est_dite(copie: Path, options: list[str]) -> None:
    commande = [
        sys.executable,
        "-I",
        "-S",
        str(copie / "draft_ticket.py"),
        "ticket-local",
        *options,
    ]
    variables = environnement(OPENAI_API_KEY=CLE)
    fini = subprocess.run(commande, input=b"oui\n", capture_output=True, env=variables, timeout=60)
    assert fini.returncode == 1
    assert fini.stderr.count(b"\n") == 1 and b"pip install openai-agents==0.24.0" in fini.stderr
    assert list((copie / "brouillons").iterdir()) == []
