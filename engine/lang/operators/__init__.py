"""Condition operators of preconditions, deny rules and cleanup policies (rows A-95 to A-99)."""

from __future__ import annotations

import operator as compare
from typing import TYPE_CHECKING, Final, overload

from engine.errors import PolicyError

from . import comparisons, membership

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.model import Json

    Test = Callable[[Json], bool]
    Prepare = Callable[[Json], Test]


__all__ = ["OPERATORS", "compile_condition"]


# The table of operators by their exact names (row A-99), and how a condition is compiled.


_PREPARED: Final[dict[str, Prepare]] = {
    "Equal": comparisons.equals,
    "Equals": comparisons.equals,
    "NotEqual": comparisons.not_equals,
    "NotEquals": comparisons.not_equals,
    "In": membership.in_,
    "NotIn": membership.not_in,
    "AnyIn": membership.any_in,
    "AllIn": membership.all_in,
    "AnyNotIn": membership.any_not_in,
    "AllNotIn": membership.all_not_in,
    "GreaterThan": comparisons.number_test(compare.gt),
    "GreaterThanOrEquals": comparisons.number_test(compare.ge),
    "LessThan": comparisons.number_test(compare.lt),
    "LessThanOrEquals": comparisons.number_test(compare.le),
    "DurationGreaterThan": comparisons.duration_test(compare.gt),
    "DurationGreaterThanOrEquals": comparisons.duration_test(compare.ge),
    "DurationLessThan": comparisons.duration_test(compare.lt),
    "DurationLessThanOrEquals": comparisons.duration_test(compare.le),
}

OPERATORS: Final = tuple(_PREPARED)
"""Every operator, as policies have to spell it, in the order in which messages list them."""

_UNKNOWN: Final = object()


@overload
def compile_condition(operator: str) -> Callable[[Json, Json], bool]: ...
@overload
def compile_condition(operator: str, value: Json) -> Callable[[Json], bool]: ...
def compile_condition(operator: str, value: Json = _UNKNOWN) -> Callable[..., bool]:
    """Compile an operator into a test of key and value, or, with the value already known, of the key alone.

    The second form reads the value once and is the one to use for a literal. Raises PolicyError for an unknown operator.
    The tests raise EvaluationError where Kyverno panics (`In` and `NotIn` with a list that holds something other than
    text) and LimitError for values too deep to be compared.
    """
    prepare = _PREPARED.get(operator)
    if prepare is None:
        raise PolicyError(f"condition operator `{operator}` is not known")
    if value is not _UNKNOWN:
        return prepare(value)
    return lambda key, value: prepare(value)(key)
