"""Tables with borders as Kyverno's CLI draws them, and the same as Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .colors import PLAIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .colors import Colors

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, colors: Colors = PLAIN) -> str:
    """Return a table with a border of `│` and `─`; painted cells count by what is seen of them."""
    shown = [[_one_line(cell) for cell in row] for row in rows]
    widths = [
        max(_width(name), *(_width(row[index]) for row in shown), 0)
        for index, name in enumerate(columns)
    ]
    border = "│" + "│".join("─" * (width + 2) for width in widths) + "│"
    header = _line([colors.header(name) for name in columns], widths)
    return "\n".join([border, header, border, *(_line(row, widths) for row in shown), border])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        f" {cell}{' ' * (width - _width(cell))} " for cell, width in zip(cells, widths, strict=True)
    )
    return "│" + "│".join(padded) + "│"


def _one_line(text: str) -> str:
    return " ".join(text.split("\n")) if "\n" in text else text


def _width(text: str) -> int:
    return len(_ANSI.sub("", text)) if "\x1b" in text else len(text)


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; bars inside cells are escaped."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_escaped(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _escaped(cell: str) -> str:
    return _one_line(cell).replace("|", "\\|")


def aligned(columns: Sequence[str], rows: Sequence[Sequence[str]], *, header: bool = True) -> str:
    """Return kubectl's kind of table: columns three blanks apart, no border."""
    lines = [list(columns), *map(list, rows)] if header else list(map(list, rows))
    if not lines:
        return ""
    widths = [max(_width(line[index]) for line in lines) for index in range(len(columns))]
    return "\n".join(_padded(line, widths) for line in lines)


def _padded(line: Sequence[str], widths: Sequence[int]) -> str:
    cells = (cell + " " * (width - _width(cell)) for cell, width in zip(line, widths, strict=True))
    return "   ".join(cells).rstrip()
