"""Joue le script jusqu'au « oui » et lui envoie un vrai SIGINT à un instant de l'écriture.

Usage : signaux.py DOSSIER INSTANT... ; un instant s'écrit « avant fsync 2 ». Rend sur la sortie
un objet JSON : pour chaque instant la fin du processus, ses erreurs et ce que le dossier contient.
Le SDK n'est chargé qu'une fois : chaque instant est joué dans une copie de ce processus.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import agents.testing  # noqa: F401
import openai  # noqa: F401


def surveiller(fonction: str, instant: str) -> None:
    """Fait partir le signal juste avant, ou juste après, le n-ième appel de cette fonction."""
    vraie, appels = getattr(os, fonction), Counter[str]()

    def appeler(*arguments: Any, **nommes: Any) -> Any:
        if fonction == "open" and not arguments[1] & os.O_CREAT:
            return vraie(*arguments, **nommes)
        appels[fonction] += 1
        if instant == f"avant {fonction} {appels[fonction]}":
            signal.raise_signal(signal.SIGINT)
        rendu = vraie(*arguments, **nommes)
        if instant == f"après {fonction} {appels[fonction]}":
            signal.raise_signal(signal.SIGINT)
        return rendu

    setattr(os, fonction, appeler)


def jouer(dossier: Path, instant: str) -> None:
    """Le script, son entrée et ses sorties dans des fichiers ; ne revient pas."""
    for descripteur, nom in enumerate(("entree", "sortie", "erreurs")):
        fichier = os.open(dossier / nom, os.O_RDWR | os.O_CREAT)
        os.dup2(fichier, descripteur)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # lancé en arrière-plan, il serait ignoré
    for fonction in ("open", "fsync", "replace"):
        surveiller(fonction, instant)
    sys.argv = ["draft_ticket.py", "ticket-local", "--demo"]
    runpy.run_path(str(dossier / "draft_ticket.py"), run_name="__main__")
    os._exit(99)


def preparer(dossier: Path) -> None:
    """Pose les brouillons de deux lancements passés, et rien d'autre."""
    for chemin in (dossier / "brouillons").iterdir():
        chemin.unlink()
    (dossier / "brouillons" / "ticket-local.txt").write_text("Ancien")
    (dossier / "brouillons" / "ticket-local.txt~").write_text("Plus ancien")
    (dossier / "entree").write_text("oui\n")
    for nom in ("sortie", "erreurs"):
        (dossier / nom).write_text("")


def contenu(dossier: Path) -> dict[str, str]:
    fichiers = sorted((dossier / "brouillons").iterdir())
    return {chemin.name: chemin.read_text("utf-8") for chemin in fichiers}


def main(dossier: Path, instants: list[str]) -> None:
    preparer(dossier)
    resultats: dict[str, Any] = {"avant": [0, "", contenu(dossier)]}
    for instant in instants:
        preparer(dossier)
        enfant = os.fork()
        if enfant == 0:
            jouer(dossier, instant)
        fin = os.waitstatus_to_exitcode(os.waitpid(enfant, 0)[1])
        resultats[instant] = [fin, (dossier / "erreurs").read_text("utf-8"), contenu(dossier)]
    print(json.dumps(resultats))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
