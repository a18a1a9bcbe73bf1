"""La décision : seul « oui » à une proposition valable et montrée enregistre, et ce texte-là."""

from __future__ import annotations

import json
import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest
from conftest import MESSAGE, RACINE, TEXTE, Projet, processus
from parcours import QUESTION, anciens, dans_l_ordre, jouer, rendus_par_les_outils
from serveur import Reponse, appel, brouillon, erreur, lecture, prose, servir

from draft_ticket import TAILLE_MAX_TEXTE, TOURS_MAX, VERSIONS_MAX

EXACT = "\ufeffÉté à Nîmes 😀 : 12\u00a0€\u202f!\r\n\tŒuvre e\u0301crite\u200b\r\n\n"
MAUVAIS = "Texte qui ne doit jamais paraître"


# --- oui, et tout le reste ------------------------------------------------------------------


@pytest.mark.parametrize("reponse", ["oui\n", "OUI\n", "  oui \n", "Oui\r\n", "oui"])
def test_oui_enregistre_les_octets_exacts_du_texte_montre(projet: Projet, reponse: str) -> None:
    bilan, serveur = jouer(projet, lecture(), brouillon(EXACT), entree=reponse)
    assert (bilan.code, bilan.err, len(serveur.recues)) == (0, "", 2)
    assert projet.fichiers() == {"ticket-local.txt": EXACT.encode()}
    assert stat.S_IMODE(projet.brouillon.stat().st_mode) == 0o600
    verdict = "Brouillon enregistré et relu : brouillons/ticket-local.txt.\n"
    assert bilan.out.partition(QUESTION)[2].endswith(f"Réponse : \n{verdict}")


SECS = ["non", "NON.", "Non !", "non, ", "non,", "non merci", "non, merci.", "Non merci !"]
AUTRES = ["", "o", "y", "yes", "ouii", "OUI?", "oui.", "oui oui", "ouï", "« oui »", "non'oui"]
AUTRES += ["oui\0", "oui\u200b", "\ufeffoui", "o\u00adui", "oui\x1b[D", "plus court", "merci, non"]
AUTRES += ["oui\x1f", "\x0coui", "\u2028oui", "oui\x85", "oui\xa0"]
AUTRES += ["nonobstant", "nonobstant ce qui précède", "non-conforme", "nonante", "sinon plus court"]
NON_UTF_8 = [b"oui\xff\n", b"\xffoui\n", "oui\n".encode("utf-16")]


@pytest.mark.parametrize(
    "reponse", [*(f"{mots}\n" for mots in SECS + AUTRES), "", "\noui\n", "oui\u2060", *NON_UTF_8]
)
def test_toute_autre_reponse_laisse_le_dossier_tel_quel(projet: Projet, reponse: str | bytes) -> None:
    avant = anciens(projet)
    bilan = projet.lancer("ticket-local", "--demo", entree=reponse)
    assert (bilan.code, bilan.err, projet.fichiers()) == (3, "", avant)
    assert bilan.out.count(QUESTION) == 1
    assert "aucun brouillon n'a été écrit" in bilan.out and "resté tel quel" in bilan.out


@pytest.mark.parametrize("mots", [mots for mots in AUTRES if mots.isprintable() and mots])
def test_un_refus_qui_n_est_pas_non_cite_ce_qui_a_ete_lu(projet: Projet, mots: str) -> None:
    bilan = projet.lancer("ticket-local", "--demo", entree=f"{mots}\n")
    fin = " ".join(bilan.out.partition(QUESTION)[2].split())
    assert f"Lu : « {mots} »" in fin
    assert "« oui »" in fin and "« non, … »" in fin, "les deux formes sont rappelées"


@pytest.mark.parametrize("mots", SECS)
def test_un_simple_non_ne_demande_aucune_explication(projet: Projet, mots: str) -> None:
    bilan = projet.lancer("ticket-local", "--demo", entree=f"{mots}\noui\n")
    fin = bilan.out.partition(QUESTION)[2]
    assert (bilan.code, projet.fichiers()) == (3, {})
    assert fin.count("\n") == 3 and fin.endswith("Refusé : aucun brouillon n'a été écrit.\n")


def test_une_reponse_demesuree_est_citee_en_peu_de_rangees(projet: Projet) -> None:
    """Et sa fin n'est pas prise pour la réponse suivante."""
    bilan = projet.lancer("ticket-local", "--demo", entree="x " * 20_000 + "oui\noui\n")
    fin = bilan.out.partition(QUESTION)[2]
    assert (bilan.code, projet.fichiers()) == (3, {})
    assert len(fin) < 400 and bilan.out.count(QUESTION) == 1


def test_une_entree_fermee_est_un_refus(copie: Path) -> None:
    argv = ("ticket-local", "--demo")
    fermer: Any = {"entree": None, "avant": lambda: os.close(0)}
    bilan = processus(copie, *argv, PYTHONIOENCODING="utf-8", **fermer)
    assert (bilan.code, bilan.err) == (3, "")
    assert list((copie / "brouillons").iterdir()) == []
    assert "aucun brouillon n'a été écrit" in bilan.out


def test_tout_ce_qui_eclaire_la_decision_est_montre_avant_la_question(projet: Projet) -> None:
    sortie = jouer(projet, lecture(), brouillon(TEXTE))[0].out
    entier = "\n".join(f"| {ligne}" for ligne in TEXTE.split("\n"))
    titre = f"Proposition 1 · brouillons/ticket-local.txt · 5 lignes, {len(TEXTE)} caractères\n"
    question = f"{QUESTION} oui / non / non, votre remarque\nRéponse : "
    dans_l_ordre(sortie, f"\n\n{titre}", f"\n{entier}\n", "\nAucun point repéré", f"\n\n{question}")
    assert "\x1b" not in sortie, "aucun code de couleur dans un tube"
    assert "enregistrer_brouillon" not in sortie and sortie.count("5 lignes") == 1


# --- Les propositions jamais montrées -------------------------------------------------------


def objet(texte: Any = MAUVAIS, **autres: Any) -> str:
    """Les arguments d'enregistrer_brouillon, en JSON."""
    return json.dumps({"ticket_id": "ticket-local", "texte": texte, **autres})


INVALIDES = {
    "tronqué": (objet()[:-2], "JSON complet"),
    "vide": ("", "JSON complet"),
    "suivi de texte": (objet() + " voilà", "JSON complet"),
    "dans une chaîne": (json.dumps(objet()), "entre guillemets"),
    "nul": ("null", "objet JSON"),
    "liste": (f'["ticket-local", "{MAUVAIS}"]', "objet JSON"),
    "clé double": (objet()[:-1] + f', "texte": "{MAUVAIS}"}}', "deux fois"),
    "clé en trop": (objet(envoyer=True), "de trop"),
    "clé manquante": ('{"ticket_id": "ticket-local"}', "il manque « texte »"),
    "sans ticket": (json.dumps({"texte": MAUVAIS}), "il manque « ticket_id »"),
    "texte nul": (objet(None), "« texte » n'est pas une chaîne"),
    "texte blanc": (objet(" \n\u00a0\t"), "« texte » est vide"),
    "invisibles": (objet("\u200b\u3164\u202e \ufe0f"), "« texte » est vide"),
    "demi-caractère": (
        f'{{"ticket_id": "ticket-local", "texte": "{MAUVAIS} \ud800"}}',
        "demi-caractère",
    ),
    "demi-caractère échappé": (objet(f"{MAUVAIS} \ud800"), "demi-caractère"),
    "trop long": (objet(MAUVAIS.ljust(TAILLE_MAX_TEXTE + 1, "é")), "dépasse 20000 caractères"),
    "trop de lignes": (objet(".\n" * 300 + MAUVAIS), "300 lignes"),
    "autre ticket": (objet(ticket_id="autre"), "autre ticket"),
    "chemin": (objet(ticket_id="../ticket-local"), "autre ticket"),
}


@pytest.mark.parametrize("cas", INVALIDES)
def test_une_proposition_invalide_n_est_jamais_montree(projet: Projet, cas: str) -> None:
    arguments, raison = INVALIDES[cas]
    avant = anciens(projet)
    proposee = appel("enregistrer_brouillon", arguments)
    bilan, serveur = jouer(projet, lecture(), proposee, entree="oui\n" * 3)
    assert (bilan.code, len(serveur.recues), projet.fichiers()) == (4, 2, avant)
    assert bilan.err.startswith("Aucun brouillon n'a été proposé") and raison in bilan.err
    assert bilan.err.count("\n") == 1
    assert QUESTION not in bilan.out and MAUVAIS not in bilan.out + bilan.err


@pytest.mark.parametrize(
    "texte",
    ["é 😀 " * (TAILLE_MAX_TEXTE // 4), "😀\n" * 299 + "😀"],
    ids=["20 000 caractères", "300 lignes"],
)
def test_le_texte_le_plus_long_est_montre_entier_et_enregistre(projet: Projet, texte: str) -> None:
    bilan, _ = jouer(projet, lecture(), brouillon(texte))
    assert bilan.code == 0 and bilan.out.count("😀") >= texte.count("😀")
    assert projet.fichiers() == {"ticket-local.txt": texte.encode()}


@pytest.mark.parametrize(
    "tour", [[brouillon(MAUVAIS)], [lecture(), brouillon(MAUVAIS)]], ids=["seule", "ensemble"]
)
def test_une_proposition_redigee_avant_la_lecture_n_est_jamais_montree(
    projet: Projet, tour: list[Any]
) -> None:
    bilan, serveur = jouer(projet, tour, brouillon(TEXTE))
    assert (bilan.code, len(serveur.recues), projet.fichiers()) == (4, 1, {})
    assert "avant la lecture du ticket" in bilan.err
    assert QUESTION not in bilan.out and MAUVAIS not in bilan.out


SILENCES: dict[str, tuple[list[Any], str]] = {
    "prose": ([lecture(), prose(f"{MAUVAIS}. Puis-je l'enregistrer ?")], "en prose"),
    "prose d'emblée": ([prose(f"C'est enregistré. {MAUVAIS}")], "sans lire le ticket"),
    "appel en texte": (
        [lecture(), prose(f"enregistrer_brouillon({objet()})")],
        "au lieu d'appeler l'outil",
    ),
    "appel en texte d'emblée": ([prose(f'lire_ticket("{MAUVAIS}")')], "au lieu d'appeler l'outil"),
    "texte vide": ([lecture(), prose("")], "n'a rien répondu"),
    "rien": ([lecture(), []], "n'a rien répondu"),
    "relecture": ([lecture(), lecture()], "redemandé le ticket"),
}


@pytest.mark.parametrize("cas", SILENCES)
def test_sans_proposition_rien_n_est_demande_et_la_prose_n_est_pas_montree(
    projet: Projet, cas: str
) -> None:
    reponses, raison = SILENCES[cas]
    avant = anciens(projet)
    bilan, serveur = jouer(projet, *reponses)
    assert (bilan.code, len(serveur.recues), projet.fichiers()) == (4, len(reponses), avant)
    assert "Aucun brouillon n'a été proposé" in bilan.err and raison in bilan.err
    assert bilan.err.count("\n") == 1
    assert QUESTION not in bilan.out and MAUVAIS not in bilan.out + bilan.err


def test_un_modele_qui_tourne_en_rond_est_arrete(projet: Projet) -> None:
    bilan, serveur = jouer(projet, lambda _: lecture("autre"))
    assert (bilan.code, projet.fichiers()) == (4, {})
    assert f"épuisé ses {TOURS_MAX} tours" in bilan.err and bilan.err.count("\n") == 1
    assert "lire_ticket refusé pour un autre ticket : autre" in bilan.out
    assert len(serveur.recues) == TOURS_MAX < 10


# --- Ce que lire_ticket rend ----------------------------------------------------------------


def test_lire_ticket_ne_sert_que_le_ticket_demande(projet: Projet) -> None:
    projet.ticket(nom="autre", message="Message d'un autre client")
    tours = lecture("autre"), lecture("autre\x1b[2J"), lecture(), brouillon(TEXTE)
    bilan, serveur = jouer(projet, *tours)
    assert (bilan.code, len(serveur.recues)) == (0, 4)
    assert bilan.out.count("lire_ticket refusé pour un autre ticket : autre") == 2
    assert "\x1b" not in bilan.out
    *refus, rendu = rendus_par_les_outils(serveur)
    assert all(phrase.startswith("Refusé") for phrase in refus) and MESSAGE in rendu
    assert "autre client" not in json.dumps(serveur.recues, ensure_ascii=False)


def test_le_modele_recoit_trois_champs_tels_que_la_personne_les_a_vus(projet: Projet) -> None:
    caches = {"sujet": "Lampe\u202e", "message": "Bonjour\n\nMerci\U000e0041"}
    projet.ticket(**caches, client="Champ gardé ici")
    bilan, serveur = jouer(projet, lecture(), brouillon(TEXTE), entree="non\n")
    vus = {"sujet": "Lampe‹U+202E›", "message": "Bonjour\n\nMerci‹U+E0041›"}
    recus = [json.loads(rendu) for rendu in rendus_par_les_outils(serveur)]
    assert recus == [{"id": "ticket-local", **vus}]
    assert "| Lampe‹U+202E›\n" in bilan.out and "| Bonjour\n| \n| Merci‹U+E0041›\n" in bilan.out
    assert "gardé ici" not in json.dumps(serveur.recues, ensure_ascii=False)


# --- Plusieurs propositions dans un même tour -----------------------------------------------


@pytest.mark.parametrize(
    ("entree", "questions", "code", "attendu"),
    [
        ("oui\noui\n", 1, 0, {"ticket-local.txt": b"Premier texte"}),
        ("non\noui\n", 2, 0, {"ticket-local.txt": b"Second texte"}),
        ("non, plus court\noui\n", 2, 0, {"ticket-local.txt": b"Second texte"}),
        ("non\nnon\noui\n", 2, 3, {}),
    ],
)
def test_deux_propositions_sont_demandees_une_a_une(
    projet: Projet, entree: str, questions: int, code: int, attendu: dict[str, bytes]
) -> None:
    tour = [brouillon("Premier texte"), brouillon("Second texte")]
    bilan, serveur = jouer(projet, lecture(), tour, entree=entree)
    assert (bilan.code, bilan.out.count(QUESTION), len(serveur.recues)) == (code, questions, 2)
    assert projet.fichiers() == attendu
    assert ("Autre proposition refusée" in bilan.out) == (questions == 1)
    assert ("| Second texte" in bilan.out) == (questions == 2)


def test_les_remarques_faites_sur_deux_propositions_partent_ensemble_et_sont_montrees(
    projet: Projet,
) -> None:
    tour = [brouillon("Premier texte"), brouillon("Second texte")]
    entree = "non, plus court\nnon, plus doux\noui\n"
    bilan, serveur = jouer(projet, lecture(), tour, brouillon(TEXTE), entree=entree)
    assert (bilan.code, len(serveur.recues)) == (0, 3)
    rendus = "".join(rendus_par_les_outils(serveur))
    assert "demande : plus court" in rendus and "demande : plus doux" in rendus
    assert "\n| plus court\n| plus doux\n" in bilan.out.partition("Votre remarque part vers")[2]


def test_une_remarque_que_suit_un_oui_est_dite_perdue(projet: Projet) -> None:
    tour = [brouillon("Premier texte"), brouillon("Second texte")]
    bilan, serveur = jouer(projet, lecture(), tour, entree="non, plus court\noui\n")
    assert (bilan.code, len(serveur.recues)) == (0, 2)
    assert "n'est pas partie" in bilan.out and projet.fichiers() == {"ticket-local.txt": b"Second texte"}


def test_ce_que_la_personne_n_a_pas_vu_n_est_pas_dit_refuse_par_elle(projet: Projet) -> None:
    tour = [brouillon("Premier texte"), brouillon(MAUVAIS, ticket_id="autre")]
    entree = "non, plus court\noui\n"
    _, serveur = jouer(projet, lecture(), tour, brouillon(TEXTE), entree=entree)
    assert rendus_par_les_outils(serveur)[-1].startswith("Refusé par le programme")


def test_trois_cents_lignes_dont_la_derniere_finit_sont_montrees(projet: Projet) -> None:
    texte = "Merci.\n" * 300
    assert jouer(projet, lecture(), brouillon(texte))[0].code == 0
    assert projet.fichiers() == {"ticket-local.txt": texte.encode()}


def test_une_proposition_invalide_n_empeche_pas_d_approuver_la_suivante(projet: Projet) -> None:
    tour = [appel("enregistrer_brouillon", "null"), brouillon(TEXTE)]
    bilan, _ = jouer(projet, lecture(), tour)
    assert bilan.code == 0 and "refusée sans être montrée" in bilan.out
    assert projet.fichiers() == {"ticket-local.txt": TEXTE.encode()}


# --- Le refus qui demande une autre version -------------------------------------------------

UN, DEUX = "Bonjour,\nUne phrase de trop.\nLe support", "Bonjour,\nLe support, en bref"


def test_une_remarque_part_au_modele_et_la_version_suivante_est_enregistree(
    projet: Projet,
) -> None:
    reponses = lecture(), brouillon(UN), brouillon(DEUX)
    bilan, serveur = jouer(projet, *reponses, entree="non plus\u202e court\x1b\noui\n")
    assert (bilan.code, len(serveur.recues), bilan.out.count(QUESTION)) == (0, 3, 2)
    assert projet.fichiers() == {"ticket-local.txt": DEUX.encode()}
    demande = "Refusé par la personne, qui demande : plus‹U+202E› court‹U+001B›\n"
    assert demande in rendus_par_les_outils(serveur)[-1]
    dans_l_ordre(
        bilan.out,
        "non, votre remarque",
        f"part vers {serveur.adresse.split('/')[2]} :\n| plus‹U+202E› court‹U+001B›\n",
        "Proposition 2",
        "la version précédente",
        "[-Une phrase de trop.-]",
        "\n\n| Bonjour,\n| Le support, en bref\n",
        QUESTION,
    )


REMARQUES = ["non plus court", "Non. plus court", "non- plus court", "non : plus court"]
REMARQUES += ["non:plus court", "NON;plus court", "  Non ,  plus court", "non… plus court"]
REMARQUES += ["non, plus court", "non ! plus court", "non - plus court", "non merci plus court"]


@pytest.mark.parametrize("reponse", REMARQUES)
def test_non_suivi_de_mots_demande_une_autre_version(projet: Projet, reponse: str) -> None:
    bilan = projet.lancer("ticket-local", "--demo", entree=f"{reponse}\nnon\n")
    mots = "merci plus court" if "merci" in reponse else "plus court"
    assert f"Votre remarque part vers la démonstration :\n| {mots}\n" in bilan.out
    assert (bilan.code, bilan.out.count(QUESTION), projet.fichiers()) == (3, 2, {})


@pytest.mark.parametrize("seconde", ["non\n", "", "plus court\n"])
def test_une_version_refusee_apres_une_remarque_n_ecrit_rien(projet: Projet, seconde: str) -> None:
    avant = anciens(projet)
    bilan = projet.lancer("ticket-local", "--demo", entree=f"non, plus court\n{seconde}")
    assert (bilan.code, bilan.out.count(QUESTION), projet.fichiers()) == (3, 2, avant)


def test_une_remarque_de_4_000_caracteres_part_entiere(projet: Projet) -> None:
    remarque = "é" * 3_995
    reponses = lecture(), brouillon(UN), brouillon(DEUX)
    bilan, serveur = jouer(projet, *reponses, entree=f"non, {remarque}\noui\n")
    assert (bilan.code, projet.fichiers()) == (0, {"ticket-local.txt": DEUX.encode()})
    assert f" {remarque}\n" in rendus_par_les_outils(serveur)[-1]


@pytest.mark.parametrize("nombre", [4_001, 50_000])
def test_une_remarque_trop_longue_ne_part_pas_et_c_est_dit(projet: Projet, nombre: int) -> None:
    avant = anciens(projet)
    entree = f"non, {'é' * nombre}\noui\n"
    bilan, serveur = jouer(projet, lecture(), brouillon(UN), entree=entree)
    assert (bilan.code, len(serveur.recues), projet.fichiers()) == (3, 2, avant)
    assert "Rien n'est parti : 4000 caractères" in bilan.out
    assert bilan.out.count(QUESTION) == 1


def test_un_oui_que_suit_autre_chose_tres_loin_n_est_pas_un_oui(projet: Projet) -> None:
    """La ligne est coupée à la lecture : ce qui en a été lu n'est pas toute la réponse."""
    for entree in (f"oui{' ' * 4_097}non\n", f"oui{' ' * 4_097}\n"):
        bilan, _ = jouer(projet, lecture(), brouillon(UN), entree=entree)
        assert (bilan.code, projet.fichiers()) == (3, {})


@pytest.mark.parametrize("par_tour", [1, 2, 3])
def test_cinq_versions_au_plus_sont_montrees(projet: Projet, par_tour: int) -> None:
    """Même quand le modèle, contre la consigne, en propose plusieurs par tour."""

    def versions(recue: dict[str, Any]) -> list[Any]:
        return [brouillon(f"Version {len(recue['input'])} {rang}") for rang in range(par_tour)]

    bilan, serveur = jouer(projet, lecture(), versions, entree="non, encore\n" * 20)
    assert (bilan.code, bilan.err, projet.fichiers()) == (3, "", {})
    assert bilan.out.count(QUESTION) == VERSIONS_MAX == 5
    derniere = bilan.out.rpartition(QUESTION)[2]
    assert "dernière version" in derniere.split("\n")[0]
    assert "votre remarque" not in derniere and "Rien n'est parti" in derniere
    assert len(serveur.recues) <= 1 + VERSIONS_MAX


def test_oui_a_la_cinquieme_version_l_enregistre_meme_apres_deux_tours_perdus(
    projet: Projet,
) -> None:
    versions = [brouillon(f"Version {rang}") for rang in range(1, 6)]
    reponses = lecture("autre"), lecture("autre"), lecture(), *versions
    bilan, serveur = jouer(projet, *reponses, entree="non, encore\n" * 4 + "oui\n")
    assert (bilan.code, len(serveur.recues)) == (0, 8)
    assert projet.fichiers() == {"ticket-local.txt": b"Version 5"}


# --- La version demandée qui ne vient pas ---------------------------------------------------

ABSENCES: dict[str, tuple[Any, str]] = {
    "prose": (prose(MAUVAIS), "Aucun brouillon n'a été proposé"),
    "invalide": (appel("enregistrer_brouillon", "{}"), "manque « ticket_id »"),
    "outil inconnu": (appel("envoyer", {}), "le modèle a appelé un outil"),
    "panne": (erreur(500, "surcharge"), "réessayez plus tard"),
    "délai": (Reponse(attente=60), "Pas de réponse"),
}


def revenir(projet: Projet, absence: Any, entree: str, **reglages: Any) -> tuple[int, str]:
    """Joue une remarque restée sans version ; rend le code, et l'écran depuis la remarque."""
    reponses = lecture(), brouillon(UN), absence
    bilan, serveur = jouer(projet, *reponses, entree=f"non, plus court\n{entree}", **reglages)
    assert (bilan.err, len(serveur.recues)) == ("", 3)
    assert MAUVAIS not in bilan.out and bilan.out.count(QUESTION) == 2
    return bilan.code, bilan.out.partition("Votre remarque part vers")[2]


@pytest.mark.parametrize("cas", ABSENCES)
def test_la_version_precedente_revient_apres_la_phrase_de_l_echec(projet: Projet, cas: str) -> None:
    absence, raison = ABSENCES[cas]
    options = ("--delai", "1.5") if cas == "délai" else ()
    code, suite = revenir(projet, absence, "oui\n", options=options)
    entier = "\n".join(f"| {ligne}" for ligne in UN.split("\n"))
    dans_l_ordre(suite, raison, "la version précédente", "Proposition 2", f"{entier}\n", QUESTION)
    assert (code, projet.fichiers()) == (0, {"ticket-local.txt": UN.encode()})


@pytest.mark.parametrize("reponse", ["non\n", "", "o\n"])
def test_seul_un_nouveau_oui_enregistre_la_version_revenue(projet: Projet, reponse: str) -> None:
    avant = anciens(projet)
    assert revenir(projet, prose(""), reponse)[0] == 3
    assert projet.fichiers() == avant


def test_le_disque_est_relu_quand_la_version_precedente_revient(projet: Projet) -> None:
    def ecrire_pendant_ce_temps(_recue: Any) -> Reponse:
        projet.brouillon.write_bytes(b"Ecrit par un autre lancement")
        return erreur(500)

    code, suite = revenir(projet, ecrire_pendant_ce_temps, "oui\n")
    dans_l_ordre(suite, "version précédente", "Un brouillon existe déjà", QUESTION)
    anciens_octets = {"ticket-local.txt~": b"Ecrit par un autre lancement"}
    assert (code, projet.fichiers()) == (0, {"ticket-local.txt": UN.encode(), **anciens_octets})


def test_un_disque_devenu_inutilisable_ne_ramene_pas_la_version(projet: Projet) -> None:
    def gener(_recue: Any) -> Reponse:
        projet.brouillon.mkdir()
        return erreur(500)

    reponses = lecture(), brouillon(UN), gener
    bilan, _ = jouer(projet, *reponses, entree="non, plus court\noui\n")
    assert (bilan.code, bilan.out.count(QUESTION), bilan.err.count("\n")) == (1, 1, 1)
    assert [chemin.is_dir() for chemin in projet.brouillon.parent.iterdir()] == [True]


def test_une_remarque_restee_sans_version_compte_parmi_les_cinq(projet: Projet) -> None:
    absences = [erreur(500)] * (VERSIONS_MAX - 1)
    bilan, serveur = jouer(projet, lecture(), brouillon(UN), *absences, entree="non, encore\n" * 20)
    assert (bilan.code, bilan.err, projet.fichiers()) == (3, "", {})
    assert (bilan.out.count(QUESTION), len(serveur.recues)) == (VERSIONS_MAX, 2 + len(absences))
    assert "Rien n'est parti" in bilan.out.rpartition(QUESTION)[2]


def test_une_version_peut_encore_venir_apres_un_echec(projet: Projet) -> None:
    reponses = lecture(), brouillon(UN), erreur(500), brouillon(DEUX)
    bilan, serveur = jouer(projet, *reponses, entree="non, encore\nnon, plus court\noui\n")
    assert (bilan.code, len(serveur.recues)) == (0, 4)
    assert projet.fichiers() == {"ticket-local.txt": DEUX.encode()}
    assert "qui demande : plus court" in rendus_par_les_outils(serveur)[-1]


# --- La démonstration et la clé -------------------------------------------------------------


@pytest.fixture
def connexions(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Les adresses que ce processus cherche ou joint, dans l'ordre."""
    jointes: list[Any] = []
    connect, getaddrinfo = socket.socket.connect, socket.getaddrinfo

    def joindre(prise: socket.socket, adresse: Any) -> None:
        jointes.append(adresse)
        connect(prise, adresse)

    def chercher(hote: Any, *reste: Any, **options: Any) -> Any:
        jointes.append(hote)
        return getaddrinfo(hote, *reste, **options)

    monkeypatch.setattr(socket.socket, "connect", joindre)
    monkeypatch.setattr(socket, "getaddrinfo", chercher)
    return jointes


def test_la_demonstration_ne_joint_personne_meme_avec_une_cle(
    projet: Projet, connexions: list[Any]
) -> None:
    with servir(lecture(), brouillon(TEXTE)) as serveur:
        reglages = {"OPENAI_API_KEY": "sk-essai", "OPENAI_BASE_URL": serveur.adresse}
        bilan = projet.lancer("ticket-local", "--demo", entree="oui\n", **reglages)
        assert (bilan.code, serveur.recues, connexions) == (0, [], [])
        projet.lancer("ticket-local", "--modele", "essai", **reglages)
    assert connexions  # ce qui vient d'être affirmé se serait vu


@pytest.mark.parametrize("le_mien", [True, False], ids=["ticket d'essai", "ticket-local"])
def test_le_gabarit_dit_qu_aucun_modele_n_est_appele_dans_ses_cinq_versions(
    projet: Projet, le_mien: bool
) -> None:
    livre = (RACINE / "tickets" / "ticket-local.json").read_bytes()
    projet.ticket(None if le_mien else livre)
    bilan = projet.lancer("ticket-local", "--demo", entree="non, plus court\n" * 4 + "oui\n")
    assert (bilan.code, bilan.err, bilan.out.count(QUESTION)) == (0, "", VERSIONS_MAX)
    dans_l_ordre(bilan.out, "aucun modèle n'est appelé", "gabarit", "Proposition", QUESTION)
    assert "À vérifier" not in bilan.out
    ecrit = projet.fichiers()["ticket-local.txt"].decode()
    assert "gabarit" in ecrit and "aucun modèle" in ecrit and "version E" in ecrit
