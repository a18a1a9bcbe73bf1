"""Le disque : l'écriture est entière ou n'a pas lieu, et ce qui en est dit est vrai."""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import TEXTE, Bilan, Projet, processus
from parcours import QUESTION, anciens, jouer
from serveur import brouillon, lecture

import draft_ticket

NOM, COPIE = "ticket-local.txt", "ticket-local.txt~"
Geste = Callable[[Projet], object]


def verifier_l_echec(bilan: Bilan, *mots: str) -> None:
    """Code 1 et une seule ligne, qui dit pourquoi ; jamais de verdict heureux."""
    assert bilan.code == 1
    assert bilan.err.count("\n") == 1 and all(mot in bilan.err for mot in mots)
    assert "Traceback" not in bilan.err and "Brouillon enregistré" not in bilan.out


# --- L'ancien brouillon ---------------------------------------------------------------------


def test_l_ancien_brouillon_est_montre_puis_garde_octet_pour_octet(projet: Projet) -> None:
    ancien = b"Bonjour,\n\nUne phrase en latin-1 : \xe9t\xe9.\r\n\nLe support"
    projet.brouillon.write_bytes(ancien)
    os.utime(projet.brouillon, (1_700_000_000, 1_700_000_000))  # le 14 ou le 15 novembre 2023
    bilan, _ = jouer(projet, lecture(), brouillon(TEXTE))
    assert bilan.code == 0
    assert projet.fichiers() == {NOM: TEXTE.encode(), COPIE: ancien}
    assert {stat.S_IMODE(fichier.stat().st_mode) for fichier in projet.brouillon.parent.iterdir()} == {0o600}
    avis = bilan.out[bilan.out.index("Un brouillon existe déjà") : bilan.out.index(QUESTION)]
    assert "/11/2023 à " in avis and "5 lignes, " in avis and f"brouillons/{COPIE}" in avis
    assert "| -Une phrase en latin-1" in avis and "| +Nous avons bien reçu votre message." in avis


def test_un_ancien_brouillon_identique_ne_touche_pas_a_la_copie(projet: Projet) -> None:
    anciens(projet)
    projet.brouillon.write_text(TEXTE, "utf-8")
    avant = projet.fichiers()
    bilan, _ = jouer(projet, lecture(), brouillon(TEXTE))
    assert (bilan.code, projet.fichiers()) == (0, avant)
    assert "Il est identique à cette proposition." in bilan.out


def test_une_copie_anterieure_est_remplacee_par_le_dernier_brouillon(projet: Projet) -> None:
    avant = anciens(projet)
    assert jouer(projet, lecture(), brouillon(TEXTE))[0].code == 0
    assert projet.fichiers() == {NOM: TEXTE.encode(), COPIE: avant[NOM]}


def test_un_dossier_brouillons_absent_est_cree(projet: Projet) -> None:
    projet.brouillon.parent.rmdir()
    assert jouer(projet, lecture(), brouillon(TEXTE))[0].code == 0
    assert projet.fichiers() == {NOM: TEXTE.encode()}


def test_un_brouillon_apparu_pendant_la_redaction_est_montre(projet: Projet) -> None:
    def rediger(_: Any) -> Any:
        projet.brouillon.write_text("Écrit par une autre fenêtre", "utf-8")
        return brouillon(TEXTE)

    bilan, _ = jouer(projet, lecture(), rediger)
    assert "| -Écrit par une autre fenêtre" in bilan.out
    assert projet.fichiers() == {NOM: TEXTE.encode(), COPIE: "Écrit par une autre fenêtre".encode()}


# --- Ce qui change entre l'affichage et le oui ----------------------------------------------


class Saisie(io.BytesIO):
    """Une entrée standard qui répond « oui » après un geste fait dans le dossier."""

    def __init__(self, geste: Callable[[], object]) -> None:
        super().__init__(b"oui\n")
        self.geste = geste

    def read1(self, taille: int | None = -1, /) -> bytes:
        self.geste()
        return super().read1(taille)


def modifier(projet: Projet) -> None:
    projet.brouillon.write_bytes(b"Corrig\xe9 dans un \xe9diteur")


def vers_un_fichier(chemin: Path) -> None:
    """Met à la place du chemin un lien vers un fichier qui ne doit pas être touché."""
    victime = chemin.parent.parent / "victime"
    victime.write_bytes(b"intacte")
    chemin.unlink(missing_ok=True)
    chemin.symlink_to(victime)


def dossier_remplace(projet: Projet) -> None:
    shutil.rmtree(projet.brouillon.parent)
    projet.brouillon.parent.write_bytes(b"un fichier")


CHANGEMENTS: dict[str, tuple[bool, Geste, str]] = {
    "modifié": (True, modifier, "a changé"),
    "apparu": (False, modifier, "a changé"),
    "disparu": (True, lambda projet: projet.brouillon.unlink(), "a changé"),
    "devenu un lien": (True, lambda projet: vers_un_fichier(projet.brouillon), "Écriture impossible"),
    "dossier devenu un fichier": (True, dossier_remplace, "Écriture impossible"),
}


def contenu(projet: Projet) -> dict[str, bytes]:
    """Tout ce que le projet contient, octet pour octet, un lien valant ce qu'il désigne."""
    tout = sorted(projet.dossier.rglob("*"))
    return {str(chemin): chemin.read_bytes() if chemin.is_file() else b"" for chemin in tout}


@pytest.mark.parametrize("cas", CHANGEMENTS)
def test_un_brouillon_change_pendant_la_lecture_n_est_pas_remplace(
    projet: Projet, monkeypatch: pytest.MonkeyPatch, capfd: Any, cas: str
) -> None:
    existe, changer, mots = CHANGEMENTS[cas]
    if existe:
        anciens(projet)
    laisse: list[object] = []

    def geste() -> None:
        changer(projet)
        laisse.append(contenu(projet))

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Saisie(geste), "utf-8"))
    code = draft_ticket.main(["ticket-local", "--demo"])
    sortie = capfd.readouterr()
    verifier_l_echec(Bilan(code, sortie.out, sortie.err), mots)
    assert laisse == [contenu(projet)]


# --- L'écriture impossible ------------------------------------------------------------------

OBSTACLES: dict[str, Geste] = {
    "dossier": lambda projet: projet.brouillon.mkdir(),
    "lien": lambda projet: vers_un_fichier(projet.brouillon),
    "lien cassé": lambda projet: projet.brouillon.symlink_to(projet.dossier / "absent"),
    "tube": lambda projet: os.mkfifo(projet.brouillon),
    "trop gros": lambda projet: projet.brouillon.write_bytes(b"x" * (draft_ticket.TAILLE_MAX_BROUILLON + 1)),
    "brouillons est un fichier": dossier_remplace,
}


@pytest.mark.parametrize("requetes", [0, 2], ids=["au lancement", "pendant le travail"])
@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_un_obstacle_est_dit_sans_rien_demander(projet: Projet, obstacle: str, requetes: int) -> None:
    laisse: list[object] = []

    def placer(_: Any = None) -> Any:
        OBSTACLES[obstacle](projet)
        laisse.append(contenu(projet))
        return brouillon(TEXTE)

    if requetes == 0:
        placer()
    bilan, serveur = jouer(projet, lecture(), placer)
    verifier_l_echec(bilan, "Écriture impossible")
    assert len(serveur.recues) == requetes and QUESTION not in bilan.out
    assert laisse == [contenu(projet)]


def test_une_copie_impossible_empeche_d_ecrire(projet: Projet) -> None:
    projet.brouillon.write_bytes(b"ancien")
    projet.brouillon.with_name(COPIE).mkdir()
    bilan, _ = jouer(projet, lecture(), brouillon(TEXTE))
    verifier_l_echec(bilan, "Écriture impossible", "un dossier se trouve à la place")
    assert sorted(chemin.name for chemin in projet.brouillon.parent.iterdir()) == [NOM, COPIE]
    assert projet.brouillon.read_bytes() == b"ancien"


def test_un_lien_a_la_place_de_la_copie_ne_mene_a_aucun_autre_fichier(projet: Projet) -> None:
    projet.brouillon.write_bytes(b"ancien")
    vers_un_fichier(projet.brouillon.with_name(COPIE))
    jouer(projet, lecture(), brouillon(TEXTE))
    assert (projet.dossier / "victime").read_bytes() == b"intacte"


@pytest.mark.parametrize("fonction", ["replace", "fsync", "open"])
@pytest.mark.parametrize(("numero", "mots"), [(errno.EACCES, "droits insuffisants"), (errno.ENOSPC, "disque plein")])
def test_un_refus_du_systeme_laisse_le_dossier_tel_quel(
    projet: Projet, monkeypatch: pytest.MonkeyPatch, fonction: str, numero: int, mots: str
) -> None:
    avant, vraie = anciens(projet), getattr(os, fonction)

    def refuser(*arguments: Any) -> Any:
        if fonction == "open" and not arguments[1] & os.O_CREAT:
            return vraie(*arguments)
        raise OSError(numero, "Refused by the system")

    monkeypatch.setattr(os, fonction, refuser)
    bilan, _ = jouer(projet, lecture(), brouillon(TEXTE))
    verifier_l_echec(bilan, "Écriture impossible", mots, "Rien n'a été remplacé")
    assert "Refused" not in bilan.err and projet.fichiers() == avant


def test_un_disque_plein_ne_coute_aucun_des_deux_anciens_brouillons(copie: Path) -> None:
    """La place manque pour le nouveau texte, pas pour une copie de l'ancien."""
    resource = pytest.importorskip("resource")
    projet = Projet(copie, processus)
    avant = anciens(projet)

    def limiter() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    options = {"entree": "oui\n", "avant": limiter, "PYTHONIOENCODING": "utf-8"}
    bilan = projet.lancer(copie, "ticket-local", "--demo", **options)
    verifier_l_echec(bilan, "Écriture impossible", "taille de fichier limitée", "Rien n'a été remplacé")
    assert projet.fichiers() == avant


@pytest.mark.parametrize("mensonge", [b"autre contenu", None], ids=["autre contenu", "rien"])
def test_le_disque_est_relu_avant_de_dire_que_c_est_enregistre(
    projet: Projet, monkeypatch: pytest.MonkeyPatch, mensonge: bytes | None
) -> None:
    def remplacer(_: Path, cible: Path) -> None:
        if mensonge is not None:
            cible.write_bytes(mensonge)

    monkeypatch.setattr(os, "replace", remplacer)
    verifier_l_echec(jouer(projet, lecture(), brouillon(TEXTE))[0], "n'est pas le texte approuvé")


# --- Ctrl-C pendant l'écriture --------------------------------------------------------------


@pytest.mark.parametrize("rang", range(8))
def test_un_ctrl_c_pendant_l_ecriture_ne_laisse_rien_de_provisoire(
    projet: Projet, monkeypatch: pytest.MonkeyPatch, rang: int
) -> None:
    """Deux fichiers sont écrits, la copie et le brouillon, et chacun passe par quatre instants."""
    avant, instants = anciens(projet), iter(range(8))
    ouvrir, vider, remplacer = os.open, os.fsync, os.replace

    def instant() -> None:
        if next(instants) == rang:
            raise KeyboardInterrupt

    def ouvert(chemin: Path, options: int, mode: int = 0o777) -> int:
        descripteur = ouvrir(chemin, options, mode)
        if options & os.O_CREAT:
            try:
                instant()
            except KeyboardInterrupt:
                os.close(descripteur)
                raise
        return descripteur

    def vide(descripteur: int) -> None:
        instant()
        vider(descripteur)

    def remplace(provisoire: Path, chemin: Path) -> None:
        instant()
        remplacer(provisoire, chemin)
        instant()

    for nom, fonction in (("open", ouvert), ("fsync", vide), ("replace", remplace)):
        monkeypatch.setattr(os, nom, fonction)
    bilan, serveur = jouer(projet, lecture(), brouillon(TEXTE))
    ecrit = rang == 7  # le dernier instant suit le remplacement du brouillon
    phrase = "le brouillon approuvé est sur le disque" if ecrit else "aucun brouillon n'a été écrit"
    assert (bilan.code, bilan.err.count("\n"), len(serveur.recues)) == (130, 1, 2)
    assert phrase in bilan.err
    assert set(projet.fichiers()) == {NOM, COPIE}
    assert projet.brouillon.read_bytes() == (TEXTE.encode() if ecrit else avant[NOM])


def test_un_ctrl_c_devant_un_brouillon_illisible_reste_une_phrase(
    projet: Projet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def vider(_: int) -> None:
        vers_un_fichier(projet.brouillon)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", vider)
    bilan, _ = jouer(projet, lecture(), brouillon(TEXTE))
    assert bilan.code == 130 and bilan.err.count("\n") == 1 and "aucun brouillon n'a été écrit" in bilan.err
    assert [chemin.name for chemin in projet.brouillon.parent.iterdir()] == [NOM]


def test_un_refus_ne_parle_pas_d_un_brouillon_qui_n_existe_pas(projet: Projet) -> None:
    bilan = projet.lancer("ticket-local", "--demo", entree="non\n")
    assert bilan.code == 3 and "resté tel quel" not in bilan.out


def test_la_perte_de_la_copie_precedente_est_annoncee(projet: Projet) -> None:
    projet.brouillon.write_text("ancien", encoding="utf-8")
    assert "est perdu" not in projet.lancer("ticket-local", "--demo", entree="oui\n").out
    projet.brouillon.write_text("autre", encoding="utf-8")
    sortie = projet.lancer("ticket-local", "--demo", entree="non\n").out
    assert "dont le contenu actuel est perdu" in " ".join(sortie.split())
