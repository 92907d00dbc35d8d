"""Lays out what the guided run prints: no word is broken by the edge of the terminal, and a broken command stays one command.

Without a terminal lines are as long as people like to read them.
"""

from __future__ import annotations

import shlex
import shutil
import textwrap
from typing import TYPE_CHECKING

from kubectl_kpolicy.cli.parsing import continued

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

INDENT = " " * 5
_TEXT = 100
"""The longest folded line behind the indent."""
_TABLE = 130
"""Lines up to this length are printed as they are where there is room."""
_LEAST = 40


def _room(most: int) -> int:
    """Return how long a line may be behind the indent: what the terminal leaves whole, up to a length."""
    columns = shutil.get_terminal_size((most + len(INDENT), 0)).columns
    return min(most, max(_LEAST, columns - len(INDENT)))


def folded(text: str, lead: str = "", further: str = "  ") -> list[str]:
    """Return a text as lines behind their leads; a word that is longer has a line of its own."""
    return textwrap.wrap(
        text,
        _room(_TEXT),
        initial_indent=lead,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
    )


def told(text: str, lead: str) -> str:
    """Return a text behind its lead, further lines below the first one's words."""
    return "\n".join(folded(text, lead, " " * len(lead)))


def typed(words: Sequence[str]) -> list[str]:
    """Return a command as it is typed, in lines that a shell reads as one."""
    return list(continued("", ["$", *map(shlex.quote, words)], _room(_TABLE)))


def answered(came: str) -> list[str]:
    """Return the lines of what a command printed: tables as they are, texts folded."""
    lines: list[str] = []
    for line in came.rstrip().splitlines():
        is_whole = len(line) <= _room(_TABLE) or "   " in line.strip()
        lines += [line] if is_whole else folded(line)
    return lines


def show(lines: Iterable[str]) -> None:
    """Print lines behind the indent, and an empty one."""
    for line in lines:
        print(f"{INDENT}{line}".rstrip())
    print(flush=True)
