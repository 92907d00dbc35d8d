"""Rows and columns: the one shape that commands print, screens draw and filters test.

Cells hold values (instants, numbers, words); how they look is decided where they are shown, so that sorting and filtering
never see a formatted text.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

from engine import vocabulary
from engine.record import record

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Mapping, Sequence

    from engine.model import Object
    from kubectl_kpolicy.cluster.cache import ClusterCache

Cell = str | int | float | bool | datetime | None


class Shape(StrEnum):
    """What the cells of a column are, which decides how they look, sort and compare."""

    TEXT = "text"
    NUMBER = "number"
    AGE = "age"
    LEFT = "left"
    TIME = "time"
    SEVERITY = "severity"
    STATE = "state"


@record
class Column:
    """One column: `id` is its name in filters, `head` its title.

    `most` bounds its width in cells where there is too little room for all (0: it gives way like others), `grows` gives it what
    is left over, `narrow` keeps it on screens below 100 columns. `brief` gives what lists for people show of a row in place of the
    cell, which stays whole in details and in data. `since` names the cell that holds when a countdown began, `over`
    is what it reads when its instant has passed.
    """

    id: str
    head: str
    shape: Shape = Shape.TEXT
    wide: bool = False
    most: int = 0
    grows: bool = False
    narrow: bool = True
    aliases: tuple[str, ...] = ()
    brief: Callable[[Row, datetime], str] | None = None
    since: str = ""
    over: str = "ended"


CLUSTER = Column("cluster", "CLUSTER", aliases=("context",))
"""Where a row comes from, in lists of several clusters."""


class Row:
    """One line: `key` stays the same while the thing it shows lives; `object` is what the API holds, or what stands for it.

    `make` gives the object when somebody asks for it: of fifty thousand rows on a screen almost nobody does. No record, because
    a record cannot hold what is made later.
    """

    __match_args__ = ("key", "cells", "object", "make")

    def __init__(
        self,
        key: str,
        cells: Mapping[str, Cell],
        object: Object | None = None,  # noqa: A002 - the field's name in every front end
        make: Callable[[], Object] | None = None,
    ) -> None:
        self.key = key
        self.cells = cells
        self.make = make
        if object is not None or make is None:
            self.__dict__["object"] = {} if object is None else object

    def __repr__(self) -> str:
        return f"<Row {self.key}>"

    def __eq__(self, other: builtins.object) -> bool:
        if not isinstance(other, Row):
            return NotImplemented
        return self.key == other.key and self.cells == other.cells and self.object == other.object

    def __hash__(self) -> int:
        return hash(self.key)

    @cached_property
    def object(self) -> Object:
        """What machines get for the row."""
        return self.make() if self.make is not None else {}

    def text(self, column: str) -> str:
        """Return a cell as plain text, empty when there is nothing."""
        value = self.cells.get(column)
        return "" if value is None else str(value)

    def moment(self, column: str) -> datetime | None:
        """Return a cell that holds an instant, None when it holds none."""
        value = self.cells.get(column)
        return value if isinstance(value, datetime) else None


@record
class Listing:
    """A kind of rows: its names, columns, the resources it is made of, and the words for an empty screen.

    `sort` names columns, those with a `-` in descending order. `failures` is the set of rows that the failures-only switch keeps,
    `narrowed` what that is called on this screen; where `starts_narrowed`, a screen begins with it on.
    """

    noun: str
    title: str
    aliases: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: Callable[[ClusterCache, datetime], Sequence[Row]]
    needs: tuple[str, ...]
    wants: tuple[str, ...] = ()
    sort: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    failures: Callable[[Row], bool] | None = None
    narrowed: str = "failures"
    starts_narrowed: bool = False
    empty: str = ""
    next_step: str = ""

    def column(self, name: str) -> Column | None:
        """Return a column by id, head or another of its names."""
        wanted = name.lower()
        for column in self.columns:
            if wanted in (column.id, column.head.lower(), *column.aliases):
                return column
        return None


SEVERITIES = (*vocabulary.SEVERITIES, "")
"""From worst to none, as policy reports name them."""

_RANKS = {name: len(SEVERITIES) - 1 - index for index, name in enumerate(SEVERITIES)}


def severity_rank(value: Cell) -> int:
    """Return a number that grows with the severity; 0 for none or an unknown one."""
    return _RANKS.get(str(value or "").lower(), 0)


def sort_key(column: Column) -> Callable[[Row], tuple[int, float, str]]:
    """Return what rows are sorted by in a column: nothing last, severities by weight, the rest by value."""
    name = column.id
    if column.shape is Shape.SEVERITY:
        return lambda row: (0, -severity_rank(row.cells.get(name)), "")
    return lambda row: _value_key(row.cells.get(name))


def _value_key(value: Cell) -> tuple[int, float, str]:
    if value is None or value == "":
        return (1, 0.0, "")
    if isinstance(value, datetime):
        return (0, value.timestamp(), "")
    if isinstance(value, str):
        return (0, 0.0, value.lower())
    return (0, float(value), "")


def sort_rows(rows: Sequence[Row], listing: Listing, order: Sequence[str]) -> list[Row]:
    """Return rows sorted by column names, the first one weighing most; unknown names are passed over."""
    made = list(rows)
    for name in reversed(order):
        column = listing.column(name.lstrip("-+"))
        if column is not None:
            made.sort(key=sort_key(column), reverse=name.startswith("-"))
    return made
