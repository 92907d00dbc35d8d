"""The errors of expressions: what cannot be compiled, and what fails while it is evaluated.

Apart from everything else because every module here raises them. Texts follow the Go implementation, because policies
show them to people and tests compare them.
"""

from __future__ import annotations

from engine.errors import NOWHERE, EngineError, EvaluationError, Location

_BEFORE = 60
"""Characters of a line shown before the place of an error, and after it."""


class CelSyntaxError(EngineError):
    """Text that is no expression; `position` counts characters from 0, `line` and `column` from 1."""

    def __init__(self, message: str, source: str = "", position: int = 0) -> None:
        self.position = position
        self.line, self.column = place(source, position)
        super().__init__(message, at=Location(line=self.line))


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
    return CelError(f"no such overload: {name}", position)
