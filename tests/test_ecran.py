"""L'écran dit vrai : rien de caché, rien hors de la marge, et le fichier reste exact."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import pyte
import pytest
from conftest import Projet, environnement
from hypothesis import example, given, settings
from hypothesis import strategies as st
from parcours import QUESTION, anciens, dans_l_ordre, jouer
from serveur import appel, brouillon, erreur, lecture, servir
from terminal import ORDINAIRE, Ecran, capter, rendu, sans_couleurs
from wcwidth import wcswidth, wcwidth

import draft_ticket
from draft_ticket import FAMILLES, Point

FAMILLE, COEUR, DRAPEAU, TOUCHE = "👩\u200d👧\u200d👦", "❤\ufe0f", "🇫🇷", "1\ufe0f\u20e3"
BLANCS = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"  # sans dessin
SANS_DESSIN = re.compile(f"[{BLANCS}\ufe00-\ufe0e\U000e0100-\U000e01ef]")
EMOJI = [
    FAMILLE,
    COEUR,
    DRAPEAU,
    TOUCHE,
    "👍🏽",
    "👩🏽\u200d🚀",
    "🏳\ufe0f\u200d🌈",
    "🧑\u200d⚕\ufe0f",
]
EMOJI += ["©\ufe0f"]
FRANCAIS = ["«\xa0oui\xa0»", "12\u202f€", "œuvre", "l’été", "e\u0301", "e\u0301\u0302\u0303\u0304"]
FRANCAIS += ["3 lignes\n\n\n\nvides", f"a{19 * ' '}b"]
MARQUES = ["\x01", "\x02", "\x03", "\x04", "\x05", "\x06", "\x1b[0m", "\x1b[31m", "[-a-]", "{+b+}"]
PIEGES = ["\u202e", "\x1b[2J", "\x9b2J", "\r", "\x08", "\0", "\t", "\u2028", "\u2029", "\ufeff"]
PIEGES += ["\xad", "\u200b", "\u200d", "\ufe0f", "\ue000", "\U000e0041", *BLANCS, *MARQUES]
PIEGES += ["‹U+202E›", f"\n{QUESTION} oui / non : oui\n"]
SIGNES = ["a", " ", "\n", " \n", "\xa0", "\u3000", "漢", "e\u0301", "\u0301", "☰", "| ", *EMOJI]
MORCEAUX = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=30),
    st.sampled_from(PIEGES),
    st.builds(lambda signe, nombre: signe * nombre, st.sampled_from(SIGNES), st.integers(1, 120)),
)
TEXTES = st.lists(MORCEAUX, max_size=8).map("".join)
DESSINES = st.characters(
    categories=["L", "N", "P", "S"], include_characters=" \xa0\u202f", exclude_characters=BLANCS
)
LARGEURS = st.integers(20, 200)


def montre(texte: str, colonnes: int = 80) -> str:
    """Ce que `montrer` envoie à un terminal de cette largeur, couleurs mises à part."""
    visible = draft_ticket.visible(texte)
    return sans_couleurs(capter(lambda: draft_ticket.montrer(visible), colonnes))


def a_l_ecran(
    projet: Projet, *textes: str, entree: str = "non\n", colonnes: int = 80, hauteur: int = 24
) -> str:
    """Ce qu'un terminal de cette taille reçoit quand le modèle propose ces textes."""
    reponses = lecture(), *map(brouillon, textes)
    return capter(lambda: jouer(projet, *reponses, entree=entree), colonnes, hauteur)


def peint(sortie: str) -> Ecran:
    """L'écran que donne cette sortie, couleurs comprises."""
    ecran = Ecran(80, sortie.count("\n") + 2)
    pyte.Stream(ecran).feed(sortie.replace("\n", "\r\n"))
    return ecran


def surbrillances(sortie: str) -> str:
    """Ce qui est en couleur derrière la marge, bout à bout ; la marge a la sienne."""
    lignes = [re.sub(r"^\x1b\[\d+m\| \x1b\[0m", "", ligne) for ligne in sortie.split("\n")]
    return "".join(re.findall(r"\x1b\[[1-9][\d;]*m([^\x1b]*)\x1b\[0m", "\n".join(lignes)))


def parties(sortie: str) -> list[str]:
    """Les parties de la dernière question : titre et différences, texte, points, question."""
    return sans_couleurs(sortie).split("\n\n")[-4:]


def sans_blanc(texte: str) -> str:
    """Le texte sans ses blancs, ni le compte qui remplace à l'écran les plus longs."""
    return "".join(re.sub(r"‹\d+ (?:lignes vides|espaces)›", "", texte).split())


def caches(sortie: str) -> list[str]:
    """Ce qu'une personne ne verrait pas d'une sortie ; ZWJ et VS16 ont leurs essais."""
    permis = "\n\u200d\ufe0f"
    suspects = [
        signe for signe in sortie if unicodedata.category(signe)[0] == "C" or signe in "\u2028\u2029"
    ]
    return [signe for signe in suspects + SANS_DESSIN.findall(sortie) if signe not in permis]


def largeur(ligne: str) -> int:
    """Les colonnes d'une ligne, sur le terminal qui en compte le plus."""
    return max(wcswidth(ligne), sum(map(wcwidth, ligne)))


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXTES, min_size=1, max_size=4), LARGEURS)
@example([" " + "a" * 16 + "漢\u0301b"], 20)
@example([DRAPEAU * 40], 80)
@example(["a" * 76, "b"], 80)
def test_quel_que_soit_le_texte_rien_ne_sort_de_la_marge(morceaux: list[str], colonnes: int) -> None:
    """Et seul ce qui est à vérifier est en couleur."""
    texte = "ENGAGE".join(morceaux)
    points = [Point(*trouve.span(), FAMILLES[0]) for trouve in re.finditer("ENGAGE", texte)]
    peinte = capter(lambda: draft_ticket.montrer(draft_ticket.visible(texte, points)), colonnes)
    sortie = sans_couleurs(peinte)
    lignes = sortie.removesuffix("\n").split("\n")
    assert [ligne for ligne in lignes if not ligne.startswith("| ")] == []
    assert [ligne for ligne in lignes if largeur(ligne) >= colonnes] == []
    assert caches(sortie) == []
    assert rendu(sortie, colonnes) == [ligne.rstrip() for ligne in lignes]
    montre = "".join(ligne[2:] for ligne in lignes)
    assert sans_blanc(montre) == sans_blanc(draft_ticket.visible(texte))
    assert surbrillances(peinte) == "ENGAGE" * len(points)


def test_aucun_caractere_large_ne_deborde() -> None:
    larges = "".join(signe for signe in map(chr, range(0x20, 0x110000)) if wcwidth(signe) == 2)
    assert [ligne for ligne in montre(larges, 41).splitlines() if largeur(ligne) >= 41] == []


@settings(deadline=None)
@given(st.lists(st.text(DESSINES, max_size=30), max_size=3), LARGEURS)
def test_un_texte_sans_rien_de_cache_se_retrouve_tel_quel(lignes: list[str], colonnes: int) -> None:
    texte = "\n".join(re.sub(r"\s{20,}", " ", ligne) for ligne in lignes)
    montrees = montre(texte, colonnes).removesuffix("\n").split("\n")
    assert "".join(ligne[2:] for ligne in montrees) == texte.replace("\n", "")
    if colonnes > 80:  # trente caractères y tiennent, quels qu'ils soient
        assert montrees == [f"| {ligne}" for ligne in texte.split("\n")]


@pytest.mark.parametrize("texte", [*FRANCAIS, *EMOJI])
def test_le_francais_et_les_emoji_restent_tels_quels(texte: str) -> None:
    assert montre(texte) == "".join(f"| {ligne}\n" for ligne in texte.split("\n"))


@pytest.mark.parametrize(
    ("texte", "montree"),
    {
        "a\u202eb": "a‹U+202E›b",
        "\x1b[2J": "‹U+001B›[2J",
        "a\rb": "a‹U+000D›b",
        "a\u2028b": "a‹U+2028›b",
        "\ufeffa": "‹U+FEFF›a",
        "a\xadb": "a‹U+00AD›b",
        "\U000e0041": "‹U+E0041›",
        "\u3164\u2800": "‹U+3164›‹U+2800›",
        "a\u200db": "a‹U+200D›b",
        "👩\u200d": "👩‹U+200D›",
        "👩\u200d\u200d👧": "👩‹U+200D›‹U+200D›👧",
        "a\ufe0f": "a‹U+FE0F›",
        "1\ufe0f": "1‹U+FE0F›",
        "❤\ufe0f\ufe0f": "❤\ufe0f‹U+FE0F›",
        "\ud800": "‹U+D800›",
        "e" + 5 * "\u0301": "e" + 4 * "\u0301" + "‹U+0301›",
        "e" + 6 * "\u0336": "e" + 4 * "\u0336" + 2 * "‹U+0336›",
        "\x01\x05a\x06": "‹U+0001›‹U+0005›a‹U+0006›",
        "\ue000": "‹U+E000›",
        "a\tb": "a    b",
        "a" + 20 * " " + "b": "a ‹20 espaces› b",
        "a" + 300 * "\xa0" + "b": "a ‹300 espaces› b",
    }.items(),
)
def test_ce_qui_ne_se_voit_pas_devient_un_code(texte: str, montree: str) -> None:
    assert montre(texte) == f"| {montree}\n"


@pytest.mark.parametrize(("nombre", "vide"), [(4, "\n"), (200, "\n"), (200, "  \n"), (9, "\t\n")])
def test_les_longues_suites_de_lignes_vides_sont_comptees(nombre: int, vide: str) -> None:
    assert montre(f"a\n{nombre * vide}b") == f"| a\n| ‹{nombre} lignes vides›\n| b\n"


def test_les_caracteres_caches_sont_comptes_juste_avant_la_question(projet: Projet) -> None:
    texte = f"a\u202eb\u200dc ‹U+202E› {FAMILLE}\tfin"
    sortie = jouer(projet, lecture(), brouillon(texte))[0].out
    assert f"| a‹U+202E›b‹U+200D›c ‹U+202E› {FAMILLE}    fin\n" in sortie
    assert re.search(rf"invisibles .* : 2\n\n{re.escape(QUESTION)}", sortie)


# --- L'écran de la question -----------------------------------------------------------------

LIBRES: tuple[str, ...] = (
    "À vérifier",
    "Aucun point",
    "Attention",
    "Le texte commence",
    "Ce qui change",
    "Presque tout",
)
LIBRES += ("Seules changent", "Le texte est identique", "Un brouillon existe", "  ")


def hors_marge(sortie: str) -> list[str]:
    """Ce que le script dit hors de la marge, aux nombres et aux avertissements près."""
    lignes = [ligne for ligne in sortie.split("\n") if ligne and not ligne.startswith("| ")]
    return [re.sub(r"\d+", "N", ligne) for ligne in lignes if not ligne.startswith(LIBRES)]


def test_le_fichier_est_le_texte_et_l_ecran_est_celui_d_un_texte_anodin(projet: Projet) -> None:
    """Avec les surbrillances, et les différences d'avec un ancien brouillon quelconque."""

    def proposer(ancien: str, texte: str) -> str:
        projet.brouillon.write_bytes(ancien.encode())
        peinte = a_l_ecran(projet, texte, entree="oui\n")
        assert projet.brouillon.read_bytes() == texte.encode()
        return peinte

    anodine = hors_marge(sans_couleurs(proposer("Bonjour", "Bonjour,\nMerci.")))

    @settings(max_examples=25, deadline=None)
    @given(TEXTES, TEXTES)
    @example("", "\x03a\x06 [-b-] \x1b[32m")
    def essayer(ancien: str, texte: str) -> None:
        texte = f"Bonjour,\nMerci.{texte}"
        peinte = proposer(ancien, texte)
        sortie = sans_couleurs(peinte)
        assert hors_marge(sortie) == anodine and caches(sortie) == []
        assert [ligne for ligne in sortie.split("\n") if largeur(ligne) >= 80] == []
        montre = "".join(ligne[2:] for ligne in parties(peinte)[1].split("\n"))
        assert sans_blanc(montre) == sans_blanc(draft_ticket.visible(texte))

    essayer()


PROMESSE = "Nous vous remboursons 35,50 € avant le 12 mars 2031."


@pytest.fixture
def decoree(projet: Projet) -> str:
    """L'écran d'un texte qui a des points à vérifier, et diffère d'un ancien brouillon."""
    projet.brouillon.write_text("Bonjour,\n\nVotre colis part lundi.", encoding="utf-8")
    return a_l_ecran(projet, f"Bonjour,\n\nVotre colis part mardi matin.\n{PROMESSE}")


def test_la_question_est_en_gras_et_ce_qui_est_a_verifier_en_surbrillance(decoree: str) -> None:
    debut, _, fin = decoree.rpartition("\n\n\x1b[2m| \x1b[0mBonjour,")
    ecran = peint(f"Bonjour,{fin}")
    assert ecran.dessins(QUESTION) == {("default", "default", True)}
    assert ecran.dessins("Bonjour,") == ORDINAIRE
    assert ecran.dessins("À vérifier") == ecran.dessins("Réponse :") == ORDINAIRE
    for passage in ("Nous vous remboursons", "35,50 €", "12 mars 2031"):
        (dessin,) = ecran.dessins(passage)
        assert dessin[1] != "default", passage


def test_ce_qui_change_est_en_rouge_et_en_vert(decoree: str) -> None:
    ecran = peint(decoree)
    assert {fg for fg, _, _ in ecran.dessins("[-lundi.-]")} == {"red"}
    assert {fg for fg, _, _ in ecran.dessins("mardi matin.")} == {"green"}
    assert ecran.dessins("Votre colis part") == ORDINAIRE


def test_sans_couleur_le_meme_ecran_dit_la_meme_chose(
    projet: Projet, decoree: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    terne = a_l_ecran(projet, f"Bonjour,\n\nVotre colis part mardi matin.\n{PROMESSE}")
    assert "\x1b" not in terne and "\x1b" in decoree
    # Un hôte change de port ; sans marques dans le texte, la liste cite davantage de passages.
    change = r"127\.0\.0\.1:\d+|(?s:\| absent du ticket.*?\n\n)"
    assert re.sub(change, "", terne) == re.sub(change, "", sans_couleurs(decoree))


def test_aucun_texte_du_dehors_ne_met_de_couleur(projet: Projet) -> None:
    """Ni le ticket, ni le texte, ni la remarque ; le seul mot changé en a une."""
    hostile = f"zz{''.join(MARQUES)}zz"
    projet.ticket(message=hostile)
    versions = f"{hostile} un", f"{hostile} deux"
    peinte = a_l_ecran(projet, *versions, entree=f"non, {hostile}\nnon\n")
    assert caches(sans_couleurs(peinte)) == []
    assert peinte.count("‹U+0006›") == 5, "ticket, texte, remarque, différence, texte"
    ecran = peint(peinte)
    cellules = [ecran.buffer[y][x] for y in range(ecran.lines) for x in range(80)]
    encres = "".join(cellule.data for cellule in cellules if cellule.fg in ("red", "green"))
    assert encres == "[-un-]{+deux+}"


def test_tout_est_dans_l_ordre_ou_la_personne_le_lit(projet: Projet) -> None:
    anciens(projet)
    sortie = sans_couleurs(a_l_ecran(projet, f"Bonjour,\n{PROMESSE}"))
    dans_l_ordre(
        sortie,
        "\n\nProposition 1 · brouillons/ticket-local.txt · 2 lignes, 61 caractères\n",
        "Un brouillon existe déjà (",
        "ce brouillon",
        f"\n\n| Bonjour,\n| {PROMESSE}\n\n",
        "À vérifier",
        f"\n\n{QUESTION} oui / non / non, votre remarque\nRéponse : ",
    )


def test_l_ancien_brouillon_tient_en_deux_rangees(projet: Projet) -> None:
    anciens(projet)
    projet.brouillon.write_text("é\n" * 299 + "é" * 19_402, encoding="utf-8")
    os.utime(projet.brouillon, (1_700_000_000, 1_700_000_000))
    rangees = parties(a_l_ecran(projet, "Bonjour"))[0].split("\n")
    rang = next(rang for rang, ligne in enumerate(rangees) if ligne.startswith("Un brouillon"))
    phrase = " ".join(rangees[rang : rang + 2])
    assert not rangees[rang + 2].startswith("  "), "deux rangées au plus"
    for mot in ("/11/2023 à", "300 lignes, 20000 caractères", "« oui »", "remplace", "~", "perdu"):
        assert mot in " ".join(phrase.split()), mot


# --- Les différences ------------------------------------------------------------------------


def differences(projet: Projet, ancien: str, texte: str, colonnes: int = 80) -> list[str]:
    """Les rangées du titre et des différences, à la première version."""
    projet.brouillon.write_bytes(ancien.encode())
    return parties(a_l_ecran(projet, texte, colonnes=colonnes))[0].split("\n")


def test_les_differences_sont_dites_mot_a_mot_et_une_fois(projet: Projet) -> None:
    ancien = "Bonjour,\n\nVotre colis part lundi soir.\n\nCordialement,\nLe support"
    texte = ancien.replace("lundi", "mardi").replace("Cordialement,\n", "")
    rangees = differences(projet, ancien, texte)
    montrees = [ligne for ligne in rangees if ligne.startswith("| ")]
    assert montrees[0] == "| Votre colis part [-lundi-] {+mardi+} soir."
    assert any("[-Cordialement,-]" in ligne for ligne in montrees) and len(montrees) <= 3
    assert not re.search("Bonjour|support|@@|---|\\+\\+\\+", "\n".join(montrees))


def test_une_phrase_ajoutee_en_fin_de_ligne_est_seule_marquee(projet: Projet) -> None:
    ancien = "Bonjour,\nVotre colis part lundi.\nLe support"
    rangees = differences(projet, ancien, ancien.replace("lundi.", "lundi. Merci encore."))
    montrees = [ligne for ligne in rangees if ligne.startswith("| ")]
    assert montrees == ["| Votre colis part lundi. {+Merci encore.+}"]


@pytest.mark.parametrize("colonnes", [20, 40, 80])
def test_chaque_rangee_d_une_difference_garde_son_signe(projet: Projet, colonnes: int) -> None:
    debut = "Voici une phrase assez longue, commune aux deux textes, puis "
    vieux = " ".join(f"vieux{rang}" for rang in range(12))
    neufs = " ".join(f"neuf{rang}" for rang in range(12))
    ancien, texte = f"{debut}{vieux}\n{vieux}\n{debut}", f"{debut}{neufs}\n{neufs}\n{debut}"
    rangees = differences(projet, ancien, texte, colonnes)
    montrees = [ligne for ligne in rangees if ligne.startswith("| ")]
    assert len(montrees) > 3
    for ligne in montrees:
        nue = re.sub(r"\[-.*?-\]|\{\+.*?\+\}", "", ligne)
        assert "vieux" not in nue and "neuf" not in nue, ligne
        assert "vieux" not in re.sub(r"\[-.*?-\]", "", ligne), ligne
    nues = re.sub(r"\[-|-\]|\{\+|\+\}|\| |\s", "", "".join(montrees))
    assert nues.count(vieux.replace(" ", "")) == nues.count(neufs.replace(" ", "")) == 2


def test_apres_une_remarque_seule_la_version_refusee_est_comparee(projet: Projet) -> None:
    projet.brouillon.write_text("Bonjour,\nAncien texte", encoding="utf-8")
    versions = "Bonjour,\nTexte un", "Bonjour,\nTexte deux"
    sortie = sans_couleurs(a_l_ecran(projet, *versions, entree="non, encore\nnon\n"))
    premiere, seconde = sortie.split("\n\nProposition ")[1:]
    assert premiere.count("Ce qui change depuis") == seconde.count("Ce qui change depuis") == 1
    assert "depuis ce brouillon :\n| [-Ancien texte-]{+Texte un+}\n" in premiere
    assert "depuis la version précédente :\n| Texte [-un-] {+deux+}\n" in seconde
    assert "Ancien texte" not in seconde


UNE_LIGNE = "Été à Nîmes, réponse n° 1\nLe support"
PHRASES = {
    "identiques": (UNE_LIGNE, UNE_LIGNE, "identique"),
    "fins de ligne": (UNE_LIGNE.replace("\n", "\r\n"), UNE_LIGNE, "fins de ligne"),
    "accents": (unicodedata.normalize("NFD", UNE_LIGNE), UNE_LIGNE, "écriture des accents"),
    "les deux": (
        unicodedata.normalize("NFD", UNE_LIGNE),
        UNE_LIGNE.replace("\n", "\r\n"),
        "accents",
    ),
    "peu en commun": (
        " ".join(f"vieux{rang}" for rang in range(99)),
        " ".join(f"neuf{rang}" for rang in range(99)),
        "Presque tout change",
    ),
    "ancien démesuré": ("a\n" * 400_000, "Bonjour", "ce brouillon"),
    "ancien d'un seul mot": ("a" * 20_000, "Bonjour", "Presque tout change"),
    "suite d'accents": ("a" + "\u0301" * 100_000, "Bonjour", "ce brouillon"),
    "vide": ("", "Bonjour", "ce brouillon"),
}


@pytest.mark.parametrize("cas", PHRASES)
def test_une_phrase_suffit_quand_les_differences_n_apprennent_rien(projet: Projet, cas: str) -> None:
    ancien, texte, mots = PHRASES[cas]
    rangees = differences(projet, ancien, texte)
    assert mots in " ".join(" ".join(rangees).split())
    if cas != "vide":
        assert [ligne for ligne in rangees if ligne.startswith("| ")] == []
    assert len(rangees) <= 6


def en_alternance(propre: str, communs: list[str]) -> str:
    """Un mot propre à ce texte, puis un mot commun aux deux, et ainsi de suite."""
    return " ".join(f"{propre}{rang} {communs[rang % len(communs)]}" for rang in range(450))


@pytest.mark.parametrize("communs", [["a"], ["a" * 8], [f"m{rang}" for rang in range(30)]])
def test_deux_textes_hostiles_se_comparent_sans_attente(projet: Projet, communs: list[str]) -> None:
    """Sans borne, le temps croît comme le cube des mots communs."""
    debut = time.monotonic()
    rangees = differences(projet, en_alternance("x", communs), en_alternance("y", communs))
    assert "Ce qui change" in "".join(rangees) and "y449" in "".join(rangees)
    assert time.monotonic() - debut < 20


def test_deux_textes_demesures_se_comparent_sans_debordement(projet: Projet) -> None:
    ancien, texte = "a b " * 5_000, "b a\n" * 290 + "b " * 8_000
    rangees = differences(projet, ancien, texte)
    assert [ligne for ligne in rangees if largeur(ligne) >= 80] == []


# --- Les points à vérifier, et ce qui dépasse la fenêtre ------------------------------------


def test_sans_point_une_rangee_le_dit_honnetement(projet: Projet) -> None:
    points = parties(a_l_ecran(projet, "Bonjour, pouvez-vous préciser ?"))[2]
    assert points.startswith("Aucun point repéré") and "relisez" in points
    assert "\n" not in points


@pytest.mark.parametrize("colonnes", [40, 80, 200])
def test_une_rangee_par_famille_la_plus_grave_d_abord(projet: Projet, colonnes: int) -> None:
    """Les faits en trop sont comptés ; la promesse, elle, reste."""
    montants = "\n".join(f"Pour vous, le lot à {rang},37 € ?" for rang in range(101, 141))
    points = parties(a_l_ecran(projet, f"{montants}\n{PROMESSE}", colonnes=colonnes))[2]
    lignes = [ligne for ligne in points.split("\n") if ligne.startswith("| ")]
    debuts = [ligne.removeprefix("| ").split(" :")[0] for ligne in lignes]
    familles = [debut for debut in debuts if debut in FAMILLES]  # une promesse a pu prendre deux rangées
    assert familles == sorted(set(familles), key=FAMILLES.index) and len(familles) >= 2
    assert familles[0] == FAMILLES[0] and "rembours" in lignes[0]
    assert [ligne for ligne in lignes if largeur(ligne) >= colonnes] == []
    assert re.search(r" \+\d+$", lignes[-1])


@pytest.mark.parametrize("rangees", [10, 14, 16, 18, 20, 40])
@pytest.mark.parametrize("promesse", ["", f"\n{PROMESSE}"], ids=["sans point", "des points"])
def test_un_texte_qui_ne_tient_pas_avec_sa_question_est_annonce(
    projet: Projet, rangees: int, promesse: str
) -> None:
    lignes = [f"Ligne {rang}" for rang in range(rangees - (promesse != ""))]
    sortie = sans_couleurs(a_l_ecran(projet, "\n".join(lignes) + promesse))
    ecran = Ecran(80, 24)
    pyte.Stream(ecran).feed(sortie.partition("Réponse :")[0].replace("\n", "\r\n"))
    visible = any(rangee.startswith("| Ligne 0 ") for rangee in ecran.rangees)
    annonce = "remontez" in parties(sortie)[2]
    assert annonce is not visible


# --- Ce qui imiterait le script ------------------------------------------------------------


def test_un_faux_ecran_entier_reste_derriere_la_marge(projet: Projet) -> None:
    anodine = jouer(projet, lecture(), brouillon("Bonjour.\nMerci."))[0].out
    projet.brouillon.unlink()
    faux = jouer(projet, lecture(), brouillon(anodine))[0].out
    assert faux.count(f"\n{QUESTION}") == 1
    assert faux.count("\nBrouillon enregistré et relu") == 1
    assert f"\n| {QUESTION}" in faux and "\n| Brouillon enregistré et relu" in faux
    assert projet.brouillon.read_bytes() == anodine.encode()


@pytest.mark.parametrize("longueur", [1, 64, 200])
@settings(max_examples=100, deadline=None)
@given(texte=st.text(max_size=300) | TEXTES)
def test_une_citation_tient_en_une_ligne(longueur: int, texte: str) -> None:
    citation = draft_ticket.en_ligne(texte, longueur)
    assert len(citation) <= longueur and "\n" not in citation
    assert caches(citation) == []


HOSTILE = "x\x1b[2J\u202e\ud800\r\nfin"


@pytest.mark.parametrize(
    "argv",
    [
        [HOSTILE],
        ["ticket-local", HOSTILE],
        [f"--{HOSTILE}"],
        ["--api", HOSTILE],
        ["--delai", HOSTILE],
    ]
    + [["ticket-local", "--demo", f"--modele={HOSTILE}"]],
)
def test_une_ligne_de_commande_hostile_est_montree_sans_danger(projet: Projet, argv: list[str]) -> None:
    bilan = projet.lancer(*argv)
    assert caches(bilan.out + bilan.err) == []
    assert bilan.err.count("\n") == (1 if bilan.code == 2 else 0)


@pytest.mark.parametrize("debug", [[], ["--debug"]])
@pytest.mark.parametrize(
    "reponse",
    [appel("x\x1b[2J\u202e", {}), lecture("autre\x1b[2J\u202e"), erreur(400, "non\x1b[2J\u202e")],
)
def test_ni_le_modele_ni_le_serveur_n_atteignent_le_terminal(
    projet: Projet, reponse: object, debug: list[str]
) -> None:
    with servir(reponse) as serveur:
        modele = "m\x1b[2J\u202e"
        bilan = projet.lancer("ticket-local", "--modele", modele, *debug, OPENAI_BASE_URL=serveur.adresse)
    assert bilan.code in (1, 4) and projet.fichiers() == {}
    assert "modèle m‹U+001B›[2J‹U+202E› :" in bilan.out
    assert caches(bilan.out + bilan.err) == []


def test_une_citation_trop_longue_ne_commence_jamais_une_rangee(projet: Projet) -> None:
    """Sans quoi un nom de champ bien choisi imiterait une ligne du script."""
    projet.ticket(**{"x" * 190: "écarté"})
    sortie = jouer(projet, lecture("x" * 190), lecture(), brouillon("Bonjour."))[0].out
    assert [rangee for rangee in rendu(sortie) if rangee.startswith("x")] == []


ENCODAGES = {
    "cp1252": {"PYTHONIOENCODING": "cp1252"},
    "latin-1": {"PYTHONIOENCODING": "latin-1"},
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "sans locale": {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONIOENCODING": "",
    },
}


@pytest.mark.parametrize("cas", ENCODAGES)
def test_un_encodage_pauvre_montre_des_codes_et_n_arrete_rien(copie: Path, cas: str) -> None:
    texte = f"Bonjour,\n\n12\u202f€ l’œuvre {FAMILLE} \u202e" + 40 * "漢" + 30 * " " + 9 * "\n" + "fin\n"
    with servir(lecture(), brouillon(texte)) as serveur:
        fini = subprocess.run(
            [sys.executable, copie / "draft_ticket.py", "ticket-local", "--modele", "essai"],
            input=b"oui\n",
            capture_output=True,
            env=environnement(OPENAI_BASE_URL=serveur.adresse, **ENCODAGES[cas]),
            timeout=60,
        )
    assert (fini.returncode, fini.stderr) == (0, b"")
    assert (copie / "brouillons" / "ticket-local.txt").read_bytes() == texte.encode()
    codec = "ascii" if cas == "sans locale" else cas
    sortie = fini.stdout.decode(codec)
    lignes = [ligne for ligne in sortie.splitlines() if ligne.startswith("| ")]
    proposition = "".join(ligne[2:] for ligne in lignes).partition("Merci d'avance.")[2]
    attendu = "12\u202f€ l’œuvre".encode(codec, "backslashreplace").decode(codec)
    assert attendu in proposition and "\\u6f22" * 40 in proposition and "?" not in proposition
    assert re.findall(r"\S\?|\?\S", sortie) == []  # ceux du script et du ticket sont entre deux espaces
    assert max(map(len, lignes)) < 80


def test_des_lignes_vides_a_verifier_sont_comptees_aussi() -> None:
    texte = "a" + 9 * "\n  " + "\nb"
    points = [Point(0, len(texte), FAMILLES[0])]
    peinte = capter(lambda: draft_ticket.montrer(draft_ticket.visible(texte, points)))
    assert sans_couleurs(peinte) == "| a\n| ‹9 lignes vides›\n| b\n"


def test_une_surbrillance_se_ferme_a_chaque_rangee_et_passe_a_la_ligne() -> None:
    """Le passage couvre trois lignes, dont une vide ; aucune marque n'atteint l'écran."""
    points = [Point(2, 12, FAMILLES[0])]
    peinte = capter(lambda: draft_ticket.montrer(draft_ticket.visible("a abc\n\ndefgh b", points)))
    assert surbrillances(peinte) == "abcdefgh" and caches(sans_couleurs(peinte)) == []


def test_un_blanc_change_ne_se_lit_pas_comme_une_ligne_vide(projet: Projet) -> None:
    projet.brouillon.write_text("Bonjour,\nMerci.", encoding="utf-8")
    bout = jouer(projet, lecture(), brouillon("Bonjour, \nMerci."))[0].out
    assert "{+␣+}" in bout and "↵" not in bout
    vide = jouer(projet, lecture(), brouillon("Bonjour, \n\nMerci."))[0].out
    assert "{+↵+}" in vide and "␣" not in vide
