"""Le nom et le fichier du ticket : tout écart est une phrase, avant la moindre requête."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import Projet

from draft_ticket import TAILLE_MAX_TICKET


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
def test_un_chemin_ou_une_extension_est_refuse_avec_la_forme_a_taper(projet: Projet, identifiant: str) -> None:
    assert "tapez : python draft_ticket.py ticket-local\n" in refus(projet, identifiant)


@pytest.mark.parametrize("identifiant", ["", "é", "a b", "a" * 65, "..", "ticket-local\n", "a\x1b[2J"])
def test_un_identifiant_hors_des_regles_est_refuse_sans_danger(projet: Projet, identifiant: str) -> None:
    phrase = refus(projet, identifiant)
    assert "Identifiant refusé" in phrase and "\x1b" not in phrase


@pytest.mark.parametrize("identifiant", ["con", "nul", "prn", "aux", "com1", "lpt9"])
def test_un_nom_de_peripherique_de_windows_est_refuse_partout(projet: Projet, identifiant: str) -> None:
    projet.ticket(nom=identifiant)
    assert "réservé par Windows" in refus(projet, identifiant)


@pytest.mark.parametrize("argv", [[], ["ticket-inconnu"]])
def test_sans_ticket_connu_la_liste_et_le_dossier_absolu_sont_dits(projet: Projet, argv: list[str]) -> None:
    phrase = refus(projet, *argv)
    assert f"{projet.dossier / 'tickets'} : ticket-local." in phrase


ILLISIBLES = {
    "utf-16": ('{"id": "ticket-local"}'.encode("utf-16"), "UTF-8"),
    "cp1252": (b'{"id": "ticket-local", "sujet": "\xe9", "message": "m"}', "UTF-8"),
    "vide": (b"", "JSON complet"),
    "tronque": (b'{"id": "ticket-local", ', "JSON complet"),
    "nan": (b'{"id": NaN, "sujet": "s", "message": "m"}', "NaN"),
    "profond": (b"[" * 100_000, "trop profond"),
    "objet profond": (b'{"a":' * 50_000, "trop profond"),
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
    "demi": (b'{"id": "ticket-local", "sujet": "\\ud800", "message": "m"}', "demi-caractère"),
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


def peripherique(chemin: Path) -> None:
    chemin.unlink()
    chemin.symlink_to("/dev/zero")


@pytest.mark.parametrize("remplacer", [lien, dossier, tube, peripherique])
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
