"""Le nom et le fichier du ticket : tout écart est une phrase, avant la moindre requête."""

from __future__ import annotations

import functools
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import RACINE, Projet

from draft_ticket import TAILLE_MAX_TICKET, Ticket, charger_ticket


def refus(projet: Projet, *argv: str) -> str:
    """Lance le script et rend la phrase d'un refus : une seule ligne, code 2, rien d'écrit."""
    bilan = projet.lancer(*argv, "--demo", entree="oui\n")
    assert bilan.code == 2
    assert bilan.err.count("\n") == 1 and "Traceback" not in bilan.err
    assert projet.fichiers() == {}
    return bilan.err


@pytest.mark.parametrize(
    "identifiant",
    ["Ticket-Local", "tickets/ticket-local.json", "ticket-local.json", ".\\tickets\\ticket-local"],
)
def test_un_chemin_ou_une_extension_est_refuse_avec_la_forme_a_taper(
    projet: Projet, identifiant: str
) -> None:
    phrase = refus(projet, identifiant)
    assert "Identifiant refusé" in phrase and phrase.endswith("tapez : ticket-local\n")


@pytest.mark.parametrize("identifiant", ["", "é", "a b", "a" * 65, "..", "ticket-local\n", "a\x1b[2J"])
def test_un_identifiant_hors_des_regles_est_refuse_sans_danger(projet: Projet, identifiant: str) -> None:
    phrase = refus(projet, identifiant)
    assert "Identifiant refusé" in phrase and "\x1b" not in phrase


@pytest.mark.parametrize("nom", ["con", "nul", "com1", "-a", "a-"])
def test_tout_identifiant_dans_les_regles_est_un_ticket(projet: Projet, nom: str) -> None:
    projet.ticket(nom=nom)
    assert projet.lancer("--demo", "--", nom, entree="non\n").code == 3


# --- Les noms que donnent les outils de support ---------------------------------------------

VENUS_D_AILLEURS = {
    "Zendesk": ("ZD-12345", "zd-12345"),
    "ServiceNow": ("INC0012345", "inc0012345"),
    "tiret bas": ("ticket_42", "ticket-42"),
    "dièse": ("Ticket #42", "ticket-42"),
    "accents": ("Été à venir", "ete-a-venir"),
}
casse = pytest.mark.skipif(
    Path(__file__.upper()).exists(), reason="ce disque confond majuscules et minuscules"
)


@casse
@pytest.mark.parametrize("forme", ["le nom du fichier", "avec son dossier", "le nom à donner"])
@pytest.mark.parametrize("cas", VENUS_D_AILLEURS)
def test_un_ticket_mal_nomme_est_trouve_et_le_nom_exact_est_dit(
    projet: Projet, cas: str, forme: str
) -> None:
    nom, voulu = VENUS_D_AILLEURS[cas]
    projet.ticket(nom=nom)
    demande = {"le nom du fichier": nom, "avec son dossier": f"tickets/{nom}.json"}.get(forme, voulu)
    phrase = refus(projet, demande)
    assert f"Renommez tickets/{nom}.json en {voulu}.json" in phrase
    assert f'"id": "{voulu}"' in phrase and phrase.endswith(f"tapez : {voulu}\n")
    (projet.dossier / "tickets" / f"{nom}.json").rename(projet.dossier / "tickets" / f"{voulu}.json")
    assert f'"id" doit être "{voulu}", le nom du fichier' in refus(projet, voulu)
    projet.ticket(nom=voulu)
    assert projet.lancer(voulu, "--demo", entree="non\n").code == 3


@casse
def test_le_bon_nom_s_il_existe_est_le_seul_conseil(projet: Projet) -> None:
    for nom in ("zd-1", "ZD-1", "zd_1"):
        projet.ticket(nom=nom)
    for demande in ("ZD-1", "zd_1"):
        phrase = refus(projet, demande)
        assert "Renommez" not in phrase and phrase.endswith("tapez : zd-1\n")
    assert "tickets : ticket-local, zd-1." in refus(projet, "absent")
    assert projet.lancer("zd-1", "--demo", entree="non\n").code == 3


def test_la_liste_des_tickets_montre_ceux_qui_sont_a_renommer(projet: Projet) -> None:
    for nom in ("ZD-12345", "été\u202e", "???", "x" * 65, ".cache"):
        projet.ticket(nom=nom)
    phrase = refus(projet)
    assert f"ticket-local, {'x' * 65} (à renommer {'x' * 64}), ZD-12345 (à renommer zd-12345)." in phrase
    assert "été‹U+202E› (à renommer ete)" in phrase
    assert "???" not in phrase and "\u202e" not in phrase


def test_sans_dossier_de_tickets_la_liste_est_vide(projet: Projet) -> None:
    projet.ticket().unlink()
    (projet.dossier / "tickets").rmdir()
    assert "tickets : aucun." in refus(projet, "ticket-local")


@pytest.mark.parametrize("argv", [[], ["ticket-inconnu"]])
def test_sans_ticket_connu_la_liste_et_le_dossier_absolu_sont_dits(
    projet: Projet, argv: list[str]
) -> None:
    phrase = refus(projet, *argv)
    assert f"{projet.dossier / 'tickets'} : ticket-local." in phrase


COUPE = r"une fin de ligne (écrivez \n) ou une tabulation (\t) coupe un texte, ligne 2"
ILLISIBLES = {
    "utf-16": ('{"id": "ticket-local"}'.encode("utf-16"), "UTF-8"),
    "cp1252": (b'{"id": "ticket-local", "sujet": "\xe9", "message": "m"}', "UTF-8"),
    "vide": (b"", "JSON complet"),
    "tronque": (b'{"id": "ticket-local", ', "JSON complet"),
    "nan": (b'{"id": NaN, "sujet": "s", "message": "m"}', "« id » n'est pas une"),
    "ligne coupee": (
        b'{"id": "ticket-local",\n "sujet": "s", "message": "un\ndeux"}',
        COUPE + ", colonne 30",
    ),
    "ligne coupee, Windows": (
        b'{"id": "ticket-local",\r\n "sujet": "s\r\n"}',
        COUPE + ", colonne 13",
    ),
    "tabulation": (b'{"id": "ticket-local",\n"sujet": "a\tb"}', COUPE + ", colonne 12"),
    "profond": (b"[" * 100_000, "trop profonde"),
    "objet profond": (b'{"a":' * 50_000, "trop profonde"),
    "liste": (b'["ticket-local"]', "objet JSON"),
    "chaine": (b'"ticket-local"', "entre guillemets"),
    "nul": (b"null", "objet JSON"),
    "nombre demesure": (b'{"id": %s}' % (b"1" * 5_000), "démesuré"),
    "nombre": (b'{"id": "ticket-local", "sujet": 12, "message": "m"}', "« sujet » n'est pas une"),
    "absent": (b'{"id": "ticket-local", "sujet": "s"}', "il manque « message »"),
    "blanc": (b'{"id": "ticket-local", "sujet": " \\n", "message": "m"}', "« sujet » est vide"),
    "invisible": (b'{"id": "ticket-local", "sujet": "\\u200b", "message": "m"}', "est vide"),
    "autre id": (b'{"id": "autre", "sujet": "s", "message": "m"}', "nom du fichier"),
    "doublon": (b'{"id": "ticket-local", "id": "ticket-local"}', "deux fois"),
    "doublon profond": (b'{"a": [{"b": 1, "b": 2}]}', "deux fois"),
    "demi": (b'{"id": "ticket-local", "sujet": "\\ud800", "message": "m"}', "chaîne en UTF-8"),
    "enorme": (b" " * (TAILLE_MAX_TICKET + 1), "256 Kio"),
}


@pytest.mark.parametrize("cas", ILLISIBLES)
def test_un_ticket_illisible_est_nomme_avec_sa_faute(projet: Projet, cas: str) -> None:
    contenu, faute = ILLISIBLES[cas]
    projet.ticket(contenu)
    phrase = refus(projet, "ticket-local")
    assert "tickets/ticket-local.json" in phrase and faute in phrase


def test_un_ticket_de_256_kio_avec_bom_est_lu(projet: Projet) -> None:
    contenu = b'\xef\xbb\xbf{"id":"ticket-local","sujet":"s","message":"m"}'
    projet.ticket(contenu + b" " * (TAILLE_MAX_TICKET - len(contenu)))
    assert projet.lancer("ticket-local", "--demo", entree="non\n").code == 3


def lien(chemin: Path) -> None:
    chemin.rename(chemin.with_name("vrai.json"))
    chemin.symlink_to("vrai.json")


def dossier(chemin: Path) -> None:
    chemin.unlink()
    chemin.mkdir()


def tube(chemin: Path) -> None:
    chemin.unlink()
    os.mkfifo(chemin)


def tube_ouvert(chemin: Path) -> None:
    tube(chemin)
    os.open(chemin, os.O_RDWR | os.O_NONBLOCK)  # un écrivain muet : la lecture ne rend rien


def peripherique(chemin: Path) -> None:
    chemin.unlink()
    chemin.symlink_to("/dev/zero")


@pytest.mark.parametrize("remplacer", [lien, dossier, tube, tube_ouvert, peripherique])
def test_seul_un_fichier_ordinaire_est_un_ticket(projet: Projet, remplacer: object) -> None:
    chemin = projet.ticket()
    assert callable(remplacer)
    remplacer(chemin)
    assert "tickets/ticket-local.json" in refus(projet, "ticket-local")


def test_les_champs_en_plus_restent_ici_et_c_est_dit(projet: Projet) -> None:
    projet.ticket(client="Jamais envoyé", priorite=2)
    bilan = projet.lancer("ticket-local", "--demo", entree="non\n")
    assert "Restent ici : client, priorite." in bilan.out
    assert "Jamais envoyé" not in bilan.out


def test_les_caracteres_caches_du_ticket_sont_dits_avant_l_envoi(projet: Projet) -> None:
    projet.ticket(message="Bonjour\u202e \U000e0041merci")
    sortie = projet.lancer("ticket-local", "--demo", entree="non\n").out
    assert "| Bonjour‹U+202E› ‹U+E0041›merci" in sortie
    assert sortie.index("(consigne cachée ?) : 2") < sortie.index("Démonstration")


def test_le_texte_visible_est_calcule_une_fois_dans_le_ticket(projet: Projet) -> None:
    """L'écran, le modèle et les points à vérifier lisent la même chose."""
    projet.ticket(sujet="a\u202eb‹U+0041›", message="c\td\r\ne\u200b\u200b")
    ticket = charger_ticket("ticket-local")
    assert (ticket.sujet, ticket.message) == ("a‹U+202E›b‹U+0041›", "c    d\ne‹U+200B›‹U+200B›")
    assert ticket.caches == 3
    assert ticket.nom == "brouillons/ticket-local.txt"
    assert Ticket("cas", "s", "m").caches == 0


@pytest.mark.skipif(os.name == "nt", reason="la commande est jouée par un shell POSIX")
def test_la_commande_du_readme_fait_un_ticket_d_un_message_colle(projet: Projet) -> None:
    readme = (RACINE / "README.md").read_text("utf-8")
    ligne = next(ligne for ligne in readme.splitlines() if ligne.startswith("python3 -X utf8 -c"))
    commande = ligne.replace("python3", shlex.quote(sys.executable), 1)
    message = 'Bonjour,\n\nUn "colis" à 49,90 € \\ abîmé.\tMerci\n'
    lancer = functools.partial(
        subprocess.run, commande, shell=True, cwd=projet.dossier, capture_output=True, encoding="utf-8"
    )
    (projet.dossier / "tickets" / "message.txt").write_text(message, "utf-8")
    assert lancer().returncode == 0
    ticket = charger_ticket("zd-12345")
    assert (ticket.sujet, ticket.message) == ("Colis abîmé", message.replace("\t", "    "))
    encore = lancer()
    assert encore.returncode == 1 and "existe déjà" in encore.stderr
    assert charger_ticket("zd-12345") == ticket
