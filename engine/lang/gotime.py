"""Instants as Go's time package knows them: any year, nanoseconds, a fixed offset; RFC 3339 in and out.

Policies compare and shift times of any year (`9999-12-31` plus an hour is year 10000), which Python's datetime cannot
hold. Reading other layouts is `golayout`'s work.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from engine.record import record, replace

SECOND: Final = 1_000_000_000
RFC3339: Final = "2006-01-02T15:04:05Z07:00"
_DAY: Final = 86_400
_DAYS_TO_1970: Final = 719_162
"""Days from January 1 of year 1 to January 1 of 1970."""
_MONTH_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MIN: Final = -(2**63)
_MAX: Final = 2**63 - 1


@record
class Clock:
    """What a calendar and a clock on the wall show; `weekday` counts from Sunday as 0."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    weekday: int


@record
class Instant:
    """A moment in nanoseconds since 1970 UTC, shown at an offset in seconds east of UTC."""

    ns: int
    offset: int = 0

    @property
    def clock(self) -> Clock:
        """Return calendar and clock at the instant's own offset."""
        days, rest = divmod(self.ns // SECOND + self.offset, _DAY)
        year, month, day = _civil(days)
        return Clock(year, month, day, rest // 3600, rest // 60 % 60, rest % 60, (days + 4) % 7)

    def utc(self) -> Instant:
        """Return the same moment shown in UTC."""
        return replace(self, offset=0)

    def plus(self, ns: int) -> Instant:
        """Return the moment `ns` nanoseconds later."""
        return replace(self, ns=self.ns + ns)

    def since(self, other: Instant) -> int:
        """Return the nanoseconds from `other` to this, held within 64 bits as Go's Sub does."""
        return max(_MIN, min(_MAX, self.ns - other.ns))

    def truncated(self, ns: int) -> Instant:
        """Round down to a multiple of `ns` counted from year 1, as Go's Truncate; unchanged if that is not positive."""
        if ns <= 0:
            return self
        return self.plus(-((self.ns + _DAYS_TO_1970 * _DAY * SECOND) % ns))

    def rfc3339(self) -> str:
        """Return the text of RFC 3339 without fractions, as Go's Format(time.RFC3339)."""
        at = self.clock
        year = f"{at.year:04d}" if at.year >= 0 else f"-{-at.year:04d}"
        return (
            f"{year}-{at.month:02d}-{at.day:02d}T{at.hour:02d}:{at.minute:02d}:{at.second:02d}"
            f"{_offset_text(self.offset)}"
        )


def from_datetime(moment: datetime) -> Instant:
    """Return the instant of an aware datetime, at its own offset."""
    offset = moment.utcoffset() or timedelta()
    whole = moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    micros = whole // timedelta(microseconds=1)
    return Instant(micros * 1000, int(offset.total_seconds()))


def from_unix(seconds: int) -> Instant:
    """Return the instant of a Unix time, in UTC."""
    return Instant(seconds * SECOND)


def from_civil(date: tuple[int, int, int], clock: tuple[int, int, int, int]) -> Instant:
    """Return the UTC instant of year, month, day and hour, minute, second, nanosecond, all within their ranges."""
    hour, minute, second, nanosecond = clock
    seconds = _days(*date) * _DAY + hour * 3600 + minute * 60 + second
    return Instant(seconds * SECOND + nanosecond)


def days_in_month(year: int, month: int) -> int:
    """Return the number of days of a month in the Gregorian calendar."""
    return 29 if month == 2 and is_leap(year) else _MONTH_DAYS[month - 1]


def is_leap(year: int) -> bool:
    """Return whether a year of the Gregorian calendar has 366 days."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _days(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01, for any year; years are counted from March so that leap days come last."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


def _civil(days: int) -> tuple[int, int, int]:
    """Return year, month and day of a count of days since 1970-01-01: the inverse of `_days`."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    return year_of_era + era * 400 + (month <= 2), month, day


def _offset_text(offset: int) -> str:
    if offset == 0:
        return "Z"
    minutes = abs(offset) // 60
    return f"{'-' if offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
