"""`"...".format([...])`: the clauses `%s %d %f %e %b %x %X %o` (strings extension, in the version that Kubernetes has: 2).

Texts within lists and maps are quoted, doubles there have six places, and `%f` and `%e` write as people do in English.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

from engine.lang import gotext
from engine.lang.cel.errors import CelError
from engine.lang.cel.values import CelType, Duration, Flag, Timestamp, Uint, type_name
from engine.lang.goquote import quote

from .standard import span_text, time_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.lang.cel.env import CelEnv


_CLAUSE: Final = re.compile(r"%(?:(%)|(?:\.([0-9]{0,6}))?([a-zA-Z])?)")
_PRECISION: Final = 6
_MOST_PRECISION: Final = 1000
_WHOLE: Final = (int, Uint)
_STRING: Final = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
_INFINITE: Final = {"nan": "NaN", "inf": "\u221e", "-inf": "-\u221e"}
_GO_INFINITE: Final = {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}
_RAISED: Final = str.maketrans(
    "-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
)
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
        if not found[3] and last == len(template):
            raise CelError("unexpected end of string")
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


def _refused(what: str, value: Any) -> CelError:
    return CelError(f"error during formatting: {what}, was given {type_name(value)}")


def text_of(env: CelEnv, value: Any) -> str:
    """Return a value as `%s` writes it."""
    env.charge(1)
    write = _TEXTS.get(type(value))
    if write is not None:
        return write(value)
    if isinstance(value, list):
        return f"[{', '.join(_within(env, item) for item in value)}]"
    if isinstance(value, dict):
        entries = sorted((_within(env, key), _within(env, part)) for key, part in value.items())
        return "{" + ", ".join(f"{key}:{part}" for key, part in entries) + "}"
    raise _refused(_STRING, value)


def _within(env: CelEnv, value: Any) -> str:
    """Return a value as it stands within a list or a map: written as the language would."""
    quoted = _QUOTED.get(type(value))
    if quoted is not None:
        env.charge(1)
        return quoted(value)
    if type(value) in _TEXTS or isinstance(value, list | dict):
        return text_of(env, value)
    kind = type_name(value)
    raise CelError(f"error during formatting: no formatting function for {kind}")


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


_QUOTED: Final[dict[type, Callable[[Any], str]]] = {
    str: quote,
    bytes: lambda value: f"b{quote(value.decode('utf-8', 'replace'))}",
    float: lambda value: (
        f"{value:.{_PRECISION}f}" if math.isfinite(value) else f'"{_GO_INFINITE[str(value)]}"'
    ),
    Timestamp: lambda value: f"timestamp({quote(time_text(value))})",
    Duration: lambda value: f"duration({quote(span_text(value))})",
}


def _decimal(_env: CelEnv, value: Any, _places: int) -> str:
    if type(value) in _WHOLE:
        return int.__repr__(value)
    raise _refused("decimal clause can only be used on integers", value)


def _number(value: Any, clause: str) -> float:
    if type(value) is float:
        return value
    if isinstance(value, str) and value in _SPECIAL:
        return _SPECIAL[value]
    raise _refused(f"{clause} clause can only be used on doubles", value)


def _fixed(_env: CelEnv, value: Any, places: int) -> str:
    number = _number(value, "fixed-point")
    return f"{number:,.{places}f}" if math.isfinite(number) else _INFINITE[str(number)]


def _scientific(_env: CelEnv, value: Any, _places: int) -> str:
    """Write a power of ten; what is said of places is a width to the Go implementation, so that there are always six."""
    number = _number(value, "scientific")
    if not math.isfinite(number):
        return _INFINITE[str(number)]
    mantissa, _, power = f"{number:.{_PRECISION}e}".partition("e")
    raised = power.removeprefix("+").translate(_RAISED)
    return f"{mantissa}\u00d710{raised}"


def _binary(_env: CelEnv, value: Any, _places: int) -> str:
    if type(value) is bool or type(value) in _WHOLE:
        return f"{int(value):b}"
    raise _refused("only integers and bools can be formatted as binary", value)


def _octal(_env: CelEnv, value: Any, _places: int) -> str:
    if type(value) in _WHOLE:
        return f"{value:o}"
    raise _refused("octal clause can only be used on integers", value)


def _hex(_env: CelEnv, value: Any, _places: int) -> str:
    if type(value) in _WHOLE:
        return f"{value:x}"
    if isinstance(value, str):
        return value.encode("utf-8", "replace").hex()
    if isinstance(value, bytes):
        return value.hex()
    raise _refused("only integers, byte buffers, and strings can be formatted as hex", value)


_CLAUSES: Final[dict[str, Callable[[CelEnv, Any, int], str]]] = {
    "s": lambda env, value, _: text_of(env, value),
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "o": _octal,
    "x": _hex,
    "X": lambda env, value, places: _hex(env, value, places).upper(),
}
