"""The console script `kubectl_complete-kpolicy`: candidates for the word kubectl is completing.

kubectl runs it with the words after the plugin's name and reads `value<TAB>help` lines, then `:<bits>`. When it fails, all
candidates are thrown away, so it never fails, and it looks nothing up that could be slow.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from . import cli

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

NO_FILES = 4
FILES = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print candidates; always return 0."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        lines, bits = candidates(words)
    except Exception:
        lines, bits = [], FILES
    for value, text in lines:
        print(f"{value}\t{text}" if text else value)
    print(f":{bits}")
    return 0


def candidates(words: Sequence[str]) -> tuple[list[tuple[str, str]], int]:
    """Return candidates with help for the last of the words, and what kubectl's shell script shall do about files."""
    *before, last = list(words) or [""]
    if not before:
        names = [
            *cli.COMMANDS.items(),
            *((flag, "") for flag in cli.GLOBAL_FLAGS if last.startswith("-")),
        ]
        return [found for found in names if found[0].startswith(last)], NO_FILES
    if before[0] not in cli.COMMANDS:
        return [], NO_FILES
    parser = _innermost(cli.parser_of(before[0])[0], before[1:])
    flag = _flag(parser, before[-1])
    if flag is not None and flag.nargs != 0:
        return _matching(
            ((str(choice), "") for choice in flag.choices or ()), last
        ), NO_FILES if flag.choices else FILES
    found = _matching(_flags(parser) if last.startswith("-") else _verbs(parser), last)
    return found, NO_FILES if found else FILES


def _innermost(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of the innermost verb among the words."""
    for word in words:
        verbs = _subparsers(parser)
        if word in verbs:
            parser = verbs[word]
    return parser


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return parser._actions  # noqa: SLF001 - argparse shows its parts nowhere else


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in _actions(parser):
        if not action.option_strings and isinstance(action.choices, dict):
            return action.choices
    return {}


def _verbs(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    for name, verb in _subparsers(parser).items():
        yield name, (verb.description or "").rstrip(".")


def _flags(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    for action in _actions(parser):
        for name in action.option_strings:
            if name.startswith("--") and action.help != argparse.SUPPRESS:
                yield name, action.help or ""


def _flag(parser: argparse.ArgumentParser, word: str) -> argparse.Action | None:
    return next((action for action in _actions(parser) if word in action.option_strings), None)


def _matching(found: Iterable[tuple[str, str]], start: str) -> list[tuple[str, str]]:
    return [(value, text.replace("\n", " ")) for value, text in found if value.startswith(start)]
