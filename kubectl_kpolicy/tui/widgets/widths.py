"""How the columns of a list share the width: each as wide as what it holds; where that is too much, who gives way first.

Knows columns and numbers of cells, no widgets. Running text (a column that grows and is not bounded) gets what is left over and
gives cells away first; names follow, the longest before the others. Which columns go altogether is another order: what people
decide by goes last.
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

_LARGE = 97
"""Cells that a list has in a terminal of a hundred columns."""
_PLAIN = (Shape.AGE, Shape.TIME, Shape.NUMBER)
_TEXT, _SHORT_TEXT, _FAIR, _LEAST, _BARE = 24, 18, 18, 14, 10


def columns_for(columns: Sequence[Column], room: int, natural: Natural) -> list[Column]:
    """Return the columns that a list shows by itself in so many cells, in their order.

    A small list has its narrow columns and those of the others that fit whole, a large one all but the wide ones as long as names
    can still be told apart, and of these those that fit whole as well. Running text is worth its place from 24 cells on. No wide
    column has a place while one that is not wide has none.
    """
    large = room >= _LARGE
    taken = {one.id for one in columns if not one.wide and (one.narrow or large)}
    for one in _dispensable(columns):
        least = _FAIR if not one.narrow else _BARE
        if sum(_least(other, natural, least) + GAP for other in columns if other.id in taken) <= room:  # fmt: skip
            break
        taken.discard(one.id)
    spare = room - sum(natural(one) + GAP for one in columns if one.id in taken)
    for is_wide in (False, True) if large else (False,):
        others = [one for one in columns if one.wide is is_wide and one.id not in taken]
        for one in others:
            width = natural(one)
            if (min(width, _TEXT) if _is_running(one) else width) + GAP <= spare:
                taken.add(one.id)
                spare -= width + GAP
        if any(one.id not in taken for one in others):
            break
    return [one for one in columns if one.id in taken]


def _dispensable(columns: Sequence[Column]) -> list[Column]:
    """Return the columns without the wide ones in the order in which a list can do without them.

    Those that small lists have go last. Of equal ones, numbers and instants go first, then the others from the right, and running text
    last: it says why, which is what people decide by.
    """
    found = [one for one in reversed(columns) if not one.wide]
    return sorted(found, key=lambda one: (one.narrow, _is_running(one), one.shape not in _PLAIN))


def _least(column: Column, natural: Natural, least: int) -> int:
    """Return how many cells a column needs; of text, as many as tell it apart are enough."""
    return min(natural(column), least) if column.shape is Shape.TEXT else natural(column)


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
    spare = _shrunk(made, spare, [_LEAST for _ in columns])
    _shrunk(made, spare, [_BARE for _ in columns])
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
