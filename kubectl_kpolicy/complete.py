"""The console script `kubectl_complete-kpolicy`: candidates for the word kubectl is completing.

kubectl runs it with the words after the plugin's name and reads `value<TAB>help` lines, then `:<bits>`. When it fails, all
candidates are thrown away, so it never fails; names that only a cluster knows are looked up elsewhere, in haste.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from . import cli

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_KNOWN_ELSEWHERE = {"--namespace", "--context", "--contexts", "--cluster", "--user"}
_NAMED = ("violations", "policies", "exceptions", "grant", "otp", "cleanup")
NO_FILES = 4
FILES = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print candidates; always return 0."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        lines, bits = candidates(words)
    except (Exception, SystemExit):
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
    if last.startswith("-") or before[-1].startswith("-"):
        parser = _usual(parser)
    flag = _flag(parser, before[-1])
    if flag is not None and flag.nargs != 0:
        return _of_flag(flag, before, last)
    found = _matching(_flags(parser) if last.startswith("-") else _verbs(parser), last)
    if not found and not last.startswith("-") and not _subparsers(parser):
        found = _looked_up(parser, before, last)
    return found, NO_FILES if found else FILES


def _of_flag(flag: argparse.Action, before: Sequence[str], last: str) -> tuple[list[tuple[str, str]], int]:  # fmt: skip
    """Return the values of a flag: its choices, else what kubeconfig or cluster know, else files."""
    if "--output" in flag.option_strings and not flag.choices and flag.metavar == "FORMAT":
        from .cli.flags import FORMATS

        return _matching(((name, "") for name in FORMATS), last), NO_FILES
    if flag.choices:
        return _matching(((str(choice), "") for choice in flag.choices), last), NO_FILES
    if not _KNOWN_ELSEWHERE & set(flag.option_strings):
        return [], FILES
    from .completing import of_flag

    found = of_flag(flag.option_strings, before[1:-1])
    return _matching(((name, "") for name in found or ()), last), FILES if found is None else NO_FILES  # fmt: skip


def _looked_up(parser: argparse.ArgumentParser, before: Sequence[str], last: str) -> list[tuple[str, str]]:  # fmt: skip
    """Return names of what a verb is about, where it takes names."""
    if before[0] not in _NAMED or all(one.option_strings for one in _actions(parser)):
        return []
    from .completing import of_names

    return _matching(((name, "") for name in of_names(before[0], before[1:])), last)


def _innermost(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of the innermost verb among the words."""
    for word in words:
        verbs = _subparsers(parser)
        if word in verbs:
            parser = verbs[word]
    return parser


def _usual(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Return the parser of the verb that is meant where none is given, whose flags then count."""
    return _subparsers(parser).get(getattr(parser, "usual", ""), parser)


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


if __name__ == "__main__":
    raise SystemExit(main())
