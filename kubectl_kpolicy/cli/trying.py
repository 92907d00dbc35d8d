"""The verbs that the commands for trying a language have in common: each with its help, description and example."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence


def add_verbs(
    parser: argparse.ArgumentParser, words: Mapping[str, str], examples: Mapping[str, str]
) -> dict[str, argparse.ArgumentParser]:
    """Add a verb for each of `words` and return their parsers by name; the example of `query` also stands for the command."""
    from .parsing import add_global_flags

    parser.epilog = f"example: kubectl kpolicy {examples['query']}"
    verbs = parser.add_subparsers(title="verbs", dest="verb", metavar="VERB", required=True)
    made = {
        verb: verbs.add_parser(
            verb,
            help=text,
            description=f"{text.capitalize()}.",
            epilog=f"example: kubectl kpolicy {examples[verb]}",
        )
        for verb, text in words.items()
    }
    for one in made.values():
        add_global_flags(one, again=True)
    return made


def refuse(message: str, advice: str, *, code: int = 1) -> int:
    """Print what is wrong and what to do, and return the exit code."""
    print(f"error: {message}\nhelp: {advice}", file=sys.stderr)
    return code


def unknown_function(names: Sequence[str], known: Mapping[str, object], command: str) -> int:
    """Refuse the first name that no function has, 0 where all are known; `command` lists them."""
    wrong = next((name for name in names if name not in known), None)
    if wrong is None:
        return 0
    from kubectl_kpolicy.output.misuse import suggestion

    advice = suggestion(wrong, known, f"`{command}` lists them all")
    return refuse(f"unknown function `{wrong}`", advice)
