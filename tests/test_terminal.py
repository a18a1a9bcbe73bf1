"""Le parcours au clavier, dans un vrai terminal : ce qu'une personne voit, tape et retrouve."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Projet, environnement
from serveur import Reponse, Serveur, Sortie, brouillon, lecture, servir
from terminal import CTRL_C, CTRL_D, Terminal, restaurer_ctrl_c

ANCIEN = "Bonjour,\n\nVoici une ancienne réponse.\n\nLe support"


def fichiers(copie: Path) -> dict[str, bytes]:
    """Tout ce que contient brouillons/, octet pour octet."""
    return {chemin.name: chemin.read_bytes() for chemin in (copie / "brouillons").iterdir()}


def ouvrir(copie: Path, serveur: Serveur, **reglages: Any) -> Terminal:
    """Lance le script au clavier contre ce serveur."""
    return Terminal(copie, "ticket-local", "--modele", "essai", OPENAI_BASE_URL=serveur.adresse, **reglages)


class Lent:
    """Un modèle qui ne répond qu'une fois débloqué."""

    def __init__(self, sortie: Sortie) -> None:
        self.sortie, self.debloquer = sortie, threading.Event()

    def __call__(self, _requete: Any) -> Sortie:
        assert self.debloquer.wait(60)
        return self.sortie


@pytest.mark.parametrize(
    ("touches", "code", "verdict"),
    [
        ("oui\n", 0, "Brouillon enregistré"),
        ("  OUI \n", 0, "Brouillon enregistré"),
        ("non\n", 3, "Refusé"),
        ("\n", 3, "Refusé"),
        ("o\n", 3, "Refusé"),
        (CTRL_D, 3, "Refusé"),
        ("oui" + 2 * CTRL_D, 3, "Refusé"),
        (CTRL_C, 130, "Interrompu (Ctrl-C)"),
    ],
)
def test_la_reponse_a_la_question(copie: Path, touches: str, code: int, verdict: str) -> None:
    chemin = copie / "brouillons" / "ticket-local.txt"
    chemin.write_text(ANCIEN, "utf-8")
    with Terminal(copie, "ticket-local", "--demo") as terminal:
        terminal.attendre_la_question()
        ecran = terminal.lignes
        assert any("existe déjà" in ligne for ligne in ecran)
        assert "| -Voici une ancienne réponse." in ecran and "| +Cordialement," in ecran
        terminal.taper(touches)
        assert terminal.fin() == code
        assert "".join(terminal.lignes[len(ecran) :]).count(verdict) == 1
    if code == 0:
        assert "gabarit de démonstration" in chemin.read_text("utf-8")
        assert fichiers(copie) == {chemin.name: chemin.read_bytes(), f"{chemin.name}~": ANCIEN.encode()}
    else:
        assert fichiers(copie) == {chemin.name: ANCIEN.encode()}


def test_les_touches_tapees_d_avance_ne_repondent_pas(copie: Path) -> None:
    lent = Lent(brouillon("Bonjour."))
    with servir(lecture(), lent) as serveur, ouvrir(copie, serveur) as terminal:
        terminal.attendre("chargement du SDK")
        terminal.taper("oui\n")
        terminal.attendre("le modèle rédige")
        terminal.taper("oui\noui\n")
        lent.debloquer.set()
        terminal.attendre_la_question()
        terminal.taper("non\n")
        assert terminal.fin() == 3
    assert fichiers(copie) == {}


def interrompre(terminal: Terminal, copie: Path) -> None:
    """Une seule pression suffit, tout de suite, et une phrase le dit."""
    terminal.taper(CTRL_C)
    assert terminal.fin(5) == 130
    ecran = "\n".join(terminal.lignes)
    assert terminal.lignes[-1].startswith("Interrompu (Ctrl-C) :") and ecran.count("Interrompu") == 1
    assert "Traceback" not in ecran and "ignored" not in ecran
    assert fichiers(copie) == {}


@pytest.mark.parametrize("instant", [0, 0.4, 0.9])
def test_ctrl_c_pendant_le_chargement_du_sdk(copie: Path, instant: float) -> None:
    with Terminal(copie, "ticket-local", "--demo") as terminal:
        terminal.attendre("chargement du SDK")
        depart = time.monotonic()
        terminal.patienter(lambda: time.monotonic() - depart >= instant)
        interrompre(terminal, copie)


@pytest.mark.parametrize("avant", [[], [lecture()]], ids=["premier tour", "second tour"])
def test_ctrl_c_devant_un_serveur_muet(copie: Path, avant: list[Any]) -> None:
    with servir(*avant, Reponse(attente=60)) as serveur, ouvrir(copie, serveur) as terminal:
        terminal.patienter(lambda: len(serveur.recues) > len(avant))
        interrompre(terminal, copie)


GUET = """
import runpy, signal, sys

def guetter(cadre, evenement, _):
    if evenement == "call" and cadre.f_code.co_name == "{rappel}" and "{module}" in sys.modules:
        sys.setprofile(None)
        signal.raise_signal(signal.SIGINT)

sys.setprofile(guetter)
sys.argv = ["draft_ticket.py", "ticket-local", "--demo"]
runpy.run_path("draft_ticket.py", run_name="__main__")
"""


@pytest.mark.parametrize(
    ("rappel", "module"), [("compile", "difflib"), ("cb", "agents"), ("_remove", "agents.testing")]
)
def test_ctrl_c_n_est_pas_avale_par_un_rappel_de_python(copie: Path, rappel: str, module: str) -> None:
    """Python ignore ce que lève le rappel d'une référence faible : au début, à l'import, pendant un tour."""
    fini = subprocess.run(
        [sys.executable, "-c", GUET.format(rappel=rappel, module=module)],
        cwd=copie,
        input=b"oui\n",
        capture_output=True,
        env=environnement(PYTHONIOENCODING="utf-8"),
        timeout=60,
        preexec_fn=restaurer_ctrl_c,
    )
    assert fini.returncode == 130
    assert fini.stderr.decode().strip().startswith("Interrompu (Ctrl-C)") and b"Traceback" not in fini.stderr
    assert fichiers(copie) == {}


def test_la_marge_tient_a_toutes_les_largeurs(copie: Path) -> None:
    """La fenêtre change de largeur entre deux versions ; chaque signe du texte reste derrière la marge."""
    mots = ["漢字" * 60, "👩\u200d👧" * 45, "🧪" * 99, "œ" * 250, "e\u0301" * 150, "mot " * 60]
    versions = [brouillon("\n".join(mots)) for _ in range(4)]
    with servir(lecture(), *versions) as serveur, ouvrir(copie, serveur, colonnes=20) as terminal:
        for largeur in (20, 40, 80, 200):
            if largeur > 20:
                terminal.redimensionner(largeur)
                terminal.taper("non, encore\n")
            terminal.attendre_la_question()
            du_texte = [ligne for ligne in terminal.lignes if set(ligne) & set("漢字👩👧🧪œ\u0301")]
            assert [ligne for ligne in du_texte if not ligne.startswith("| ")] == []
            montre = "".join(ligne[2:] for ligne in terminal.lignes if ligne.startswith("| "))
            assert "".join(mots).replace(" ", "") in montre.replace(" ", "")
        terminal.taper("non\n")
        assert terminal.fin() == 3


def test_l_attente_se_voit_puis_s_efface(copie: Path) -> None:
    premier, second = Lent(lecture()), Lent(brouillon("Bonjour."))
    with servir(premier, second) as serveur, ouvrir(copie, serveur) as terminal:
        terminal.attendre("chargement du SDK (0 s)")
        terminal.attendre("le modèle demande le ticket (1 s)")
        premier.debloquer.set()
        terminal.attendre("le modèle rédige (")
        second.debloquer.set()
        terminal.attendre_la_question()
        restes = ("chargement", "le modèle ", " s)")
        assert [ligne for ligne in terminal.lignes if any(reste in ligne for reste in restes)] == []


def test_l_attente_ne_laisse_rien_dans_une_sortie_redirigee(projet: Projet) -> None:
    lent = Lent(brouillon("Bonjour."))
    with servir(lecture(), lent) as serveur:
        threading.Timer(0.6, lent.debloquer.set).start()
        bilan = projet.lancer("ticket-local", "--modele", "essai", entree="oui\n", OPENAI_BASE_URL=serveur.adresse)
    assert (bilan.code, bilan.err) == (0, "")
    assert "\r" not in bilan.out and "rédige" not in bilan.out


def test_un_clavier_et_une_sortie_redirigee_sont_refuses_avant_toute_requete(copie: Path) -> None:
    lecteur, ecrivain = os.pipe()
    with servir(lecture(), brouillon("Bonjour.")) as serveur, ouvrir(copie, serveur, sortie=ecrivain) as terminal:
        os.close(ecrivain)
        assert terminal.fin() == 2
        assert len(terminal.lignes) <= 2 and "Sortie redirigée" in terminal.lignes[0]
        with open(lecteur, "rb") as sortie:
            assert sortie.read() == b""
        assert serveur.recues == []
    assert fichiers(copie) == {}


def test_une_remarque_demande_une_autre_version(copie: Path) -> None:
    versions = [brouillon(f"Bonjour,\n\nVersion {lettre}.") for lettre in "AB"]
    with servir(lecture(), *versions) as serveur, ouvrir(copie, serveur) as terminal:
        terminal.attendre_la_question()
        terminal.taper("non, plus court s'il vous plaît\n")
        terminal.attendre("Proposition 2")
        terminal.attendre_la_question()
        ecran = terminal.lignes
        annonce = next(rang for rang, ligne in enumerate(ecran) if ligne.startswith("Refusé. Votre remarque part vers"))
        assert ecran[annonce + 1] == "| plus court s'il vous plaît"
        assert "| -Version A." in ecran and "| +Version B." in ecran
        assert "plus court s'il vous plaît" in str(serveur.recues[2])
        terminal.taper("oui\n")
        assert terminal.fin() == 0
        assert len(serveur.recues) == 3
    assert fichiers(copie) == {"ticket-local.txt": b"Bonjour,\n\nVersion B."}


@pytest.mark.parametrize("lues", [0, 1])
def test_un_lecteur_parti_ne_provoque_ni_trace_ni_ecriture(copie: Path, lues: int) -> None:
    """Comme « python draft_ticket.py ticket-local --demo | head -n 1 »."""
    lecteur, ecrivain = os.pipe()
    commande = [sys.executable, str(copie / "draft_ticket.py"), "ticket-local", "--demo"]
    with subprocess.Popen(
        commande, stdin=subprocess.PIPE, stdout=ecrivain, stderr=subprocess.PIPE, env=environnement()
    ) as script:
        os.close(ecrivain)
        with open(lecteur, "rb") as sortie:
            assert [sortie.readline() for _ in range(lues)] == [b"Ticket ticket-local\n"] * lues
        assert script.communicate(b"oui\n", timeout=60)[1] == b""
    assert script.returncode == 1
    assert fichiers(copie) == {}
