"""Mesure la vitesse du script, à côté du temps d'import du SDK, contre un serveur qui répond aussitôt.

Se lance à la main : `python tests/mesure.py [passages]`. Les rapports sont pris dans un même lancement.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from serveur import brouillon, lecture, servir

RACINE = Path(__file__).resolve().parent.parent
TEXTE = "Bonjour,\n\nNous avons bien reçu votre message.\n\nLe support"


def chronometrer(commande: list[str]) -> float:
    """Secondes jusqu'à la fin de la commande."""
    debut = time.perf_counter()
    subprocess.run(commande, capture_output=True, check=False)
    return time.perf_counter() - debut


def parcourir(dossier: Path, reponse: str) -> tuple[float, float, float, int]:
    """Secondes jusqu'au ticket, jusqu'à la question, de la réponse à la fin, et nombre de requêtes."""
    with servir(lecture(), brouillon(TEXTE)) as serveur:
        environnement = {**os.environ, "OPENAI_BASE_URL": serveur.adresse, "PYTHONUNBUFFERED": "1"}
        debut = time.perf_counter()
        script = subprocess.Popen(
            [sys.executable, str(dossier / "draft_ticket.py"), "ticket-local", "--modele", "essai"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environnement,
        )
        assert script.stdin is not None and script.stdout is not None
        instants: dict[str, float] = {}
        vu = b""
        while b"Enregistrer ce brouillon ?" not in vu:
            vu += os.read(script.stdout.fileno(), 65536)
            if b"Message :" in vu:
                instants.setdefault("ticket", time.perf_counter() - debut)
        question = time.perf_counter()
        script.communicate(f"{reponse}\n".encode())
        return instants["ticket"], question - debut, time.perf_counter() - question, len(serveur.recues)


def main(passages: int) -> None:
    """Affiche la médiane de chaque mesure."""
    with tempfile.TemporaryDirectory() as nom:
        dossier = Path(nom)
        for fichier in ("draft_ticket.py", "tickets"):
            copier = shutil.copytree if (RACINE / fichier).is_dir() else shutil.copy
            copier(RACINE / fichier, dossier / fichier)
        imports, usages, oui, non = [], [], [], []
        parcourir(dossier, "non")  # premier passage à froid, non compté
        for _ in range(passages):
            imports.append(chronometrer([sys.executable, "-c", "import agents"]))
            usages.append(chronometrer([sys.executable, str(dossier / "draft_ticket.py"), "Faute"]))
            oui.append(parcourir(dossier, "oui"))
            non.append(parcourir(dossier, "non"))
    ticket, question, fin, _ = (statistics.median(colonne) for colonne in zip(*oui, strict=True))
    importer = statistics.median(imports)
    print(f"import du SDK seul           {importer:.2f} s  (médianes de {passages} passages)")
    print(f"ticket à l'écran             {ticket:.2f} s  (visé : moins de 0,3 s)")
    print(f"erreur d'usage               {statistics.median(usages):.2f} s  (visé : moins de 0,5 s)")
    rapport = f"{question / importer:.2f} fois l'import (visé : 1,15)"
    print(f"lancement à la question      {question:.2f} s  soit {rapport}")
    print(f"oui à la fin                 {fin:.2f} s  (visé : moins de 1 s)")
    requetes = f"{oui[0][3]} pour un brouillon, {non[0][3]} pour un refus"
    print(f"requêtes                     {requetes} (visé : 2 et 2)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
