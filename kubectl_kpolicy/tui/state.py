"""What a list screen shows, as a value: filter, order, grouping, marks, and the lines that follow from them.

Knows no widgets, so it is tested by itself. Rows are made anew only when the ClusterCache changed or somebody asked for other rows.
"""

from __future__ import annotations

from bisect import insort
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

from engine.record import record
from kubectl_kpolicy.cluster.beside import BesideCache, each, unknown
from kubectl_kpolicy.cluster.knowledge import Sight, known
from kubectl_kpolicy.filter import Filter, compile_filter
from kubectl_kpolicy.output.rows import CLUSTER, Listing, Row, sort_key, sort_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from kubectl_kpolicy.cluster.cache import ClusterCache


@record
class Heading:
    """A line that stands above the rows of one group; for a group of which nothing is known there is no count, but a reason."""

    column: str
    value: str
    count: int | None
    folded: bool = False
    reason: str = ""


@record
class Shown:
    """What is on the screen: lines in order, how many rows there are at all, and how many fit.

    `of` says of which clusters, where there are several, `is_cut` that there may be more than were read.
    """

    lines: Sequence[Row | Heading]
    total: int
    kept: int
    new: int = 0
    of: str = ""
    is_cut: bool = False


class ListState:
    """The state of one list screen; setters return nothing, `lines` says what follows."""

    def __init__(self, listing: Listing, *, failures: bool | None = None) -> None:
        self.listing = listing
        self.order: tuple[str, ...] = listing.sort
        self.failures = listing.starts_narrowed if failures is None else failures
        self.namespace = ""
        self.group = ""
        self.wide = False
        self.columns: tuple[str, ...] = ()
        self.marks: set[str] = set()
        self.hidden: set[str] = set()
        self.folded: set[str] = set()
        self.known: frozenset[str] | None = None
        self.filter: Filter = compile_filter("", listing)
        self._version = -1
        self._rows: Sequence[Row] = ()
        self._sieve = Sieve(listing)

    def where(self, text: str) -> None:
        """Filter by a text; raises FilterError and leaves the filter as it was."""
        self.filter = compile_filter(text, self.listing)

    def sort_by(self, column: str) -> None:
        """Sort by a column; a second time the other way round."""
        first = self.order[0] if self.order else ""
        turned = f"-{column}" if first == column else column
        rest = tuple(name for name in self.order if name.lstrip("-") != column)
        self.order = (turned, *rest)

    def reverse(self) -> None:
        """Turn the order round."""
        if self.order:
            first = self.order[0]
            self.order = (first[1:] if first.startswith("-") else f"-{first}", *self.order[1:])

    def next_group(self) -> str:
        """Group by the next column that lends itself to it, or by none after the last; return its name."""
        choices = ("", *self.listing.groups)
        index = choices.index(self.group) if self.group in choices else 0
        self.group = choices[(index + 1) % len(choices)]
        self.folded.clear()
        return self.group

    def fold(self, value: str) -> None:
        """Hide the rows of a group, or show them again."""
        self.folded ^= {value}

    def rows(self, world: ClusterCache, now: datetime) -> Sequence[Row]:
        """Return all rows of the listing."""
        version = world.version(*self.listing.needs, *self.listing.wants)
        if version != self._version:
            self._rows = self.listing.rows(world, now)
            self._version = version
        return self._rows

    def outdate(self) -> None:
        """Let rows be made anew, because time has passed that they depend on."""
        self._version = -1
        self._sieve.forget()

    def shown(self, world: ClusterCache, now: datetime) -> Shown:
        """Return what is to be shown now."""
        rows = self.rows(world, now)
        asked = (self.filter, self.order, self.failures, self.namespace, frozenset(self.hidden))
        ordered = self._sieve.sift(rows, asked, self.order, lambda row: self._keeps(row, now))
        new = 0 if self.known is None else sum(row.key not in self.known for row in ordered)
        lines = self._grouped(ordered) if self.group else ordered
        sights = {known(one, self.listing).sight for one in each(world).values()}
        # checks of health are there whatever is known
        is_cut = self.listing.noun != "health" and bool(sights & {Sight.LOADING, Sight.PARTLY})
        if not isinstance(world, BesideCache):
            return Shown(lines, len(rows), len(ordered), new, is_cut=is_cut)
        # INVARIANT: a cluster that cannot be asked is told of whatever is filtered; else it would look as if it had nothing.
        lost = [
            Heading(CLUSTER.id, name, None, reason=why)
            for name, why in unknown(world, self.listing, now)
        ]
        of = f" in {len(world.members) - len(lost)} of {len(world.members)} clusters"
        return Shown([*lines, *lost], len(rows), len(ordered), new, of, is_cut)

    def _keeps(self, row: Row, now: datetime) -> bool:
        failing = self.listing.failures
        if self.failures and failing is not None and not failing(row):
            return False
        if self.namespace and row.cells.get("namespace") != self.namespace:
            return False
        return row.key not in self.hidden and self.filter.keeps(row, now)

    def _grouped(self, rows: Sequence[Row]) -> list[Row | Heading]:
        """Return rows under headings, the largest group first."""
        groups: dict[str, list[Row]] = {}
        for row in rows:
            groups.setdefault(row.text(self.group), []).append(row)
        lines: list[Row | Heading] = []
        for value, found in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
            folded = value in self.folded
            lines.append(Heading(self.group, value, len(found), folded))
            if not folded:
                lines += found
        return lines


# The rows that fit a list screen, in their order, kept while others come and go.
#
# It is what keeps fifty thousand rows usable: a change of a few rows tests and places only those, and nothing that was in order is
# sorted again.

_FEW = 0.02
"""The part of all rows up to which new ones are put in their places one by one."""


class Sieve:
    """See the module. `asked` is all that decides what fits and in which order; another one begins anew."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._asked: object = None
        self._rows: Sequence[Row] = ()
        self._ids: set[int] = set()
        self._ordered: list[Row] = []

    def forget(self) -> None:
        """Begin anew next time, because time has passed that the test depends on."""
        self._asked = None

    def sift(
        self, rows: Sequence[Row], asked: object, order: Sequence[str], keeps: Callable[[Row], bool]
    ) -> list[Row]:
        """Return the rows that `keeps` keeps, in order."""
        if asked != self._asked:
            self._anew(rows, order, keeps)
        elif rows is not self._rows:
            ids = set(map(id, rows))
            added = [row for row in rows if id(row) not in self._ids]
            if len(added) > max(20, _FEW * len(rows)):
                self._anew(rows, order, keeps)
            else:
                self._few(ids, [row for row in added if keeps(row)], order)
        # INVARIANT: rows are held, so that no other row can get the id of one of them.
        self._rows, self._asked = rows, asked
        return self._ordered

    def _anew(
        self, rows: Sequence[Row], order: Sequence[str], keeps: Callable[[Row], bool]
    ) -> None:
        self._ids = set(map(id, rows))
        self._ordered = sort_rows([row for row in rows if keeps(row)], self._listing, order)

    def _few(self, ids: set[int], added: Sequence[Row], order: Sequence[str]) -> None:
        """Drop the rows that are gone and put new ones where they belong."""
        made = [row for row in self._ordered if id(row) in ids]
        if added:
            place = cmp_to_key(_comparison(self._listing, order))
            for row in added:
                insort(made, row, key=place)
        self._ids, self._ordered = ids, made


def _comparison(listing: Listing, order: Sequence[str]) -> Callable[[Row, Row], int]:
    """Return a comparison of rows that orders as `sort_rows` does."""
    columns = [(listing.column(name.lstrip("-+")), name.startswith("-")) for name in order]
    steps: list[tuple[Callable[[Row], Any], int]] = [
        (sort_key(column), -1 if turned else 1) for column, turned in columns if column is not None
    ]

    def compare(one: Row, other: Row) -> int:
        for key, sign in steps:
            left, right = key(one), key(other)
            if left != right:
                return -sign if left < right else sign
        return 0

    return compare
