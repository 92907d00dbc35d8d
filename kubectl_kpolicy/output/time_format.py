"""Instants and lengths of time as people read them: kubectl's ages, countdowns, clock times."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from engine.lang import rfc3339
from engine.lang.duration import in_two_units, span

if TYPE_CHECKING:
    from kubectl_kpolicy.output.rows import Cell

__all__ = ["absolute", "age", "clock", "instant", "left", "minute", "span"]

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def instant(value: Any) -> datetime | None:
    """Return the instant that the API writes as RFC 3339 or as `{seconds, nanos}`; None for anything else."""
    if isinstance(value, str):
        return rfc3339.read(value)
    seconds = value.get("seconds") if isinstance(value, dict) else None
    if not isinstance(seconds, int) or not 0 < seconds < 253_402_300_800:
        return None
    return datetime.fromtimestamp(seconds, UTC)


def age(value: Cell, now: datetime) -> str:
    """Return how long ago an instant was."""
    return span((now - value).total_seconds()) if isinstance(value, datetime) else ""


def left(value: Cell, now: datetime, over: str = "ended") -> str:
    """Return a countdown to an instant, to the second below a day; `over` when it is past."""
    if not isinstance(value, datetime):
        return ""
    seconds = int((value - now).total_seconds())
    if seconds <= 0:
        return over
    if seconds >= _DAY:
        return in_two_units(seconds, _DAY, "d", _HOUR, "h")
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
