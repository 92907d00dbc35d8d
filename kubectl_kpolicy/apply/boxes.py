"""Tables with borders, as Kyverno's CLI draws them for results; other tables look like kubectl's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lang.lazy_regex import regex
from kubectl_kpolicy.output.diagnostics import visible
from kubectl_kpolicy.output.table import cells_of, paint

if TYPE_CHECKING:
    from collections.abc import Sequence

_ROLES = {"Pass": "good", "Fail": "bad", "Error": "bad", "Warn": "warn", "Skip": "name"}
_ANSI = regex(r"\x1b\[[0-9;]*m")


class Brush:
    """Paints names and verdicts as Kyverno's CLI does, where colours are on; makes foreign text fit for a terminal."""

    def __init__(self, *, on: bool = False) -> None:
        self._on = on

    def name(self, text: str) -> str:
        """Paint the name of a policy, rule or resource."""
        return paint(plain(text), "name", on=self._on)

    def status(self, status: str, text: str = "") -> str:
        """Paint `text` (or the status itself) in the colour of a status."""
        return paint(text or status, _ROLES[status], on=self._on)

    def head(self, text: str) -> str:
        """Paint a column's head."""
        return paint(text, "good", on=self._on)


PLAIN = Brush()


def plain(text: str) -> str:
    """Return foreign text on one line, without control characters."""
    return visible(" ".join(text.split("\n")))


def boxed(columns: Sequence[str], rows: Sequence[Sequence[str]], *, brush: Brush = PLAIN) -> str:
    """Return a table with a border of `│` and `─`; painted cells count by what is seen of them."""
    widths = [
        max([_width(name), *(_width(row[index]) for row in rows)])
        for index, name in enumerate(columns)
    ]
    border = "│" + "│".join("─" * (width + 2) for width in widths) + "│"
    head = _line([brush.head(name) for name in columns], widths)
    return "\n".join([border, head, border, *(_line(row, widths) for row in rows), border])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        f" {cell}{' ' * (width - _width(cell))} " for cell, width in zip(cells, widths, strict=True)
    )
    return "│" + "│".join(padded) + "│"


def _width(text: str) -> int:
    return cells_of(_ANSI.sub("", text) if "\x1b" in text else text)
