"""Un serveur de modèle en boucle locale : HTTP/1.1, connexions gardées, réponses écrites d'avance."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Sortie = dict[str, Any]


def appel(nom: str, arguments: Any, call_id: str = "") -> Sortie:
    """Un appel d'outil ; `arguments` est une chaîne envoyée telle quelle, ou un objet."""
    texte = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"type": "function_call", "name": nom, "arguments": texte, "call_id": call_id}


def prose(texte: str) -> Sortie:
    """Une réponse en texte libre."""
    return {"type": "message", "texte": texte}


def lecture(ticket_id: str = "ticket-local", call_id: str = "") -> Sortie:
    """L'appel attendu au premier tour."""
    return appel("lire_ticket", {"ticket_id": ticket_id}, call_id)


def brouillon(texte: str, ticket_id: str = "ticket-local", call_id: str = "") -> Sortie:
    """L'appel attendu au second tour."""
    return appel("enregistrer_brouillon", {"ticket_id": ticket_id, "texte": texte}, call_id)


class Reponse:
    """Une réponse HTTP quelconque : un corps, un code, des en-têtes, ou un incident."""

    def __init__(
        self,
        corps: Any = "",
        code: int = 200,
        entetes: dict[str, str] | None = None,
        attente: float = 0,
        coupure: bool = False,
    ) -> None:
        self.corps = corps if isinstance(corps, bytes) else _octets(corps)
        self.code, self.entetes = code, entetes or {}
        self.attente, self.coupure = attente, coupure


def _octets(corps: Any) -> bytes:
    return (corps if isinstance(corps, str) else json.dumps(corps)).encode()


def erreur(code: int, message: str = "", code_d_erreur: str | None = None, **entetes: str) -> Reponse:
    """Une erreur à la manière des API : {"error": {"message", "code"}}."""
    corps = {"error": {"message": message, "type": "erreur", "code": code_d_erreur}}
    return Reponse(corps, code, {cle.replace("_", "-"): valeur for cle, valeur in entetes.items()})


class Serveur:
    """Joue `reponses` dans l'ordre (la dernière se répète) et garde ce qu'il a reçu."""

    def __init__(self, *reponses: Any) -> None:
        self.reponses = list(reponses)
        self.recues: list[dict[str, Any]] = []
        self.chemins: list[str] = []
        self.entetes: list[dict[str, str]] = []
        self.fin = threading.Event()
        self.adresse = ""

    def suivante(self, chemin: str) -> Reponse:
        """La réponse à la requête qui vient d'arriver."""
        rang = len(self.recues) - 1
        choix = self.reponses[min(rang, len(self.reponses) - 1)]
        if isinstance(choix, Callable):  # type: ignore[arg-type]
            choix = choix(self.recues[-1])
        if isinstance(choix, Reponse):
            return choix
        sorties = choix if isinstance(choix, list) else [choix]
        sorties = [
            {**sortie, "call_id": f"call_{rang}_{numero}"} if sortie.get("call_id") == "" else sortie
            for numero, sortie in enumerate(sorties)
        ]
        construire = chat if chemin.endswith("/chat/completions") else responses
        return Reponse(construire(sorties, self.recues[-1].get("model", "")))


def responses(sorties: list[Sortie], modele: str) -> dict[str, Any]:
    """Le corps d'une réponse de l'API Responses."""
    items: list[dict[str, Any]] = []
    for numero, sortie in enumerate(sorties):
        if sortie["type"] == "message":
            partie = {"type": "output_text", "text": sortie["texte"], "annotations": []}
            if sortie.get("refus"):
                partie = {"type": "refusal", "refusal": sortie["texte"]}
            items.append(
                {
                    "id": f"msg_{numero}",
                    "type": "message",
                    "role": "assistant",
                    "status": "completed",
                    "content": [partie],
                }
            )
        else:
            items.append({"id": f"item_{numero}", "status": "completed", **sortie})
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": modele,
        "output": items,
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 2,
        },
    }


def chat(sorties: list[Sortie], modele: str, fin: str | None = None) -> dict[str, Any]:
    """Le corps d'une réponse de l'API Chat Completions."""
    message: dict[str, Any] = {"role": "assistant", "content": None}
    appels = []
    for sortie in sorties:
        if sortie["type"] == "message":
            message["refusal" if sortie.get("refus") else "content"] = sortie["texte"]
        else:
            fonction = {"name": sortie["name"], "arguments": sortie["arguments"]}
            appels.append({"id": sortie["call_id"], "type": "function", "function": fonction})
    if appels:
        message["tool_calls"] = appels
    fin = fin or ("tool_calls" if appels else "stop")
    return {
        "id": "chat_1",
        "object": "chat.completion",
        "created": 0,
        "model": modele,
        "choices": [{"index": 0, "finish_reason": fin, "message": message}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def _gestionnaire(serveur: Serveur) -> type[BaseHTTPRequestHandler]:
    class Gestionnaire(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # en HTTP/1.0, une connexion morte passerait inaperçue
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            corps = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            serveur.recues.append(json.loads(corps or b"{}"))
            serveur.chemins.append(self.path)
            serveur.entetes.append({cle.lower(): valeur for cle, valeur in self.headers.items()})
            reponse = serveur.suivante(self.path)
            serveur.fin.wait(reponse.attente)
            if serveur.fin.is_set():
                return
            self.send_response(reponse.code)
            entetes = {"Content-Type": "application/json", **reponse.entetes}
            entetes.setdefault("Content-Length", str(len(reponse.corps)))
            for cle, valeur in entetes.items():
                self.send_header(cle, valeur)
            self.end_headers()
            if reponse.coupure:
                self.wfile.write(reponse.corps[: len(reponse.corps) // 2])
                self.close_connection = True
                return
            self.wfile.write(reponse.corps)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Gestionnaire


@contextmanager
def servir(*reponses: Any) -> Iterator[Serveur]:
    """Ouvre le serveur sur un port libre ; `adresse` se met dans OPENAI_BASE_URL."""
    serveur = Serveur(*reponses)
    http = ThreadingHTTPServer(("127.0.0.1", 0), _gestionnaire(serveur))
    http.daemon_threads = True
    serveur.adresse = f"http://127.0.0.1:{http.server_port}/v1"
    fil = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    fil.start()
    try:
        yield serveur
    finally:
        serveur.fin.set()
        http.shutdown()
        http.server_close()
        fil.join()


def attendre(condition: Callable[[], bool], secondes: float = 30) -> None:
    """Attend qu'une condition soit vraie ; échoue au-delà du délai."""
    limite = time.monotonic() + secondes
    while not condition():
        assert time.monotonic() < limite, "la condition attendue n'est pas arrivée"
        time.sleep(0.02)
