"""Lengths of time in grants and grant policies: Go's durations, with days, because people grant by the day."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from engine.lang import duration

_DAYS: Final = re.compile(r"([0-9]{1,5})d(.*)")
_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def length_of(text: str) -> timedelta | None:
    """Return the length that `90m`, `4h`, `1d12h` name; None for anything else and for what is not longer than nothing."""
    days = _DAYS.fullmatch(text)
    rest = days[2] if days else text
    ns = (duration.parse(rest) if rest else 0) if days or rest else None
    if ns is None or ns < 0:
        return None
    found = timedelta(days=int(days[1]) if days else 0, microseconds=ns // 1000)
    return found if found > timedelta() else None


def length_text(length: timedelta) -> str:
    """Return a length in whole seconds with the largest units first, as `length_of` reads it: `1d12h`."""
    left = int(length.total_seconds())
    parts = []
    for size, unit in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
