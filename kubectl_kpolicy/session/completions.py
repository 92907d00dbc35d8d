"""Puts completion where shells and kubectl look for it: a script for the shell, and the executable that kubectl asks.

kubectl asks `kubectl_complete-kpolicy`, which a wheel brings along and krew does not link, so that a small script of that name
is written where the PATH leads. Files of others are never written over.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.errors import EngineError, reason_of
from kubectl_kpolicy.output.misuse import Misuse

if TYPE_CHECKING:
    from collections.abc import Mapping

COMPLETER: Final = "kubectl_complete-kpolicy"
MARK: Final = "# written by `kubectl kpolicy completion install`"
_PLACES: Final = {
    "bash": "{data}/bash-completion/completions/kubectl-kpolicy",
    "zsh": "{data}/zsh/site-functions/_kubectl-kpolicy",
    "fish": "{config}/fish/completions/kubectl-kpolicy.fish",
    "powershell": "{config}/powershell/kpolicy-completion.ps1",
}
_NEXT: Final = {
    "bash": "open a new shell; the package bash-completion reads it",
    "zsh": "add `fpath+=({folder})` before `compinit` in ~/.zshrc, and open a new shell",
    "fish": "open a new shell",
    "powershell": "add `. {file}` to your $PROFILE",
}


def install(shell: str, bin_dir: str, scripts: Mapping[str, str], *, is_tried: bool = False) -> int:
    """Write what completion needs and say where it is; raises EngineError, Misuse for a shell that is not known."""
    name = shell or Path(os.environ.get("SHELL", "")).name
    if name not in scripts:
        raise Misuse(f"there is no completion for the shell `{name}`", help=f"name one of {', '.join(scripts)}")  # fmt: skip
    home = Path(os.environ.get("HOME") or ".")
    places = {"data": os.environ.get("XDG_DATA_HOME") or f"{home}/.local/share", "config": os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"}  # fmt: skip
    script = Path(_PLACES[name].format(**places))
    head, _, rest = scripts[name].partition("\n")
    text = f"{head}\n{MARK}\n{rest}"
    _write(script, text, is_tried=is_tried)
    _write_completer(Path(bin_dir) if bin_dir else home / ".local" / "bin", is_tried=is_tried)
    print(_NEXT[name].format(folder=script.parent, file=script), file=sys.stderr)
    return 0


def _write_completer(folder: Path, *, is_tried: bool) -> None:
    """Write the executable that kubectl asks, unless there is one on the PATH that is not ours to write."""
    found = shutil.which(COMPLETER)
    if found and MARK not in _content(Path(found)):
        print(f"kubectl finds {found}", file=sys.stderr)
        return
    file = folder / COMPLETER
    _write(file, f'#!/bin/sh\n{MARK}\nexec {_command()} "$@"\n', is_tried=is_tried)
    if not is_tried:
        file.chmod(0o755)
    if str(folder) not in os.environ.get("PATH", "").split(os.pathsep):
        print(f"warning: `{folder}` is not on the PATH, so that kubectl does not find {COMPLETER} in it", file=sys.stderr)  # fmt: skip


def _command() -> str:
    """Return what completes, as a shell runs it: the executable beside this one, else this interpreter."""
    beside = Path(sys.argv[0]).resolve().parent / COMPLETER
    if beside.is_file() and os.access(beside, os.X_OK):
        return shlex.quote(str(beside))
    return f"{shlex.quote(sys.executable)} -m kubectl_kpolicy.complete"


def _content(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def _write(file: Path, text: str, *, is_tried: bool) -> None:
    """Write a file; raises EngineError where somebody else's is there."""
    if file.exists() and MARK not in _content(file):
        raise EngineError(f"`{file}` is there and was written by somebody else", help="move it away first")  # fmt: skip
    if is_tried:
        print(f"would write {file}")
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    except OSError as error:
        raise EngineError(f"cannot write `{file}`: {reason_of(error)}") from error
    print(f"wrote {file}")
