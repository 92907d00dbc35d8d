"""The kinds of values that expressions know beside decoded JSON, and the questions asked about any value.

Upstream evaluates Go values, whose types show: a Go int is no JMESPath number and the list made by `items` is no ordinary
array (row V-21). Both are subclasses here, and every question is asked of the exact class, so that they answer as they do
there. A missing key travels as a `Missing` value instead of an exception, because most places turn it into null.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from engine.errors import EvaluationError, LimitError
from engine.lang.chance import Chance
from engine.lang.gotext import as_float
from engine.lang.work import charge

if TYPE_CHECKING:
    from engine.lang.imagetext import RegistryDefaults
    from engine.model import Json

EXACT_INTEGERS: Final = 2**53
MAX_TEXT: Final = 8 << 20
"""Longest text an expression may build, in characters."""


_LONG: Final = 128
"""Elements from which on a list is worth counting as work, too."""
_STEP_COST: Final = 400

MAX_LEVELS: Final = 300
"""Deepest value an expression may write or hand out; documents have at most 200 levels."""


# What an expression may know beyond its data: the instant, a stream of chance, and host names as lookups.
#
# The engine has no clock and no network; whoever evaluates passes these in, so an evaluation can be replayed.

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _no_lookup(host: str) -> bool:
    raise EvaluationError(f"host name `{host}` cannot be looked up here")


class Env:
    """Inputs of one evaluation.

    `now` is an aware UTC instant; `is_external_host` answers whether a host name resolves to a public address; `registry` is
    what images without one mean (None: Docker Hub); `budget` counts down one per visited node and list element, and the evaluation stops with LimitError below zero.
    """

    __slots__ = ("budget", "chance", "is_external_host", "now", "registry")

    def __init__(
        self,
        now: datetime = _EPOCH,
        chance: Chance | None = None,
        is_external_host: Callable[[str], bool] = _no_lookup,
        budget: int = 10_000_000,
        registry: RegistryDefaults | None = None,
    ) -> None:
        self.now = now
        self.chance = chance or Chance()
        self.is_external_host = is_external_host
        self.budget = budget
        self.registry = registry


Run = Callable[["Json", Env], "Json"]
"""A compiled expression: value and inputs in, value or `Missing` out."""


class GoInt(int):
    """An integer that is not a JMESPath number: the result of `compare`, and `elementIndex` (row V-21)."""

    __slots__ = ()


class ItemList(list["Json"]):
    """The result of `items`: can be indexed, sliced and projected, but is not an array to most functions (row V-21)."""

    __slots__ = ()


class ExpRef(dict[str, "Json"]):
    """`&expression`: an expression as an argument. Elsewhere it shows as an empty object, as upstream prints it."""

    __slots__ = ("run",)

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run


class Missing:
    """The value of a key that an object does not have. Never leaves a `Query`."""

    __slots__ = ("key",)

    def __init__(self, key: str) -> None:
        self.key = key


def is_false(value: Json) -> bool:
    """Return whether JMESPath counts `value` as false: null, false and what is empty; no number is."""
    if value is None or value is False:
        return True
    kind = value.__class__
    if kind is str or kind is dict or kind is list or kind is ItemList:
        return not value
    return False


def is_number(value: Json) -> bool:
    """Return whether `value` is a number to JMESPath: neither a boolean nor a `GoInt`."""
    kind = value.__class__
    return kind is int or kind is float


def number(value: float) -> float:
    """Return a computed number: an int where it is whole and exact, so that it is written as an integer."""
    if (
        value.is_integer()
        and -EXACT_INTEGERS < value < EXACT_INTEGERS
        and (value or str(value) == "0.0")
    ):
        return int(value)
    return value


def held(value: Json) -> Json:
    """Return a document with its numbers as upstream holds them: 64-bit floats, here ints where whole and exact."""
    kind = value.__class__
    if kind is int:
        return value if -EXACT_INTEGERS <= value <= EXACT_INTEGERS else as_float(value)
    if kind is float:
        return number(value)
    if kind is list or kind is ItemList:
        return [held(element) for element in value]
    if kind is dict:
        return {key: held(member) for key, member in value.items()}
    return value


def spend(env: Env, cost: int) -> None:
    """Count `cost` against the evaluation's budget. Raise LimitError when it is used up."""
    env.budget -= cost
    if env.budget < 0:
        raise spent()
    if cost > _LONG:
        charge(cost * _STEP_COST)


def spent() -> LimitError:
    """Return the error of an evaluation whose budget is used up."""
    return LimitError("the expression takes too many steps")


def check_length(length: int) -> None:
    """Raise LimitError when a text of `length` characters is more than an expression may build."""
    if length > MAX_TEXT:
        raise LimitError(f"the expression builds a text of more than {MAX_TEXT} characters")


def spend_size(value: Json, env: Env) -> None:
    """Count every node of `value` against the budget: asked before it is written out or handed out.

    A result may hold the same list many times over, so its written form can be exponentially larger than what was
    computed, and deeper than what writers bear. Raises LimitError.
    """
    level = [value]
    for _ in range(MAX_LEVELS):
        charge(len(level) * 1_500)
        below: list[Json] = []
        for current in level:
            kind = current.__class__
            if kind is dict:
                spend(env, len(current) + 1)
                below.extend(current.values())
            elif kind is list or kind is ItemList:
                spend(env, len(current) + 1)
                below.extend(current)
            elif kind is str:
                spend(env, 1 + (len(current) >> 6))
        if not below:
            return
        level = below
    raise LimitError(f"the expression makes a value of more than {MAX_LEVELS} levels")


def equal(left: Json, right: Json, env: Env) -> bool:
    """Compare as upstream does: by value and by Go type, numbers as 64-bit floats."""
    kind = left.__class__
    if kind is str or kind is bool or left is None:
        return right.__class__ is kind and bool(left == right)
    if kind is int or kind is float:
        return is_number(right) and as_float(left) == as_float(right)
    if right.__class__ is not kind:
        return False
    if left is right:
        return True
    if kind is dict:
        spend(env, len(left) + 1)
        return len(left) == len(right) and all(
            key in right and equal(value, right[key], env) for key, value in left.items()
        )
    if kind is list or kind is ItemList:
        spend(env, len(left) + 1)
        return len(left) == len(right) and all(
            equal(one, other, env) for one, other in zip(left, right, strict=True)
        )
    return kind is GoInt and bool(left == right)
