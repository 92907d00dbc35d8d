"""The end of the guided run: fills the sandbox, opens the console on it as alice, and says how to go on as somebody else."""

from __future__ import annotations

import os
import shutil
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


def _typed(*words: str) -> str:
    """Return a command of ours as it can be typed here, whether the plugin is installed or not."""
    if shutil.which("kubectl-kpolicy"):
        return " ".join(("kubectl kpolicy", *words))
    return " ".join((os.path.relpath(sys.executable), "-m kubectl_kpolicy", *words))


def _before(folder: Path) -> str:
    bob = activity.kubeconfig_of(folder, BOB.name)
    who = "\n".join(f"  {one.name:<6} {one.does}" for one in PEOPLE)
    return (
        "In the sandbox three people are at work now:\n"
        f"{who}\n\n"
        f"The console opens as {ALICE.name}. What to try: r on a violation asks for a grant, e says why it fails, < and > go\n"
        "through the screens, ? lists the keys, ~ shows each thing you did as a command. To agree as somebody else, open a\n"
        "second terminal here:\n"
        f"  {_typed('tui', 'inbox', f'--kubeconfig={bob}')}\n"
        f"and to let time pass:\n  {_typed('sandbox', 'clock', '30m', '--dir', str(folder))}\n"
    )


def _after(folder: Path) -> str:
    return (
        "The sandbox and the engine are still running. Next:\n"
        f"  export KUBECONFIG={folder / 'kubeconfig'}\n"
        "  kubectl get clusterpolicy,policyreport -A\n"
        f"  {_typed('status')}\n"
        "`make clean` removes everything."
    )
