"""Times read by a layout of Go's time package, where the layout is itself a time: Mon Jan 2 15:04:05 MST 2006.

Follows Go's Parse: which parts of a layout are fields, how lenient each field is, which error text comes out. Zone
abbreviations are those of a machine in UTC, so an unknown one counts as offset zero.
"""

from __future__ import annotations

from typing import Final

from engine.errors import EvaluationError

from .gofields import Found, MismatchError, RangeError, next_field, ranged, read_field
from .goquote import quote_bytes
from .gotime import RFC3339, Instant, days_in_month, from_civil, is_leap

MAX_LENGTH: Final = 1_000


def parse(layout: str, value: str) -> Instant:
    """Return the time that `value` shows in `layout`. Raises EvaluationError with Go's text."""
    if len(layout) > MAX_LENGTH or len(value) > MAX_LENGTH:
        raise EvaluationError(f"a time or its layout is longer than {MAX_LENGTH} characters")
    found = Found()
    rest = _read_fields(layout, value, found)
    if rest:
        raise EvaluationError(f"parsing time {quote_bytes(value)}: extra text: {quote_bytes(rest)}")
    try:
        return _instant(found)
    except RangeError as error:
        raise EvaluationError(f"parsing time {quote_bytes(value)}: {error}") from None


def parse_rfc3339(value: str) -> Instant:
    """Return the time of an RFC 3339 text. Raises EvaluationError with Go's text."""
    return parse(RFC3339, value)


def _read_fields(layout: str, value: str, found: Found) -> str:
    rest = value
    at = 0
    while True:
        field = next_field(layout, at)
        prefix = layout[at : field.start() if field else len(layout)]
        rest, fits = _skipped(rest, prefix)
        if not fits:
            raise _mismatch(layout, value, prefix, rest)
        if field is None:
            return rest
        at = field.end()
        try:
            rest = read_field(field.group(), layout[at:], rest, found)
        except MismatchError:
            raise _mismatch(layout, value, field.group(), rest) from None
        except RangeError as error:
            raise EvaluationError(f"parsing time {quote_bytes(value)}: {error}") from None


def _mismatch(layout: str, value: str, element: str, rest: str) -> EvaluationError:
    return EvaluationError(
        f"parsing time {quote_bytes(value)} as {quote_bytes(layout)}: cannot parse {quote_bytes(rest)} as {quote_bytes(element)}"
    )


def _skipped(value: str, prefix: str) -> tuple[str, bool]:
    """Skip literal text of the layout; runs of spaces match runs of spaces. False where the value does not go on so."""
    while prefix:
        if prefix[0] == " ":
            if value and value[0] != " ":
                return value, False
            prefix, value = prefix.lstrip(" "), value.lstrip(" ")
            continue
        if not value or value[0] != prefix[0]:
            return value, False
        prefix, value = prefix[1:], value[1:]
    return value, True


def _instant(found: Found) -> Instant:
    hour = found.hour
    if found.afternoon and hour < 12:
        hour += 12
    elif found.afternoon is False and hour == 12:
        hour = 0
    month, day = _date(found)
    date, clock = (found.year, month, day), (hour, found.minute, found.second, found.nanosecond)
    moment = from_civil(date, clock)
    if found.is_utc:
        return moment
    if found.offset is not None:
        return Instant(moment.ns - found.offset * 1_000_000_000, found.offset)
    if found.zone[:3] == "GMT" and len(found.zone) > 3:
        return Instant(moment.ns, int(found.zone[3:]) * 3600)
    return moment


def _date(found: Found) -> tuple[int, int]:
    month, day = found.month, found.day
    if found.year_day >= 0:
        by_year_day = _month_and_day(found.year, found.year_day)
        for given, read, name in ((month, by_year_day[0], "month"), (day, by_year_day[1], "day")):
            if given >= 0 and given != read:
                raise RangeError(f"day-of-year does not match {name}")
        return by_year_day
    month = 1 if month < 0 else month
    day = 1 if day < 0 else day
    ranged(day, 1, days_in_month(found.year, month), "day")
    return month, day


def _month_and_day(year: int, day: int) -> tuple[int, int]:
    if not 1 <= day <= (366 if is_leap(year) else 365):
        raise RangeError("day-of-year out of range")
    month = 1
    while day > days_in_month(year, month):
        day -= days_in_month(year, month)
        month += 1
    return month, day
