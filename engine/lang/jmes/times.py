"""Functions on times (row F-06). Times are texts of RFC 3339; the present comes from the evaluation's inputs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from engine.errors import EvaluationError
from engine.lang import duration, gotime
from engine.lang.goquote import quote, quote_bytes

from .signature import Table

if TYPE_CHECKING:
    from engine.lang.gotime import Instant

    from .values import Env

table = Table()

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_ANY_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_PART: Final = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?P<unit>[^0-9.]*)")
_LIMIT: Final = 2**63


@table.function("time_now() string", "the present time")
def time_now(env: Env) -> str:
    """Return the instant of the evaluation."""
    return gotime.from_datetime(env.now).rfc3339()


@table.function("time_now_utc() string", "the present time in UTC")
def time_now_utc(env: Env) -> str:
    """Return the instant of the evaluation in UTC."""
    return gotime.from_datetime(env.now).utc().rfc3339()


@table.function(
    "time_since(string, string, string) string",
    "the duration between two times; an empty layout is RFC 3339, an empty second time is now",
)
def time_since(env: Env, layout: str, start: str, end: str) -> str:
    """Return the duration from `start` to `end`, both in `layout`."""
    layout = layout or gotime.RFC3339
    begun = _instant(layout, start)
    ended = _instant(layout, end) if end else gotime.from_datetime(env.now)
    return duration.text(ended.since(begun))


@table.function("time_add(string, string) string", "the time that much later")
def time_add(_env: Env, time: str, span: str) -> str:
    """Add a duration to a time."""
    return _time(time).plus(_duration(span)).rfc3339()


@table.function(
    "time_parse(string, string) string",
    "the time that the text shows in the layout; digits as layout mean seconds since 1970",
)
def time_parse(_env: Env, layout: str, text: str) -> str:
    """Read a time by a Go layout."""
    if _INTEGER.fullmatch(layout):
        return gotime.from_unix(_epoch(text)).rfc3339()
    return _instant(layout, text).rfc3339()


@table.function("time_utc(string) string", "the same time in UTC")
def time_utc(_env: Env, time: str) -> str:
    """Show a time in UTC."""
    return _time(time).utc().rfc3339()


@table.function(
    "time_diff(string, string) string", "the duration from the first time to the second"
)
def time_diff(_env: Env, start: str, end: str) -> str:
    """Return the difference of two times."""
    begun = _time(start)
    return duration.text(_time(end).since(begun))


@table.function(
    "time_before(string, string) boolean", "whether the first time is before the second"
)
def time_before(_env: Env, one: str, other: str) -> bool:
    """Compare two moments."""
    first = _time(one)
    return first.ns < _time(other).ns


@table.function("time_after(string, string) boolean", "whether the first time is after the second")
def time_after(_env: Env, one: str, other: str) -> bool:
    """Compare two moments."""
    first = _time(one)
    return first.ns > _time(other).ns


@table.function(
    "time_between(string, string, string) boolean",
    "whether the first time lies between the others, which are outside",
)
def time_between(_env: Env, time: str, start: str, end: str) -> bool:
    """Compare three moments; the ends do not count."""
    moment = _time(time)
    begun, ended = _time(start), _time(end)
    return begun.ns < moment.ns < ended.ns


@table.function(
    "time_truncate(string, string) string", "the time rounded down to a multiple of the duration"
)
def time_truncate(_env: Env, time: str, span: str) -> str:
    """Round down, counted from year 1 in UTC."""
    moment = _time(time)
    return moment.truncated(_duration(span)).rfc3339()


@table.function("time_to_cron(string) string", "the cron expression of the time's minute")
def time_to_cron(_env: Env, time: str) -> str:
    """Return minute, hour, day, month and weekday at the time's own offset."""
    at = _time(time).clock
    return f"{at.minute} {at.hour} {at.day} {at.month} {at.weekday}"


def _instant(layout: str, text: str) -> Instant:
    from engine.lang import golayout  # here: few policies read times, and its patterns are large

    return golayout.parse(layout, text)


def _time(text: str) -> Instant:
    from engine.lang import golayout  # as above

    return golayout.parse_rfc3339(text)


def _duration(text: str) -> int:
    ns = duration.parse(text)
    if ns is None:
        raise EvaluationError(_wrong_duration(text))
    return ns


def _wrong_duration(text: str) -> str:
    """Return the text with which Go refuses a duration."""
    body = text[1:] if text[:1] in ("-", "+") else text
    at, shown = 0, quote_bytes(text)
    while (part := _PART.match(body, at)) is not None:
        at = part.end()
        if duration.parse(f"-{part['number']}ns") is None:
            break
        if not part["unit"]:
            return f"time: missing unit in duration {shown}"
        if duration.parse(f"1{part['unit']}") is None:
            return f"time: unknown unit {quote_bytes(part['unit'])} in duration {shown}"
        if duration.parse(f"-{body[:at]}") is None:
            break
    return f"time: invalid duration {shown}"


def _epoch(text: str) -> int:
    if not _ANY_INTEGER.fullmatch(text):
        raise EvaluationError(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    digits = text.lstrip("+-").lstrip("0") or "0"
    sign = -1 if text[0] == "-" else 1
    if len(digits) > len(str(_LIMIT)) or not -_LIMIT <= sign * int(digits) < _LIMIT:
        raise EvaluationError(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return sign * int(digits)
