"""When an object is due by its own label `cleanup.kyverno.io/ttl` (rows C-05, C-07).

For the loop that deletes, the webhook that warns and the commands that preview. A value is a length of time after creation or
an instant; the readings are upstream's, and so is the warning.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from engine.errors import EvaluationError
from engine.fields import part
from engine.lang import duration, rfc3339
from engine.vocabulary import PROPAGATIONS, TTL_LABEL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.model import Object

_DELETING: Final = ("cleanup.kyverno.io", "generate.kyverno.io")
"""Groups of labels by which we delete objects: at a time, or with the rule that is said to have made them."""
_POD: Final = ("template", "metadata", "labels")
LABELLED: Final[tuple[tuple[str, ...], ...]] = (
    ("metadata", "labels"),
    ("spec", *_POD),
    ("spec", "jobTemplate", "spec", *_POD),
    ("spec", "jobTemplate", "metadata", "labels"),
    ("spec", "volumeClaimTemplates"),
    _POD,
)
"""Where objects have labels of their own, or of the objects that will be made from them; of claims, all that is said."""
PROPAGATION_ANNOTATION: Final = "cleanup.kyverno.io/propagation-policy"

_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_LAST: Final = datetime.max.replace(tzinfo=UTC)
_SECOND: Final = 1_000_000_000
_MOST: Final = (1 << 63) - 1
_LONGEST: Final = 256
_PART: Final = re.compile(r"\s*([0-9]{1,19})(?:\.([0-9]{1,19}))?\s*([a-zµμ]+)", re.IGNORECASE)
_SIZES: Final[Mapping[str, int]] = MappingProxyType(
    {
        name: size
        for names, size in (
            ("ns nano nanos nanosecond nanoseconds", 1),
            ("us µs μs micro micros microsecond microseconds", 1_000),
            ("ms milli millis millisecond milliseconds", 1_000_000),
            ("s sec secs second seconds", _SECOND),
            ("m min mins minute minutes", 60 * _SECOND),
            ("h hr hrs hour hours", 3600 * _SECOND),
            ("d day days", 86_400 * _SECOND),
            ("w wk wks week weeks", 604_800 * _SECOND),
        )
        for name in names.split()
    }
)
_INSTANT: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2})([0-9]{2})([0-9]{2})(?:[.,][0-9]+)?Z"
)
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_MONTH: Final = re.compile(r"[0-9]{4}-([0-9]{2})")
_ELEMENTS: Final = (
    (re.compile("[0-9]{4}"), "2006"),
    (re.compile("-"), "-"),
    (re.compile("[0-9]{2}"), "01"),
    (re.compile("-"), "-"),
    (re.compile("[0-9]{2}"), "02"),
)


def has_deleted(text: str) -> bool:
    """Tell whether a text names a label by which we delete objects, also as an anchor or a part of a path."""
    return any(group in text for group in _DELETING)


def due_at(obj: Object) -> datetime | None:
    """Return the instant (UTC) from which `obj` is due, None when it has no label, or a length of time and no creation.

    Raises EvaluationError with upstream's warning when the value cannot be read.
    """
    metadata = part(obj, "metadata")
    value = part(metadata, "labels").get(TTL_LABEL)
    if value is None:
        return None
    length, instant = parse(str(value))
    if instant is not None:
        return instant
    start = rfc3339.read(metadata.get("creationTimestamp"))
    return None if start is None else later(start, length)


def parse(value: str) -> tuple[int, datetime | None]:
    """Read a label's value: nanoseconds after creation and None, or 0 and an instant.

    Lengths are Go's durations and lists of amounts with units up to weeks, spelled out or not (`1d12h`, `3days`); instants
    are `2006-01-02T150405Z` and `2006-01-02`. Raises EvaluationError with upstream's warning, Go's reason in parentheses.
    """
    length = _length(value)
    if length is not None:
        return length, None
    instant = _instant(value)
    if instant is not None:
        return 0, instant
    raise EvaluationError(
        "cleanup.kyverno.io/ttl label value cannot be parsed as any recognizable format "
        f"({_why_no_date(value)})"
    )


def warning(obj: Object) -> str | None:
    """Return what upstream's webhook warns of at admission, None when label and object are in order (row C-07)."""
    value = part(obj, "metadata", "labels").get(TTL_LABEL)
    if value is None:
        return None
    try:
        parse(str(value))
    except EvaluationError as error:
        return error.message
    return None


def propagation(obj: Object) -> str:
    """Return what happens to dependents: the annotation's value, empty when there is none or it is unknown."""
    annotations = part(obj, "metadata", "annotations")
    value = annotations.get(PROPAGATION_ANNOTATION)
    return value if value in PROPAGATIONS else ""


def later(start: datetime, nanoseconds: int) -> datetime:
    """Add a length to an instant; beyond the calendar's ends, the end."""
    try:
        return start + timedelta(microseconds=nanoseconds // 1000)
    except OverflowError:
        return _LAST if nanoseconds > 0 else _FIRST


def _length(value: str) -> int | None:
    if len(value) > _LONGEST:
        return None
    plain = duration.parse(value)
    if plain is not None:
        return plain
    negative = value[:1] == "-"
    body = value[1:] if value[:1] in ("-", "+") else value
    total = _sum(body.strip())
    if total is None or total > _MOST:
        return None
    return -total if negative else total


def _sum(body: str) -> int | None:
    """Add up amounts with units; None when anything else stands between them."""
    total = at = 0
    while at < len(body):
        part = _PART.match(body, at)
        size = _SIZES.get(part[3].lower()) if part else None
        if part is None or size is None:
            return None
        total += int(part[1]) * size
        if part[2]:
            total += int(part[2]) * size // 10 ** len(part[2])
        at = part.end()
    return total if at else None


def _instant(value: str) -> datetime | None:
    found = _INSTANT.fullmatch(value) or _DATE.fullmatch(value)
    if found is None:
        return None
    year, month, day, *time = (int(digits) for digits in found.groups())
    hour, minute, second = time or (0, 0, 0)
    try:
        # The calendar here starts with year 1; year 0 is as much over as that.
        return datetime(max(year, 1), month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None


def _why_no_date(value: str) -> str:
    """Return Go's complaint about reading the value as a date, the last format that upstream tries."""
    quoted = "".join(map(_quoted, value))
    frame = f'parsing time "{quoted}"'
    month = _MONTH.match(value)
    if month and not 1 <= int(month[1]) <= 12:
        return f"{frame}: month out of range"
    found = _DATE.match(value)
    if found is None:
        rest, element = _first_misfit(value)
        rest = "".join(map(_quoted, rest))
        return f'{frame} as "2006-01-02": cannot parse "{rest}" as "{element}"'
    if found.end() < len(value):
        return f'{frame}: extra text: "{"".join(map(_quoted, value[found.end() :]))}"'
    return f"{frame}: day out of range"


def _quoted(character: str) -> str:
    if character in ('"', "\\"):
        return f"\\{character}"
    if " " <= character <= "~":
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "replace"))


def _first_misfit(value: str) -> tuple[str, str]:
    """Return where the value stops being a date, and the element that Go wants there."""
    at = 0
    for pattern, element in _ELEMENTS:
        found = pattern.match(value, at)
        if found is None:
            return value[at:], element
        at = found.end()
    return value[at:], ""
