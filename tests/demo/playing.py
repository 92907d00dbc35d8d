"""Plays the acts on a sandbox with the engine beside it, and prints each command with what came back.

Output is the same with and without a terminal; colour only with one. A command whose answer does not come as it must ends
the run with code 1, so that the run is a test as well.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from controllers.manifests import SAMPLES
from engine.errors import EngineError
from engine.record import replace

from . import showing
from .folding import INDENT, answered, show, told, typed
from .scenarios import PLAYS, Act, Play, Written

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 60.0
_ROOT = Path(__file__).parents[2]
_ASKED_AGAIN = 0.3


def play(folder: Path, *, keep: bool) -> int:
    """Start everything in a folder, play all scenarios; with `keep` open the console and leave it running. Returns an exit code."""
    kpolicy(folder, "sandbox", "reset")
    began = time.monotonic()
    kpolicy(folder, "sandbox", "up", "--engine")
    print(f"a sandbox and the engine are up after {time.monotonic() - began:.1f} s, in {folder}\n")
    try:
        known = {"key": _key_pair(folder)}
        for number, one in enumerate(PLAYS, 1):
            _Stage(folder, one, known).run(number)
    finally:
        if not keep:
            remove(folder)
    if keep:
        return showing.show(folder)
    print("everything is stopped and removed again")
    return 0


def look(folder: Path) -> int:
    """Start everything in a folder and open the console on it, without the scenarios. Returns an exit code."""
    kpolicy(folder, "sandbox", "reset")
    kpolicy(folder, "sandbox", "up", "--engine")
    return showing.show(folder)


def remove(folder: Path) -> int:
    """Stop what runs in a folder and remove it."""
    if folder.exists():
        kpolicy(folder, "sandbox", "down")
        shutil.rmtree(folder)
    return 0


def kpolicy(folder: Path, *words: str) -> None:
    """Run a command of ours on the sandbox of a folder; raises EngineError when it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "kubectl_kpolicy", *words],
        cwd=_ROOT,
        env={**os.environ, "KPOLICY_SANDBOX_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise EngineError(f"kubectl kpolicy {shlex.join(words)}: {done.stderr.strip()}")


class _Stage:
    """One scenario in a folder of its own."""

    def __init__(self, folder: Path, one: Play, known: dict[str, str]) -> None:
        self._folder, self._play, self._known = folder, one, known
        self._work = folder / "samples" / one.samples
        shutil.copytree(SAMPLES, folder / "samples", dirs_exist_ok=True)

    def run(self, number: int) -> None:
        print(f"{number}. {self._play.title}\n{told(self._play.says, '   ')}\n")
        for step in self._play.acts:
            if isinstance(step, Written):
                self._write(step)
            else:
                self._act(step)

    def _write(self, wanted: Written) -> None:
        text = (self._work / wanted.source).read_text() if wanted.source else wanted.text
        for before, after in wanted.replace.items():
            text = text.replace(before, self._filled(after))
        (self._work / wanted.to).write_text(text)

    def _filled(self, text: str, quoted: Callable[[str], str] = str) -> str:
        return re.sub(
            r"\{(code|key)\}|\{\{|\}\}",
            lambda found: quoted(self._known[found[1]]) if found[1] else found[0][0],
            text,
        )

    def _act(self, act: Act) -> None:
        words = shlex.split(self._filled(act.run))
        words += [f"--as={act.user}", "--as-group=system:masters"] if act.user else []
        print(told(act.says, "   * "))
        for line in typed(words):
            print(f"{INDENT}{line}")
        until = self._filled(act.until, re.escape)
        end = time.monotonic() + PATIENCE
        code, came = self._came(words)
        while not _fits(replace(act, until=until), code, came):
            if time.monotonic() > end:
                raise EngineError(f"this came back instead of `{until or 'success'}`:\n{came}")
            time.sleep(_ASKED_AGAIN)
            code, came = self._came(words)
        for name, pattern in act.finds.items():
            found = re.search(pattern, came)
            if found is None:
                raise EngineError(f"there is no `{pattern}` in what came back:\n{came}")
            self._known[name] = found[1]
        show(answered(came))

    def _came(self, words: list[str]) -> tuple[int, str]:
        command = words
        if words[:2] == ["kubectl", "kpolicy"]:
            command = [sys.executable, "-m", "kubectl_kpolicy", *words[2:]]
        done = subprocess.run(
            command,
            cwd=self._work,
            env={
                **os.environ,
                "KUBECONFIG": str(self._folder / "kubeconfig"),
                "KPOLICY_SANDBOX_DIR": str(self._folder),
                "PYTHONPATH": str(_ROOT),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout


def _fits(act: Act, code: int, came: str) -> bool:
    return bool(code) is act.refused and re.search(act.until, came) is not None


def _key_pair(folder: Path) -> str:
    """Write a private key among the samples; return the public one as it stands between quotes in YAML."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    place = folder / "samples" / "signed-exceptions"
    place.mkdir(parents=True, exist_ok=True)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = place / "signer.key"
    path.touch(mode=0o600)
    path.write_bytes(secret)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return public.decode().replace("\n", "\\n")
