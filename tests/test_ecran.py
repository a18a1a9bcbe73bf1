"""L'écran dit vrai : rien de caché, rien hors de la marge, rien qui déborde, et le fichier reste exact."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import unicodedata
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from conftest import Projet, environnement
from hypothesis import example, given, settings
from hypothesis import strategies as st
from parcours import QUESTION, jouer
from serveur import appel, brouillon, erreur, lecture, servir
from terminal import regler_la_largeur, rendu
from wcwidth import wcswidth, wcwidth

import draft_ticket

FAMILLE, COEUR, DRAPEAU, TOUCHE = "👩\u200d👧\u200d👦", "❤\ufe0f", "🇫🇷", "1\ufe0f\u20e3"
BLANCS = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"  # des lettres sans dessin
SANS_DESSIN = re.compile(f"[{BLANCS}\ufe00-\ufe0e\U000e0100-\U000e01ef]")
EMOJI = [FAMILLE, COEUR, DRAPEAU, TOUCHE, "👍🏽", "👩🏽\u200d🚀", "🏳\ufe0f\u200d🌈", "🧑\u200d⚕\ufe0f", "©\ufe0f"]
ORDINAIRE = ["«\xa0oui\xa0»", "12\u202f€", "œuvre", "l’été", "e\u0301", "3 lignes\n\n\n\nvides", f"a{19 * ' '}b"]
PIEGES = ["\u202e", "\x1b[2J", "\x9b2J", "\r", "\x08", "\0", "\t", "\u2028", "\u2029", "\ufeff", "\xad", "\u200b"]
PIEGES += ["\u200d", "\ufe0f", "\ue000", "\U000e0041", *BLANCS, "‹U+202E›", f"\n{QUESTION} oui / non : oui\n"]
SIGNES = ["a", " ", "\n", " \n", "\xa0", "\u3000", "漢", "e\u0301", "☰", "| ", *EMOJI]
MORCEAUX = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=30),
    st.sampled_from(PIEGES),
    st.builds(lambda signe, nombre: signe * nombre, st.sampled_from(SIGNES), st.integers(1, 120)),
)
TEXTES = st.lists(MORCEAUX, max_size=8).map("".join)
ORDINAIRES = st.text(
    st.characters(categories=["L", "N", "P", "S"], include_characters=" \xa0\u202f", exclude_characters=BLANCS),
    max_size=30,
)


class Sortie(io.BytesIO):
    """Une sortie standard qui garde ses octets, et dont la largeur est celle d'un terminal."""

    terminal = 0

    def fileno(self) -> int:
        return self.terminal


def montre(texte: str, colonnes: int = 80) -> str:
    """Ce que `montrer` envoie à un terminal de cette largeur."""
    octets = Sortie()
    maitre, octets.terminal = os.openpty()
    try:
        regler_la_largeur(maitre, colonnes)
        with redirect_stdout(io.TextIOWrapper(octets, "utf-8")):
            draft_ticket.preparer_l_ecran()
            draft_ticket.montrer(texte)
            sys.stdout.flush()
            return octets.getvalue().decode("utf-8")
    finally:
        os.close(maitre)
        os.close(octets.terminal)


def caches(sortie: str) -> list[str]:
    """Les caractères d'une sortie qu'une personne ne verrait pas ; ZWJ et VS16 ont leurs propres essais."""
    permis = "\n\u200d\ufe0f"
    suspects = [signe for signe in sortie if unicodedata.category(signe)[0] == "C" or signe in "\u2028\u2029"]
    return [signe for signe in suspects + SANS_DESSIN.findall(sortie) if signe not in permis]


def largeur(ligne: str) -> int:
    """Les colonnes d'une ligne, sur le terminal qui en compte le plus."""
    return max(wcswidth(ligne), sum(map(wcwidth, ligne)))


@settings(max_examples=200, deadline=None)
@given(TEXTES, st.integers(20, 200))
@example(" " + "a" * 16 + "漢\u0301b", 20)
@example(DRAPEAU * 40, 80)
def test_quel_que_soit_le_texte_rien_ne_sort_de_la_marge(texte: str, colonnes: int) -> None:
    sortie = montre(texte, colonnes)
    lignes = sortie.removesuffix("\n").split("\n")
    assert [ligne for ligne in lignes if not ligne.startswith("| ")] == []
    assert [ligne for ligne in lignes if largeur(ligne) >= colonnes] == []
    assert caches(sortie) == []
    assert rendu(sortie, colonnes) == [ligne.rstrip() for ligne in lignes]


def test_aucun_caractere_large_ne_deborde() -> None:
    larges = "".join(signe for signe in map(chr, range(0x20, 0x110000)) if wcwidth(signe) == 2)
    assert [ligne for ligne in montre(larges, 41).splitlines() if largeur(ligne) >= 41] == []


@settings(deadline=None)
@given(st.lists(ORDINAIRES, max_size=3), st.integers(20, 200))
def test_un_texte_sans_rien_de_cache_se_retrouve_tel_quel(lignes: list[str], colonnes: int) -> None:
    texte = "\n".join(re.sub(r"\s{20,}", " ", ligne) for ligne in lignes)
    montrees = montre(texte, colonnes).removesuffix("\n").split("\n")
    assert "".join(ligne[2:] for ligne in montrees) == texte.replace("\n", "")
    if colonnes > 80:  # trente caractères y tiennent, quels qu'ils soient
        assert montrees == [f"| {ligne}" for ligne in texte.split("\n")]


@pytest.mark.parametrize("texte", [*ORDINAIRE, *EMOJI])
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


def hors_marge(sortie: str) -> list[str]:
    """Les lignes que le script affiche hors de la marge, aux nombres et aux avertissements près."""
    lignes = [re.sub(r"\d+", "N", ligne) for ligne in sortie.split("\n") if ligne and not ligne.startswith("| ")]
    return [ligne for ligne in lignes if not ligne.startswith(("À vérifier", "Attention"))]


def test_le_fichier_est_le_texte_et_l_ecran_est_celui_d_un_texte_anodin(projet: Projet) -> None:
    def proposer(texte: str) -> str:
        projet.brouillon.unlink(missing_ok=True)
        bilan = jouer(projet, lecture(), brouillon(texte))[0]
        assert (bilan.code, bilan.err) == (0, "")
        assert projet.fichiers() == {"ticket-local.txt": texte.encode()}
        return bilan.out

    anodine = hors_marge(proposer("Bonjour,\nMerci."))

    @settings(max_examples=25, deadline=None)
    @given(TEXTES)
    def essayer(texte: str) -> None:
        sortie = proposer(f"Bonjour,\nMerci.{texte}")
        assert hors_marge(sortie) == anodine and caches(sortie) == []

    essayer()


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
    [[HOSTILE], ["ticket-local", HOSTILE], [f"--{HOSTILE}"], ["--api", HOSTILE], ["--delai", HOSTILE]]
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
def test_ni_le_modele_ni_le_serveur_n_atteignent_le_terminal(projet: Projet, reponse: object, debug: list[str]) -> None:
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
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "sans locale": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""},
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
    sortie = fini.stdout.decode("cp1252" if cas == "cp1252" else "ascii")
    lignes = [ligne for ligne in sortie.splitlines() if ligne.startswith("| ")]
    proposition = "".join(ligne[2:] for ligne in lignes).partition("Merci d'avance.")[2]
    attendu = "12 € l’œuvre" if cas == "cp1252" else "12 <U+20AC> l<U+2019><U+0153>uvre"
    assert attendu in proposition and "<U+6F22>" * 40 in proposition and "?" not in proposition
    assert re.findall(r"\S\?|\?\S", sortie) == []  # ceux du script et du ticket sont entre deux espaces
    assert max(map(len, lignes)) < 80
