"""Les points à vérifier, mesurés sur des cas étiquetés ; une aide à relire, jamais un verdict."""

from __future__ import annotations

import hashlib
import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import MESSAGE, Projet
from hypothesis import given
from hypothesis import strategies as st
from serveur import brouillon, lecture, servir

from draft_ticket import FAMILLES, Point, Ticket, lire_valeur, plier, points_a_verifier

Cas = dict[str, Any]
DONNEES = Path(__file__).parent
CAS: list[Cas] = json.loads((DONNEES / "reperes.json").read_text(encoding="utf-8"))
REALISTES: list[Cas] = json.loads((DONNEES / "reperes_realistes.json").read_text(encoding="utf-8"))
DEMANDES = [cas for cas in REALISTES if cas["nom"].startswith(("accordee-", "reprise-"))]
LETTRES = [cas for cas in REALISTES if cas not in DEMANDES]
FAITS = FAMILLES[4]


def reglage(cas: Cas) -> bool:
    """Vrai pour la moitié des cas qui a servi à régler ; l'autre n'a été lue qu'à la fin."""
    return int(hashlib.sha256(cas["nom"].encode()).hexdigest(), 16) % 2 == 0


def famille(sorte: str) -> str:
    return FAITS if sorte == "fait" else sorte


def places(attendu: str, texte: str) -> Iterator[tuple[int, int]]:
    """Où se trouve ce qui est attendu ; la copie et la langue prennent tout le texte."""
    if attendu in ("recopie", "langue"):
        yield 0, len(texte)
    for trouve in re.finditer(re.escape(attendu), texte, re.IGNORECASE):
        yield trouve.span()


def repond(point: Point, attendu: str, texte: str) -> bool:
    """Vrai si le point contient ce qui était attendu, ou y est contenu, à la même place."""
    if attendu in ("recopie", "langue") and (point.famille != "forme" or point.fin - point.debut < 40):
        return False
    return any(
        (point.debut <= debut and fin <= point.fin) or (debut <= point.debut and point.fin <= fin)
        for debut, fin in places(attendu, texte)
    )


def points(cas: Cas) -> list[Point]:
    return points_a_verifier(cas["brouillon"], Ticket("cas", cas["sujet"], cas["message"]))


def vus(cas: Cas) -> list[bool]:
    """Pour chaque étiquette d'un cas, si un point y répond."""
    return [any(repond(point, a, cas["brouillon"]) for point in points(cas)) for a in cas["attendus"]]


def mesurer(jeu: list[Cas]) -> tuple[float, float]:
    """Le rappel, et le nombre de faux points par brouillon sain."""
    trouves = [vu for cas in jeu for vu in vus(cas)]
    sains = [len(points(cas)) for cas in jeu if not cas["attendus"]]
    return sum(trouves) / len(trouves), sum(sains) / len(sains)


def montrer(capsys: pytest.CaptureFixture[str], phrase: str) -> None:
    with capsys.disabled():
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")
        print(f"\n{phrase}")


def test_les_310_cas_tiennent_le_rappel(capsys: pytest.CaptureFixture[str]) -> None:
    rappel, bruit = mesurer(CAS)
    montrer(capsys, f"{len(CAS)} cas courts : rappel {rappel:.3f}, {bruit:.2f} faux par texte sain")
    assert len(CAS) >= 310 and rappel >= 0.95 and bruit <= 0.5


def test_les_cas_realistes_tiennent_rappel_et_retenue(capsys: pytest.CaptureFixture[str]) -> None:
    """La moitié tenue à l'écart a donné 0,86 et 0,45 à sa première lecture."""
    for nom, moitie in (("réglage", True), ("tenue à l'écart", False)):
        rappel, bruit = mesurer([cas for cas in LETTRES if reglage(cas) == moitie])
        montrer(
            capsys, f"cas réalistes, moitié {nom} : rappel {rappel:.3f}, {bruit:.2f} faux par texte sain"
        )
    rappel, bruit = mesurer(LETTRES)
    assert len(LETTRES) >= 80 and rappel >= 0.75 and bruit <= 0.4


@pytest.mark.parametrize("sorte", ["promesse", "fait accompli", "cause", "règle", "fait", "forme"])
def test_chaque_famille_se_voit_dans_les_cas_realistes(
    sorte: str, capsys: pytest.CaptureFixture[str]
) -> None:
    trouves = [
        vu for cas in LETTRES for vu, etiquette in zip(vus(cas), cas["sortes"]) if etiquette == sorte
    ]
    sains = [points(cas) for cas in LETTRES if not cas["attendus"]]
    faux = sum(point.famille == famille(sorte) for lus in sains for point in lus)
    montrer(
        capsys,
        f"{sorte} : {sum(trouves)} vus sur {len(trouves)}, {faux} faux sur {len(sains)} textes sains",
    )
    assert sum(trouves) >= 0.75 * len(trouves) and faux <= 0.2 * len(sains)


def test_une_demande_accordee_se_voit_et_une_demande_reprise_non(
    capsys: pytest.CaptureFixture[str],
) -> None:
    accordees = [all(vus(cas)) for cas in DEMANDES if cas["attendus"]]
    reprises = [len(points(cas)) for cas in DEMANDES if not cas["attendus"]]
    montrer(
        capsys, f"accordées : {sum(accordees)} sur {len(accordees)}, faux sur reprises : {sum(reprises)}"
    )
    assert len(accordees) >= 16 and len(reprises) >= 16
    assert sum(accordees) >= 0.875 * len(accordees) and sum(reprises) <= 2


def marques(texte: str, message: str = MESSAGE, sujet: str = "Une question") -> list[tuple[str, str]]:
    lus = points_a_verifier(texte, Ticket("t", sujet, message))
    return [(texte[point.debut : point.fin], point.famille) for point in lus]


@pytest.mark.parametrize(
    "texte",
    [
        "Nous rembour\u00adsons ce colis.",
        "Nous rem\u200bboursons\u2060 ce colis.",
        "Nous  vous\u00a0rembourserons.",
    ],
    ids=["trait-conditionnel", "espaces-nulles", "espaces-doubles"],
)
def test_une_promesse_se_voit_a_travers_les_caracteres_invisibles(texte: str) -> None:
    assert marques(texte) == [(texte, "promesse")]


def test_un_fait_dans_une_promesse_est_aussi_un_point() -> None:
    assert marques("Bonjour,\nNous vous remboursons 30 € demain.") == [
        ("Nous vous remboursons 30 € demain.", "promesse"),
        ("30 €", FAITS),
        ("demain", FAITS),
    ]


@pytest.mark.parametrize(
    ("ticket", "texte"),
    [
        ("le 15 mars 2026 à 14h00", "C'est noté pour le 15/03/2026, 14 h."),
        ("trente euros, un quart d'heure", "30,00 € et 15 minutes notés."),
        ("1 250,50 € et 120000 lignes", "1250,50 euros et 120 000 lignes notés."),
        ("from March 3rd, £25", "Noted: 3 March, 25.00 GBP."),
        ("de 8h05 à 20 h", "De 8 h 05 à 20h00, 24h/24 et 7j/7, c'est noté."),
        ("au +33 6 39 98 51 24", "Au 06.39.98.51.24, c'est noté."),
        ("commande GB-214-KL", "Commande GB214KL notée."),
    ],
    ids=["date", "lettres", "milliers", "anglais", "heures", "telephone", "reference"],
)
def test_la_meme_valeur_ecrite_autrement_n_est_pas_un_point(ticket: str, texte: str) -> None:
    assert [point for point in marques(texte, ticket) if point[1] == FAITS] == []


@pytest.mark.parametrize(
    ("texte", "mots"),
    [
        ("Votre rendez-vous du mercredi 14 mars 2023 est noté.", "mercredi 14 mars 2023"),
        ("Votre lampe est notée pour 49,50 €.", "49,50 €"),
        ("Voir (lien à insérer).", "(lien à insérer)"),
        ("Voici le brouillon de réponse :", "Voici le brouillon de réponse"),
        ("C'est notÃ©.", "Ã©"),
        ("Bonjour Ysaline, c'est noté.", "Ysaline"),
        ("C'est noté pour Ysaline.\r\nCordialement", "Ysaline"),
        ("Bonjour Lamp, c'est noté.", "Lamp"),
    ],
    ids=[
        "jour-impossible",
        "montant",
        "lien-a-inserer",
        "parle-du-brouillon",
        "abime",
        "prenom",
        "fin-de-ligne-double",
        "nom-dans-un-mot-du-ticket",
    ],
)
def test_un_fait_ou_une_forme_se_voit(texte: str, mots: str) -> None:
    assert mots in [lus for lus, _ in marques(texte, "le 14 mars 2023, une lampe à 49,90 €")]


def test_deux_points_d_une_famille_ne_se_recouvrent_pas() -> None:
    copie = (
        "le rideau de mon box grince et ne descend plus, la pluie entre et mouille les cartons du fond"
    )
    verifier_les_places(f"{copie}, [Votre nom], {copie}.", copie)
    assert len(marques(f"{copie}, [Votre nom], {copie}.", copie)) == 1


def test_la_langue_se_juge_sur_ce_que_la_personne_a_ecrit() -> None:
    cite = (
        "Bonjour, je ne peux pas ouvrir le fichier que vous avez envoyé.\n"
        + "> you have the file for us\n" * 20
    )
    assert marques("Bonjour, vous ne pouvez pas ouvrir le fichier et vous êtes bloqué.", cite) == []


@pytest.mark.parametrize("nombre", ["14 h", "30 €", "1 250", "8 heures"])
@pytest.mark.parametrize("suite", ["15 rue de la Paix", "12 mois"])
def test_un_nombre_ne_continue_pas_a_la_ligne_suivante(nombre: str, suite: str) -> None:
    texte = f"- à noter : {nombre}\n{suite}"
    assert marques(texte, texte) == []
    verifier_les_places(texte, "une lampe")


@pytest.mark.parametrize(
    "reference", ["www.colis-suivi.be", "2B1X9", "AB-12", "2031-0999", "contact@exemple.org"]
)
def test_une_adresse_ou_une_reference_absente_se_voit(reference: str) -> None:
    assert (reference, FAITS) in marques(f"Voir {reference} pour la suite.")


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
        ("twenty-five", 25),
    ],
)
def test_un_nombre_se_lit_en_chiffres_et_en_lettres(ecriture: str, nombre: float) -> None:
    assert lire_valeur("", ecriture, "") == (nombre, "")


@pytest.mark.parametrize(
    "texte", ["Écoute — ÇA, İstanbul ﬁn", "a\u00ad b\u200bc", "\U0001f600é\xa0a\u202fb\n\nc"]
)
def test_plier_garde_le_rang_de_chaque_signe(texte: str) -> None:
    plie, rangs = plier(texte)
    assert len(plie) == len(rangs) and rangs == sorted(set(rangs))
    assert all(texte[rang] in (signe, "İ") for signe, rang in zip(plie, rangs) if signe.isalpha())


def verifier_les_places(texte: str, message: str) -> None:
    lus = points_a_verifier(texte, Ticket("t", "s", message))
    assert lus == sorted(lus)
    for point in lus:
        assert 0 <= point.debut < point.fin <= len(texte) and point.famille in FAMILLES
    for sorte in FAMILLES:
        de_la_famille = [point for point in lus if point.famille == sorte]
        for avant, apres in zip(de_la_famille, de_la_famille[1:]):
            assert avant.fin <= apres.debut


@given(st.text(), st.text())
def test_tout_texte_se_lit_et_chaque_point_est_dans_le_texte(texte: str, message: str) -> None:
    verifier_les_places(texte, message)


MOTS = "nous vous je remboursons sera été 30 € le 15 mars , . ? ! ( ) [ ] * _ / : \n et car Nom \u00ad we"
MORCEAUX = st.sampled_from(MOTS.split(" "))


@given(st.lists(MORCEAUX).map(" ".join), st.lists(MORCEAUX).map("".join))
def test_les_morceaux_d_une_reponse_se_lisent_dans_tout_ordre(texte: str, message: str) -> None:
    verifier_les_places(texte, message)


@pytest.mark.parametrize(
    ("message", "texte"),
    [
        ("j'ai envoye ", "Nous vous remboursons 30 € le 15 mars. "),
        ("e\u0301\u0327", "e\u0301\u0327"),
        ("12345 67 ", "98765 43 "),
        ("1", "1"),
        ("cent-", "["),
        (" ", " - "),
        ("a", "vous ra"),
        ("a-9-", "b-8-"),
        ("Abc Def ", "Abd Deg "),
        ("a@", "nous vous le la "),
        ("\u202e", "*a"),
        ("\n", "Nous\n"),
    ],
    ids=(
        "repetition accents nombres chiffres crochets espaces mot tirets"
        " majuscules phrase invisibles lignes"
    ).split(),
)
def test_un_texte_fait_pour_bloquer_ne_bloque_pas(message: str, texte: str) -> None:
    ticket = Ticket("t", "s", (message * 256 * 1024)[: 256 * 1024])
    assert isinstance(points_a_verifier((texte * 20_000)[:20_000], ticket), list)


def test_les_points_sont_au_dessus_de_la_question_et_n_empechent_pas_oui(projet: Projet) -> None:
    texte = "Bonjour,\nNous vous remboursons 30 € demain.\u202e"
    with servir(lecture(), brouillon(texte)) as serveur:
        bilan = projet.lancer(
            "ticket-local", "--modele", "essai", entree="oui\n", OPENAI_BASE_URL=serveur.adresse
        )
    liste = bilan.out.index("À vérifier (repères automatiques, non exhaustifs)")
    for mots in ("| promesse : « Nous vous remboursons 30 € demain. »", "« 30 € », « demain »"):
        assert liste < bilan.out.index(mots) < bilan.out.index("Enregistrer ce brouillon ?")
    assert bilan.code == 0 and projet.brouillon.read_text(encoding="utf-8") == texte


def test_un_texte_sain_n_affiche_aucune_liste(projet: Projet) -> None:
    texte = "Bonjour,\nVotre commande 2026-0412, payée 49,90 euros, nous est bien signalée abîmée."
    with servir(lecture(), brouillon(texte)) as serveur:
        bilan = projet.lancer(
            "ticket-local", "--modele", "essai", entree="oui\n", OPENAI_BASE_URL=serveur.adresse
        )
    assert "À vérifier" not in bilan.out and bilan.code == 0


def test_sans_couleur_une_trentaine_de_points_sont_cites_par_famille(projet: Projet) -> None:
    texte = "Bonjour, " + ", ".join(f"{nombre} euros" for nombre in range(100, 200))
    with servir(lecture(), brouillon(texte)) as serveur:
        sortie = projet.lancer("ticket-local", "--modele", "essai", OPENAI_BASE_URL=serveur.adresse).out
    liste = sortie.partition("| absent du ticket : ")[2]
    assert "« 100 euros »" in liste and "« 129 euros »" in liste and "« 130 euros »" not in liste
    assert " +70\n" in liste


@pytest.mark.parametrize("titre", ["M.", "Mme", "Mme."])
def test_un_nom_apres_un_titre_est_absent_du_ticket(titre: str) -> None:
    texte = f"Bonjour,\nPouvez-vous vous adresser à {titre} Durand, du service ?"
    points = points_a_verifier(texte, Ticket("t", "s", MESSAGE))
    assert "Durand" in [texte[point.debut : point.fin] for point in points]
