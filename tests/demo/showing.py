"""The end of the guided run: fills the sandbox, opens the console on it as alice, and says how to go on as somebody else."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

from engine.errors import EngineError

from . import activity
from .fixtures import ALICE, BOB, PEOPLE

_ROOT = Path(__file__).parents[2]


def show(folder: Path) -> int:
    """Fill the sandbox of a folder and open the console on it until it is left. Returns its exit code; raises EngineError."""
    if not (sys.stdout.isatty() and sys.stdin.isatty()):
        raise EngineError("the console needs a terminal", help="run it without --console for the scenarios only")  # fmt: skip
    activity.furnish(folder)
    print(_before(folder))
    input("Press enter to open the console … ")
    code = subprocess.run(command(folder, ALICE.name), cwd=_ROOT, check=False).returncode
    print(_after(folder))
    return code


def command(folder: Path, name: str, *words: str) -> list[str]:
    """Return the command that opens the console as one of the people."""
    config = activity.kubeconfig_of(folder, name)
    return [sys.executable, "-m", "kubectl_kpolicy", "tui", *words, f"--kubeconfig={config}"]


def environment(folder: Path) -> Path:
    """Write what a shell reads to speak to the sandbox as the hints of all commands do, and return where it lies.

    It names the sandbox and puts the plugin on the path, for a clone has it installed nowhere.
    """
    plugin = folder / "bin" / "kubectl-kpolicy"
    plugin.parent.mkdir(parents=True, exist_ok=True)
    plugin.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(_ROOT))} exec {shlex.quote(sys.executable)} -m kubectl_kpolicy "$@"\n'
    )
    plugin.chmod(0o755)
    said = folder / "env"
    said.write_text(
        f"export KUBECONFIG={shlex.quote(str(folder / 'kubeconfig'))}\n"
        f"export KPOLICY_SANDBOX_DIR={shlex.quote(str(folder))}\n"
        f'export PATH={shlex.quote(str(plugin.parent))}:"$PATH"\n'
    )
    return said


def _before(folder: Path) -> str:
    bob = activity.kubeconfig_of(folder, BOB.name)
    who = "\n".join(f"  {one.name:<6} {one.does}" for one in PEOPLE)
    return (
        "In the sandbox three people are at work now:\n"
        f"{who}\n\n"
        f"The console opens as {ALICE.name}. What to try: r on a violation asks for a\n"
        "grant, e says why it fails, < and > go through the screens, ? lists the keys,\n"
        "~ shows each thing you did as a command. To agree as somebody else, open a\n"
        "second terminal:\n"
        f"  . {shlex.quote(str(environment(folder)))}\n"
        f"  kubectl kpolicy tui inbox --kubeconfig={shlex.quote(str(bob))}\n"
        "and to let time pass:\n"
        "  kubectl kpolicy sandbox clock 30m\n"
    )


def _after(folder: Path) -> str:
    return (
        "The sandbox and the engine are still running. Next:\n"
        f"  . {shlex.quote(str(environment(folder)))}\n"
        "  kubectl get clusterpolicy,policyreport -A\n"
        "  kubectl kpolicy status\n"
        "`make clean` removes everything."
    )
