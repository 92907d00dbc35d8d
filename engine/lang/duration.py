"""Go's text form of durations (`1h30m`, `1.5s`), read into and written from whole nanoseconds.

Policies compare durations as Kyverno does, so reading follows Go's `time.ParseDuration` to the last nanosecond,
including its limits, and writing follows `time.Duration.String`. People write days and weeks, too (`length`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from engine.lang.lazy_regex import regex

_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_LONG_UNITS: Final = {**_UNITS, "d": 24 * _UNITS["h"], "w": 7 * 24 * _UNITS["h"]}
_PART = regex(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]+)")
_LAST_LETTERS: Final = frozenset("smhdw")
_LIMIT: Final = 1 << 63
_MOST_DIGITS: Final = 19
_LONGEST: Final = 4096


def length(text: str) -> timedelta | None:
    """Read the length of time that a person wrote: `90s`, `1h30m`, `2d`, `1w`; None when it is none, or less than nothing."""
    ns = parse(text, _LONG_UNITS)
    return None if ns is None or ns < 0 else timedelta(microseconds=ns // 1000)


def parse(text: str, units: dict[str, int] = _UNITS) -> int | None:
    """Read a duration in nanoseconds, of Go's units or others; None when the text is none or does not fit 64 bits."""
    negative = text[:1] == "-"
    body = text[1:] if text[:1] in ("-", "+") else text
    if body == "0":
        return 0
    if body[-1:] not in _LAST_LETTERS or len(body) > _LONGEST:
        return None
    total = 0
    at = 0
    while at < len(body):
        part = _PART.match(body, at)
        if part is None:
            return None
        amount = _amount(part[1], part[2], units.get(part[3]))
        if amount is None:
            return None
        total += amount
        if total > _LIMIT:
            return None
        at = part.end()
    if total == _LIMIT:
        return -total if negative else None
    return -total if negative else total


def _amount(whole: str, fraction: str | None, size: int | None) -> int | None:
    if size is None or not (whole or fraction):
        return None
    digits = whole.lstrip("0")
    if len(digits) > _MOST_DIGITS:
        return None
    amount = int(digits or "0") * size
    if fraction:
        amount += _fraction(fraction, size)
    return amount if amount <= _LIMIT else None


def _fraction(digits: str, size: int) -> int:
    """Return the nanoseconds of the digits after the point, with the 64-bit float steps that Go takes."""
    value, scale = 0, 1.0
    for digit in digits:
        grown = value * 10 + int(digit)
        if value > (_LIMIT - 1) // 10 or grown > _LIMIT:
            break
        value = grown
        scale *= 10
    return int(float(value) * (float(size) / scale))


def text(ns: int) -> str:
    """Write nanoseconds as Go prints a duration: `1h0m0s`, `1.5s`, `100ms`, `0s`."""
    if ns == 0:
        return "0s"
    sign = "-" if ns < 0 else ""
    size = abs(ns)
    if size < 1_000:
        return f"{sign}{size}ns"
    if size < 1_000_000:
        return f"{sign}{_decimal(size, 3)}µs"
    if size < 1_000_000_000:
        return f"{sign}{_decimal(size, 6)}ms"
    minutes, rest = divmod(size, _UNITS["m"])
    seconds = f"{_decimal(rest, 9)}s"
    if minutes == 0:
        return f"{sign}{seconds}"
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours}h{minutes}m{seconds}" if hours else f"{sign}{minutes}m{seconds}"


def _decimal(amount: int, places: int) -> str:
    whole, rest = divmod(amount, 10**places)
    if rest == 0:
        return str(whole)
    return f"{whole}.{rest:0{places}d}".rstrip("0")


# Lengths of time as kubectl shows them: ages.

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 365 * 86_400


def span(seconds: float) -> str:
    """Return a length of time as kubectl's ages: two units at most, one where the second says little."""
    whole = int(seconds)
    if whole < 0:
        return "0s"
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 10 * _MINUTE:
        return in_two_units(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return in_two_units(whole, _HOUR, "h", _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return in_two_units(whole, _DAY, "d", _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    return in_two_units(whole, _YEAR, "y", _DAY, "d") if whole < 8 * _YEAR else f"{whole // _YEAR}y"


def in_two_units(whole: int, large: int, name: str, small: int, other: str) -> str:
    """Return whole seconds in a large unit and, where something is left, a small one."""
    rest = whole % large // small
    return f"{whole // large}{name}{rest}{other}" if rest else f"{whole // large}{name}"
