"""The verbs that the commands for trying a language have in common: each with its help, description and example."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping


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
