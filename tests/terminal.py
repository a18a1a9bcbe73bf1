"""Un vrai pseudo-terminal, et l'écran qu'une personne y verrait (`pyte`)."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyte
from conftest import environnement
from wcwidth import wcwidth

CTRL_C, CTRL_D = "\x03", "\x04"


class Ecran(pyte.Screen):
    """Un écran de cette largeur, assez haut pour que rien n'en sorte."""

    def __init__(self, colonnes: int, hauteur: int = 400) -> None:
        super().__init__(colonnes, hauteur)

    def draw(self, data: str) -> None:
        """Écrit ; pyte s'arrêterait au premier signe sans largeur (ZWJ, VS16) : il rejoint sa cellule."""
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


def rendu(sortie: str, colonnes: int = 80) -> list[str]:
    """Ce qu'un terminal de cette largeur montre d'une sortie, sans les blancs de fin."""
    ecran = Ecran(colonnes, 2 * len(sortie) // colonnes + 2 * sortie.count("\n") + 2)
    pyte.Stream(ecran).feed(sortie.replace("\n", "\r\n"))
    return sans_blancs(ecran)


def sans_blancs(ecran: Ecran) -> list[str]:
    """Les rangées, sans leurs blancs de fin ni les dernières si elles sont vides."""
    return "\n".join(rangee.rstrip() for rangee in ecran.rangees).rstrip().split("\n")


def regler_la_largeur(terminal: int, colonnes: int) -> None:
    """Donne cette largeur, et 24 lignes, au terminal ouvert sous ce descripteur."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, colonnes, 0, 0))


class Terminal:
    """Le script lancé au clavier ; `sortie` redirige sa sortie standard, et elle seule."""

    def __init__(
        self, copie: Path, *argv: str, colonnes: int = 80, sortie: int | None = None, **variables: str
    ) -> None:
        self.maitre, esclave = os.openpty()
        self.redimensionner(colonnes)
        self.processus = subprocess.Popen(
            [sys.executable, str(copie / "draft_ticket.py"), *argv],
            stdin=esclave,
            stdout=esclave if sortie is None else sortie,
            stderr=esclave,
            env=environnement(PYTHONIOENCODING="utf-8", **variables),
            start_new_session=True,
            preexec_fn=prendre_le_terminal,
        )
        os.close(esclave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: Any) -> None:
        self.processus.kill()
        self.processus.wait()
        os.close(self.maitre)

    def redimensionner(self, colonnes: int) -> None:
        """Donne cette largeur au terminal ; l'écran repart vide."""
        regler_la_largeur(self.maitre, colonnes)
        self.ecran, self.brut = Ecran(colonnes), b""
        self.flux = pyte.ByteStream(self.ecran)

    @property
    def lignes(self) -> list[str]:
        """Ce qui est affiché, sans les blancs de fin."""
        return sans_blancs(self.ecran)

    def taper(self, touches: str) -> None:
        """Tape des touches ; Entrée est « \\n »."""
        os.write(self.maitre, touches.encode())

    def lire(self, secondes: float) -> bool:
        """Porte à l'écran ce qui arrive dans ce délai ; faux quand le script a fermé le terminal."""
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
        """Attend que la question soit la dernière chose affichée, le curseur juste après."""

        def posee() -> bool:
            affiche = " ".join(" ".join(self.ecran.rangees).split())
            return affiche.endswith("non, votre remarque :") and self.ecran.cursor.x > 0

        self.patienter(posee)

    def patienter(self, condition: Callable[[], bool], secondes: float = 30) -> None:
        """Lit le terminal jusqu'à ce que la condition soit vraie."""
        limite = time.monotonic() + secondes
        while not condition():
            assert time.monotonic() < limite and self.lire(0.1), ["attente déçue", *self.lignes]

    def fin(self, secondes: float = 30) -> int:
        """Attend la fin du script et rend son code de sortie."""
        limite = time.monotonic() + secondes
        while self.lire(0.1):
            assert time.monotonic() < limite, ["la fin était attendue", *self.lignes]
        return self.processus.wait(secondes)


def prendre_le_terminal() -> None:
    """Dans le sous-processus : ce terminal est le sien."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    restaurer_ctrl_c()


def restaurer_ctrl_c() -> None:
    """Dans le sous-processus : Ctrl-C interrompt, même si les essais tournent à l'arrière-plan."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
