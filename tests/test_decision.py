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
from serveur import appel, brouillon, lecture, prose, servir

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
    dans_l_ordre(bilan.out, QUESTION, "Brouillon enregistré et relu", "brouillons/ticket-local.txt", "3 lignes")


AUTRES = ["non\n", "\n", "", "o\n", "y\n", "yes\n", "OUI?\n", "oui.\n", "oui oui\n", "ouï\n", "« oui »\n", "\noui\n"]
AUTRES += ["oui\0\n", "oui\u200b\n", "\ufeffoui\n", "oui\u2060", "o\u00adui\n", "non, \n", "non,\n", "non plus court\n"]
NON_UTF_8 = [b"oui\xff\n", b"\xffoui\n", "oui\n".encode("utf-16")]


@pytest.mark.parametrize("reponse", [*AUTRES, *NON_UTF_8])
def test_toute_autre_reponse_laisse_le_dossier_tel_quel(projet: Projet, reponse: str | bytes) -> None:
    avant = anciens(projet)
    bilan, serveur = jouer(projet, lecture(), brouillon(TEXTE), entree=reponse)
    assert (bilan.code, bilan.err, len(serveur.recues)) == (3, "", 2)
    assert projet.fichiers() == avant
    assert "aucun brouillon n'a été écrit" in bilan.out and "resté tel quel" in bilan.out


def test_une_entree_fermee_est_un_refus(copie: Path) -> None:
    bilan = processus(copie, "ticket-local", "--demo", entree=None, avant=lambda: os.close(0), PYTHONIOENCODING="utf-8")
    assert (bilan.code, bilan.err) == (3, "")
    assert list((copie / "brouillons").iterdir()) == []
    assert "aucun brouillon n'a été écrit" in bilan.out


def test_tout_ce_qui_eclaire_la_decision_est_montre_avant_la_question(projet: Projet) -> None:
    sortie = jouer(projet, lecture(), brouillon(TEXTE))[0].out
    entier = "\n".join(f"| {ligne}" for ligne in TEXTE.split("\n"))
    taille = f"5 lignes, {len(TEXTE)} caractères"
    dans_l_ordre(sortie, "enregistrer_brouillon", "brouillons/ticket-local.txt", taille, entier, QUESTION)


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
    "demi-caractère": (f'{{"ticket_id": "ticket-local", "texte": "{MAUVAIS} \ud800"}}', "demi-caractère"),
    "demi-caractère échappé": (objet(f"{MAUVAIS} \ud800"), "demi-caractère"),
    "trop long": (objet(MAUVAIS.ljust(TAILLE_MAX_TEXTE + 1, "é")), "dépasse 20000 caractères"),
    "autre ticket": (objet(ticket_id="autre"), "autre ticket"),
    "chemin": (objet(ticket_id="../ticket-local"), "autre ticket"),
}


@pytest.mark.parametrize("cas", INVALIDES)
def test_une_proposition_invalide_n_est_jamais_montree(projet: Projet, cas: str) -> None:
    arguments, raison = INVALIDES[cas]
    avant = anciens(projet)
    bilan, serveur = jouer(projet, lecture(), appel("enregistrer_brouillon", arguments), entree="oui\n" * 3)
    assert (bilan.code, len(serveur.recues), projet.fichiers()) == (4, 2, avant)
    assert bilan.err.startswith("Aucun brouillon n'a été proposé") and raison in bilan.err
    assert bilan.err.count("\n") == 1
    assert QUESTION not in bilan.out and MAUVAIS not in bilan.out + bilan.err


def test_un_texte_de_20_000_caracteres_est_montre_entier_et_enregistre(projet: Projet) -> None:
    texte = "é 😀 " * (TAILLE_MAX_TEXTE // 4)
    bilan, _ = jouer(projet, lecture(), brouillon(texte))
    assert bilan.code == 0 and bilan.out.count("😀") >= TAILLE_MAX_TEXTE // 4
    assert projet.fichiers() == {"ticket-local.txt": texte.encode()}


@pytest.mark.parametrize("tour", [[brouillon(MAUVAIS)], [lecture(), brouillon(MAUVAIS)]], ids=["seule", "ensemble"])
def test_une_proposition_redigee_avant_la_lecture_n_est_jamais_montree(projet: Projet, tour: list[Any]) -> None:
    bilan, serveur = jouer(projet, tour, brouillon(TEXTE))
    assert (bilan.code, len(serveur.recues), projet.fichiers()) == (4, 1, {})
    assert "avant la lecture du ticket" in bilan.err
    assert QUESTION not in bilan.out and MAUVAIS not in bilan.out


SILENCES: dict[str, tuple[list[Any], str]] = {
    "prose": ([lecture(), prose(f"{MAUVAIS}. Puis-je l'enregistrer ?")], "en prose"),
    "prose d'emblée": ([prose(f"C'est enregistré. {MAUVAIS}")], "sans lire le ticket"),
    "appel en texte": ([lecture(), prose(f"enregistrer_brouillon({objet()})")], "l'appel en texte"),
    "appel en texte d'emblée": ([prose(f'lire_ticket("{MAUVAIS}")')], "l'appel en texte"),
    "texte vide": ([lecture(), prose("")], "n'a rien répondu"),
    "rien": ([lecture(), []], "n'a rien répondu"),
}


@pytest.mark.parametrize("cas", SILENCES)
def test_sans_appel_d_outil_rien_n_est_demande_et_la_prose_n_est_pas_montree(projet: Projet, cas: str) -> None:
    reponses, raison = SILENCES[cas]
    avant = anciens(projet)
    bilan, serveur = jouer(projet, *reponses)
    assert (bilan.code, len(serveur.recues), projet.fichiers()) == (4, len(reponses), avant)
    assert "Aucun brouillon n'a été proposé" in bilan.err and raison in bilan.err
    assert bilan.err.count("\n") == 1
    assert QUESTION not in bilan.out and MAUVAIS not in bilan.out + bilan.err


@pytest.mark.parametrize("identifiant", ["ticket-local", "autre"])
def test_un_modele_qui_tourne_en_rond_est_arrete(projet: Projet, identifiant: str) -> None:
    bilan, serveur = jouer(projet, lambda _: lecture(identifiant))
    assert (bilan.code, projet.fichiers()) == (4, {})
    assert f"épuisé ses {TOURS_MAX} tours" in bilan.err and bilan.err.count("\n") == 1
    assert ("lire_ticket refusé pour un autre ticket : autre" in bilan.out) == (identifiant == "autre")
    assert len(serveur.recues) == TOURS_MAX < 10


# --- Ce que lire_ticket rend ----------------------------------------------------------------


def test_lire_ticket_ne_sert_que_le_ticket_demande(projet: Projet) -> None:
    projet.ticket(nom="autre", message="Message d'un autre client")
    autre = "autre\x1b[2J"
    bilan, serveur = jouer(projet, lecture("autre"), lecture(autre), lecture(), brouillon(TEXTE))
    assert (bilan.code, len(serveur.recues)) == (0, 4)
    assert bilan.out.count("lire_ticket refusé pour un autre ticket : autre") == 2 and "\x1b" not in bilan.out
    *refus, rendu = rendus_par_les_outils(serveur)
    assert all(phrase.startswith("Refusé") for phrase in refus) and MESSAGE in rendu
    assert "autre client" not in json.dumps(serveur.recues, ensure_ascii=False)


def test_le_modele_recoit_trois_champs_tels_que_la_personne_les_a_vus(projet: Projet) -> None:
    projet.ticket(sujet="Lampe\u202e", message="Bonjour\n\nMerci\U000e0041", client="Champ gardé ici")
    bilan, serveur = jouer(projet, lecture(), brouillon(TEXTE), entree="non\n")
    vus = {"id": "ticket-local", "sujet": "Lampe‹U+202E›", "message": "Bonjour\n\nMerci‹U+E0041›"}
    assert [json.loads(rendu) for rendu in rendus_par_les_outils(serveur)] == [vus]
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


def test_une_proposition_invalide_n_empeche_pas_d_approuver_la_suivante(projet: Projet) -> None:
    tour = [appel("enregistrer_brouillon", "null"), brouillon(TEXTE)]
    bilan, _ = jouer(projet, lecture(), tour)
    assert bilan.code == 0 and "refusée sans être montrée" in bilan.out
    assert projet.fichiers() == {"ticket-local.txt": TEXTE.encode()}


# --- Le refus qui demande une autre version -------------------------------------------------

UN, DEUX = "Bonjour,\nUne phrase de trop.\nLe support", "Bonjour,\nLe support, en bref"


@pytest.mark.parametrize("debut", ["non, ", "non : ", "NON;", "  Non ,  ", "non:"])
def test_une_remarque_part_au_modele_et_la_version_suivante_est_enregistree(projet: Projet, debut: str) -> None:
    reponses = lecture(), brouillon(UN), brouillon(DEUX)
    bilan, serveur = jouer(projet, *reponses, entree=f"{debut}plus\u202e court\x1b\noui\n")
    assert (bilan.code, len(serveur.recues), bilan.out.count(QUESTION)) == (0, 3, 2)
    assert projet.fichiers() == {"ticket-local.txt": DEUX.encode()}
    assert "Refusé par la personne, qui demande : plus‹U+202E› court‹U+001B›\n" in rendus_par_les_outils(serveur)[-1]
    hote = serveur.adresse.split("/")[2]
    dans_l_ordre(
        bilan.out,
        "non, votre remarque",
        f"part vers {hote} :\n| plus‹U+202E› court‹U+001B›\n",
        "Proposition 2",
        "| Bonjour,\n| Le support, en bref\n",
        "version refusée",
        "| -Une phrase de trop.\n",
        "| +Le support, en bref\n",
        QUESTION,
    )


@pytest.mark.parametrize("seconde", ["non\n", "", "plus court\n"])
def test_une_version_refusee_apres_une_remarque_n_ecrit_rien(projet: Projet, seconde: str) -> None:
    avant = anciens(projet)
    bilan, serveur = jouer(projet, lecture(), brouillon(UN), brouillon(DEUX), entree="non, plus court\n" + seconde)
    assert (bilan.code, len(serveur.recues), projet.fichiers()) == (3, 3, avant)


@pytest.mark.parametrize("par_tour", [1, 2, 3])
def test_cinq_versions_au_plus_sont_montrees(projet: Projet, par_tour: int) -> None:
    """Même quand le modèle, contre la consigne, en propose plusieurs par tour."""

    def versions(recue: dict[str, Any]) -> list[Any]:
        return [brouillon(f"Version {len(recue['input'])} {rang}") for rang in range(par_tour)]

    bilan, serveur = jouer(projet, lecture(), versions, entree="non, encore\n" * 20)
    assert (bilan.code, bilan.err, projet.fichiers()) == (3, "", {})
    assert bilan.out.count(QUESTION) == VERSIONS_MAX == 5
    assert "dernière version" in bilan.out.rpartition(QUESTION)[2]
    assert len(serveur.recues) <= 1 + VERSIONS_MAX


def test_oui_a_la_cinquieme_version_l_enregistre_meme_apres_deux_tours_perdus(projet: Projet) -> None:
    versions = [brouillon(f"Version {rang}") for rang in range(1, 6)]
    reponses = lecture("autre"), lecture("autre"), lecture(), *versions
    bilan, serveur = jouer(projet, *reponses, entree="non, encore\n" * 4 + "oui\n")
    assert (bilan.code, len(serveur.recues)) == (0, 8)
    assert projet.fichiers() == {"ticket-local.txt": b"Version 5"}


@pytest.mark.parametrize("suite", [prose(MAUVAIS), appel("enregistrer_brouillon", "{}")], ids=["prose", "invalide"])
def test_une_remarque_sans_nouvelle_version_est_dite(projet: Projet, suite: Any) -> None:
    bilan, serveur = jouer(projet, lecture(), brouillon(UN), suite, entree="non, plus court\noui\n")
    assert (bilan.code, len(serveur.recues), projet.fichiers()) == (4, 3, {})
    assert "Aucune nouvelle version n'a été proposée" in bilan.err and bilan.err.count("\n") == 1
    assert MAUVAIS not in bilan.out + bilan.err


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


def test_la_demonstration_ne_joint_personne_meme_avec_une_cle(projet: Projet, connexions: list[Any]) -> None:
    with servir(lecture(), brouillon(TEXTE)) as serveur:
        reglages = {"OPENAI_API_KEY": "sk-essai", "OPENAI_BASE_URL": serveur.adresse}
        bilan = projet.lancer("ticket-local", "--demo", entree="oui\n", **reglages)
        assert (bilan.code, serveur.recues, connexions) == (0, [], [])
        projet.lancer("ticket-local", "--modele", "essai", **reglages)
    assert connexions  # ce qui vient d'être affirmé se serait vu


@pytest.mark.parametrize("contenu", [None, (RACINE / "tickets" / "ticket-local.json").read_bytes()])
def test_le_gabarit_dit_qu_aucun_modele_n_est_appele_dans_ses_cinq_versions(
    projet: Projet, contenu: bytes | None
) -> None:
    projet.ticket(contenu)
    bilan = projet.lancer("ticket-local", "--demo", entree="non, plus court\n" * 4 + "oui\n")
    assert (bilan.code, bilan.err, bilan.out.count(QUESTION)) == (0, "", VERSIONS_MAX)
    dans_l_ordre(bilan.out, "aucun modèle n'est appelé", "gabarit", "Proposition", QUESTION)
    assert "À vérifier" not in bilan.out
    ecrit = projet.fichiers()["ticket-local.txt"].decode()
    assert "gabarit" in ecrit and "aucun modèle" in ecrit and "version E" in ecrit


@pytest.mark.parametrize("cle", [{}, {"OPENAI_API_KEY": " \n"}], ids=["absente", "blanche"])
def test_sans_cle_la_demonstration_n_est_jamais_choisie_en_silence(projet: Projet, cle: dict[str, str]) -> None:
    bilan = projet.lancer("ticket-local", entree="oui\n", **cle)
    assert (bilan.code, bilan.out, projet.fichiers()) == (2, "", {})
    assert "OPENAI_API_KEY" in bilan.err and "--demo" in bilan.err and bilan.err.count("\n") == 1
