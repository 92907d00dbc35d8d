"""CBOR as far as COSE signatures need it: integers, byte and text strings, lists, maps, tags; read strictly and bounded.

For Notary signatures in COSE envelopes. A reader of its own because the format is a page and the bytes are foreign: what
is read is never executed, objects of other kinds are never made, and nesting has an end.
"""

from __future__ import annotations

from typing import Any, Final

from engine.errors import EvaluationError
from engine.record import record

_DEEPEST: Final = 8
_MOST_ITEMS: Final = 256
_WIDTHS: Final = {24: 1, 25: 2, 26: 4, 27: 8}
_SIMPLE: Final = {20: False, 21: True, 22: None}


@record
class Tagged:
    """A value with a tag before it."""

    tag: int
    value: Any


def read_cbor(data: bytes) -> Any:
    """Return the one value that `data` holds; raise EvaluationError for anything else."""
    try:
        value, end = _item(data, 0, 0)
    except (IndexError, UnicodeDecodeError, TypeError) as error:
        raise EvaluationError("the envelope is not readable CBOR") from error
    if end != len(data):
        raise EvaluationError("the envelope has bytes after its end")
    return value


def encode_bytes(major: int, data: bytes) -> bytes:
    """Return a byte (2) or text (3) string in its shortest form."""
    return _head(major, len(data)) + data


def _head(major: int, number: int) -> bytes:
    if number < 24:
        return bytes((major << 5 | number,))
    for code, width in _WIDTHS.items():
        if number < 1 << (8 * width):
            return bytes((major << 5 | code,)) + number.to_bytes(width, "big")
    raise EvaluationError("a string too long for any envelope")


def _item(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    if depth > _DEEPEST:
        raise EvaluationError("the envelope nests too deeply")
    major, number, at = _number(data, at)
    match major:
        case 0:
            return number, at
        case 1:
            return -1 - number, at
        case 2 | 3:
            if at + number > len(data):
                raise EvaluationError("the envelope ends within a string")
            text = data[at : at + number]
            return (text if major == 2 else text.decode()), at + number
        case 4:
            return _items(data, at, number, depth)
        case 5:
            return _pairs(data, at, number, depth)
        case 6:
            value, at = _item(data, at, depth + 1)
            return Tagged(number, value), at
        case _:
            if number not in _SIMPLE:
                raise EvaluationError("the envelope holds a value of an unknown kind")
            return _SIMPLE[number], at


def _number(data: bytes, at: int) -> tuple[int, int, int]:
    """Return major type, argument and where the rest begins; lengths that are left open are refused."""
    first = data[at]
    major, low = first >> 5, first & 31
    if low < 24:
        return major, low, at + 1
    width = _WIDTHS.get(low)
    if width is None or at + 1 + width > len(data):
        raise EvaluationError("the envelope is not readable CBOR")
    return major, int.from_bytes(data[at + 1 : at + 1 + width], "big"), at + 1 + width


def _items(data: bytes, at: int, count: int, depth: int) -> tuple[list[Any], int]:
    if count > _MOST_ITEMS:
        raise EvaluationError("the envelope holds too many items")
    found = []
    for _ in range(count):
        value, at = _item(data, at, depth + 1)
        found.append(value)
    return found, at


def _pairs(data: bytes, at: int, count: int, depth: int) -> tuple[dict[Any, Any], int]:
    flat, at = _items(data, at, 2 * count, depth)
    found = dict(zip(flat[::2], flat[1::2], strict=True))
    if len(found) != count:
        raise EvaluationError("the envelope holds a key twice")
    return found, at
