"""Tout fournisseur : le modèle demandé, les réglages permis, les écarts des serveurs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from conftest import MESSAGE, TEXTE, Bilan, Projet, processus
from reseau import (
    APIS,
    CLE,
    CLE_EN_CLAIR,
    LECTURE,
    PROPOSITION,
    Cas,
    croiser,
    ecouter,
    jouer,
    mandate,
    phrase,
    relais,
    verifier,
)
from serveur import (
    Reponse,
    Serveur,
    Sortie,
    appel,
    brouillon,
    chat,
    erreur,
    prose,
    responses,
    servir,
)

NOMS = ["mistralai/Mistral-7B", "ollama/qwen2.5:7b", "openai/gpt-oss-20b", "GPT-Majuscules"]
DEUX_TOURS = (LECTURE, PROPOSITION)
TROIS_TOURS = (*DEUX_TOURS, {**PROPOSITION, "call_id": "encore"})


def abouti(projet: Projet, bilan: Bilan) -> None:
    """Le parcours est allé jusqu'au fichier."""
    assert (bilan.code, bilan.err) == (0, "")
    assert projet.fichiers() == {"ticket-local.txt": TEXTE.encode()}


def jouer_openai(
    projet: Projet, serveur: Serveur, *argv: str, entree: str = "oui\n", **variables: str | None
) -> Bilan:
    """Un lancement qui croit parler à OpenAI : le serveur joue le mandataire de cet hôte."""
    reglages: dict[str, str | None] = {
        **mandate(serveur.adresse.removesuffix("/v1")),
        "OPENAI_API_KEY": CLE_EN_CLAIR,
    }
    reglages |= {"OPENAI_BASE_URL": "http://api.openai.com/v1", "OPENAI_DEFAULT_MODEL": None}
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
            projet,
            serveur,
            "--api",
            api,
            *option,
            entree="non, plus court\noui\n",
            OPENAI_DEFAULT_MODEL=variable,
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
            projet,
            serveur,
            OPENAI_BASE_URL=f"http://{hote}/v1",
            OPENAI_API_KEY="",
            OPENAI_DEFAULT_MODEL="m",
        )
    assert bilan.code == 2
    phrase(bilan, "Clé absente|OPENAI_API_KEY|--demo|un mot quelconque")
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
        abouti(
            projet,
            jouer(projet, serveur, "--api", api, "--modele", nom, OPENAI_DEFAULT_MODEL=defaut),
        )
    assert [raisonnement(corps) for corps in serveur.recues] == [{}, {}]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    "option, variable",
    [("", None), ("", ""), ("", "gpt-5.1"), ("gpt-5.4-mini", None), ("gpt-5.1", "mistral-small")],
)
def test_les_reglages_du_sdk_pour_gpt_5_restent(
    projet: Projet, api: str, option: str, variable: str | None
) -> None:
    """Sans nom, OpenAI reçoit le modèle du SDK, et c'est bien celui qui est annoncé."""
    argv = ["--api", api, *(["--modele", option] if option else [])]
    with servir(*TROIS_TOURS) as serveur:
        bilan = jouer_openai(
            projet, serveur, *argv, entree="non, plus court\noui\n", OPENAI_DEFAULT_MODEL=variable
        )
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
    pensee = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "encrypted_content": "chiffre-de-la-reponse",
    }
    with servir([pensee, LECTURE], PROPOSITION) as serveur:
        abouti(projet, jouer(projet, serveur, "--modele", "gpt-5.1"))
    renvoyes = [item for item in serveur.recues[1]["input"] if item.get("type") == "reasoning"]
    assert [item["encrypted_content"] for item in renvoyes] == ["chiffre-de-la-reponse"]


def outils(corps: dict[str, Any]) -> list[str]:
    """Les outils offerts par une requête."""
    return [outil.get("function", outil)["name"] for outil in corps["tools"]]


@pytest.mark.parametrize("api", APIS)
def test_chaque_requete_offre_un_seul_outil_et_l_impose(projet: Projet, api: str) -> None:
    with servir(*TROIS_TOURS) as serveur:
        abouti(projet, jouer(projet, serveur, "--api", api, entree="non, plus court\noui\n"))
    assert [outils(corps) for corps in serveur.recues] == [
        ["lire_ticket"],
        *[["enregistrer_brouillon"]] * 2,
    ]
    assert [corps["tool_choice"] for corps in serveur.recues] == ["required"] * 3
    assert [corps["parallel_tool_calls"] for corps in serveur.recues] == [False] * 3


REFUS = {
    "valeur": ("tool_choice", 400, "Invalid value for 'tool_choice': only 'auto' is supported."),
    "réflexion": ("tool_choice", 400, "Thinking mode does not support this tool_choice"),
    "aucun fournisseur": (
        "tool_choice",
        404,
        "No endpoints found that support the provided 'tool_choice' value.",
    ),
    "en trop": ("parallel_tool_calls", 422, "Extra inputs are not permitted: parallel_tool_calls"),
    "plantage": ("tool_choice", 500, "KeyError: tool_choice"),
    "raisonnement": ("include", 400, "Encrypted content is not supported with this model."),
}


def refusant(champs: tuple[str, ...], code: int, message: str, *sorties: Sortie) -> Callable[[Any], Any]:
    """Joue `sorties`, mais répond par cette erreur à toute requête qui porte l'un de ces champs."""
    suite = iter(sorties)
    return lambda recue: erreur(code, message) if set(champs) & set(recue) else next(suite)


@pytest.mark.parametrize(
    "cas, api",
    [(cas, api) for cas in REFUS for api in APIS if (cas, api) != ("raisonnement", "chat")],
)
def test_un_champ_refuse_part_une_seule_fois_et_le_reste_ne_change_pas(
    projet: Projet, cas: str, api: str
) -> None:
    champ, code, message = REFUS[cas]
    with servir(refusant((champ,), code, message, *TROIS_TOURS)) as serveur:
        argv = ["--api", api, "--modele", "gpt-5.1"]
        abouti(projet, jouer(projet, serveur, *argv, entree="non, plus court\noui\n"))
    refusee, *suite = serveur.recues
    assert champ in refusee and len(suite) == 3
    for corps in suite:
        assert sorted(corps) == sorted(set(refusee) - {champ})
        assert corps.get("store") == refusee.get("store")
    assert suite[0] == {nom: refusee[nom] for nom in suite[0]}


def test_deux_champs_refuses_l_un_apres_l_autre(projet: Projet) -> None:
    champs = ("tool_choice", "parallel_tool_calls")
    with servir(refusant(champs, 400, "tool_choice, parallel_tool_calls", *DEUX_TOURS)) as serveur:
        abouti(projet, jouer(projet, serveur))
    assert [len(set(champs) & set(corps)) for corps in serveur.recues] == [2, 0, 0]


REFUS_DURABLES = {
    "refusé même sans": Cas(
        [erreur(400, "tool_choice: not supported")], 1, "Outils refusés|tool_choice: not", 2
    ),
    "autre code": Cas([erreur(403, "tool_choice")], 1, "403|Le serveur dit : tool_choice"),
    "store": Cas([erreur(400, "Unknown field: store")], 1, "400|Unknown field: store"),
}


@pytest.mark.parametrize("nom, api", croiser(REFUS_DURABLES))
def test_un_refus_durable_finit_par_ses_mots(projet: Projet, nom: str, api: str) -> None:
    verifier(projet, REFUS_DURABLES[nom], api)


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
    "appel écrit en texte": Cas(
        [LECTURE, prose(f'{{"name": "enregistrer_brouillon", "arguments": {RECOPIE}}}')], 4,
                                "Aucun brouillon n'a été proposé|au lieu d'appeler l'outil", 2),
    "appel écrit en texte d'emblée": Cas(
        [prose('<tool_call>{"name": "lire_ticket"}</tool_call>')], 4,
        "au lieu d'appeler l'outil"),
    "réponse en prose": Cas([LECTURE, prose(TEXTE)], 4,
        "Aucun brouillon n'a été proposé|prose|!sans lire", 2),
    "réponse vide": Cas([LECTURE, prose("")], 4, "Aucun brouillon n'a été proposé|rien répondu", 2),
    "tool_choice ignoré, prose": Cas([prose(TEXTE)], 4,
        "Aucun brouillon n'a été proposé|prose|sans lire le ticket"),
    "tool_choice ignoré, brouillon": Cas([PROPOSITION], 4,
        "Aucun brouillon n'a été proposé|avant la lecture"),
    "lecture et brouillon d'un coup": Cas([[LECTURE, PROPOSITION]], 4,
        "Aucun brouillon|avant la lecture"),
    "arguments enveloppés": Cas(propose({"arguments": ARGUMENTS}), 4,
        "Aucun brouillon|il manque", 2),
    "arguments en liste": Cas(propose([ARGUMENTS]), 4, "Aucun brouillon|objet JSON", 2),
    "arguments en chaîne": Cas(propose(json.dumps(RECOPIE)), 4,
        "Aucun brouillon|entre guillemets", 2),
    "arguments en Markdown": Cas(propose(f"```json\n{RECOPIE}\n```"), 4,
        "Aucun brouillon|JSON complet", 2),
    "arguments tronqués": Cas(propose(RECOPIE[:-4]), 4, "Aucun brouillon|JSON complet", 2),
    "arguments vides": Cas(propose(""), 4, "Aucun brouillon|JSON complet", 2),
    "argument en trop": Cas(propose({**ARGUMENTS, "ton": "cordial"}), 4,
        "Aucun brouillon|de trop", 2),
    "autre ticket": Cas(propose({**ARGUMENTS, "ticket_id": "ticket-autre"}), 4,
        "Aucun brouillon|autre ticket", 2),
    "ticket redemandé": Cas([LECTURE, {**LECTURE, "call_id": "relu"}], 4,
        "Aucun brouillon|redemandé le ticket", 2),
    "outil inconnu au second tour": Cas([LECTURE, appel("envoyer", {}, "c")], 4,
        "outil qui n'existe pas", 2),
}  # fmt: skip


@pytest.mark.parametrize("nom, api", croiser(PETITS))
def test_un_ecart_de_petit_modele_n_est_ni_un_succes_ni_une_trace(
    projet: Projet, nom: str, api: str
) -> None:
    verifier(projet, PETITS[nom], api)


@pytest.mark.parametrize("api", APIS)
def test_la_prose_du_modele_n_est_jamais_montree_comme_un_resultat(projet: Projet, api: str) -> None:
    with servir(LECTURE, prose("Brouillon enregistré avec succès.")) as serveur:
        bilan = jouer(projet, serveur, "--api", api)
    assert bilan.code == 4 and "succès" not in bilan.out + bilan.err
    assert projet.fichiers() == {}


# --- Les réponses que le SDK ne saurait pas lire, ou exécuterait mal ------------------------------

Changer = Callable[[dict[str, Any]], object]
MORCEAUX = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "Voyons"}]},
    {"type": "text", "text": "Voici"},
]


def item(**champs: Any) -> Changer:
    """Place cet élément avant l'appel, dans une réponse de l'API Responses."""
    return lambda corps: corps["output"].insert(0, champs)


def message(**champs: Any) -> Changer:
    """Change le message d'une réponse de Chat."""
    return lambda corps: corps["choices"][0]["message"].update(champs)


def l_appel(corps: dict[str, Any]) -> dict[str, Any]:
    """L'appel d'une réponse, quelle que soit l'API."""
    trouve = (
        corps["output"][-1] if "output" in corps else corps["choices"][0]["message"]["tool_calls"][-1]
    )
    assert isinstance(trouve, dict)
    return trouve


def identifiant(valeur: Any) -> Changer:
    """Donne cet identifiant à l'appel, quelle que soit l'API."""
    return lambda corps: l_appel(corps).update({"call_id" if "output" in corps else "id": valeur})


def sans_identifiant(corps: dict[str, Any]) -> None:
    """Retire l'identifiant de l'appel."""
    del l_appel(corps)["call_id" if "output" in corps else "id"]


def arguments_en_objet(corps: dict[str, Any]) -> None:
    """Les arguments ne sont plus une chaîne."""
    fonction = l_appel(corps).get("function", l_appel(corps))
    fonction["arguments"] = json.loads(fonction["arguments"])


ECARTS: dict[str, tuple[tuple[str, ...], Changer]] = {
    "identifiant vide": (APIS, identifiant("")),
    "identifiant nul": (APIS, identifiant(None)),
    "identifiant absent": (APIS, sans_identifiant),
    "identifiant numérique": (APIS, identifiant(0)),
    "identifiant toujours le même": (APIS, identifiant("call_0")),
    "arguments en objet": (APIS, arguments_en_objet),
    "contenu en morceaux": (("chat",), message(content=MORCEAUX)),
    "contenu en objet": (("chat",), message(content={"text": "Voici"})),
    "raisonnement en liste": (("chat",), message(reasoning_content=["Voyons"])),
    "refus en objet": (("chat",), message(refusal={})),
    "appel sans type": (("chat",), lambda corps: l_appel(corps).update(type=None)),
    "élément inconnu": (("responses",), item(type="inconnu")),
    "élément sans type": (("responses",), item(id="x")),
    "élément nul": (("responses",), lambda corps: corps["output"].insert(0, None)),
    "raisonnement bizarre": (
        ("responses",),
        item(type="reasoning", summary="Voyons", content=None),
    ),
    "raisonnement sans id": (("responses",), item(type="reasoning")),
    "message sans contenu": (("responses",), item(type="message", role="assistant", content=None)),
    "message en morceaux": (
        ("responses",),
        item(type="message", role="assistant", content=MORCEAUX),
    ),
    "outil du serveur": (("responses",), item(type="program")),
}


def identifiants(corps: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Les appels que rappelle une requête, et ceux auxquels elle rend un résultat."""
    if "input" in corps:
        types = ("function_call", "function_call_output")
        appels, rendus = (
            [item["call_id"] for item in corps["input"] if item.get("type") == nom] for nom in types
        )
        return appels, rendus
    appels = [
        fonction["id"] for message in corps["messages"] for fonction in message.get("tool_calls") or []
    ]
    return appels, [message["tool_call_id"] for message in corps["messages"] if message["role"] == "tool"]


@pytest.mark.parametrize("ecart, api", [(ecart, api) for ecart in ECARTS for api in ECARTS[ecart][0]])
def test_un_ecart_de_serveur_n_arrete_rien_et_rien_ne_s_execute_deux_fois(
    projet: Projet, ecart: str, api: str
) -> None:
    construire = chat if api == "chat" else responses
    tours: list[Any] = []
    for sortie in (LECTURE, brouillon("Une première version."), PROPOSITION):
        corps = construire([{**sortie, "call_id": f"appel-{len(tours)}"}], "m")
        ECARTS[ecart][1](corps)
        tours.append(Reponse(corps))
    with servir(*tours) as serveur:
        bilan = jouer(projet, serveur, "--api", api, entree="non, plus court\noui\n")
    abouti(projet, bilan)
    assert len(serveur.recues) == 3 and bilan.out.count("Enregistrer ce brouillon ?") == 2
    appels, rendus = identifiants(serveur.recues[-1])
    assert all(appels) and appels == rendus and len(set(appels)) == 2


@pytest.mark.parametrize("api", APIS)
def test_une_decision_ne_vaut_que_pour_un_appel_meme_si_deux_ont_le_meme_identifiant(
    projet: Projet, api: str
) -> None:
    with servir(LECTURE, [{**PROPOSITION, "arguments": AUTRE}, PROPOSITION]) as serveur:
        bilan = jouer(projet, serveur, "--api", api, entree="non\noui\n")
    abouti(projet, bilan)
    assert len(serveur.recues) == 2


def test_un_avertissement_du_sdk_n_arrive_pas_a_l_ecran(copie: Path) -> None:
    """Dans un processus à part, où pytest ne retient pas les avertissements."""
    pensee = {"type": "reasoning", "summary": "Le ticket dit", "content": "Le ticket dit"}
    with servir([pensee, LECTURE], PROPOSITION) as serveur:
        reglages = {
            "OPENAI_BASE_URL": serveur.adresse,
            "PYTHONIOENCODING": "utf-8",
            "PYTHONWARNINGS": "always",
        }
        bilan = processus(copie, "ticket-local", "--modele", "m", entree="oui\n", **reglages)
    assert (bilan.code, bilan.err) == (0, "")
    assert (copie / "brouillons" / "ticket-local.txt").read_bytes() == TEXTE.encode()


@pytest.mark.parametrize("api", APIS)
def test_une_recopie_du_ticket_est_dite_avant_la_question(projet: Projet, api: str) -> None:
    projet.ticket(message=f"{MESSAGE} Le carton était ouvert et le pied de la lampe manque.")
    with servir(LECTURE, brouillon(f"{MESSAGE} Le carton était ouvert.", call_id="ecrit")) as serveur:
        bilan = jouer(projet, serveur, "--api", api, entree="non\n")
    assert bilan.code == 3 and projet.fichiers() == {}
    assert -1 < bilan.out.find("| forme") < bilan.out.find("Enregistrer ce brouillon ?")


COMPTE = {"OPENAI_ORG_ID": "org-a-moi", "OPENAI_PROJECT_ID": "projet-a-moi"}


@pytest.mark.parametrize("lancement, attendu", [(jouer, 0), (jouer_openai, 3)])
def test_le_compte_openai_n_est_dit_qu_a_openai(
    projet: Projet, lancement: Callable[..., Bilan], attendu: int
) -> None:
    with servir(*DEUX_TOURS) as serveur:
        variables = {**COMPTE, "OPENAI_CUSTOM_HEADERS": "X-Perso: a-moi"}
        abouti(projet, lancement(projet, serveur, "--modele", "m", **variables))
    for entetes in serveur.entetes:
        dits = {*COMPTE.values(), "a-moi"} & set(entetes.values())
        assert len(dits) == attendu


@pytest.mark.parametrize("api", APIS)
def test_la_cle_ne_part_que_dans_l_en_tete_prevu(projet: Projet, api: str) -> None:
    with servir(*DEUX_TOURS) as serveur:
        abouti(projet, jouer(projet, serveur, "--api", api))
    for entetes, corps in zip(serveur.entetes, serveur.recues):
        assert entetes.pop("authorization") == f"Bearer {CLE}"
        assert CLE not in json.dumps([entetes, corps])
