"""The fields of Go's time layouts: where the next one is, and how each is read off a value.

Apart from `golayout`, which walks layout and value together, because every field has rules of its own: how many digits it
takes, whether it may be padded, when it is out of range.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
_WEEKDAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_FIELDS: Final = re.compile(
    r"January|Jan(?![a-z])|Monday|Mon(?![a-z])|MST|2006|-07:00:00|-07:00|-070000|-0700|-07"
    r"|Z07:00:00|Z07:00|Z070000|Z0700|Z07|002|01|02|03|04|05|06|15|PM|pm|__2|_2006|_2"
    r"|[.,](?:0+|9+)(?![0-9])|1|2|3|4|5"
)
_NANO_DIGITS: Final = 9


class MismatchError(Exception):
    """The value does not go on as the layout says."""


class RangeError(Exception):
    """A field has a value that no date or clock shows; the text says which."""


class Found:
    """The fields read so far; -1 stands for a field that the layout does not have."""

    def __init__(self) -> None:
        self.year = 0
        self.month = self.day = self.year_day = -1
        self.hour = self.minute = self.second = self.nanosecond = 0
        self.afternoon: bool | None = None
        self.offset: int | None = None
        self.is_utc = False
        self.zone = ""


def next_field(layout: str, at: int) -> re.Match[str] | None:
    """Return the first field of a layout from `at` on."""
    found = _FIELDS.search(layout, at)
    if found is not None and found.group() == "_2006":
        return re.compile("2006").search(layout, found.start())
    return found


def read_field(field: str, following: str, value: str, found: Found) -> str:
    """Read one field off the value and return the rest."""
    if field in _NUMBERS:
        return _NUMBERS[field](value, found)
    if field in ("January", "Jan"):
        index, value = _name(_MONTHS, value, short=field == "Jan")
        found.month = index + 1
        return value
    if field in ("Monday", "Mon"):
        return _name(_WEEKDAYS, value, short=field == "Mon")[1]
    if field in ("05", "5"):
        return _second(field, following, value, found)
    if field in ("PM", "pm"):
        return _half_day(field, value, found)
    if field[0] in ".,":
        return _fraction(field, value, found)
    if field == "MST":
        return _zone_name(value, found)
    return _offset(field, value, found)


def _digits(value: str, least: int, most: int) -> tuple[int, str]:
    count = 0
    while count < most and count < len(value) and "0" <= value[count] <= "9":
        count += 1
    if count < least:
        raise MismatchError
    return int(value[:count]), value[count:]


def ranged(number: int, low: int, high: int, name: str) -> int:
    """Return the number. Raises RangeError when it is outside of its bounds."""
    if not low <= number <= high:
        raise RangeError(f"{name} out of range")
    return number


def _year(value: str, found: Found) -> str:
    if len(value) < 4 or not ("0" <= value[0] <= "9"):
        raise MismatchError
    found.year, value = _digits(value, 4, 4)
    return value


def _short_year(value: str, found: Found) -> str:
    year, value = _digits(value, 2, 2)
    found.year = year + (1900 if year >= 69 else 2000)
    return value


def _reader(name: str, low: int, high: int, least: int) -> Callable[[str, Found], str]:
    def read(value: str, found: Found) -> str:
        number, rest = _digits(value, least, 2)
        setattr(found, name, ranged(number, low, high, name))
        return rest

    return read


def _day(least: int, *, padded: bool) -> Callable[[str, Found], str]:
    def read(value: str, found: Found) -> str:
        if padded and value[:1] == " ":
            value = value[1:]
        found.day, value = _digits(value, least, 2)
        return value

    return read


def _year_day(value: str, found: Found) -> str:
    found.year_day, value = _digits(value, 3, 3)
    return value


def _padded_year_day(value: str, found: Found) -> str:
    spaces = len(value[:2]) - len(value[:2].lstrip(" "))
    found.year_day, value = _digits(value[spaces:], 1, 3)
    return value


_NUMBERS: Final[dict[str, Callable[[str, Found], str]]] = {
    "2006": _year,
    "06": _short_year,
    "01": _reader("month", 1, 12, 2),
    "1": _reader("month", 1, 12, 1),
    "02": _day(2, padded=False),
    "2": _day(1, padded=False),
    "_2": _day(1, padded=True),
    "002": _year_day,
    "__2": _padded_year_day,
    "15": _reader("hour", 0, 23, 1),
    "03": _reader("hour", 0, 12, 2),
    "3": _reader("hour", 0, 12, 1),
    "04": _reader("minute", 0, 59, 2),
    "4": _reader("minute", 0, 59, 1),
}


def _name(names: tuple[str, ...], value: str, *, short: bool) -> tuple[int, str]:
    for index, name in enumerate(names):
        text = name[:3] if short else name
        if value[: len(text)].lower() == text.lower():
            return index, value[len(text) :]
    raise MismatchError


def _second(field: str, following: str, value: str, found: Found) -> str:
    value = _reader("second", 0, 59, len(field))(value, found)
    fraction = re.match(r"[.,][0-9]+", value)
    upcoming = next_field(following, 0)
    # A fraction is taken even where the layout has none, unless the layout's next field is one.
    if fraction and (upcoming is None or upcoming.group()[0] not in ".,"):
        found.nanosecond = _nanoseconds(fraction.group()[1:])
        return value[fraction.end() :]
    return value


def _fraction(field: str, value: str, found: Found) -> str:
    count = len(field) - 1
    if field[1] == "0":
        if value[:1] not in (".", ",") or not re.fullmatch(r"[0-9]+", value[1 : count + 1] or "x"):
            raise MismatchError
        if len(value) < count + 1:
            raise MismatchError
        found.nanosecond = _nanoseconds(value[1 : count + 1])
        return value[count + 1 :]
    given = re.match(r"[.,]([0-9]+)", value)
    if given is None:
        return value
    found.nanosecond = _nanoseconds(given.group(1))
    return value[given.end() :]


def _nanoseconds(digits: str) -> int:
    return int(digits[:_NANO_DIGITS].ljust(_NANO_DIGITS, "0"))


def _half_day(field: str, value: str, found: Found) -> str:
    mark = value[:2]
    if mark not in ((field, "AM") if field == "PM" else (field, "am")):
        raise MismatchError
    found.afternoon = mark == field
    return value[2:]


def _zone_name(value: str, found: Found) -> str:
    if value.startswith("UTC"):
        found.is_utc = True
        return value[3:]
    length = _zone_length(value)
    if not length:
        raise MismatchError
    found.zone, value = value[:length], value[length:]
    return value


def _zone_length(value: str) -> int:
    """Return the length of the zone abbreviation that `value` starts with, by Go's rules, or 0."""
    if value[:4] in ("ChST", "MeST"):
        return 4
    if value[:3] == "GMT":
        return 3 + _signed_hours(value[3:])
    if value[:1] in ("+", "-"):
        length = _signed_hours(value)
        return length or 0
    found = re.match(r"[A-Z]{1,6}", value)
    length = found.end() if found else 0
    if length == 5:
        return 5 if value[4] == "T" else 0
    if length == 4:
        return 4 if value[3] == "T" or value[:4] == "WITA" else 0
    return length if length == 3 else 0


def _signed_hours(value: str) -> int:
    found = re.match(r"[+-]([0-9]+)", value)
    if found is None or len(found.group(1)) > 2 or int(found.group(1)) > 23:
        return 0
    return found.end()


def _offset(field: str, value: str, found: Found) -> str:
    if field[0] == "Z" and value[:1] == "Z":
        found.is_utc = True
        return value[1:]
    shape = "(?s:.)([0-9]{2})" + (":" if ":" in field else "").join(
        "([0-9]{2})" if index else "" for index in range(len(re.findall("0[70]", field)))
    )
    given = re.match(shape, value)
    if given is None:
        raise MismatchError
    hours, minutes, seconds = (int(part) for part in (*given.groups(), "0", "0")[:3])
    rest = value[given.end() :]
    ranged(hours, 0, 24, "time zone offset hour")
    ranged(minutes, 0, 60, "time zone offset minute")
    ranged(seconds, 0, 60, "time zone offset second")
    if value[0] not in "+-":
        raise MismatchError
    size = hours * 3600 + minutes * 60 + seconds
    found.offset = -size if value[0] == "-" else size
    return rest
