"""How the columns of a list share the width: each as wide as what it holds; where that is too much, who gives way first.

Knows columns and numbers of cells, no widgets. Running text (a column that grows and is not bounded) gets what is left over and
gives way first; names follow, the longest before the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubectl_kpolicy.output.rows import Column, Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Natural = Callable[[Column], int]
    Widths = list[tuple[Column, int]]

GAP = 2
"""Cells between two columns."""

LONGEST = 400
"""Cells beyond which no column grows, whatever an object holds."""

_LARGE = 100
_TEXT, _SHORT_TEXT, _FAIR, _LEAST = 24, 18, 18, 14


def columns_for(columns: Sequence[Column], room: int, natural: Natural) -> list[Column]:
    """Return the columns that a list shows by itself in so many cells, in their order.

    A small list has its narrow columns and those of the others that fit whole, a large one all but the wide ones as long as names
    can still be told apart, and of these those that fit whole as well. Running text is worth its place from 24 cells on.
    """
    large = room >= _LARGE
    taken = {one.id for one in columns if not one.wide and (one.narrow or large)}
    for one in _spared(columns):
        least = (_least(one, natural) + GAP for one in columns if one.id in taken)
        if sum(least) <= room:
            break
        taken.discard(one.id)
    spare = room - sum(natural(one) + GAP for one in columns if one.id in taken)
    for one in columns:
        if one.id in taken or (one.wide and not large):
            continue
        if spare <= GAP:
            break
        width = natural(one)
        if min(width, _TEXT) + GAP <= spare if _is_running(one) else width + GAP <= spare:
            taken.add(one.id)
            spare -= width + GAP
    return [one for one in columns if one.id in taken]


def _spared(columns: Sequence[Column]) -> list[Column]:
    """Return the columns that a large list can do without, the first to go first: running text, which is told below, then from the right."""
    more = [one for one in reversed(columns) if not one.wide and not one.narrow]
    return sorted(more, key=lambda one: not _is_running(one))


def _least(column: Column, natural: Natural) -> int:
    """Return how many cells a column needs for what it holds to be told apart."""
    return min(natural(column), _FAIR) if column.shape is Shape.TEXT else natural(column)


def shared(found: Widths, room: int) -> Widths:
    """Return the width of each column in so many cells, from those that they would like to have.

    Where names would miss only a few cells, running text goes without them, so that no name is cut.
    """
    spare = room - sum(width + GAP for _, width in found)
    made = list(found)
    growing = [index for index, (column, _) in enumerate(made) if column.grows]
    if spare >= 0:
        for index, more in zip(growing, _parts(spare, len(growing)), strict=True):
            made[index] = (made[index][0], made[index][1] + more)
        return made
    columns = [column for column, _ in made]
    spare = _shrunk(made, spare, [one.most or (_TEXT if one.grows else LONGEST) for one in columns])
    spare = _shrunk(made, spare, [_TEXT if one.grows else one.most or LONGEST for one in columns])
    if -spare <= sum(_TEXT - _SHORT_TEXT for one in columns if _is_running(one)):
        spare = _shrunk(made, spare, [_SHORT_TEXT if _is_running(one) else LONGEST for one in columns])  # fmt: skip
    spare = _shrunk(made, spare, [_TEXT if one.grows else _FAIR for one in columns])
    _shrunk(made, spare, [_LEAST for _ in columns])
    return made


def _is_running(column: Column) -> bool:
    return column.grows and not column.most


def _parts(cells: int, count: int) -> Iterator[int]:
    """Yield equal parts of cells, the last one with what is left over."""
    for index in range(count):
        yield cells // count + (cells % count if index == count - 1 else 0)


def _shrunk(made: Widths, spare: int, floors: Sequence[int]) -> int:
    """Take missing cells from the widest texts, down to a floor each; return how many are missing still."""
    texts = [at for at, (column, _) in enumerate(made) if column.shape is Shape.TEXT]
    while spare < 0 and (wide := [at for at in texts if made[at][1] > floors[at]]):
        index = max(wide, key=lambda at: made[at][1])
        made[index] = (made[index][0], made[index][1] - 1)
        spare += 1
    return spare
