"""The preview of a clean-up as sections to read: when it runs, what holds it back, what goes with what, what stays and why.

Apart from `planning`, which finds it out, because commands print the same plans as a table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubectl_kpolicy.output.time_format import absolute

from .cleanup import hold_of
from .details import Section
from .planning import named_in_full

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from kubectl_kpolicy.output.rows import Row

    from .planning import Planned

_HOLDS = {"paused": "paused: nothing goes until it is resumed", "skip": "skipped: the next run passes everything over", "postponed": "postponed: nothing goes before then"}  # fmt: skip
_UNREADABLE = "held back: its annotation cannot be read, so that nothing goes until that is changed"


def preview(row: Row, plans: Sequence[Planned], now: datetime) -> list[Section]:
    """Return what the next run of a row of Cleanup would do; `plans` are what was planned for it."""
    going = [one for one in plans if one.goes]
    staying = [one for one in plans if not one.goes]
    hold = hold_of(row, now)
    pairs = [("runs", absolute(row.moment("due")) or "never"), ("goes", str(len(going))), ("stays", str(len(staying)))]  # fmt: skip
    if hold:
        pairs.append(("held", _UNREADABLE if hold.is_unreadable else _HOLDS[hold.state]))
    found = [Section("", pairs=tuple(pairs))]
    for title, part in (("goes", going), ("stays", staying)):
        if part:
            found.append(Section(title, tuple(line for one in part for line in _lines(one))))
    return found


def _lines(one: Planned) -> Iterator[str]:
    yield named_in_full(one)
    yield f"  {one.reason}"
    if one.owners:
        yield f"  of {' < '.join(one.owners)}"
    if one.takes:
        yield f"  with {', '.join(one.takes)}"
