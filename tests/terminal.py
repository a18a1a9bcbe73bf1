"""Un vrai pseudo-terminal, et l'écran qu'une personne y verrait (`pyte`).

Charger le SDK prend deux secondes. Un couveur (ce fichier, lancé comme un programme) le charge une
fois ; chaque parcours au clavier est ensuite une copie de ce processus, maître de son terminal,
qui joue le script du début à la fin. `neuf=True` lance plutôt un Python neuf.
"""

from __future__ import annotations

import atexit
import fcntl
import io
import json
import os
import re
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import IO, Any

import pyte
from conftest import environnement
from parcours import QUESTION
from wcwidth import wcwidth

import draft_ticket

CTRL_C, CTRL_D, EFFACE, GAUCHE = "\x03", "\x04", "\x7f", "\x1b[D"


def coller(texte: str) -> str:
    """Un collage, tel que l'annonce un terminal à qui `readline` l'a demandé."""
    return f"\x1b[200~{texte}\x1b[201~"


class Ecran(pyte.Screen):
    """Un écran de cette largeur, assez haut pour que rien n'en sorte."""

    def __init__(self, colonnes: int, hauteur: int = 400) -> None:
        super().__init__(colonnes, hauteur)

    def draw(self, data: str) -> None:
        """Écrit ; un signe sans largeur (ZWJ, VS16), qui arrêterait pyte, rejoint sa cellule."""
        for signe in data:
            if wcwidth(signe):
                super().draw(signe)
            elif self.cursor.x:
                rangee = self.buffer[self.cursor.y]
                rang = self.cursor.x - (2 if rangee[self.cursor.x - 1].data == "" else 1)
                rangee[rang] = rangee[rang]._replace(data=rangee[rang].data + signe)

    @property
    def rangees(self) -> list[str]:
        """Les rangées écrites, jusqu'au curseur, sur toute leur largeur."""
        colonnes, hauteur = range(self.columns), range(self.cursor.y + 1)
        return ["".join(self.buffer[y][x].data for x in colonnes) for y in hauteur]

    def dessins(self, texte: str) -> set[tuple[str, str, bool]]:
        """Les encres, fonds et graisses de ce texte, à sa première place à l'écran."""
        for y, rangee in enumerate(self.rangees):
            debut = rangee.find(texte)
            if debut >= 0:
                cellules = [self.buffer[y][x] for x in range(debut, debut + len(texte))]
                return {(cellule.fg, cellule.bg, cellule.bold) for cellule in cellules}
        raise AssertionError([f"{texte!r} n'est pas à l'écran", *sans_blancs(self)])


ORDINAIRE = {("default", "default", False)}


def rendu(sortie: str, colonnes: int = 80) -> list[str]:
    """Ce qu'un terminal de cette largeur montre d'une sortie, sans les blancs de fin."""
    ecran = Ecran(colonnes, 2 * len(sortie) // colonnes + 2 * sortie.count("\n") + 2)
    pyte.Stream(ecran).feed(sortie.replace("\n", "\r\n"))
    return sans_blancs(ecran)


def sans_blancs(ecran: Ecran) -> list[str]:
    """Les rangées, sans leurs blancs de fin ni les dernières si elles sont vides."""
    return "\n".join(rangee.rstrip() for rangee in ecran.rangees).rstrip().split("\n")


def regler_la_largeur(terminal: int, colonnes: int, hauteur: int = 24) -> None:
    """Donne cette taille au terminal ouvert sous ce descripteur."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", hauteur, colonnes, 0, 0))


class Fenetre(io.BytesIO):
    """Une sortie standard qui garde ses octets, et passe pour un terminal de cette taille."""

    terminal = 0

    def fileno(self) -> int:
        return self.terminal

    def isatty(self) -> bool:
        return True


def capter(geste: Callable[[], object], colonnes: int = 80, hauteur: int = 24) -> str:
    """Ce que ce geste envoie à un terminal de cette taille, la rangée d'attente mise à part."""
    octets = Fenetre()
    maitre, octets.terminal = os.openpty()
    try:
        regler_la_largeur(maitre, colonnes, hauteur)
        with redirect_stdout(io.TextIOWrapper(octets, "utf-8")):
            draft_ticket.preparer_l_ecran()
            geste()
            sys.stdout.flush()
            sortie = octets.getvalue().decode("utf-8")
    finally:
        os.close(maitre)
        os.close(octets.terminal)
    return re.sub(r"(?:\.\.\. [^\r\n]* s\) *\r)* *\r", "", sortie)


def sans_couleurs(sortie: str) -> str:
    """La même sortie sans les codes de couleur et de graisse."""
    return re.sub(r"\x1b\[[\d;]*m", "", sortie)


class Terminal:
    """Le script lancé au clavier ; `sortie` redirige sa sortie standard, et elle seule."""

    def __init__(
        self,
        copie: Path,
        *argv: str,
        colonnes: int = 80,
        hauteur: int = 400,
        connue: bool = True,
        sortie: int | None = None,
        neuf: bool = False,
        shell: str = "",
        ignore: bool = False,
        **variables: str,
    ) -> None:
        """`hauteur` est celle de l'écran rendu ; la fenêtre annoncée a 24 rangées, ou 0 sur 0.

        `shell` : la commande bash à lancer à la place ; `ignore` : SIGINT y est ignoré.
        """
        self.maitre, esclave = os.openpty()
        self.hauteur = hauteur
        self.redimensionner(colonnes, connue)
        self.avant = self.reglages
        variables = environnement(PYTHONIOENCODING="utf-8", **variables)
        flux = [esclave, esclave if sortie is None else sortie, esclave]
        self.processus: Processus
        script = str(copie / "draft_ticket.py")
        if neuf or shell:
            commande = ["bash", "-c", shell] if shell else [sys.executable, script, *argv]
            self.processus = Neuf(commande, flux, variables, ignore)
        else:
            self.processus = Couve([script, *argv], flux, variables, ignore)
        os.close(esclave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: Any) -> None:
        self.processus.tuer()
        self.fermer()

    def fermer(self) -> None:
        """Ferme la fenêtre, comme une personne le fait."""
        if self.maitre >= 0:
            os.close(self.maitre)
        self.maitre = -1

    def redimensionner(self, colonnes: int, connue: bool = True) -> None:
        """Donne cette largeur au terminal ; l'écran repart vide."""
        if connue:
            regler_la_largeur(self.maitre, colonnes)
        self.ecran, self.brut, self.questions = Ecran(colonnes, self.hauteur), b"", 0
        self.flux = pyte.ByteStream(self.ecran)

    @property
    def reglages(self) -> list[Any]:
        """Ce que dirait `stty -a` de ce terminal."""
        return termios.tcgetattr(self.maitre)

    @property
    def lignes(self) -> list[str]:
        """Ce qui est affiché, sans les blancs de fin."""
        return sans_blancs(self.ecran)

    def taper(self, touches: str) -> None:
        """Tape des touches ; Entrée est « \\n ».

        `input()` ne voit qu'à la touche suivante un Ctrl-C venu pendant qu'il traite une touche,
        ou pose son invite : celui des essais attend, comme celui d'une personne.
        """
        if CTRL_C in touches:
            self.laisser_passer(0.2)
        os.write(self.maitre, touches.encode())

    def lire(self, secondes: float) -> bool:
        """Porte à l'écran ce qui arrive dans ce délai ; faux quand le terminal est fermé."""
        if select.select([self.maitre], [], [], secondes)[0]:
            try:
                octets = os.read(self.maitre, 65536)
            except OSError:  # Linux le dit ainsi
                octets = b""
            self.brut += octets
            self.flux.feed(octets)
            return octets != b""
        return True

    def attendre(self, texte: str, secondes: float = 30) -> None:
        """Attend un texte à l'écran, même coupé par le bord."""
        self.patienter(lambda: texte in "".join(self.ecran.rangees), secondes)

    def attendre_la_question(self) -> None:
        """Attend la question suivante : la dernière chose affichée, le curseur juste après."""

        def posee() -> bool:
            recu = sans_couleurs(self.brut.decode("utf-8", "replace"))
            affiche = " ".join(" ".join(self.ecran.rangees).split())
            comptees = " ".join(recu.split()).count(QUESTION)  # même sorties de l'écran
            invite = affiche.endswith("Réponse :") and self.ecran.cursor.x > 0
            return invite and comptees > self.questions

        self.patienter(posee)
        self.questions += 1

    def patienter(self, condition: Callable[[], bool], secondes: float = 30) -> None:
        """Lit le terminal jusqu'à ce que la condition soit vraie."""
        limite = time.monotonic() + secondes
        while not condition():
            assert time.monotonic() < limite and self.lire(0.1), ["attente déçue", *self.lignes]

    def laisser_passer(self, secondes: float) -> None:
        """Lit le terminal pendant ce temps."""
        limite = time.monotonic() + secondes
        self.patienter(lambda: time.monotonic() >= limite)

    def fin(self, secondes: float = 30) -> int:
        """Attend la fin du script et rend son code de sortie, négatif si c'est un signal."""
        limite = time.monotonic() + secondes
        while self.lire(0.1):
            assert time.monotonic() < limite, ["la fin était attendue", *self.lignes]
        return self.processus.attendre(secondes)


class Processus:
    """Le script en cours ; `attendre` rend son code, `tuer` n'en laisse rien."""

    pid: int

    def attendre(self, secondes: float) -> int:
        raise NotImplementedError

    def tuer(self) -> None:
        raise NotImplementedError


class Neuf(Processus):
    """Un Python neuf, ou un shell."""

    def __init__(
        self, commande: list[str], flux: list[int], variables: dict[str, str], ignore: bool
    ) -> None:
        self.lance = subprocess.Popen(
            commande,
            stdin=flux[0],
            stdout=flux[1],
            stderr=flux[2],
            env=variables,
            start_new_session=True,
            preexec_fn=lambda: prendre_le_terminal(ignore),
        )
        self.pid = self.lance.pid

    def attendre(self, secondes: float) -> int:
        return self.lance.wait(secondes)

    def tuer(self) -> None:
        if self.lance.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
            self.lance.wait()


class Couve(Processus):
    """Une copie du couveur, où le SDK est déjà chargé."""

    def __init__(self, argv: list[str], flux: list[int], variables: dict[str, str], ignore: bool) -> None:
        self.prise, self.reponses = couveur()
        demande = json.dumps({"argv": argv, "variables": variables, "ignore": ignore})
        socket.send_fds(self.prise, [b"!"], flux)
        self.prise.sendall(f"{demande}\n".encode())
        self.pid = int(self.reponses.readline())
        self.code: int | None = None

    def attendre(self, secondes: float) -> int:
        if self.code is None:
            self.prise.settimeout(secondes)
            self.code = int(self.reponses.readline())
        return self.code

    def tuer(self) -> None:
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            self.attendre(30)


@cache
def couveur() -> tuple[socket.socket, IO[str]]:
    """Lance le couveur ; il finit avec les essais, quand cette prise se ferme."""
    ici, la_bas = socket.socketpair()
    commande, variables = [sys.executable, "-B", __file__], environnement()
    lance = subprocess.Popen(commande, stdin=la_bas.fileno(), env=variables, start_new_session=True)
    la_bas.close()
    reponses = ici.makefile("r")

    def finir() -> None:
        reponses.close()
        ici.close()
        lance.wait()

    atexit.register(finir)
    return ici, reponses


def couver() -> None:
    """Le couveur : pour chaque demande une copie de lui-même, son numéro, puis sa fin."""
    import agents.testing  # noqa: F401
    import openai  # noqa: F401

    with socket.socket(fileno=os.dup(0)) as prise, prise.makefile("r") as demandes:
        while True:
            signe, flux, _, _ = socket.recv_fds(prise, 1, 3)
            if not signe:
                return
            demande = json.loads(demandes.readline())
            enfant = os.fork()
            if enfant == 0:
                prise.close()
                eclore(flux, **demande)
            for descripteur in flux:
                os.close(descripteur)
            prise.sendall(f"{enfant}\n".encode())
            fin = os.waitstatus_to_exitcode(os.waitpid(enfant, 0)[1])
            prise.sendall(f"{fin}\n".encode())


def eclore(flux: list[int], argv: list[str], variables: dict[str, str], ignore: bool) -> None:
    """Joue le script comme un processus neuf l'aurait fait ; ne revient pas."""
    os.setsid()
    for rang, descripteur in enumerate(flux):
        os.dup2(descripteur, rang)
        os.close(descripteur)
    prendre_le_terminal(ignore)
    if not ignore:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(variables)
    sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115
    sys.stdout, sys.stderr = (open(rang, "w", encoding="utf-8") for rang in (1, 2))  # noqa: SIM115
    sys.argv = argv
    runpy.run_path(argv[0], run_name="__main__")
    os._exit(99)


def prendre_le_terminal(ignore: bool = False) -> None:
    """Dans le sous-processus : ce terminal est le sien."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    restaurer_les_signaux()
    if ignore:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def restaurer_les_signaux() -> None:
    """Dans le sous-processus : chaque signal agit, même si les essais tournent sous nohup."""
    for numero in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(numero, signal.SIG_DFL)


if __name__ == "__main__":
    couver()
