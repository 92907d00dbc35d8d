"""Two rows side by side: what both say once, what they say differently marked."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from kubectl_kpolicy.output.cells import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubectl_kpolicy.cluster.details import Section

_LABEL, _WIDEST, _MOST = 14, 46, 12


def compared(one: Sequence[Section], other: Sequence[Section], width: int) -> Text:
    """Return two sets of sections as a text of so many cells: label, left, right; `≠` before what differs."""
    left, right = _values(one), _values(other)
    room = max(12, min(_WIDEST, (width - _LABEL - 8) // 2))
    text = Text(no_wrap=True, overflow="ellipsis")
    for label in dict.fromkeys([*left, *right]):
        here, there = left.get(label, ""), right.get(label, "")
        style = "bold" if here != there else ""
        pairs = zip_longest(_pieces(here, room), _pieces(there, room), fillvalue="")
        for number, (one_part, other_part) in enumerate(pairs):
            text.append("≠ " if style and not number else "  ", "bold")
            text.append(f"{label if not number else '':<{_LABEL}}  "[: _LABEL + 2], "dim")
            text.append(set_cell_size(one_part, room), style)
            text.append("  ")
            text.append(f"{other_part}\n", style)
    return text


def _values(sections: Sequence[Section]) -> dict[str, str]:
    """Return the values by label; lines of a section under its title."""
    found: dict[str, str] = {}
    for section in sections:
        for label, value in section.pairs:
            found.setdefault(plain(label), plain(value))
        if section.lines:
            found.setdefault(plain(section.title), "; ".join(map(plain, section.lines)))
    return found


def _pieces(value: str, room: int) -> list[str]:
    """Return a value in lines of so many cells; of a very long one the beginning."""
    pieces: list[str] = []
    rest = value
    while rest and len(pieces) < _MOST:
        taken = rest[:room]
        while cell_len(taken) > room:
            taken = taken[:-1]
        pieces.append(taken)
        rest = rest[len(taken) :]
    return [*pieces[:-1], f"{pieces[-1][:-1]}…"] if rest else pieces or [""]
