"""La ligne de commande : une faute est une phrase en français, avant la moindre requête."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Projet, environnement
from reseau import LECTURE, jouer, phrase
from serveur import servir

FAUTES = {
    "valeur hors de la liste": (["--api", "faux"], "« --api »"),
    "nombre illisible": (["--delai", "abc"], "« --delai »"),
    "valeur absente": (["--modele"], "« --modele »"),
    "délai absent": (["--delai"], "« --delai »"),
    "valeur en trop": (["--demo=3"], "« --demo »"),
    "valeur à l'aide": (["--aide=3"], "« -h/--aide/--help »"),
    "option inconnue": (["--inconnu"], "« --inconnu »"),
    "option abrégée": (["--mod", "m"], "« --mod m »"),
    "second ticket": (["ticket-autre"], "« ticket-autre »"),
    "mot d'argparse dans l'argument": (["--arguments: x"], "« --arguments: x »"),
    "mot d'argparse dans une valeur": (["--demo=arguments: x"], "« --demo »"),
    "signes dangereux": (["--\x1b[31m\u202e"], "« --‹U+001B›[31m‹U+202E› »"),
    "argument vide": ([""], "«  »"),
    **{
        f"délai {valeur}": (["--delai", valeur], "« --delai »")
        for valeur in ("0", "-1", "nan", "inf", "1e9")
    },
}


@pytest.mark.parametrize("cas", FAUTES)
def test_une_faute_d_usage_est_une_phrase_qui_cite_l_argument(projet: Projet, cas: str) -> None:
    argv, mots = FAUTES[cas]
    with servir(LECTURE) as serveur:
        bilan = jouer(projet, serveur, *argv)
    assert bilan.code == 2 and bilan.out == ""
    phrase(bilan, mots)
    assert serveur.recues == [] and projet.fichiers() == {}


def test_une_faute_d_usage_ne_charge_pas_le_sdk(copie: Path) -> None:
    script = str(copie / "draft_ticket.py")
    commande = [sys.executable, "-X", "importtime", script, "ticket-local", "--api", "faux"]
    fini = subprocess.run(commande, capture_output=True, env=environnement(), timeout=60)
    erreurs = fini.stderr.decode("ascii", "replace")
    charges = set(re.findall(r"(?m)^import time:.*\| +(\S+)$", erreurs))
    assert fini.returncode == 2 and "argparse" in charges
    assert not charges & {"agents", "openai", "asyncio", "pydantic"}
