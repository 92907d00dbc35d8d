"""What an evaluation may know and spend beyond its bindings, and the errors that it ends with.

The engine has no clock and no network. Whoever evaluates brings instant, chance, answers and a cost budget in, so that an
evaluation can be replayed. Texts of errors follow the Go implementation, because policies show them to people and tests
compare them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from engine.errors import NOWHERE, EngineError, EvaluationError, Location
from engine.lang import gotext
from engine.lang.chance import Chance

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


DEFAULT_BUDGET: Final = 10_000_000
"""Nodes and list elements one evaluation may visit; about what the API server allows one policy."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _nobody(lookup: object) -> Any:
    raise CelError(f"{type(lookup).__name__} cannot be answered here")


class CelEnv:
    """Inputs of evaluations; one may serve many programs, which then share its budget.

    `now` is an aware instant. `ask` answers the lookups of `engine.lang.cel.lookups`; whatever it raises passes
    through unabsorbed, except EvaluationError, which becomes an error of the expression. `cost_budget` counts down, `seed` is what
    chance comes from.
    """

    __slots__ = ("_chance", "_seed", "ask", "budget", "now")

    def __init__(
        self,
        now: datetime = _EPOCH,
        cost_budget: int = DEFAULT_BUDGET,
        ask: Callable[[Any], Any] = _nobody,
        seed: bytes | Callable[[], bytes] = b"",
    ) -> None:
        self.now = now
        self.budget = cost_budget
        self.ask = ask
        self._seed = seed
        self._chance: Chance | None = None

    @property
    def chance(self) -> Chance:
        """The stream that all expressions draw from; made with the first of them that does."""
        if self._chance is None:
            self._chance = Chance(self._seed)
        return self._chance

    def charge(self, cost: int) -> None:
        """Take `cost` from the budget. Raises BudgetError when it is used up."""
        self.budget -= cost
        if self.budget < 0:
            raise BudgetError("operation cancelled: actual cost limit exceeded")
