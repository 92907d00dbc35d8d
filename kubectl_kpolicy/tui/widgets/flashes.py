"""Which rows on the screen have changed a moment ago, and which ended meanwhile: what moves draws the eye, and nothing moves for long.

A changed row has a sign before it as well as another style, so that it is seen without colours; what has ended goes dim.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.grants import FINAL
from kubectl_kpolicy.tui.state import Heading

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from kubectl_kpolicy.output.rows import Cell, Row

LASTS = 3.0
"""Seconds for which a change is shown."""
SIGN = "»"
_TIMED = frozenset({"age", "left", "since"})


class Flashes:
    """Compares the rows that are on the screen with those that were there before; nothing where `is_on` is false."""

    def __init__(self) -> None:
        self.is_on = True
        self._seen: dict[str, Row] = {}
        self._since: dict[str, datetime] = {}
        self._ended: set[str] = set()

    def look(self, rows: Iterable[Row | Heading], now: datetime) -> None:
        """Take over the rows that are on the screen, and note which of them read otherwise than before."""
        shown = {row.key: row for row in rows if not isinstance(row, Heading)} if self.is_on else {}
        for key, row in shown.items():
            before = self._seen.get(key)
            if before is not None and before is not row and _told(before) != _told(row):
                self._since[key] = now
                if row.cells.get("state") in FINAL:
                    self._ended.add(key)
        self._seen = shown

    def is_changed(self, row: Row, now: datetime) -> bool:
        """Tell whether a row has changed a moment ago."""
        at = self._since.get(row.key)
        return at is not None and (now - at).total_seconds() < LASTS

    def past(self, now: datetime) -> set[str]:
        """Forget the changes that were shown long enough, and return the keys of their rows."""
        over = {key for key, at in self._since.items() if (now - at).total_seconds() >= LASTS}
        for key in over:
            del self._since[key]
        return over

    def has_ended(self, row: Row) -> bool:
        """Tell whether what a row shows has ended before somebody's eyes."""
        return row.key in self._ended


def _told(row: Row) -> dict[str, Cell]:
    """Return the cells by which a row reads otherwise; instants that a new report brings along are no change."""
    return {name: cell for name, cell in row.cells.items() if name not in _TIMED}
