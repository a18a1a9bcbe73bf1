"""Le parcours au clavier, dans un vrai terminal : ce qu'une personne voit, tape et retrouve."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Projet, environnement
from parcours import QUESTION
from serveur import Reponse, Serveur, Sortie, brouillon, lecture, servir
from terminal import (
    CTRL_C,
    CTRL_D,
    EFFACE,
    GAUCHE,
    ORDINAIRE,
    Terminal,
    coller,
    restaurer_les_signaux,
)

ANCIEN = "Bonjour,\n\nVoici une ancienne réponse.\n\nLe support"


def fichiers(copie: Path) -> dict[str, bytes]:
    """Tout ce que contient brouillons/, octet pour octet."""
    return {chemin.name: chemin.read_bytes() for chemin in (copie / "brouillons").iterdir()}


def ouvrir(copie: Path, serveur: Serveur, **reglages: Any) -> Terminal:
    """Lance le script au clavier contre ce serveur."""
    argv = ("ticket-local", "--modele", "essai")
    return Terminal(copie, *argv, OPENAI_BASE_URL=serveur.adresse, **reglages)


def commande(copie: Path, suite: str = "") -> str:
    """La ligne à donner à bash pour lancer la démonstration."""
    script = shlex.join([sys.executable, str(copie / "draft_ticket.py"), "ticket-local", "--demo"])
    return f"{script} {suite}"


class Lent:
    """Un modèle qui ne répond qu'une fois débloqué."""

    def __init__(self, sortie: Sortie) -> None:
        self.sortie, self.debloquer = sortie, threading.Event()

    def __call__(self, _requete: Any) -> Sortie:
        assert self.debloquer.wait(60)
        return self.sortie


# --- La réponse -----------------------------------------------------------------------------

ACCEPTE, REFUSE = "Brouillon enregistré", "Refusé : aucun brouillon n'a été écrit"
REPONSES = {
    "oui": ("oui\n", 0, ACCEPTE),
    "oui en capitales": ("  OUI \n", 0, ACCEPTE),
    "oui après un é effacé": (f"é{EFFACE}oui\n", 0, ACCEPTE),
    "oui avec les flèches": (f"ui{2 * GAUCHE}o\n", 0, ACCEPTE),
    "oui collé": (coller("oui") + "\n", 0, ACCEPTE),
    "oui, Ctrl-D n'y fait rien": (f"oui{CTRL_D}\n", 0, ACCEPTE),
    "non": ("non\n", 3, REFUSE),
    "Entrée": ("\n", 3, REFUSE),
    "o": ("o\n", 3, REFUSE),
    "oui effacé": (f"oui{3 * EFFACE}\n", 3, REFUSE),
    "Ctrl-D": (CTRL_D, 3, REFUSE),
    "oui entre des lignes vides, collés": (coller("\n\noui\n\n") + "\n", 3, "Lu : « ↵↵oui↵↵ »"),
    "oui puis non, collés": (coller("oui\nnon") + "\n", 3, "Lu : « oui↵non »"),
    "non puis oui, collés": (coller("bof\noui") + "\n", 3, "Lu : « bof↵oui »"),
    "collage non annoncé": ("oui\nencore\n", 3, "elle ne compte pas"),
    "touche de trop": ("oui\nx", 3, "elle ne compte pas"),
    "Ctrl-C": (CTRL_C, -2, "Interrompu (Ctrl-C) : aucun brouillon n'a été écrit."),
}


@pytest.mark.parametrize("cas", REPONSES)
def test_la_reponse_a_la_question_et_un_terminal_rendu_tel_qu_il_etait(copie: Path, cas: str) -> None:
    touches, code, verdict = REPONSES[cas]
    chemin = copie / "brouillons" / "ticket-local.txt"
    chemin.write_text(ANCIEN, "utf-8")
    with Terminal(copie, "ticket-local", "--demo") as terminal:
        terminal.attendre_la_question()
        deja = len(terminal.lignes)
        terminal.taper(touches)
        assert terminal.fin() == code
        suite = " ".join(" ".join(terminal.lignes[deja:]).split())
        assert suite.count(verdict) == 1 and "Traceback" not in suite
        assert terminal.reglages == terminal.avant
        colles = [terminal.brut.rfind(f"\x1b[?2004{etat}".encode()) for etat in "hl"]
        assert colles[0] < colles[1], "le terminal n'annonce plus les collages"
    if code == 0:
        assert "gabarit de démonstration" in chemin.read_text("utf-8")
        garde = {f"{chemin.name}~": ANCIEN.encode()}
        assert fichiers(copie) == {chemin.name: chemin.read_bytes(), **garde}
    else:
        assert fichiers(copie) == {chemin.name: ANCIEN.encode()}


def coller_au_shell(copie: Path, morceaux: list[str]) -> tuple[list[str], float]:
    """Tape ces morceaux à la question ; rend l'écran, et le plus long silence entre deux."""
    shell = f'{commande(copie)}; read -t 0.3 reste; echo "reste=<$reste>"'
    with Terminal(copie, shell=shell) as terminal:
        terminal.attendre_la_question()
        instants = [time.monotonic()]
        for morceau in morceaux:
            terminal.taper(morceau)
            time.sleep(0.05)
            instants.append(time.monotonic())
        assert terminal.fin() == 0
        return terminal.lignes, max(map(float.__sub__, instants[1:], instants))


@pytest.mark.parametrize(
    "morceaux",
    [["oui\n" + "echo pirate\n" * 200], ["oui\n", *["echo pirate\n"] * 8]],
    ids=["long collage", "collage lent"],
)
def test_rien_de_ce_qui_est_colle_n_arrive_au_shell(copie: Path, morceaux: list[str]) -> None:
    """Un collage se reconnaît à ce qu'il n'a pas de silence ; une machine occupée en ajoute."""
    for _ in range(5):
        lignes, silence = coller_au_shell(copie, morceaux)
        if len(morceaux) == 1 or silence < 0.08:
            break
        for chemin in (copie / "brouillons").iterdir():
            chemin.unlink()
    else:
        pytest.skip("cette machine est trop occupée pour coller sans silence")
    assert lignes[-1] == "reste=<>"
    assert "elle ne compte pas" in "".join(lignes)
    assert fichiers(copie) == {}


def test_une_sortie_d_erreur_fermee_est_un_refus(copie: Path) -> None:
    """Au clavier, `input()` en a besoin : sans elle, personne ne peut répondre."""
    with Terminal(copie, shell=f"exec {commande(copie, '2>&-')}") as terminal:
        terminal.attendre(QUESTION)
        terminal.taper("oui\n")
        assert terminal.fin() == 3
        assert "Traceback" not in "".join(terminal.lignes)
    assert fichiers(copie) == {}


def test_les_touches_tapees_d_avance_ne_repondent_pas_et_ne_restent_pas(copie: Path) -> None:
    """Et l'attente se voit, puis s'efface."""
    premier, second = Lent(lecture()), Lent(brouillon("Bonjour."))
    serie = premier, second
    with servir(*serie) as serveur, ouvrir(copie, serveur, neuf=True) as terminal:
        terminal.attendre("chargement du SDK (0 s)")
        terminal.taper("oui\n")
        terminal.attendre("le modèle demande le ticket (1 s)")
        terminal.taper("bavardage\n")
        premier.debloquer.set()
        terminal.attendre("le modèle rédige (")
        terminal.taper("oui\noui\n")
        second.debloquer.set()
        terminal.attendre_la_question()
        restes = ("chargement", "le modèle ", " s)", "bavardage", "oui\n")
        affiche = "\n".join([*terminal.lignes, ""])
        assert [reste for reste in restes if reste in affiche] == []
        terminal.taper("non\n")
        assert terminal.fin() == 3
    assert fichiers(copie) == {}


def test_des_touches_qui_arrivent_avec_la_question_n_y_repondent_pas(copie: Path) -> None:
    """La réponse n'est lue qu'après un silence du clavier."""
    lent = Lent(brouillon("Bonjour."))
    with servir(lecture(), lent) as serveur, ouvrir(copie, serveur) as terminal:
        terminal.attendre("le modèle rédige (")
        lent.debloquer.set()
        while QUESTION not in "".join(terminal.ecran.rangees):
            terminal.taper("oui\n")
            terminal.lire(0.02)
        terminal.attendre_la_question()
        terminal.taper("non\n")
        assert terminal.fin() == 3
        assert "ne compte pas" not in "".join(terminal.lignes)
    assert fichiers(copie) == {}


# --- Les signaux ----------------------------------------------------------------------------


def verifier_la_fin(terminal: Terminal, numero: int, copie: Path, nom: str = "Ctrl-C") -> None:
    """Une fois suffit : une phrase, puis le signal même, et le terminal tel qu'il était."""
    assert terminal.fin(10) == -numero
    ecran = "\n".join(terminal.lignes)
    phrase = f"Interrompu ({nom}) : aucun brouillon n'a été écrit."
    assert terminal.lignes[-1] == phrase and ecran.count("Interrompu") == 1
    assert "Traceback" not in ecran and "ignored" not in ecran
    assert terminal.reglages == terminal.avant
    assert fichiers(copie) == {}


SIGNAUX = {"SIGTERM": "arrêt demandé", "SIGHUP": "terminal fermé", "SIGINT": "Ctrl-C"}


@pytest.mark.parametrize("nom", SIGNAUX)
def test_un_signal_finit_a_la_question_et_pendant_l_attente(copie: Path, nom: str) -> None:
    numero = getattr(signal, nom)
    with Terminal(copie, "ticket-local", "--demo") as terminal:
        terminal.attendre_la_question()
        terminal.taper("ou")
        terminal.attendre("Réponse : ou")
        terminal.laisser_passer(0.2)  # que readline ait fini avec la dernière touche
        os.kill(terminal.processus.pid, numero)
        verifier_la_fin(terminal, numero, copie, SIGNAUX[nom])
    with servir(lecture(), Reponse(attente=60)) as serveur, ouvrir(copie, serveur) as terminal:
        terminal.attendre("le modèle rédige (")
        os.kill(terminal.processus.pid, numero)
        verifier_la_fin(terminal, numero, copie, SIGNAUX[nom])


@pytest.mark.parametrize("a_la_question", [True, False], ids=["question", "attente"])
def test_un_terminal_ferme_pour_de_bon_finit_par_le_signal(copie: Path, a_la_question: bool) -> None:
    suite = brouillon("Bonjour.") if a_la_question else Reponse(attente=60)
    with servir(lecture(), suite) as serveur, ouvrir(copie, serveur) as terminal:
        if a_la_question:
            terminal.attendre_la_question()
        else:
            terminal.attendre("le modèle rédige (")
        terminal.fermer()
        assert terminal.processus.attendre(10) == -signal.SIGHUP
    assert fichiers(copie) == {}


@pytest.mark.parametrize("avant", [[], [lecture()]], ids=["premier tour", "second tour"])
def test_ctrl_c_devant_un_serveur_muet(copie: Path, avant: list[Any]) -> None:
    with servir(*avant, Reponse(attente=60)) as serveur, ouvrir(copie, serveur) as terminal:
        terminal.patienter(lambda: len(serveur.recues) > len(avant))
        terminal.taper(CTRL_C)
        verifier_la_fin(terminal, signal.SIGINT, copie)


def test_ctrl_c_apres_une_remarque_ne_ramene_pas_la_version_precedente(copie: Path) -> None:
    serie = lecture(), brouillon("Bonjour."), Reponse(attente=60)
    with servir(*serie) as serveur, ouvrir(copie, serveur) as terminal:
        terminal.attendre_la_question()
        terminal.taper("non plus court\n")
        terminal.attendre("le modèle rédige (")
        terminal.taper(CTRL_C)
        verifier_la_fin(terminal, signal.SIGINT, copie)
        assert terminal.brut.count(QUESTION.encode()) == 1


@pytest.mark.parametrize("instant", [0, 0.7])
def test_ctrl_c_pendant_le_chargement_du_sdk(copie: Path, instant: float) -> None:
    with Terminal(copie, "ticket-local", "--demo", neuf=True) as terminal:
        terminal.attendre("chargement du SDK")
        terminal.laisser_passer(instant)
        terminal.taper(CTRL_C)
        verifier_la_fin(terminal, signal.SIGINT, copie)


def test_un_sigint_ignore_le_reste(copie: Path) -> None:
    """Comme sous nohup, ou lancé à l'arrière-plan par un script."""
    lent = Lent(brouillon("Bonjour."))
    with servir(lecture(), lent) as serveur, ouvrir(copie, serveur, ignore=True) as terminal:
        terminal.attendre("le modèle rédige (")
        terminal.taper(CTRL_C)
        terminal.laisser_passer(0.3)
        lent.debloquer.set()
        terminal.attendre_la_question()
        terminal.taper(CTRL_C)
        terminal.laisser_passer(0.3)
        terminal.taper("oui\n")
        assert terminal.fin() == 0
    assert fichiers(copie) == {"ticket-local.txt": b"Bonjour."}


def test_une_boucle_du_shell_s_arrete_au_premier_ctrl_c(copie: Path) -> None:
    boucle = f'for n in 1 2 3; do {commande(copie)}; echo "suivant=$?"; done; echo "fin"'
    with Terminal(copie, shell=boucle) as terminal:
        terminal.attendre_la_question()
        terminal.taper(CTRL_C)
        verifier_la_fin(terminal, signal.SIGINT, copie)
        assert terminal.brut.count(QUESTION.encode()) == 1


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
    """Python ignore ce que lève le rappel d'une référence faible : à l'import, pendant un tour.

    Le premier cas vient avant main : le signal suffit, sans phrase et sans trace.
    """
    fini = subprocess.run(
        [sys.executable, "-c", GUET.format(rappel=rappel, module=module)],
        cwd=copie,
        input=b"oui\n",
        capture_output=True,
        env=environnement(PYTHONIOENCODING="utf-8"),
        timeout=60,
        preexec_fn=restaurer_les_signaux,
    )
    phrase = "" if rappel == "compile" else "Interrompu (Ctrl-C) : aucun brouillon n'a été écrit."
    assert (fini.returncode, fini.stderr.decode().strip()) == (-signal.SIGINT, phrase)
    assert fichiers(copie) == {}


def test_ctrl_c_pendant_l_import_de_readline_n_est_pas_perdu(copie: Path) -> None:
    (copie / "guet.py").write_text(GUET.format(rappel="cb", module="readline"), encoding="utf-8")
    with Terminal(copie, shell=f"cd {copie}; exec {sys.executable} guet.py") as terminal:
        terminal.attendre("Interrompu", 60)  # le guet ralentit tout
        verifier_la_fin(terminal, signal.SIGINT, copie)


# --- L'écran --------------------------------------------------------------------------------


def test_la_marge_tient_a_toutes_les_largeurs(copie: Path) -> None:
    """La fenêtre change de largeur entre deux versions ; chaque signe reste derrière la marge."""
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


QUATORZE = """\
Bonjour,

Nous avons bien reçu votre message au sujet de la lampe.

Nous vous remboursons 35,50 € avant le 12 mars 2031.
Nous avons expédié une nouvelle lampe.

Gardez la lampe abîmée.
Gardez aussi son carton.

Pouvez-vous nous dire si elle s'allume encore ?

Cordialement,
Le support"""


def test_en_24_rangees_le_texte_ses_points_et_la_question_sont_en_vue(copie: Path) -> None:
    """Malgré un ancien brouillon et une version refusée, différente à chaque ligne."""
    (copie / "brouillons" / "ticket-local.txt").write_text(ANCIEN, "utf-8")
    refusee = QUATORZE.replace("lampe", "chaise").replace("\n\n", "\nUne ligne de trop.\n\n")
    versions = brouillon(refusee), brouillon(QUATORZE)
    with servir(lecture(), *versions) as serveur, ouvrir(copie, serveur, hauteur=24) as terminal:
        terminal.attendre_la_question()
        terminal.taper("non, plus court\n")
        terminal.attendre_la_question()
        rangees = terminal.lignes
        texte = [f"| {ligne}".rstrip() for ligne in QUATORZE.split("\n")]
        debut = rangees.index(texte[0])
        assert rangees[debut : debut + 14] == texte and len(rangees) == 24
        vide, titre, *points = rangees[debut + 14 : -3]
        assert (vide, titre.split(" (")[0]) == ("", "À vérifier")
        assert 2 <= len(points) <= 4 and all(ligne.startswith("| ") for ligne in points)
        assert rangees[-3] == "" and rangees[-2].startswith(QUESTION)
        assert rangees[-1] == "Réponse :"
        assert "plus haut que la fenêtre" not in "".join(rangees)
        terminal.taper("non\n")
        assert terminal.fin() == 3


def test_un_terminal_simple_n_a_ni_couleur_ni_sequence(copie: Path) -> None:
    """TERM=dumb : une ligne par étape de l'attente, et rien de `readline`."""
    ancien = QUATORZE.replace("carton", "emballage")
    (copie / "brouillons" / "ticket-local.txt").write_text(ancien, "utf-8")
    premier, second = Lent(lecture()), Lent(brouillon(QUATORZE))
    serie = premier, second
    with servir(*serie) as serveur, ouvrir(copie, serveur, TERM="dumb") as terminal:
        terminal.attendre("le modèle demande le ticket")
        terminal.laisser_passer(0.7)
        premier.debloquer.set()
        terminal.attendre("le modèle rédige")
        terminal.laisser_passer(0.7)
        second.debloquer.set()
        terminal.attendre_la_question()
        for etape in ("... le modèle demande le ticket", "... le modèle rédige"):
            assert terminal.lignes.count(etape) == 1
        assert "[-" in "".join(terminal.lignes) and "À vérifier" in "".join(terminal.lignes)
        assert terminal.ecran.dessins(QUESTION) == ORDINAIRE
        terminal.taper("oui\n")
        assert terminal.fin() == 0
        assert b"\x1b" not in terminal.brut and terminal.reglages == terminal.avant


def test_la_rangee_d_attente_suit_une_fenetre_qui_retrecit(copie: Path) -> None:
    with servir(Reponse(attente=60)) as serveur, ouvrir(copie, serveur) as terminal:
        terminal.attendre("le modèle demande le ticket (")
        terminal.redimensionner(30)
        terminal.laisser_passer(1.2)
        (rangee,) = terminal.lignes
        assert rangee.startswith("... le modèle demande") and len(rangee) < 30
        terminal.taper(CTRL_C)
        assert terminal.fin() == -signal.SIGINT
        assert terminal.lignes[0].startswith("Interrompu")


def test_un_terminal_sans_taille_a_80_colonnes(copie: Path) -> None:
    texte = "mot " * 60
    serie = lecture(), brouillon(texte)
    with servir(*serie) as serveur, ouvrir(copie, serveur, connue=False) as terminal:
        terminal.attendre_la_question()
        rangees = [ligne for ligne in terminal.lignes if ligne.startswith("| mot")]
        assert [len(rangee) for rangee in rangees] == [77, 77, 77, 13]
        assert "plus haut que la fenêtre" not in "".join(terminal.lignes)
        terminal.taper("oui\n")
        assert terminal.fin() == 0
    assert fichiers(copie) == {"ticket-local.txt": texte.encode()}


def test_l_attente_ne_laisse_rien_dans_une_sortie_redirigee(projet: Projet) -> None:
    lent = Lent(brouillon("Bonjour."))
    argv = ("ticket-local", "--modele", "essai")
    with servir(lecture(), lent) as serveur:
        threading.Timer(0.6, lent.debloquer.set).start()
        bilan = projet.lancer(*argv, entree="oui\n", OPENAI_BASE_URL=serveur.adresse)
    assert (bilan.code, bilan.err) == (0, "")
    assert "\r" not in bilan.out and "rédige" not in bilan.out


def test_un_clavier_et_une_sortie_redirigee_sont_refuses_avant_toute_requete(copie: Path) -> None:
    lecteur, ecrivain = os.pipe()
    with servir(lecture(), brouillon("Bonjour.")) as serveur:
        with ouvrir(copie, serveur, sortie=ecrivain) as terminal:
            os.close(ecrivain)
            assert terminal.fin() == 2
            assert len(terminal.lignes) <= 2 and "Sortie redirigée" in terminal.lignes[0]
        with open(lecteur, "rb") as sortie:
            assert sortie.read() == b""
        assert serveur.recues == []
    assert fichiers(copie) == {}


def test_une_remarque_collee_part_entiere_apres_avoir_ete_montree(copie: Path) -> None:
    versions = [brouillon(f"Bonjour,\n\nVersion {lettre}.") for lettre in "AB"]
    with servir(lecture(), *versions) as serveur, ouvrir(copie, serveur) as terminal:
        terminal.attendre_la_question()
        terminal.taper(coller("non, plus court,\ns'il vous plaît\n\nsans date") + "\n")
        terminal.attendre_la_question()
        ecran = terminal.lignes
        (annonce,) = (
            rang
            for rang, ligne in enumerate(ecran)
            if ligne.startswith("Refusé. Votre remarque part vers 127.0.0.1")
        )
        remarque = ["| plus court,", "| s'il vous plaît", "|", "| sans date"]
        assert ecran[annonce + 1 : annonce + 5] == remarque
        assert "plus court,\\ns'il vous plaît\\n\\nsans date" in str(serveur.recues[2])
        assert "| Version [-A.-] {+B.+}" in ecran
        terminal.taper("oui\n")
        assert terminal.fin() == 0
        assert len(serveur.recues) == 3
    assert fichiers(copie) == {"ticket-local.txt": b"Bonjour,\n\nVersion B."}


def test_la_version_precedente_revient_au_clavier(copie: Path) -> None:
    """Les touches tapées pendant l'échec ne répondent pas à la question qui revient."""
    lent = Lent([])  # type: ignore[arg-type]
    serie = lecture(), brouillon("Bonjour,\nVersion A."), lent
    with servir(*serie) as serveur, ouvrir(copie, serveur) as terminal:
        terminal.attendre_la_question()
        terminal.taper("non plus court\n")
        terminal.attendre("le modèle rédige (")
        terminal.taper("oui\n")
        lent.debloquer.set()
        terminal.attendre_la_question()
        assert terminal.lignes.count("| Version A.") == 2
        terminal.taper("oui")
        terminal.attendre("Réponse : oui")
        terminal.taper(CTRL_C)
        verifier_la_fin(terminal, signal.SIGINT, copie)
