"""Le disque : l'écriture est entière ou n'a pas lieu, et ce qui en est dit est vrai."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import RACINE, TEXTE, Bilan, Projet, environnement, processus
from parcours import QUESTION, anciens, jouer
from serveur import brouillon, lecture

import draft_ticket

NOM, COPIE = "ticket-local.txt", "ticket-local.txt~"
FIN_PAR_SIGNAL = (-2, 130)  # le signal lui-même, ou le code qu'un shell en donne
Geste = Callable[[Projet], object]


def verifier_l_echec(bilan: Bilan, *mots: str) -> None:
    """Code 1 et une seule ligne, qui dit pourquoi ; jamais de verdict heureux."""
    assert bilan.code == 1
    assert bilan.err.count("\n") == 1 and all(mot in bilan.err for mot in mots)
    assert "Traceback" not in bilan.err and "Brouillon enregistré" not in bilan.out


# --- L'ancien brouillon ---------------------------------------------------------------------


def test_l_ancien_brouillon_est_montre_puis_garde_octet_pour_octet(projet: Projet) -> None:
    ancien = b"Bonjour,\n\nUne phrase en latin-1 : \xe9t\xe9.\r\n\nLe support"
    projet.brouillon.write_bytes(ancien)
    os.utime(projet.brouillon, (1_700_000_000, 1_700_000_000))  # le 14 ou le 15 novembre 2023
    bilan, _ = jouer(projet, lecture(), brouillon(TEXTE))
    assert bilan.code == 0
    assert projet.fichiers() == {NOM: TEXTE.encode(), COPIE: ancien}
    assert {stat.S_IMODE(fichier.stat().st_mode) for fichier in projet.brouillon.parent.iterdir()} == {
        0o600
    }
    avis = bilan.out[bilan.out.index("Un brouillon existe déjà") : bilan.out.index(QUESTION)]
    assert "/11/2023 à " in avis and "5 lignes, " in avis and "sous .txt~" in avis
    assert "[-Une phrase en latin-1" in avis and "{+Nous avons bien reçu votre" in avis


def test_un_ancien_brouillon_identique_ne_touche_pas_a_la_copie(projet: Projet) -> None:
    anciens(projet)
    projet.brouillon.write_text(TEXTE, "utf-8")
    avant = projet.fichiers()
    bilan, _ = jouer(projet, lecture(), brouillon(TEXTE))
    assert (bilan.code, projet.fichiers()) == (0, avant)
    assert "Le texte est identique à ce brouillon." in bilan.out
    assert "le remplace" not in bilan.out  # rien n'est gardé, rien n'est perdu


def test_une_copie_anterieure_est_remplacee_par_le_dernier_brouillon(projet: Projet) -> None:
    avant = anciens(projet)
    assert jouer(projet, lecture(), brouillon(TEXTE))[0].code == 0
    assert projet.fichiers() == {NOM: TEXTE.encode(), COPIE: avant[NOM]}


def test_un_dossier_brouillons_absent_est_cree(projet: Projet) -> None:
    projet.brouillon.parent.rmdir()
    assert jouer(projet, lecture(), brouillon(TEXTE))[0].code == 0
    assert projet.fichiers() == {NOM: TEXTE.encode()}


def test_un_brouillon_apparu_pendant_la_redaction_est_montre(projet: Projet) -> None:
    def rediger(_: Any) -> Any:
        projet.brouillon.write_text("Écrit par une autre fenêtre", "utf-8")
        return brouillon(TEXTE)

    bilan, _ = jouer(projet, lecture(), rediger)
    assert "[-Écrit par une autre fenêtre-]" in bilan.out
    assert projet.fichiers() == {NOM: TEXTE.encode(), COPIE: "Écrit par une autre fenêtre".encode()}


# --- Ce qui change entre l'affichage et le oui ----------------------------------------------


class Saisie(io.BytesIO):
    """Une entrée standard qui répond « oui » après un geste fait dans le dossier."""

    def __init__(self, geste: Callable[[], object]) -> None:
        super().__init__(b"oui\n")
        self.geste = geste

    def read1(self, taille: int | None = -1, /) -> bytes:
        self.geste()
        return super().read1(taille)


def modifier(projet: Projet) -> None:
    projet.brouillon.write_bytes(b"Corrig\xe9 dans un \xe9diteur")


def vers_un_fichier(chemin: Path) -> None:
    """Met à la place du chemin un lien vers un fichier qui ne doit pas être touché."""
    victime = chemin.parent.parent / "victime"
    victime.write_bytes(b"intacte")
    chemin.unlink(missing_ok=True)
    chemin.symlink_to(victime)


def dossier_remplace(projet: Projet) -> None:
    shutil.rmtree(projet.brouillon.parent)
    projet.brouillon.parent.write_bytes(b"un fichier")


CHANGEMENTS: dict[str, tuple[bool, Geste, str]] = {
    "modifié": (True, modifier, "a changé"),
    "apparu": (False, modifier, "a changé"),
    "disparu": (True, lambda projet: projet.brouillon.unlink(), "a changé"),
    "devenu un lien": (
        True,
        lambda projet: vers_un_fichier(projet.brouillon),
        "Écriture impossible",
    ),
    "dossier devenu un fichier": (True, dossier_remplace, "Écriture impossible"),
}


def contenu(projet: Projet) -> dict[str, bytes]:
    """Tout ce que le projet contient, octet pour octet, un lien valant ce qu'il désigne."""
    tout = sorted(projet.dossier.rglob("*"))
    return {str(chemin): chemin.read_bytes() if chemin.is_file() else b"" for chemin in tout}


@pytest.mark.parametrize("cas", CHANGEMENTS)
def test_un_brouillon_change_pendant_la_lecture_n_est_pas_remplace(
    projet: Projet, monkeypatch: pytest.MonkeyPatch, capfd: Any, cas: str
) -> None:
    existe, changer, mots = CHANGEMENTS[cas]
    if existe:
        anciens(projet)
    laisse: list[object] = []

    def geste() -> None:
        changer(projet)
        laisse.append(contenu(projet))

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Saisie(geste), "utf-8"))
    code = draft_ticket.main(["ticket-local", "--demo"])
    sortie = capfd.readouterr()
    verifier_l_echec(Bilan(code, sortie.out, sortie.err), mots)
    assert laisse == [contenu(projet)]


# --- L'écriture impossible ------------------------------------------------------------------

OBSTACLES: dict[str, Geste] = {
    "dossier": lambda projet: projet.brouillon.mkdir(),
    "lien": lambda projet: vers_un_fichier(projet.brouillon),
    "lien cassé": lambda projet: projet.brouillon.symlink_to(projet.dossier / "absent"),
    "tube": lambda projet: os.mkfifo(projet.brouillon),
    "trop gros": lambda projet: projet.brouillon.write_bytes(
        b"x" * (draft_ticket.TAILLE_MAX_BROUILLON + 1)
    ),
    "brouillons est un fichier": dossier_remplace,
}


@pytest.mark.parametrize("requetes", [0, 2], ids=["au lancement", "pendant le travail"])
@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_un_obstacle_est_dit_sans_rien_demander(projet: Projet, obstacle: str, requetes: int) -> None:
    laisse: list[object] = []

    def placer(_: Any = None) -> Any:
        OBSTACLES[obstacle](projet)
        laisse.append(contenu(projet))
        return brouillon(TEXTE)

    if requetes == 0:
        placer()
    bilan, serveur = jouer(projet, lecture(), placer)
    verifier_l_echec(bilan, "Écriture impossible")
    assert len(serveur.recues) == requetes and QUESTION not in bilan.out
    assert laisse == [contenu(projet)]


A_LA_PLACE_DE_LA_COPIE: dict[str, tuple[Callable[[Path], object], str]] = {
    "dossier": (lambda copie: copie.mkdir(), "un dossier se trouve à la place"),
    "lien": (vers_un_fichier, "un lien se trouve à la place"),
    "tube": (os.mkfifo, "n'est pas un fichier ordinaire"),
}


@pytest.mark.parametrize("requetes", [0, 2], ids=["au lancement", "pendant le travail"])
@pytest.mark.parametrize("obstacle", A_LA_PLACE_DE_LA_COPIE)
def test_un_obstacle_a_la_place_de_la_copie_est_dit_sans_rien_demander(
    projet: Projet, obstacle: str, requetes: int
) -> None:
    placer, mots = A_LA_PLACE_DE_LA_COPIE[obstacle]
    copie = projet.brouillon.with_name(COPIE)
    projet.brouillon.write_bytes(b"ancien")
    laisse: list[object] = []

    def rediger(_: Any = None) -> Any:
        placer(copie)
        laisse.append(contenu(projet))
        return brouillon(TEXTE)

    if requetes == 0:
        rediger()
    bilan, serveur = jouer(projet, lecture(), rediger)
    verifier_l_echec(bilan, "Écriture impossible", COPIE, mots)
    assert len(serveur.recues) == requetes and QUESTION not in bilan.out
    assert laisse == [contenu(projet)]


def test_sans_ancien_brouillon_la_copie_ne_compte_pas(projet: Projet) -> None:
    projet.brouillon.with_name(COPIE).mkdir()
    assert jouer(projet, lecture(), brouillon(TEXTE))[0].code == 0
    assert projet.brouillon.read_text("utf-8") == TEXTE


def pendant(
    monkeypatch: pytest.MonkeyPatch, fonction: str, geste: Callable[[], object], fois: int
) -> None:
    """Fait un geste dans le dossier après le `fois`-ième appel de cette fonction du système."""
    vraie, reste = getattr(os, fonction), [fois]

    def appeler(*arguments: Any) -> Any:
        rendu = vraie(*arguments)
        reste[0] -= 1
        if reste[0] == 0:
            geste()
        return rendu

    monkeypatch.setattr(os, fonction, appeler)


def en_dossier(chemin: Path) -> None:
    chemin.unlink()
    chemin.mkdir()


def test_un_brouillon_qui_resiste_laisse_la_copie_telle_quelle(
    projet: Projet, monkeypatch: pytest.MonkeyPatch
) -> None:
    avant = anciens(projet)
    pendant(monkeypatch, "fsync", lambda: en_dossier(projet.brouillon), fois=2)
    bilan, _ = jouer(projet, lecture(), brouillon(TEXTE))
    verifier_l_echec(bilan, "Écriture impossible", "un dossier se trouve à la place")
    assert sorted(chemin.name for chemin in projet.brouillon.parent.iterdir()) == [NOM, COPIE]
    assert projet.brouillon.with_name(COPIE).read_bytes() == avant[COPIE]


def test_une_copie_qui_resiste_rend_le_brouillon_tel_quel(
    projet: Projet, monkeypatch: pytest.MonkeyPatch
) -> None:
    avant, copie = anciens(projet), projet.brouillon.with_name(COPIE)
    pendant(monkeypatch, "fsync", lambda: en_dossier(copie), fois=2)
    bilan, _ = jouer(projet, lecture(), brouillon(TEXTE))
    verifier_l_echec(bilan, "Écriture impossible", "un dossier se trouve à la place")
    assert sorted(chemin.name for chemin in projet.brouillon.parent.iterdir()) == [NOM, COPIE]
    assert projet.brouillon.read_bytes() == avant[NOM]


@pytest.mark.parametrize("nom", [NOM, COPIE])
def test_un_fichier_que_le_systeme_fige_laisse_les_deux_tels_quels(projet: Projet, nom: str) -> None:
    avant, fige = anciens(projet), projet.brouillon.with_name(nom)
    if (
        not shutil.which("chattr")
        or subprocess.run(["chattr", "+i", fige], capture_output=True).returncode
    ):
        pytest.skip("chattr +i n'est pas permis ici")
    try:
        bilan, _ = jouer(projet, lecture(), brouillon(TEXTE))
    finally:
        subprocess.run(["chattr", "-i", fige], check=True)
    verifier_l_echec(bilan, "Écriture impossible", "droits insuffisants", "Rien n'a été remplacé")
    assert projet.fichiers() == avant


def test_un_ancien_texte_qui_ne_peut_revenir_reste_a_cote(
    projet: Projet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ni `~` ni le brouillon ne se laissent remplacer : rien n'est effacé ni promis."""
    avant = anciens(projet)

    def boucher() -> None:
        en_dossier(projet.brouillon)
        en_dossier(projet.brouillon.with_name(COPIE))

    pendant(monkeypatch, "replace", boucher, fois=1)
    bilan, _ = jouer(projet, lecture(), brouillon(TEXTE))
    verifier_l_echec(bilan, "Écriture impossible", "un dossier se trouve à la place")
    assert "Rien n'a été remplacé" not in bilan.err
    gardes = [chemin for chemin in projet.brouillon.parent.iterdir() if chemin.is_file()]
    assert [garde.read_bytes() for garde in gardes] == [avant[NOM]]


def test_un_disque_fige_entre_les_deux_remplacements_garde_les_trois_textes(
    projet: Projet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuser(*_: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    avant = anciens(projet)
    pendant(monkeypatch, "replace", lambda: monkeypatch.setattr(os, "replace", refuser), fois=1)
    bilan, _ = jouer(projet, lecture(), brouillon(TEXTE))
    verifier_l_echec(bilan, "disque en lecture seule", "L'ancien texte y est sous un nom provisoire")
    fichiers = projet.fichiers()
    assert (fichiers.pop(NOM), fichiers.pop(COPIE)) == (TEXTE.encode(), avant[COPIE])
    assert list(fichiers.values()) == [avant[NOM]]


@pytest.mark.parametrize("numero", [errno.EINVAL, errno.ENOTSUP, errno.ENOSYS], ids=errno.errorcode.get)
def test_un_disque_sans_fsync_garde_quand_meme_le_brouillon(
    projet: Projet, monkeypatch: pytest.MonkeyPatch, numero: int
) -> None:
    def refuser(_: int) -> None:
        raise OSError(numero, "Not here")

    avant = anciens(projet)
    monkeypatch.setattr(os, "fsync", refuser)
    assert jouer(projet, lecture(), brouillon(TEXTE))[0].code == 0
    assert projet.fichiers() == {NOM: TEXTE.encode(), COPIE: avant[NOM]}


@pytest.mark.parametrize("fonction", ["replace", "fsync", "open"])
@pytest.mark.parametrize(
    ("numero", "mots"), [(errno.EACCES, "droits insuffisants"), (errno.ENOSPC, "disque plein")]
)
def test_un_refus_du_systeme_laisse_le_dossier_tel_quel(
    projet: Projet, monkeypatch: pytest.MonkeyPatch, fonction: str, numero: int, mots: str
) -> None:
    avant, vraie = anciens(projet), getattr(os, fonction)

    def refuser(*arguments: Any) -> Any:
        if fonction == "open" and not arguments[1] & os.O_CREAT:
            return vraie(*arguments)
        raise OSError(numero, "Refused by the system")

    monkeypatch.setattr(os, fonction, refuser)
    bilan, _ = jouer(projet, lecture(), brouillon(TEXTE))
    verifier_l_echec(bilan, "Écriture impossible", mots, "Rien n'a été remplacé")
    assert "Refused" not in bilan.err and projet.fichiers() == avant


def test_un_disque_plein_ne_coute_aucun_des_deux_anciens_brouillons(copie: Path) -> None:
    """La place manque pour le nouveau texte, pas pour une copie de l'ancien."""
    resource = pytest.importorskip("resource")
    projet = Projet(copie, processus)
    avant = anciens(projet)

    def limiter() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    options = {"entree": "oui\n", "avant": limiter, "PYTHONIOENCODING": "utf-8"}
    bilan = projet.lancer(copie, "ticket-local", "--demo", **options)
    verifier_l_echec(bilan, "Écriture impossible", "taille de fichier limitée", "Rien n'a été remplacé")
    assert projet.fichiers() == avant


@pytest.mark.parametrize("mensonge", [b"autre contenu", None], ids=["autre contenu", "rien"])
def test_le_disque_est_relu_avant_de_dire_que_c_est_enregistre(
    projet: Projet, monkeypatch: pytest.MonkeyPatch, mensonge: bytes | None
) -> None:
    def remplacer(_: Path, cible: Path) -> None:
        if mensonge is not None:
            cible.write_bytes(mensonge)

    monkeypatch.setattr(os, "replace", remplacer)
    verifier_l_echec(jouer(projet, lecture(), brouillon(TEXTE))[0], "n'est pas le texte approuvé")


def test_un_brouillon_ecrit_mais_illisible_n_est_pas_dit_absent(
    projet: Projet, monkeypatch: pytest.MonkeyPatch
) -> None:
    pendant(monkeypatch, "replace", lambda: vers_un_fichier(projet.brouillon), fois=1)
    bilan, _ = jouer(projet, lecture(), brouillon(TEXTE))
    verifier_l_echec(bilan, "Écrit, non relu", f"brouillons/{NOM}", "un lien se trouve")
    assert "remplacé" not in bilan.err
    assert [chemin.name for chemin in projet.brouillon.parent.iterdir()] == [NOM]


# --- Deux lancements à la fois --------------------------------------------------------------

ENREGISTRER = """
import sys
sys.path.insert(0, sys.argv[1])
import draft_ticket
ticket = draft_ticket.Ticket("ticket-local", "sujet", "message")
montre = draft_ticket.relire_brouillon(ticket)
print("prêt", flush=True)
sys.stdin.readline()
try:
    draft_ticket.enregistrer(ticket, sys.argv[2] * 5000, montre)
    print("enregistré")
except draft_ticket.Arret as arret:
    print(arret)
"""


def ensemble(copie: Path, textes: str) -> list[str]:
    """Enregistre ces textes au même instant, chacun dans son processus ; rend leurs phrases."""
    commande = [sys.executable, "-c", ENREGISTRER, str(copie)]
    tube, reglages = subprocess.PIPE, environnement(PYTHONIOENCODING="utf-8")
    lances = [
        subprocess.Popen([*commande, texte], stdin=tube, stdout=tube, env=reglages, encoding="utf-8")
        for texte in textes
    ]
    for lance in lances:
        assert lance.stdout and lance.stdout.readline() == "prêt\n"
    for lance in lances:
        assert lance.stdin
        lance.stdin.write("\n")
        lance.stdin.flush()
    return [lance.communicate(timeout=30)[0].strip() for lance in lances]


@pytest.mark.parametrize("existe", [False, True], ids=["premier brouillon", "brouillon remplacé"])
def test_deux_oui_au_meme_instant_ne_perdent_aucun_texte_annonce(copie: Path, existe: bool) -> None:
    projet = Projet(copie, processus)
    for _ in range(6):
        avant = anciens(projet) if existe else {}
        phrases = dict(zip("abc", ensemble(copie, "abc")))
        annonces = [texte for texte, dit in phrases.items() if dit == "enregistré"]
        assert len(annonces) == 1
        assert sum("Le brouillon a changé" in dit for dit in phrases.values()) == 2
        garde = {COPIE: avant[NOM]} if existe else {}
        assert projet.fichiers() == {NOM: annonces[0].encode() * 5000, **garde}
        for chemin in projet.brouillon.parent.iterdir():
            chemin.unlink()


@pytest.fixture
def verrou(projet: Projet) -> Iterator[int]:
    """Le dossier des brouillons, réservé comme par un autre lancement."""
    fcntl = pytest.importorskip("fcntl")
    descripteur = os.open(projet.brouillon.parent, os.O_RDONLY)
    fcntl.flock(descripteur, fcntl.LOCK_EX)
    yield descripteur
    os.close(descripteur)


def test_un_dossier_qu_un_autre_lancement_reserve_est_dit(projet: Projet, verrou: int) -> None:
    avant = anciens(projet)
    bilan, _ = jouer(projet, lecture(), brouillon(TEXTE))
    verifier_l_echec(bilan, "Le brouillon a changé", "rien n'a été remplacé")
    assert projet.fichiers() == avant


@pytest.mark.parametrize("numero", [errno.ENOLCK, errno.EBADF, errno.ENOTSUP], ids=errno.errorcode.get)
def test_un_partage_sans_verrou_verifie_quand_meme(
    projet: Projet, monkeypatch: pytest.MonkeyPatch, numero: int
) -> None:
    def refuser(*_: int) -> None:
        raise OSError(numero, "Not here")

    monkeypatch.setattr("fcntl.flock", refuser)
    assert jouer(projet, lecture(), brouillon(TEXTE))[0].code == 0
    assert projet.fichiers() == {NOM: TEXTE.encode()}


# --- Ctrl-C pendant l'écriture --------------------------------------------------------------

INSTANTS = [
    f"{quand} {fonction} {fois}"
    for fonction in ("open", "fsync", "replace")
    for fois in (1, 2)
    for quand in ("avant", "après")
]


@pytest.fixture(scope="module")
def interrompus(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Ce que le script laisse quand un vrai SIGINT arrive à chacun de ces instants."""
    if not hasattr(os, "fork"):
        pytest.skip("il faut fork")
    dossier = tmp_path_factory.mktemp("interrompus")
    for nom in ("tickets", "brouillons"):
        (dossier / nom).mkdir()
    for nom in ("draft_ticket.py", "tickets/ticket-local.json"):
        shutil.copy(RACINE / nom, dossier / nom)
    commande = [
        sys.executable,
        str(RACINE / "tests" / "signaux.py"),
        str(dossier),
        *INSTANTS,
        "jamais",
    ]
    fini = subprocess.run(commande, capture_output=True, env=environnement(), timeout=120)
    assert fini.returncode == 0, fini.stderr.decode("utf-8", "replace")
    resultats: dict[str, Any] = json.loads(fini.stdout)
    return resultats


@pytest.mark.parametrize("instant", INSTANTS)
def test_un_ctrl_c_pendant_l_ecriture_la_laisse_entiere_ou_nulle(
    interrompus: dict[str, Any], instant: str
) -> None:
    """L'ancien brouillon et sa copie existent : deux fichiers sont ouverts, vidés, remplacés."""
    ecrit = instant == "après replace 2"  # avant ce dernier instant, tout est défait
    fin, erreurs, fichiers = interrompus[instant]
    assert fichiers == interrompus["jamais" if ecrit else "avant"][2]
    assert fin in FIN_PAR_SIGNAL and erreurs.count("\n") == 1 and "Traceback" not in erreurs
    dit = "le brouillon approuvé est sur le disque" if ecrit else "aucun brouillon n'a été écrit"
    assert dit in erreurs


def test_sans_ctrl_c_le_meme_parcours_enregistre(interrompus: dict[str, Any]) -> None:
    fin, erreurs, fichiers = interrompus["jamais"]
    assert (fin, erreurs, set(fichiers)) == (0, "", {NOM, COPIE})
    assert fichiers[COPIE] == interrompus["avant"][2][NOM]
    assert fichiers[NOM].startswith("Bonjour,")


# --- Ce qui est dit de l'ancien brouillon ---------------------------------------------------


def test_un_refus_ne_parle_pas_d_un_brouillon_qui_n_existe_pas(projet: Projet) -> None:
    bilan = projet.lancer("ticket-local", "--demo", entree="non\n")
    assert bilan.code == 3 and "resté tel quel" not in bilan.out


def test_la_perte_de_la_copie_precedente_est_annoncee(projet: Projet) -> None:
    projet.brouillon.write_text("ancien", encoding="utf-8")
    assert "est perdu" not in projet.lancer("ticket-local", "--demo", entree="oui\n").out
    projet.brouillon.write_text("autre", encoding="utf-8")
    sortie = projet.lancer("ticket-local", "--demo", entree="non\n").out
    assert "dont le contenu est perdu" in " ".join(sortie.split())
