"""Le matériel des essais : un projet jetable, un lancement dans le processus ou à part."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis.configuration
import pytest

RACINE = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(RACINE), str(RACINE / "tests")]

import draft_ticket

# Ni clé, ni serveur, ni mandataire de la machine ne doivent entrer dans un essai.
ETRANGERES = (
    "OPENAI_",
    *(f"{nom}_PROXY" for nom in ("HTTP", "HTTPS", "ALL", "NO")),
    "http_",
    "https_",
    "all_",
    "no_",
    "SSL_",
)
MESSAGE = "Bonjour, ma commande 2026-0412 est arrivée abîmée. Je l'ai payée 49,90 €. Que faire ?"
TEXTE = "Bonjour,\n\nNous avons bien reçu votre message. Pouvez-vous préciser ?\n\nLe support"


@dataclass
class Bilan:
    """Ce qu'un lancement a laissé voir."""

    code: int
    out: str
    err: str


@dataclass
class Projet:
    """Un dossier de projet jetable, avec un ticket."""

    dossier: Path
    lancer: Callable[..., Bilan]

    @property
    def brouillon(self) -> Path:
        return self.dossier / "brouillons" / "ticket-local.txt"

    def ticket(self, contenu: Any = None, nom: str = "ticket-local", **champs: Any) -> Path:
        """Écrit un ticket : des octets tels quels, ou un objet complété par `champs`."""
        chemin = self.dossier / "tickets" / f"{nom}.json"
        if contenu is None:
            objet = {"id": nom, "sujet": "Lampe abîmée", "message": MESSAGE, **champs}
            contenu = json.dumps(objet).encode()
        chemin.write_bytes(contenu)
        return chemin

    def fichiers(self) -> dict[str, bytes]:
        """Tout ce que contient brouillons/, octet pour octet."""
        dossier = self.dossier / "brouillons"
        return {chemin.name: chemin.read_bytes() for chemin in sorted(dossier.iterdir())}


def environnement(**variables: str) -> dict[str, str]:
    """L'environnement d'un processus à part, sans rien de la machine qui change le résultat."""
    propre = {cle: v for cle, v in os.environ.items() if not cle.startswith(ETRANGERES)}
    return {**propre, "PYTHONDONTWRITEBYTECODE": "1", "TERM": "xterm-256color", **variables}


def pytest_make_parametrize_id(val: object) -> str | None:
    """Des noms d'essais lisibles et sans caractère de contrôle, que tout outil sait relire."""
    if not isinstance(val, str | bytes):
        return None
    nom = val if isinstance(val, str) else ascii(val)
    nom = unicodedata.normalize("NFKD", nom).encode("ascii", "ignore").decode()
    return re.sub(r"[^\w.+]+", "-", nom)[:60].strip("-") or "vide"


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Un dossier à ce lancement seul : deux suites à la fois ne se gênent pas, et rien ne reste."""
    if config.option.basetemp is None:  # pytest-xdist donne le sien à chaque processus
        atelier = tempfile.TemporaryDirectory()
        config.add_cleanup(atelier.cleanup)
        config.option.basetemp = os.path.join(atelier.name, "essais")
    hypothesis.configuration.set_hypothesis_home_dir(f"{config.option.basetemp}-hypothesis")


@pytest.fixture
def projet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Projet:
    """Un projet jetable ; `lancer` appelle `main` dans ce processus, où le SDK est déjà chargé."""
    for cle in [cle for cle in os.environ if cle.startswith(ETRANGERES)]:
        monkeypatch.delenv(cle)
    monkeypatch.setattr(draft_ticket, "DOSSIER", tmp_path)
    for nom in ("tickets", "brouillons"):
        (tmp_path / nom).mkdir()

    def lancer(*argv: str, entree: str | bytes = "", **variables: str) -> Bilan:
        octets = entree if isinstance(entree, bytes) else entree.encode()
        with monkeypatch.context() as contexte:
            contexte.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(octets), "utf-8"))
            for cle, valeur in variables.items():
                contexte.setenv(cle, valeur)
            capfd.readouterr()
            code = draft_ticket.main(list(argv))
            sys.stdout.flush()
        sortie = capfd.readouterr()
        return Bilan(code, sortie.out, sortie.err)

    projet = Projet(tmp_path, lancer)
    projet.ticket()
    return projet


@pytest.fixture
def copie(tmp_path: Path) -> Path:
    """Une copie du script et de son ticket, pour le lancer dans un processus à part."""
    shutil.copy(RACINE / "draft_ticket.py", tmp_path)
    (tmp_path / "tickets").mkdir()
    (tmp_path / "brouillons").mkdir()
    shutil.copy(RACINE / "tickets" / "ticket-local.json", tmp_path / "tickets")
    return tmp_path


def processus(
    copie: Path, *argv: str, entree: str | bytes | None = "", avant: Any = None, **variables: str
) -> Bilan:
    """Lance le script dans un processus à part et attend sa fin."""
    octets = entree.encode() if isinstance(entree, str) else entree
    fini = subprocess.run(
        [sys.executable, str(copie / "draft_ticket.py"), *argv],
        input=octets,
        capture_output=True,
        env=environnement(**variables),
        timeout=60,
        preexec_fn=avant,
    )
    return Bilan(
        fini.returncode,
        fini.stdout.decode("utf-8", "replace"),
        fini.stderr.decode("utf-8", "replace"),
    )
