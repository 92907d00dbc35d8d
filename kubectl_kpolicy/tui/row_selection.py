"""The rows that fit a list screen, in their order, kept while others come and go.

Apart from `state` because it is what keeps fifty thousand rows usable: a change of a few rows tests and places only those, and
nothing that was in order is sorted again.
"""

from __future__ import annotations

from bisect import insort
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

from kubectl_kpolicy.output.rows import sort_key, sort_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kubectl_kpolicy.output.rows import Listing, Row

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

    def __repr__(self) -> str:
        return f"<Sieve {self._listing.noun} {len(self._ordered)} of {len(self._rows)}>"

    def forget(self) -> None:
        """Begin anew next time, because time has passed that the test depends on."""
        self._asked = None

    def sift(
        self,
        rows: Sequence[Row],
        asked: object,
        order: Sequence[str],
        keeps: Callable[[Row], bool],
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
