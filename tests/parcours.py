"""Un parcours entier, contre le serveur d'essai."""

from __future__ import annotations

from typing import Any

from conftest import Bilan, Projet
from serveur import Serveur, servir

QUESTION = "Enregistrer ce brouillon ?"


def jouer(
    projet: Projet, *reponses: Any, entree: str | bytes = "oui\n", options: tuple[str, ...] = ()
) -> tuple[Bilan, Serveur]:
    """Lance le script ; jamais de trace d'erreur, ni de requête que le serveur garderait."""
    argv = ("ticket-local", "--modele", "essai", *options)
    with servir(*reponses) as serveur:
        bilan = projet.lancer(*argv, entree=entree, OPENAI_BASE_URL=serveur.adresse)
    assert "Traceback" not in bilan.out + bilan.err
    assert [recue["store"] for recue in serveur.recues] == [False] * len(serveur.recues)
    return bilan, serveur


def anciens(projet: Projet) -> dict[str, bytes]:
    """Pose les brouillons de deux lancements passés et rend le contenu du dossier."""
    projet.brouillon.write_bytes("Ancien brouillon, approuvé hier.\r\n".encode())
    copie = projet.brouillon.with_name("ticket-local.txt~")
    copie.write_bytes(b"Brouillon de la semaine pass\xe9e.")
    return projet.fichiers()


def rendus_par_les_outils(serveur: Serveur) -> list[str]:
    """Ce que les outils ont rendu au modèle, d'après la dernière requête."""
    recus = serveur.recues[-1]["input"]
    return [str(item["output"]) for item in recus if item.get("type") == "function_call_output"]


def dans_l_ordre(sortie: str, *morceaux: str) -> None:
    """Vérifie que l'écran montre ces morceaux, dans cet ordre."""
    for morceau in morceaux:
        avant, trouve, sortie = sortie.partition(morceau)
        assert trouve, f"{morceau!r} ne vient pas dans {avant!r}"
