"""Tables the way kubectl prints them: upper-case heads, columns three blanks apart, no lines; or as Markdown.

Widths are counted in terminal cells, so that names in wide scripts stay aligned. Control characters never reach the terminal.
"""

from __future__ import annotations

import os
import unicodedata
from typing import TYPE_CHECKING, TextIO

from engine.record import field, record

from .diagnostics import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


_GAP = "   "


@record
class Column:
    """A head, whether it is shown only with `-o wide`, and the colour role of its values by value."""

    head: str
    wide: bool = False
    roles: dict[str, str] = field(default_factory=dict)


class Table:
    """Rows under columns; every row has one text per column."""

    def __init__(self, columns: Sequence[Column], rows: Iterable[Sequence[str]] = ()) -> None:
        self.columns = columns
        self.rows: list[Sequence[str]] = list(rows)

    def add(self, *cells: str) -> None:
        """Add a row."""
        self.rows.append(cells)

    def text(self, *, wide: bool = False, heads: bool = True, color: bool = False) -> str:
        """Return the table as lines for a terminal, or nothing where there are no rows."""
        if not self.rows:
            return ""
        shown = [index for index, column in enumerate(self.columns) if wide or not column.wide]
        lines = [[_line(self.columns[index].head) for index in shown]] if heads else []
        lines += [[_line(row[index]) for index in shown] for row in self.rows]
        widths = [max(map(cells_of, column)) for column in zip(*lines, strict=True)]
        return "".join(
            self._row(line, shown, widths, color=color, head=heads and number == 0)
            for number, line in enumerate(lines)
        )

    def markdown(self) -> str:
        """Return the table, all columns, as Markdown."""
        heads = [column.head.capitalize() for column in self.columns]
        lines = [
            heads,
            ["---"] * len(heads),
            *([_escaped(cell) for cell in row] for row in self.rows),
        ]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)

    def _row(
        self, line: list[str], shown: list[int], widths: list[int], *, color: bool, head: bool
    ) -> str:
        parts = []
        for index, cell, width in zip(shown, line, widths, strict=True):
            role = "head" if head else self.columns[index].roles.get(cell)
            padding = " " * (width - cells_of(cell))
            parts.append((paint(cell, role, on=color) if role else cell) + padding)
        return _GAP.join(parts).rstrip() + "\n"


def cells_of(text: str) -> int:
    """Return how many terminal cells a text takes."""
    if text.isascii():
        return len(text)
    return sum(_cells(char) for char in text)


def _cells(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _line(text: str) -> str:
    """Return a cell's text on one line, fit for a terminal."""
    return visible(" ".join(text.split("\n")).replace("\t", " "))


def _escaped(text: str) -> str:
    return _line(text).replace("\\", "\\\\").replace("|", "\\|")


ROLES: Mapping[str, str] = {
    "name": "36;1",
    "good": "32;1",
    "bad": "31;1",
    "warn": "33;1",
    "quiet": "2",
    "head": "1",
}


def wanted(choice: str, stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether output to `stream` is coloured: as `--color` says, else on a terminal that NO_COLOR and TERM do not forbid."""
    if choice != "auto":
        return choice == "always"
    if environment.get("NO_COLOR") or environment.get("TERM") == "dumb":
        return False
    return stream.isatty()


def paint(text: str, role: str, *, on: bool) -> str:
    """Return the text in the colour of a role, or as it is."""
    return f"\x1b[{ROLES[role]}m{text}\x1b[0m" if on and text else text
