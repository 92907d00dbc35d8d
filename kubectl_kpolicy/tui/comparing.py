"""Two rows side by side: what both say once, what they say differently marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from kubectl_kpolicy.output.cells import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubectl_kpolicy.cluster.details import Section

_LABEL, _WIDEST = 14, 46


def compared(one: Sequence[Section], other: Sequence[Section], width: int) -> Text:
    """Return two sets of sections as a text of so many cells: label, left, right; `≠` before what differs."""
    left, right = _values(one), _values(other)
    room = max(12, min(_WIDEST, (width - _LABEL - 8) // 2))
    text = Text(no_wrap=True, overflow="ellipsis")
    for label in dict.fromkeys([*left, *right]):
        here, there = left.get(label, ""), right.get(label, "")
        differs = here != there
        for number in range(max(_lines(here, room), _lines(there, room), 1)):
            mark = "≠ " if differs and not number else "  "
            text.append(mark, "bold")
            text.append(f"{label if not number else '':<{_LABEL}}  "[: _LABEL + 2], "dim")
            text.append(_cut(here, number, room), "bold" if differs else "")
            text.append("  ")
            text.append(_cut(there, number, room).rstrip() + "\n", "bold" if differs else "")
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


def _lines(value: str, room: int) -> int:
    return -(-cell_len(value) // room)


def _cut(value: str, number: int, room: int) -> str:
    """Return one line of a value that is broken into lines of so many cells."""
    rest = value
    for _ in range(number):
        rest = rest[len(_start(rest, room)) :]
    return set_cell_size(_start(rest, room), room)


def _start(value: str, room: int) -> str:
    """Return as much of the beginning as fits."""
    taken = value[:room]
    while cell_len(taken) > room:
        taken = taken[:-1]
    return taken
