"""How a cell looks as text: ages, countdowns, marks; the same words in tables of commands and on screens."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from engine.record import record

from . import time_format
from .rows import Cell, Column, Shape

if TYPE_CHECKING:
    from collections.abc import Sequence


_LATE, _SOON = 300.0, 3600.0
_MUCH, _LITTLE = 0.5, 0.2
"""Shares of its time up to which a countdown is half over, and nearly over."""
_DRAIN = 6
_BARS = "▁▂▃▄▅▆▇█"


def cell_text(column: Column, value: Cell, now: datetime, *, marks: str = "") -> str:
    """Return a cell as text; `marks` is `glyph` or `ascii` to put a state's mark before its word."""
    match column.shape:
        case Shape.AGE:
            return time_format.age(value, now)
        case Shape.LEFT:
            return time_format.left(value, now, column.over)
        case Shape.TIME:
            return time_format.clock(value, now)
        case Shape.STATE if marks and value:
            mark = mark_of(str(value))
            return f"{mark.ascii if marks == 'ascii' else mark.glyph} {value}"
    return "" if value is None else str(value)


def share_left(ends: Cell, since: Cell, now: datetime) -> float | None:
    """Return which share of its time a countdown has left, from 1 down to 0; None where its beginning is not known."""
    if not isinstance(ends, datetime) or not isinstance(since, datetime) or ends <= since:
        return None
    return max(0.0, min((ends - now) / (ends - since), 1.0))


def drained(share: float, width: int = _DRAIN) -> str:
    """Return a bar that drains as time passes; what is left of it is heavy, and never nothing before the end."""
    full = min(width, max(round(share * width), 1 if share > 0 else 0))
    return "━" * full + "─" * (width - full)


def cell_role(column: Column, value: Cell, now: datetime, since: Cell = None) -> str:
    """Return the colour role of a cell, empty for none; `since` is when a countdown began, where that is known."""
    if column.shape in (Shape.STATE, Shape.SEVERITY):
        return mark_of(str(value or "")).role if value else ""
    if column.shape is Shape.LEFT and value is not None:
        return _countdown_role(_seconds(value, now), share_left(value, since, now))
    if column.shape is Shape.NUMBER:
        return "muted" if not value else "error" if column.id == "fail" else ""
    return ""


def _countdown_role(seconds: float, share: float | None) -> str:
    """Return the role of a countdown: by the share that is left where it is known, but the last minutes are always late."""
    if seconds <= 0:
        return "muted"
    if seconds <= _LATE:
        return "error"
    if share is None:
        return "warning" if seconds <= _SOON else ""
    return "warning" if share <= _LITTLE else "success" if share > _MUCH else "accent"


def _seconds(value: Cell, now: datetime) -> float:
    return (value - now).total_seconds() if isinstance(value, datetime) else 0.0


def plain(text: str) -> str:
    """Return text of any origin on one line, with everything that could steer a terminal made visible."""
    if text.isprintable():
        return text
    from .diagnostics import visible

    return visible(" ".join(text.split("\n"))).replace("\t", " ")


def short(texts: Sequence[str]) -> str:
    """Return the first of several texts and how many more there are."""
    return f"{texts[0]} +{len(texts) - 1}" if len(texts) > 1 else "".join(texts)


# Marks for states: glyph, word and colour role always together, so that none of them has to be trusted alone.


@record
class Mark:
    """How a state looks: glyph, plain-ASCII glyph, and the role that themes give a colour."""

    glyph: str
    ascii: str
    role: str


MARKS = {
    "fail": Mark("✗", "x", "error"),
    "warn": Mark("!", "!", "warning"),
    "error": Mark("‼", "E", "error"),
    "pass": Mark("✓", "+", "success"),
    "skip": Mark("→", ">", "accent"),
    "pending": Mark("◷", "~", "warning"),
    "active": Mark("●", "*", "success"),
    "scheduled": Mark("◌", "o", "accent"),
    "expired": Mark("■", "-", "muted"),
    "revoked": Mark("⊘", "#", "muted"),
    "emergency": Mark("⚡", "$", "alarm"),
}
_SAME = {
    "ok": "pass", "ready": "pass", "approved": "pass", "confirmed": "pass", "used": "pass", "enforce": "active",
    "audit": "scheduled", "failed": "fail", "denied": "revoked", "withdrawn": "revoked", "dropped": "revoked",
    "void": "revoked", "timed-out": "expired", "idle-expired": "expired", "exhausted": "expired", "draft": "scheduled",
    "unused": "scheduled", "issued": "active", "open": "active", "due": "warn", "paused": "skip", "unknown": "warn",
    "critical": "error", "high": "fail", "medium": "warn", "low": "skip", "info": "scheduled", "blocked": "fail",
    "orphaned": "warn", "unlimited": "warn", "not persisted": "warn", "no": "fail", "yes": "pass", "refused": "warn",
    "postponed": "scheduled",
}  # fmt: skip
_PLAIN = Mark("·", ".", "plain")


def mark_of(word: str) -> Mark:
    """Return the mark of a state; a plain dot for words that are none."""
    name = word.lower()
    return MARKS.get(name) or MARKS.get(_SAME.get(name, "")) or _PLAIN


def halved(values: Sequence[int], room: int) -> Sequence[int]:
    """Return a trend with neighbours added up until it fits into so many cells."""
    made = list(values)
    while len(made) > room:
        made = [sum(made[at : at + 2]) for at in range(0, len(made), 2)]
    return made


def sparkline(values: Sequence[int]) -> str:
    """Return a row of bars, the largest value as the full one, nothing as a blank."""
    most = max(values, default=0)
    if not most:
        return ""
    return "".join(" " if not value else _BARS[round((len(_BARS) - 1) * value / most)] for value in values)  # fmt: skip
