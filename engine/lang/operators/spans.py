"""Durations of condition keys and values: text in Go's syntax, or a number of seconds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from engine.lang import duration

if TYPE_CHECKING:
    from engine.model import Json

_SECOND: Final = 1_000_000_000
_WRAP: Final = 1 << 64
_HALF: Final = 1 << 63


def written_span(value: Json) -> int | None:
    """Return the nanoseconds of a text that is a duration; `0` alone is rather a number and is none."""
    return duration.parse(value) if isinstance(value, str) and value != "0" else None


def seconds_span(value: Json) -> int | None:
    """Return the nanoseconds of a number of seconds, its fraction dropped; None for anything but a number.

    Numbers beyond 64 bits of nanoseconds wrap around, as in Kyverno.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return (_whole(value) * _SECOND + _HALF) % _WRAP - _HALF


def _whole(number: float) -> int:
    if isinstance(number, int):
        return number
    return int(number) if math.isfinite(number) and abs(number) < _HALF else -_HALF


def span(value: Json) -> int | None:
    """Return the nanoseconds of a duration text or of a number of seconds."""
    return duration.parse(value) if isinstance(value, str) else seconds_span(value)


def span_pair(key: Json, value: Json) -> tuple[int, int] | None:
    """Return both as nanoseconds when at least one is a duration text and the other a duration or a number."""
    left, right = written_span(key), written_span(value)
    if left is None and right is None:
        return None
    if left is None:
        left = seconds_span(key)
    if right is None:
        right = seconds_span(value)
    return None if left is None or right is None else (left, right)
