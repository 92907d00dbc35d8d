"""What a list screen shows, as a value: filter, order, grouping, marks, and the lines that follow from them.

Knows no widgets, so it is tested by itself. Rows are made anew only when the ClusterCache changed or somebody asked for other rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.record import record
from kubectl_kpolicy.filter import compile_filter

from .row_selection import Sieve

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from kubectl_kpolicy.cluster.cache import ClusterCache
    from kubectl_kpolicy.filter import Filter
    from kubectl_kpolicy.output.rows import Listing, Row


@record
class Heading:
    """A line that stands above the rows of one group."""

    column: str
    value: str
    count: int
    folded: bool = False


@record
class Shown:
    """What is on the screen: lines in order, how many rows there are at all, and how many fit."""

    lines: Sequence[Row | Heading]
    total: int
    kept: int
    new: int = 0


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

    def __repr__(self) -> str:
        return f"<ListState {self.listing.noun} {self.filter.text or 'unfiltered'} by {self.order}>"

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
        return Shown(lines, len(rows), len(ordered), new)

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
