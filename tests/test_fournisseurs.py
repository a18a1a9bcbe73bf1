"""Tout fournisseur : le modèle demandé, les réglages qu'il connaît, et les écarts des petits modèles."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from conftest import MESSAGE, TEXTE, Bilan, Projet
from reseau import APIS, CLE, LECTURE, PROPOSITION, Cas, croiser, ecouter, jouer, phrase, relais, verifier
from serveur import Serveur, appel, brouillon, prose, servir

NOMS = ["mistralai/Mistral-7B", "ollama/qwen2.5:7b", "openai/gpt-oss-20b", "GPT-Majuscules"]
DEUX_TOURS = (LECTURE, PROPOSITION)
TROIS_TOURS = (*DEUX_TOURS, {**PROPOSITION, "call_id": "encore"})


def abouti(projet: Projet, bilan: Bilan) -> None:
    """Le parcours est allé jusqu'au fichier."""
    assert (bilan.code, bilan.err) == (0, "")
    assert projet.fichiers() == {"ticket-local.txt": TEXTE.encode()}


def jouer_openai(projet: Projet, serveur: Serveur, *argv: str, entree: str = "oui\n", **variables: str | None) -> Bilan:
    """Un lancement qui croit parler à OpenAI : le serveur joue le mandataire de cet hôte."""
    mandataire = {"HTTP_PROXY": serveur.adresse.removesuffix("/v1"), "NO_PROXY": "", "no_proxy": ""}
    reglages = {"OPENAI_BASE_URL": "http://api.openai.com/v1", "OPENAI_DEFAULT_MODEL": None, **mandataire}
    return jouer(projet, serveur, *argv, entree=entree, **{**reglages, **variables})


def raisonnement(corps: dict[str, Any]) -> dict[str, Any]:
    """Les champs d'une requête que seul un modèle de raisonnement accepte."""
    noms = ("reasoning", "reasoning_effort", "verbosity", "include", "text")
    return {nom: corps[nom] for nom in noms if corps.get(nom)}


# --- Le modèle, l'hôte et la clé -----------------------------------------------------------------


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("nom", NOMS)
@pytest.mark.parametrize("par_variable", [False, True])
def test_le_nom_du_modele_part_tel_quel(projet: Projet, api: str, nom: str, par_variable: bool) -> None:
    option, variable = ([], nom) if par_variable else (["--modele", nom], "autre-modele")
    with servir(*TROIS_TOURS) as serveur:
        bilan = jouer(
            projet, serveur, "--api", api, *option, entree="non, plus court\noui\n", OPENAI_DEFAULT_MODEL=variable
        )
    abouti(projet, bilan)
    assert [corps["model"] for corps in serveur.recues] == [nom] * 3
    assert f"modèle {nom} :" in bilan.out


@pytest.mark.parametrize("api", APIS)
def test_un_serveur_sans_modele_nomme_est_refuse_avant_tout_envoi(projet: Projet, api: str) -> None:
    with servir(*DEUX_TOURS) as serveur:
        bilan = jouer(projet, serveur, "--api", api, OPENAI_DEFAULT_MODEL="")
    assert bilan.code == 2
    phrase(bilan, "--modele|127.0.0.1")
    assert serveur.recues == [] and projet.fichiers() == {}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("hote", ["127.0.0.1", "localhost"])
def test_une_boucle_locale_se_passe_de_cle(projet: Projet, api: str, hote: str) -> None:
    with servir(*DEUX_TOURS) as serveur:
        serveur.adresse = serveur.adresse.replace("127.0.0.1", hote)
        bilan = jouer(projet, serveur, "--api", api, OPENAI_API_KEY="")
    abouti(projet, bilan)
    assert f"Partent vers {hote}:{urlsplit(serveur.adresse).port}" in bilan.out


@pytest.mark.parametrize("hote", ["exemple.invalid", "localhost.exemple.invalid", "127.exemple.invalid"])
def test_un_hote_distant_sans_cle_est_refuse(projet: Projet, hote: str) -> None:
    with servir(*DEUX_TOURS) as serveur:
        bilan = jouer_openai(
            projet, serveur, OPENAI_BASE_URL=f"http://{hote}/v1", OPENAI_API_KEY="", OPENAI_DEFAULT_MODEL="m"
        )
    assert bilan.code == 2
    phrase(bilan, "OPENAI_API_KEY|--demo")
    assert serveur.recues == [] and projet.fichiers() == {}


# --- Les réglages envoyés ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "api, lancement, attendu",
    [
        ("responses", jouer, False),
        ("chat", jouer, "absent"),
        ("responses", jouer_openai, False),
        ("chat", jouer_openai, False),
    ],
)
def test_store_ne_va_qu_a_ceux_qui_le_connaissent_et_dans_toutes_les_requetes(
    projet: Projet, api: str, lancement: Callable[..., Bilan], attendu: object
) -> None:
    with servir(*TROIS_TOURS) as serveur:
        bilan = lancement(projet, serveur, "--api", api, entree="non, plus court\noui\n")
    abouti(projet, bilan)
    assert [corps.get("store", "absent") for corps in serveur.recues] == [attendu] * 3


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("nom", ["gpt-4o", "mistral-small-latest", "gpt-5-chat-latest"])
@pytest.mark.parametrize("defaut", [None, "gpt-5.1"])
def test_aucun_champ_de_raisonnement_vers_un_modele_qui_n_en_a_pas(
    projet: Projet, api: str, nom: str, defaut: str | None
) -> None:
    with servir(*DEUX_TOURS) as serveur:
        abouti(projet, jouer(projet, serveur, "--api", api, "--modele", nom, OPENAI_DEFAULT_MODEL=defaut))
    assert [raisonnement(corps) for corps in serveur.recues] == [{}, {}]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    "option, variable", [("", None), ("", ""), ("", "gpt-5.1"), ("gpt-5.4-mini", None), ("gpt-5.1", "mistral-small")]
)
def test_les_reglages_du_sdk_pour_gpt_5_restent(projet: Projet, api: str, option: str, variable: str | None) -> None:
    """Sans nom, OpenAI reçoit le modèle du SDK, et c'est bien celui qui est annoncé."""
    argv = ["--api", api, *(["--modele", option] if option else [])]
    with servir(*TROIS_TOURS) as serveur:
        bilan = jouer_openai(projet, serveur, *argv, entree="non, plus court\noui\n", OPENAI_DEFAULT_MODEL=variable)
    abouti(projet, bilan)
    envoye = serveur.recues[0]["model"]
    nom = option or variable
    assert envoye == nom if nom else envoye.startswith("gpt-5")
    assert f"Partent vers api.openai.com, modèle {envoye} :" in bilan.out
    attendu = {
        "responses": {
            "reasoning": {"effort": "none"},
            "text": {"verbosity": "low"},
            "include": ["reasoning.encrypted_content"],
        },
        "chat": {"reasoning_effort": "none", "verbosity": "low"},
    }
    assert [raisonnement(corps) for corps in serveur.recues] == [attendu[api]] * 3


def test_un_raisonnement_chiffre_repart_avec_la_requete_suivante(projet: Projet) -> None:
    pensee = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "chiffre-de-la-reponse"}
    with servir([pensee, LECTURE], PROPOSITION) as serveur:
        abouti(projet, jouer(projet, serveur, "--modele", "gpt-5.1"))
    renvoyes = [item for item in serveur.recues[1]["input"] if item.get("type") == "reasoning"]
    assert [item["encrypted_content"] for item in renvoyes] == ["chiffre-de-la-reponse"]


@pytest.mark.parametrize("api", APIS)
def test_la_lecture_est_imposee_au_premier_tour_seulement(projet: Projet, api: str) -> None:
    with servir(*TROIS_TOURS) as serveur:
        abouti(projet, jouer(projet, serveur, "--api", api, entree="non, plus court\noui\n"))
    choix = [corps.get("tool_choice", "auto") for corps in serveur.recues]
    nomme = {"function": {"name": "lire_ticket"}} if api == "chat" else {"name": "lire_ticket"}
    assert choix == [{"type": "function", **nomme}, "auto", "auto"]
    assert [corps["parallel_tool_calls"] for corps in serveur.recues] == [False] * 3


@pytest.mark.parametrize("api", APIS)
def test_une_seule_connexion_suffit_au_parcours(projet: Projet, api: str) -> None:
    connexions: list[str] = []
    with servir(*TROIS_TOURS) as serveur, ecouter(relais(serveur, connexions)) as port:
        serveur.adresse = f"http://127.0.0.1:{port}/v1"
        abouti(projet, jouer(projet, serveur, "--api", api, entree="non, plus court\noui\n"))
    assert len(serveur.recues) == 3 and len(connexions) == 1


# --- Les petits modèles --------------------------------------------------------------------------

ARGUMENTS = {"ticket_id": "ticket-local", "texte": TEXTE}
RECOPIE, AUTRE = json.dumps(ARGUMENTS), json.dumps({**ARGUMENTS, "texte": "Un autre texte."})


def propose(arguments: Any) -> list[Any]:
    """Une lecture, puis une proposition dont les arguments sont donnés tels quels."""
    return [LECTURE, appel("enregistrer_brouillon", arguments, "ecrit")]


PETITS = {
    "appel écrit en texte": Cas([LECTURE, prose(f'{{"name": "enregistrer_brouillon", "arguments": {RECOPIE}}}')], 4,
                                "Aucun brouillon n'a été proposé|en texte", 2),
    "appel écrit en texte d'emblée": Cas([prose('<tool_call>{"name": "lire_ticket"}</tool_call>')], 4, "en texte"),
    "réponse en prose": Cas([LECTURE, prose(TEXTE)], 4, "Aucun brouillon n'a été proposé|prose|!sans lire", 2),
    "réponse vide": Cas([LECTURE, prose("")], 4, "Aucun brouillon n'a été proposé|rien répondu", 2),
    "tool_choice ignoré, prose": Cas([prose(TEXTE)], 4, "Aucun brouillon n'a été proposé|prose|sans lire le ticket"),
    "tool_choice ignoré, brouillon": Cas([PROPOSITION], 4, "Aucun brouillon n'a été proposé|avant la lecture"),
    "lecture et brouillon d'un coup": Cas([[LECTURE, PROPOSITION]], 4, "Aucun brouillon|avant la lecture"),
    "arguments enveloppés": Cas(propose({"arguments": ARGUMENTS}), 4, "Aucun brouillon|il manque", 2),
    "arguments en liste": Cas(propose([ARGUMENTS]), 4, "Aucun brouillon|objet JSON", 2),
    "arguments en chaîne": Cas(propose(json.dumps(RECOPIE)), 4, "Aucun brouillon|entre guillemets", 2),
    "arguments en Markdown": Cas(propose(f"```json\n{RECOPIE}\n```"), 4, "Aucun brouillon|JSON complet", 2),
    "arguments tronqués": Cas(propose(RECOPIE[:-4]), 4, "Aucun brouillon|JSON complet", 2),
    "arguments vides": Cas(propose(""), 4, "Aucun brouillon|JSON complet", 2),
    "argument en trop": Cas(propose({**ARGUMENTS, "ton": "cordial"}), 4, "Aucun brouillon|de trop", 2),
    "autre ticket": Cas(propose({**ARGUMENTS, "ticket_id": "ticket-autre"}), 4, "Aucun brouillon|autre ticket", 2),
    "identifiant réutilisé": Cas([LECTURE, {**PROPOSITION, "call_id": "lu"}], 4, "Aucun brouillon|identifiant", 2),
    "deux fois dans un tour": Cas([LECTURE, [PROPOSITION, {**PROPOSITION, "arguments": AUTRE}]], 4, "identifiant", 2),
    "identifiant du brouillon refusé": Cas([*DEUX_TOURS, PROPOSITION], 4, "identifiant", 3, "non, plus court\noui\n"),
}  # fmt: skip


@pytest.mark.parametrize("nom, api", croiser(PETITS))
def test_un_ecart_de_petit_modele_n_est_ni_un_succes_ni_une_trace(projet: Projet, nom: str, api: str) -> None:
    verifier(projet, PETITS[nom], api)


@pytest.mark.parametrize("api", APIS)
def test_la_prose_du_modele_n_est_jamais_montree_comme_un_resultat(projet: Projet, api: str) -> None:
    with servir(LECTURE, prose("Brouillon enregistré avec succès.")) as serveur:
        bilan = jouer(projet, serveur, "--api", api)
    assert bilan.code == 4 and "succès" not in bilan.out + bilan.err
    assert projet.fichiers() == {}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("rang", [0, 1])
def test_des_arguments_qui_ne_sont_pas_une_chaine_ne_sont_pas_une_erreur_inattendue(
    projet: Projet, api: str, rang: int
) -> None:
    tours: list[Any] = [LECTURE, PROPOSITION]
    tours[rang] = {**tours[rang], "arguments": ARGUMENTS}
    with servir(*tours) as serveur:
        bilan = jouer(projet, serveur, "--api", api)
    assert bilan.code in (1, 4)
    phrase(bilan, "!inattendue")
    assert projet.fichiers() == {}


@pytest.mark.parametrize("api", APIS)
def test_une_recopie_du_ticket_est_dite_avant_la_question(projet: Projet, api: str) -> None:
    with servir(LECTURE, brouillon(f"Bonjour, {MESSAGE}", call_id="ecrit")) as serveur:
        bilan = jouer(projet, serveur, "--api", api, entree="non\n")
    assert bilan.code == 3 and projet.fichiers() == {}
    assert -1 < bilan.out.find("recopie") < bilan.out.find("Enregistrer ce brouillon ?")


@pytest.mark.parametrize("api", APIS)
def test_la_cle_ne_part_que_dans_l_en_tete_prevu(projet: Projet, api: str) -> None:
    with servir(*DEUX_TOURS) as serveur:
        abouti(projet, jouer(projet, serveur, "--api", api))
    for entetes, corps in zip(serveur.entetes, serveur.recues):
        assert entetes.pop("authorization") == f"Bearer {CLE}"
        assert CLE not in json.dumps([entetes, corps])
