"""Parts of timestamps and durations, in UTC or a named or fixed zone (language definition, "Timestamps and Durations").

Zone data is the only thing here that Python reads from the machine; it is loaded with the first named zone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache, partial
from typing import Final

from engine.lang import gotime
from engine.lang.cel.errors import CelError
from engine.lang.cel.values import SECOND, Duration, Timestamp

from .registry import Library

LIBRARY: Final = Library(cost=30)
_FIXED: Final = re.compile(r"([+-]?)([0-9]{1,9}):([0-9]{1,9})", re.ASCII)
_ZONE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SAFE_DAYS: Final = (timedelta(days=-719_160), timedelta(days=2_932_895))


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError) as error:
        raise CelError(f"unknown time zone {name}") from error


def _offset(ns: int, zone: str) -> int:
    """Return a zone's seconds east of UTC at a moment. Raises CelError."""
    if zone in ("UTC", "Z", ""):
        return 0
    fixed = _FIXED.fullmatch(zone)
    if fixed is not None:
        size = int(fixed[2]) * 3600 + int(fixed[3]) * 60
        return -size if fixed[1] == "-" else size
    if not _ZONE.fullmatch(zone):
        raise CelError(f"unknown time zone {zone[:64]}")
    since = max(_SAFE_DAYS[0], min(_SAFE_DAYS[1], timedelta(seconds=ns // SECOND)))
    shown = (_EPOCH + since).astimezone(_zone(zone)).utcoffset()
    return int(shown.total_seconds()) if shown is not None else 0


_FIELDS: Final[dict[str, Callable[[gotime.Clock], int]]] = {
    "getFullYear": lambda clock: clock.year,
    "getMonth": lambda clock: clock.month - 1,
    "getDate": lambda clock: clock.day,
    "getDayOfMonth": lambda clock: clock.day - 1,
    "getDayOfWeek": lambda clock: clock.weekday,
    "getDayOfYear": lambda clock: (
        sum(gotime.days_in_month(clock.year, month) for month in range(1, clock.month))
        + clock.day
        - 1
    ),
    "getHours": lambda clock: clock.hour,
    "getMinutes": lambda clock: clock.minute,
    "getSeconds": lambda clock: clock.second,
}


def _declare(name: str, read: Callable[[gotime.Clock], int]) -> None:
    def part(moment: Timestamp, zone: str = "UTC") -> int:
        return read(gotime.Instant(moment.ns, _offset(moment.ns, zone)).clock)

    LIBRARY.add(f"timestamp.{name}() -> int", f"timestamp.{name}(string) -> int")(part)


for _name, _read in _FIELDS.items():
    _declare(_name, _read)


@LIBRARY.add("timestamp.getMilliseconds() -> int", "timestamp.getMilliseconds(string) -> int")
def _milliseconds(moment: Timestamp, zone: str = "UTC") -> int:
    _offset(moment.ns, zone)
    return moment.ns % SECOND // 1_000_000


def _whole(span: Duration, unit: int) -> int:
    size = abs(span.ns) // unit
    return -size if span.ns < 0 else size


_SPANS: Final = {
    "getHours": 3600 * SECOND,
    "getMinutes": 60 * SECOND,
    "getSeconds": SECOND,
    "getMilliseconds": 1_000_000,
}
for _name, _unit in _SPANS.items():
    LIBRARY.add(f"duration.{_name}() -> int")(partial(_whole, unit=_unit))
