"""JSON read as Go's encoding/json reads it, with its error texts.

Literals in expressions, quoted names and `parse_json` are JSON, and upstream hands Go's error text on unchanged. The text
is read by the standard library; only where that fails (or is more lenient than Go) a scanner walks it once more to say
what is wrong in Go's words.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from engine.errors import DocumentError
from engine.lang.json import check_depth
from engine.lang.work import LIMITS, charge

from .values import EXACT_INTEGERS

if TYPE_CHECKING:
    from json import JSONDecoder

    from engine.model import Json

_LONE_SURROGATE: Final = "[\ud800-\udfff]"
_SHORT_INTEGER: Final = 15


class GoJsonError(ValueError):
    """Text that Go would not decode; the message is Go's."""


def decode(text: str) -> Json:
    """Decode one JSON value; numbers are 64-bit floats, held as int where they are whole and exact.

    Raises GoJsonError with Go's text.
    """
    charge(len(text) * 5 + (text.count(",") + text.count("[") + text.count("{")) * 250)
    try:
        value = _decoder().decode(text)
    except GoJsonError as error:
        raise GoJsonError(_complaint(text) or str(error)) from None
    except ValueError:
        raise GoJsonError(_complaint(text) or "invalid JSON") from None
    except RecursionError:
        raise GoJsonError("exceeded max depth") from None
    if text.count("[") + text.count("{") > LIMITS.depth:
        try:
            check_depth(value)
        except DocumentError as error:
            raise GoJsonError(error.message) from None
    return _without_lone_surrogates(value) if "\\u" in text else value


def _complaint(text: str) -> str:
    from .jsonscan import complaint  # here: most texts are as they should be

    return complaint(text)


def _integer(text: str) -> int | float:
    if len(text) <= _SHORT_INTEGER and text != "-0":
        return int(text)
    return _float(text)


def _float(text: str) -> int | float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise GoJsonError(f"json: cannot unmarshal number {text} into Go value of type float64")
    if value and value.is_integer() and -EXACT_INTEGERS < value < EXACT_INTEGERS:
        return int(value)
    return value if value or text.startswith("-") else 0


def _no_constant(name: str) -> float:
    raise GoJsonError(f"invalid character '{name[0]}' looking for beginning of value")


def _without_lone_surrogates(value: Json) -> Json:
    if isinstance(value, str):
        return re.sub(_LONE_SURROGATE, "\ufffd", value)
    if isinstance(value, list):
        return [_without_lone_surrogates(element) for element in value]
    if isinstance(value, dict):
        return {
            _without_lone_surrogates(key): _without_lone_surrogates(member)
            for key, member in value.items()
        }
    return value


@cache
def _decoder() -> JSONDecoder:
    from json import JSONDecoder  # here: few expressions hold JSON

    return JSONDecoder(parse_int=_integer, parse_float=_float, parse_constant=_no_constant)
