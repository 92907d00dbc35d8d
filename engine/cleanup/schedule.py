"""Cron schedules of cleanup policies: what is accepted, and the instants they name (row C-01).

Five fields and the `@` names as upstream's admission accepts them. When day of month and day of week are both restricted,
a day that fits either fires: such a schedule is not a single instant. All in UTC. The instants are croniter's, which is only ever given plain number lists: its own extensions (hashes, random fields, seconds)
are not part of the format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from engine.errors import LimitError, PolicyError
from engine.lang import duration
from engine.record import record

MOST_INSTANTS: Final = 1000
_LONGEST: Final = 1024
_SECOND: Final = 1_000_000_000
_NUMBER: Final = re.compile("[0-9]{1,9}")
_NAMED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "@yearly": "0 0 1 1 *",
        "@annually": "0 0 1 1 *",
        "@monthly": "0 0 1 * *",
        "@weekly": "0 0 * * 0",
        "@daily": "0 0 * * *",
        "@midnight": "0 0 * * *",
        "@hourly": "0 * * * *",
    }
)
_EVERY: Final = "@every "
_YEAR: Final = timedelta(days=366)


@record
class _Field:
    name: str
    least: int
    most: int
    names: tuple[str, ...] = ()


_MONTHS: Final[tuple[str, ...]] = (
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
)  # fmt: skip
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 6, _DAYS),
)


@record
class Schedule:
    """A schedule that can be asked for instants: five fields of plain numbers, or an interval."""

    fields: tuple[str, ...] = ()
    interval: timedelta | None = None


@lru_cache(maxsize=512)
def parse_schedule(text: str) -> Schedule:
    """Read a schedule; raises PolicyError that says which field is wrong and why."""
    trimmed = text.strip()
    if not trimmed or len(trimmed) > _LONGEST:
        raise PolicyError("schedule is empty" if not trimmed else "schedule is too long")
    if trimmed.startswith(("TZ=", "CRON_TZ=")):
        raise PolicyError(
            f"schedule `{trimmed}`: time zones are not supported, schedules are in UTC"
        )
    if trimmed.startswith(_EVERY):
        return Schedule(interval=_interval(trimmed))
    if trimmed.startswith("@"):
        return Schedule(_normal(_named(trimmed)))
    return Schedule(_normal(trimmed))


def next_after(schedule: str, instant: datetime, count: int = 1) -> tuple[datetime, ...]:
    """Return the first `count` instants after `instant`; fewer, or none, when the schedule has no more.

    Raises PolicyError for an unreadable schedule and LimitError for more than MOST_INSTANTS at once.
    """
    if count > MOST_INSTANTS:
        raise LimitError(f"more than {MOST_INSTANTS} instants of a schedule asked for at once")
    parsed = parse_schedule(schedule)
    found = _every(parsed.interval, instant) if parsed.interval else _cron(parsed, instant)
    return tuple(one for _, one in zip(range(count), found, strict=False))


def moment_after(schedule: str, instant: datetime) -> datetime | None:
    """Return the single instant after `instant` that a schedule made of a date means (`24 19 20 2 1`: Monday, 20 February).

    By the rules of cron such a schedule fires on every Monday of that month, too; where both day fields are one number and
    a day within a year fits both, that day is meant. Any other schedule: its first instant. Raises PolicyError.
    """
    parsed = parse_schedule(schedule)
    first = next(iter(next_after(schedule, instant)), None)
    if parsed.interval or not all(field.isdigit() for field in parsed.fields):
        return first
    meant = next(_cron(parsed, instant, either_day=False), None)
    if meant is None or meant - _naive(instant).replace(tzinfo=UTC) > _YEAR:
        return first
    return meant


def _cron(schedule: Schedule, instant: datetime, *, either_day: bool = True) -> Iterator[datetime]:
    from croniter import CroniterError, croniter

    try:
        instants: Any = croniter(" ".join(schedule.fields), _naive(instant), day_or=either_day)
        while True:
            yield instants.get_next(datetime).replace(tzinfo=UTC)
    except (CroniterError, ValueError, OverflowError):
        # No further instant: a day that never comes (30 February), or the calendar's end.
        return


def _naive(instant: datetime) -> datetime:
    return (instant.astimezone(UTC) if instant.tzinfo else instant).replace(tzinfo=None)


def _every(interval: timedelta, instant: datetime) -> Iterator[datetime]:
    at = _naive(instant).replace(microsecond=0, tzinfo=UTC)
    while True:
        try:
            at += interval
        except OverflowError:
            return
        yield at


def _interval(text: str) -> timedelta:
    length = duration.parse(text.removeprefix(_EVERY).strip())
    if length is None:
        raise PolicyError(f"schedule `{text}`: not a duration such as `1h30m`")
    if length < _SECOND:
        raise PolicyError(f"schedule `{text}`: the interval must be at least one second")
    return timedelta(seconds=length // _SECOND)


def _named(text: str) -> str:
    fields = _NAMED.get(text)
    if fields is None:
        known = ", ".join((*_NAMED, "@every <duration>"))
        raise PolicyError(f"schedule `{text}`: unknown name", help=f"known are {known}")
    return fields


def _normal(text: str) -> tuple[str, ...]:
    """Return the five fields as `*` or lists of numbers."""
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise PolicyError(
            f"schedule `{text}`: expected 5 fields, found {len(parts)}",
            help="the fields are minute, hour, day of month, month and day of week",
        )
    sets = [_members(part, field, text) for part, field in zip(parts, _FIELDS, strict=True)]
    days, weekdays = sets[2], sets[4]
    if days and weekdays and (len(days) == 31 or len(weekdays) == 7):
        # INVARIANT: either of two restricted day fields suffices, so one that names every day makes both unrestricted.
        sets[2] = sets[4] = None
    return tuple("*" if found is None else ",".join(map(str, sorted(found))) for found in sets)


def _members(part: str, field: _Field, text: str) -> set[int] | None:
    """Return the numbers of one field, None when it is unrestricted (`*`, `?`, `*/1`)."""
    found: set[int] = set()
    unrestricted = False
    items = [item for item in part.split(",") if item]
    if not items:
        raise _wrong(text, field, f"`{part}` names nothing")
    for item in items:
        span, slash, step_text = item.partition("/")
        step = _number(step_text, field, text) if slash else 1
        if step == 0:
            raise _wrong(text, field, f"the step of `{item}` must not be 0")
        if span in ("*", "?"):
            unrestricted = unrestricted or step == 1
            low, high = field.least, field.most
        else:
            low, high = _span(span, field, text, open_end=bool(slash))
        found.update(range(low, high + 1, step))
    return None if unrestricted else found


def _span(span: str, field: _Field, text: str, *, open_end: bool) -> tuple[int, int]:
    """Return the ends of `n`, `n-m` or, before a step, `n` to the field's end."""
    first, hyphen, last = span.partition("-")
    low = _number(first, field, text)
    high = _number(last, field, text) if hyphen else field.most if open_end else low
    if low < field.least or high > field.most:
        raise _wrong(text, field, f"`{span}` is not within {field.least} to {field.most}")
    if low > high:
        raise _wrong(text, field, f"`{span}` begins after its end")
    return low, high


def _number(word: str, field: _Field, text: str) -> int:
    if word.lower() in field.names:
        return field.names.index(word.lower()) + field.least
    if _NUMBER.fullmatch(word):
        return int(word)
    raise _wrong(text, field, f"`{word}` is not a number" + (" or name" if field.names else ""))


def _wrong(text: str, field: _Field, why: str) -> PolicyError:
    return PolicyError(f"schedule `{text}`: {field.name}: {why}")
