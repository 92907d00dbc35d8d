"""Instants and lengths of time as people read them: kubectl's ages, countdowns, clock times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from engine.lang import rfc3339

if TYPE_CHECKING:
    from kubectl_kpolicy.output.rows import Cell

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 365 * 86_400


def instant(value: Any) -> datetime | None:
    """Return the instant that the API writes as RFC 3339 or as `{seconds, nanos}`; None for anything else."""
    if isinstance(value, str):
        return rfc3339.read(value)
    seconds = value.get("seconds") if isinstance(value, dict) else None
    if not isinstance(seconds, int) or not 0 < seconds < 253_402_300_800:
        return None
    return datetime.fromtimestamp(seconds, UTC)


def span(seconds: float) -> str:
    """Return a length of time as kubectl's ages: two units at most, one where the second says little."""
    whole = int(seconds)
    if whole < 0:
        return "0s"
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 10 * _MINUTE:
        return _two(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole, _HOUR, "h", _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole, _DAY, "d", _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    return _two(whole, _YEAR, "y", _DAY, "d") if whole < 8 * _YEAR else f"{whole // _YEAR}y"


def _two(whole: int, large: int, name: str, small: int, other: str) -> str:
    rest = whole % large // small
    return f"{whole // large}{name}{rest}{other}" if rest else f"{whole // large}{name}"


def age(value: Cell, now: datetime) -> str:
    """Return how long ago an instant was."""
    return span((now - value).total_seconds()) if isinstance(value, datetime) else ""


def left(value: Cell, now: datetime) -> str:
    """Return a countdown to an instant, to the second below a day; `ended` when it is past."""
    if not isinstance(value, datetime):
        return ""
    seconds = int((value - now).total_seconds())
    if seconds <= 0:
        return "ended"
    if seconds >= _DAY:
        return _two(seconds, _DAY, "d", _HOUR, "h")
    return f"{seconds // _HOUR:02}:{seconds % _HOUR // _MINUTE:02}:{seconds % _MINUTE:02}"


def clock(value: Cell, now: datetime) -> str:
    """Return an instant as the time of day (UTC), with the date where it is another day."""
    if not isinstance(value, datetime):
        return ""
    there = value.astimezone(UTC)
    form = "%H:%M:%S" if there.date() == now.astimezone(UTC).date() else "%Y-%m-%d %H:%M"
    return there.strftime(form)


def minute(value: Cell, now: datetime) -> str:
    """Return an instant as `clock` does, without its seconds."""
    text = clock(value, now)
    return text[:5] if text[2:3] == ":" else text


def absolute(value: Cell) -> str:
    """Return an instant in full, RFC 3339 in UTC."""
    return rfc3339.write(value) if isinstance(value, datetime) else ""


def length_of(text: str) -> timedelta | None:
    """Return the length of time that a person wrote: `90s`, `1h30m`, `2d`, `1w`; None when it is none."""
    amount, total, units = "", 0.0, {"s": 1, "m": _MINUTE, "h": _HOUR, "d": _DAY, "w": 7 * _DAY}
    for char in text.strip().lower():
        if char.isascii() and (char.isdigit() or char == "."):
            amount += char
        elif char in units and amount.replace(".", "", 1).isdigit() and len(amount) < 10:
            total += float(amount) * units[char]
            amount = ""
        else:
            return None
    return timedelta(seconds=total) if text.strip() and not amount and total < 1e10 else None
