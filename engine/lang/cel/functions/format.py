"""`"...".format([...])`: the clauses `%s %d %f %e %b %x %X %o` with precision (strings extension)."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

from engine.lang import gotext
from engine.lang.cel.errors import CelError
from engine.lang.cel.values import CelType, Duration, Flag, Timestamp, Uint, type_name

from .standard import span_text, time_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.lang.cel.env import CelEnv

_CLAUSE: Final = re.compile(r"%(?:(%)|(?:\.([0-9]{0,6}))?([a-zA-Z])?)")
_PRECISION: Final = 6
_MOST_PRECISION: Final = 1000
_WHOLE: Final = (int, Uint)
_NUMBERS: Final = (int, Uint, float)
_SPECIAL: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def formatted(env: CelEnv, template: str, arguments: list[Any]) -> str:
    """Fill a template. Raises CelError for unknown clauses, wrong types and missing arguments."""
    pieces: list[str] = []
    last = used = 0
    for found in _CLAUSE.finditer(template):
        pieces.append(template[last : found.start()])
        last = found.end()
        if found[1]:
            pieces.append("%")
            continue
        if used >= len(arguments):
            raise CelError(f"index {used} out of range")
        pieces.append(_clause(env, found, arguments[used]))
        env.charge(len(pieces[-1]) // 8 + 1)
        used += 1
    pieces.append(template[last:])
    return "".join(pieces)


def _clause(env: CelEnv, found: re.Match[str], value: Any) -> str:
    write = _CLAUSES.get(found[3] or "")
    if write is None:
        raise CelError(
            f'could not parse formatting clause: unrecognized formatting clause "{found[3] or ""}"'
        )
    places = int(found[2]) if found[2] else _PRECISION
    if places > _MOST_PRECISION:
        raise CelError(f"precision is higher than {_MOST_PRECISION}")
    return write(env, value, places)


def _refused(clause: str, value: Any) -> CelError:
    return CelError(f"error during formatting: {clause} clause cannot take {type_name(value)}")


def text_of(env: CelEnv, value: Any) -> str:
    """Return a value as `%s` writes it."""
    env.charge(1)
    write = _TEXTS.get(type(value))
    if write is not None:
        return write(value)
    if isinstance(value, list):
        return f"[{', '.join(text_of(env, item) for item in value)}]"
    if isinstance(value, dict):
        entries = sorted((text_of(env, key), text_of(env, part)) for key, part in value.items())
        return "{" + ", ".join(f"{key}: {part}" for key, part in entries) + "}"
    raise _refused("string", value)


def _double(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return gotext.general(value)


_TEXTS: Final[dict[type, Callable[[Any], str]]] = {
    str: str,
    int: int.__repr__,
    Uint: int.__repr__,
    float: _double,
    bool: lambda value: "true" if value else "false",
    type(None): lambda _: "null",
    bytes: lambda value: value.decode("utf-8", "replace"),
    Timestamp: time_text,
    Duration: span_text,
    CelType: lambda value: value.name,
    Flag: lambda value: "true" if value.value else "false",
}


def _string(env: CelEnv, value: Any, _places: int) -> str:
    return text_of(env, value)


def _decimal(_env: CelEnv, value: Any, _places: int) -> str:
    if type(value) in _WHOLE:
        return int.__repr__(value)
    if type(value) is float and not math.isfinite(value):
        return _double(value)
    raise _refused("decimal", value)


def _number(value: Any, clause: str) -> float:
    if type(value) in _NUMBERS:
        return float(value)
    if isinstance(value, str) and value in _SPECIAL:
        return _SPECIAL[value]
    raise _refused(clause, value)


def _fixed(_env: CelEnv, value: Any, places: int) -> str:
    number = _number(value, "fixed-point")
    return f"{number:.{places}f}" if math.isfinite(number) else _double(number)


def _scientific(_env: CelEnv, value: Any, places: int) -> str:
    number = _number(value, "scientific")
    return f"{number:.{places}e}" if math.isfinite(number) else _double(number)


def _binary(_env: CelEnv, value: Any, _places: int) -> str:
    if type(value) is bool or type(value) in _WHOLE:
        return f"{int(value):b}"
    raise _refused("binary", value)


def _octal(_env: CelEnv, value: Any, _places: int) -> str:
    if type(value) in _WHOLE:
        return f"{value:o}"
    raise _refused("octal", value)


def _hex(_env: CelEnv, value: Any, _places: int) -> str:
    if type(value) in _WHOLE:
        return f"{value:x}"
    if isinstance(value, str):
        return value.encode("utf-8", "replace").hex()
    if isinstance(value, bytes):
        return value.hex()
    raise _refused("hex", value)


def _upper_hex(env: CelEnv, value: Any, places: int) -> str:
    return _hex(env, value, places).upper()


_CLAUSES: Final[dict[str, Callable[[CelEnv, Any, int], str]]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "o": _octal,
    "x": _hex,
    "X": _upper_hex,
}
