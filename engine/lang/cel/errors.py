"""Errors that reading and evaluating CEL end with, and the places that they name.

Texts follow the Go implementation, because policies show them to people and tests compare them.
"""

from __future__ import annotations

from typing import Any, Final

from engine.errors import NOWHERE, EngineError, EvaluationError, Location
from engine.lang import gotext

from .values import Duration, Timestamp, Uint, type_name

_BEFORE = 60
"""Characters of a line shown before the place of an error, and after it."""


class CelSyntaxError(EngineError):
    """Text that is no expression; `position` counts characters from 0, `line` and `column` from 1."""

    def __init__(self, message: str, source: str = "", position: int = 0) -> None:
        self.position = position
        self.line, self.column = place(source, position)
        super().__init__(message, at=Location(line=self.line))


def shown(value: Any) -> str:
    """Return a value as Go's `%v` writes it in texts of errors; of lists, maps and the like the type."""
    is_plain = value is None or isinstance(value, str | int | float)
    return gotext.plain(value) if is_plain else type_name(value)


class CelError(EvaluationError):
    """An expression that failed on its input.

    `position` is the character of the expression that failed (-1 while unknown), `path` the data it read there
    (`object.spec.x`), as far as it can be named.
    """

    def __init__(self, message: str, position: int = -1, path: str = "") -> None:
        self.position = position
        self.path = path
        super().__init__(message, at=Location(path=path) if path else NOWHERE)


class BudgetError(CelError):
    """The cost budget is used up; no logical operator absorbs this."""


def place(source: str, position: int) -> tuple[int, int]:
    """Return line and column, both from 1, of a character of a text."""
    before = source[: max(position, 0)]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def pointed(source: str, position: int) -> str:
    """Return the line of a character with a mark below it, for people; nothing where the position is unknown."""
    if not 0 <= position <= len(source):
        return ""
    line, column = place(source, position)
    start = max(0, column - 1 - _BEFORE)
    shown = source.split("\n")[line - 1][start : start + 2 * _BEFORE]
    blank = "".join("\t" if char == "\t" else " " for char in shown[: column - 1 - start])
    return f"  {shown}\n  {blank}^"


def no_overload(name: str, position: int = -1) -> CelError:
    """Make the error of an operator or function that does not take these types."""
    return CelError(f"no such overload: {name}" if name else "no such overload", position)


_WHOLE: Final = frozenset((int, Uint))
_NUMBERS: Final = frozenset((*_WHOLE, float))
_TIMES: Final = frozenset((Timestamp, Duration))
_SIGNED: Final = frozenset((bool, int, float, Duration))
_RECEIVERS: Final = frozenset((str, *_TIMES))
"""Types that take every call themselves, to refuse those they do not know without a name."""

_TAKEN: Final[dict[str, frozenset[type]]] = {
    "_+_": frozenset((*_NUMBERS, *_TIMES, str, bytes, list)),
    "_-_": frozenset((*_NUMBERS, *_TIMES)),
    "_*_": _NUMBERS,
    "_/_": _NUMBERS,
    "_%_": _WHOLE,
    "-_": _SIGNED,
    "!_": _SIGNED,
    "size": frozenset((str, bytes, list, dict)),
    "matches": frozenset((str,)),
    **dict.fromkeys(
        ("_<_", "_<=_", "_>_", "_>=_"), frozenset((*_NUMBERS, *_TIMES, bool, str, bytes))
    ),
}
"""Operators and functions that the type of the first operand alone decides on, and those types."""


def no_operator(name: str, first: Any, position: int = -1) -> CelError:
    """Make the error of an operator: with its name only where the type of its first operand has no such operator at all."""
    kind = type(first)
    return no_overload("" if kind in _TAKEN[name] or kind in _RECEIVERS else name, position)
