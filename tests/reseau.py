"""Ce que partagent les essais du réseau : une clé, un cas de panne, un port, un certificat."""

from __future__ import annotations

import datetime
import re
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from conftest import TEXTE, Bilan, Projet
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from serveur import Reponse, Serveur, Sortie, brouillon, chat, lecture, responses, servir

APIS = ("responses", "chat")
CLE = "sk-Q7xZ9vKw2mPj4rTd"  # aucun de ses morceaux de quatre signes n'est dans un mot
CLE_EN_CLAIR = CLE.removeprefix("sk-")  # celle d'un serveur qui n'est pas OpenAI, permise sans https
LECTURE, PROPOSITION = lecture(call_id="lu"), brouillon(TEXTE, call_id="ecrit")

# Des mots que seuls le SDK et argparse emploient, et des verbes dont l'un au moins dit quoi faire.
ANGLAIS = re.compile(
    r"(?<![\w.])(?:the|error|failed|invalid|exception|traceback|expected|choose|unrecognized|refused|request|response"
    r"|connection|certificate|usage:)(?!\w)",
    re.IGNORECASE,
)
CONSEIL = re.compile(
    r"(?:vérifi|corrig|essay|choisiss|raccourciss|augment|prév?en|patient|lanc|instal|ajout|défini|recopi)\w*ez\b"
    r"|attend|voir :",
    re.IGNORECASE,
)


class Cas(NamedTuple):
    """Ce que joue le serveur, le code, les mots attendus (« !mot » : absent), les requêtes."""

    reponses: list[Any]
    code: int
    mots: str
    requetes: int = 1
    entree: str = "oui\n"
    apis: tuple[str, ...] = APIS


def jouer(
    projet: Projet, serveur: Serveur, *argv: str, entree: str = "oui\n", **variables: str | None
) -> Bilan:
    """Un lancement contre ce serveur, avec une clé et un modèle (None : variable absente)."""
    reglages = {
        "OPENAI_BASE_URL": serveur.adresse,
        "OPENAI_API_KEY": CLE,
        "OPENAI_DEFAULT_MODEL": "modele-essai",
    }
    presentes = {nom: valeur for nom, valeur in {**reglages, **variables}.items() if valeur is not None}
    return projet.lancer("ticket-local", *argv, entree=entree, **presentes)


def sans_la_cle(bilan: Bilan) -> None:
    """Ni la clé ni quatre de ses signes à la suite ne sont visibles."""
    morceaux = {CLE[rang : rang + 4] for rang in range(len(CLE) - 3)}
    assert not [morceau for morceau in morceaux if morceau in bilan.out + bilan.err]


def phrase(bilan: Bilan, mots: str = "") -> str:
    """Rend la phrase d'un échec : une seule ligne, en français, sans la clé, qui dit quoi faire."""
    assert bilan.err.count("\n") == 1 and bilan.err.endswith("\n"), bilan.err
    du_script = bilan.err.partition("Le serveur dit : ")[0]
    assert not ANGLAIS.search(du_script) and "Error code" not in bilan.err, bilan.err
    assert CONSEIL.search(du_script), f"aucun conseil : {bilan.err}"
    for mot in filter(None, mots.split("|")):
        assert (mot.removeprefix("!") in bilan.err) is not mot.startswith("!"), (mot, bilan.err)
    sans_la_cle(bilan)
    assert "\r" not in bilan.out, "l'attente ne laisse rien dans une sortie redirigée"
    assert "Brouillon enregistré" not in bilan.out
    return bilan.err


def verifier(projet: Projet, cas: Cas, api: str) -> None:
    """Joue un cas devant un brouillon déjà approuvé, qui doit rester tel quel."""
    projet.brouillon.write_bytes(b"ancien")
    with servir(*cas.reponses) as serveur:
        bilan = jouer(projet, serveur, "--api", api, entree=cas.entree)
    assert bilan.code == cas.code, bilan.err
    phrase(bilan, cas.mots)
    assert projet.fichiers() == {"ticket-local.txt": b"ancien"}
    assert len(serveur.recues) == cas.requetes


def croiser(cas: dict[str, Cas]) -> list[tuple[str, str]]:
    """Chaque cas avec chacune de ses API."""
    return [(nom, api) for nom in cas for api in cas[nom].apis]


def abimee(*sorties: Sortie, reponse: dict[str, Any], choix: dict[str, Any]) -> Callable[[Any], Reponse]:
    """Une réponse dont l'enveloppe est changée : `reponse` pour Responses, `choix` pour Chat."""

    def construire(recue: dict[str, Any]) -> Reponse:
        if "input" in recue:
            return Reponse({**responses(list(sorties), "m"), **reponse})
        corps = chat(list(sorties), "m")
        corps["choices"][0].update(choix)
        return Reponse(corps)

    return construire


@contextmanager
def ecouter(traiter: Callable[[socket.socket], None]) -> Iterator[int]:
    """Ouvre un port local dont chaque connexion est donnée à `traiter`, dans un fil à elle."""

    class Connexion(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                traiter(self.request)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Connexion) as ecoute:
        ecoute.daemon_threads = True
        fil = threading.Thread(target=ecoute.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        fil.start()
        yield ecoute.server_address[1]
        ecoute.shutdown()
        fil.join()


def relais(serveur: Serveur, notes: list[str]) -> Callable[[socket.socket], None]:
    """Note la première ligne de chaque connexion, puis relie à ce serveur ; refuse les tunnels."""
    port = urlsplit(serveur.adresse).port or 0

    def verser(source: socket.socket, but: socket.socket) -> None:
        with suppress(OSError):
            while octets := source.recv(65536):
                but.sendall(octets)
            but.shutdown(socket.SHUT_WR)

    def traiter(client: socket.socket) -> None:
        debut = client.recv(65536)
        notes.append(debut.decode("latin-1").split("\r\n")[0])
        if debut.startswith(b"CONNECT"):
            client.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            return
        with socket.create_connection(("127.0.0.1", port)) as cible:
            cible.sendall(debut)
            threading.Thread(target=verser, args=(cible, client), daemon=True).start()
            verser(client, cible)

    return traiter


def certificat(dossier: Path) -> tuple[ssl.SSLContext, Path]:
    """De quoi servir « localhost » en TLS, et le certificat, signé par lui-même, qu'il présente."""
    cle, nom = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    jour, fichier = datetime.datetime.now(datetime.timezone.utc), dossier / "serveur.pem"
    signe = (
        x509.CertificateBuilder(nom, nom, cle.public_key(), x509.random_serial_number())
        .not_valid_before(jour)
        .not_valid_after(jour + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=True)
        .sign(cle, hashes.SHA256())
    )
    pem, clair = serialization.Encoding.PEM, serialization.NoEncryption()
    prive = cle.private_bytes(pem, serialization.PrivateFormat.PKCS8, clair)
    fichier.write_bytes(prive + signe.public_bytes(pem))
    contexte = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    contexte.load_cert_chain(fichier)
    return contexte, fichier


def en_tls(
    contexte: ssl.SSLContext, traiter: Callable[[socket.socket], None]
) -> Callable[[socket.socket], None]:
    """Donne à `traiter` la connexion une fois déchiffrée."""

    def ouvrir(connexion: socket.socket) -> None:
        with contexte.wrap_socket(connexion, server_side=True) as chiffree:
            traiter(chiffree)

    return ouvrir


def mandate(adresse: str) -> dict[str, str]:
    """Les variables qui font passer par ce mandataire tout ce qui quitte la machine."""
    noms = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    return {**dict.fromkeys(noms, adresse), "NO_PROXY": "", "no_proxy": ""}


def port_ferme() -> int:
    """Un port de la machine où personne n'écoute."""
    with socket.create_server(("127.0.0.1", 0)) as libre:
        return int(libre.getsockname()[1])
