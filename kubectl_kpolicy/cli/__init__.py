"""The commands: how one is imported, given its flags and run; `kubectl_kpolicy.commands` lists them.

A module of a command offers `add_arguments(flags)` and `run(args) -> int`, which its verbs may have of their own.
"""

from __future__ import annotations

import sys

from kubectl_kpolicy.commands import COMMANDS, GLOBAL_FLAGS, PROGRAM, help_text

# `typing` is not loaded to print a version or the help
TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from types import ModuleType
    from typing import NoReturn

__all__ = ["COMMANDS", "GLOBAL_FLAGS", "PROGRAM", "dispatch", "help_text", "parser_of"]


def parser_of(name: str) -> tuple[argparse.ArgumentParser, ModuleType]:
    """Return a command's parser with all its flags, and its module."""
    from . import parsing

    return parsing.parser_of(name)


def dispatch(name: str, words: Sequence[str], known: argparse.Namespace) -> int:
    """Import a command, parse its words, run it and return its exit code; exit with 2 for an unknown name."""
    if name not in COMMANDS and not _is_screen(name):
        _refuse(name)
    parser, module = parser_of(name)
    arguments = parser.parse_args(words, known)
    run = getattr(arguments, "run", None) or module.run
    return int(run(arguments))


def _is_screen(name: str) -> bool:
    """Tell whether a screen gives the command: asked last, for it loads what rows are made of."""
    from kubectl_kpolicy.actions.screens import own_command

    return own_command(name) is not None


_ELSEWHERE = {
    "fix": f"`{PROGRAM} lint --fix PATH` mends what has one meaning, and says the rest with file and line",
    "migrate": "`kubectl get KIND -A -o json | kubectl replace -f -` stores objects in the newest version",
    "docs": f"`{PROGRAM} spec` describes every command and flag, `{PROGRAM} COMMAND --help` one",
    "oci": "fetch the artifact with `oras pull`, then name its folder: policies are read from files, folders, git and the web",
}
"""Commands that upstream's command line has and ours has not."""


def _refuse(name: str) -> NoReturn:
    """Exit with 2 for an unknown command, naming the nearest one."""
    from kubectl_kpolicy.output.misuse import suggestion

    advice = _ELSEWHERE.get(name) or suggestion(name, COMMANDS, f"`{PROGRAM} --help` lists them")
    print(f"error: unknown command `{name}`\nhelp: {advice}", file=sys.stderr)
    raise SystemExit(2)
