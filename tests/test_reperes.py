"""Les points à vérifier, mesurés sur un jeu de cas étiquetés ; une aide à relire, jamais un verdict."""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import MESSAGE, Projet
from serveur import brouillon, lecture, servir

from draft_ticket import Ticket, plier, points_a_verifier, valeur

CAS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("reperes.json").read_text(encoding="utf-8"))


def repond(point: tuple[str, str], attendu: str) -> bool:
    """Vrai si le point dit ce qui était attendu : les mêmes mots, ou la même raison."""
    mots, raison = point[0].lower(), point[1]
    if attendu in ("recopie", "langue"):
        return raison.startswith(attendu)
    return not raison.startswith(("recopie", "langue")) and (mots in attendu.lower() or attendu.lower() in mots)


def test_le_jeu_tient_le_rappel_et_la_retenue(capsys: pytest.CaptureFixture[str]) -> None:
    attendus = trouves = justes = dits = faux_sur_propres = propres = 0
    for cas in CAS:
        points = points_a_verifier(cas["brouillon"], Ticket("cas", cas["sujet"], cas["message"]))
        faux = [point for point in points if not any(repond(point, a) for a in cas["attendus"])]
        attendus += len(cas["attendus"])
        trouves += sum(any(repond(point, a) for point in points) for a in cas["attendus"])
        dits, justes = dits + len(points), justes + len(points) - len(faux)
        if not cas["attendus"]:
            propres, faux_sur_propres = propres + 1, faux_sur_propres + len(faux)
    rappel, precision, bruit = trouves / attendus, justes / dits, faux_sur_propres / propres
    with capsys.disabled():
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")
        print(
            f"\n{len(CAS)} cas : rappel {rappel:.3f}, précision {precision:.3f}, {bruit:.3f} faux point par texte sain"
        )
    assert len(CAS) >= 60 and propres * 2 >= len(CAS)
    assert rappel >= 0.95
    assert bruit <= 0.1


@pytest.mark.parametrize(
    ("ecriture", "nombre"),
    [
        ("30", 30),
        ("1 250,50", 1250.5),
        ("1.250", 1250),
        ("3.5", 3.5),
        ("trente", 30),
        ("quatre-vingt-dix-sept", 97),
        ("soixante et onze", 71),
        ("deux cent quatre-vingts", 280),
        ("mille deux cents", 1200),
    ],
)
def test_un_nombre_se_lit_en_chiffres_et_en_lettres(ecriture: str, nombre: float) -> None:
    assert valeur(ecriture) == nombre


@pytest.mark.parametrize("texte", ["Écoute l'œuvre — ÇA, İstanbul ﬁn", "e\u0301", "\U0001f600é\xa0a\u202fb"])
def test_plier_garde_le_rang_de_chaque_caractere(texte: str) -> None:
    assert len(plier(texte)) == len(texte)


def test_les_points_sont_au_dessus_de_la_question_et_n_empechent_pas_oui(projet: Projet) -> None:
    texte = "Bonjour,\nNous vous remboursons 30 € demain.\u202e"
    with servir(lecture(), brouillon(texte)) as serveur:
        bilan = projet.lancer("ticket-local", "--modele", "essai", entree="oui\n", OPENAI_BASE_URL=serveur.adresse)
    liste = bilan.out.index("À vérifier (repères automatiques, non exhaustifs)")
    for mots in ("| « 30 € » : montant", "| « remboursons » : ", "| « demain » : "):
        assert liste < bilan.out.index(mots) < bilan.out.index("Enregistrer ce brouillon ?")
    assert bilan.code == 0 and projet.brouillon.read_text(encoding="utf-8") == texte


def test_un_texte_sain_n_affiche_aucune_liste(projet: Projet) -> None:
    texte = "Bonjour,\nVotre commande 2026-0412, payée 49,90 euros, nous est bien signalée abîmée.\nLe support"
    with servir(lecture(), brouillon(texte)) as serveur:
        bilan = projet.lancer("ticket-local", "--modele", "essai", entree="oui\n", OPENAI_BASE_URL=serveur.adresse)
    assert "À vérifier" not in bilan.out and bilan.code == 0


def test_une_liste_sans_fin_ne_pousse_pas_le_texte_hors_de_vue(projet: Projet) -> None:
    texte = "Bonjour, " + ", ".join(f"{nombre} euros" for nombre in range(100, 200))
    with servir(lecture(), brouillon(texte)) as serveur:
        sortie = projet.lancer("ticket-local", "--modele", "essai", OPENAI_BASE_URL=serveur.adresse).out
    assert sortie.count("montant absent du ticket") == 30 and "... et 70 autres." in sortie


def test_un_texte_demesure_est_relu_sans_attendre() -> None:
    texte = ("Nous vous remboursons 30 € le 15 mars. " * 600)[:20_000]
    assert ("30 €", "montant absent du ticket") in points_a_verifier(texte, Ticket("t", "s", MESSAGE * 100))


@pytest.mark.parametrize(
    ("message", "texte"),
    [
        ("j'ai envoye " * 20_000, "Bonjour"),
        ("e" + "\u0301\u0327" * 60_000, "Bonjour"),
        (" ".join(map(str, range(10_000, 50_000))), " ".join(map(str, range(60_000, 63_000)))),
        ("1" * 200_000, "1" * 20_000),
        ("cent-" * 20_000, "[" * 20_000),
    ],
    ids=["repetition", "accents", "nombres", "chiffres", "crochets"],
)
def test_un_texte_fait_pour_bloquer_ne_bloque_pas(message: str, texte: str) -> None:
    """Le coût suit la longueur : quatre fois plus de texte, pas seize fois plus de temps."""

    def duree(part: int) -> float:
        debut = time.perf_counter()
        points_a_verifier(texte[: len(texte) // part], Ticket("t", "s", message[: len(message) // part]))
        return time.perf_counter() - debut

    duree(8)
    assert duree(1) < 12 * max(duree(4), 0.02)
