"""What can go wrong with an expression, as its own exceptions.

Apart from the general errors because callers treat them differently: a syntax error is a fault of the policy and is
found when it is loaded, an unknown key is often just an optional field.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from engine.errors import EngineError, EvaluationError
from engine.lang.chance import Chance

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.lang.imagetext import RegistryDefaults


class ExpressionError(EngineError):
    """Text that is not an expression, or one nested deeper than is evaluated."""


class UnknownKeyError(EvaluationError):
    """A key that an object does not have, where the expression does not turn this into null (row V-20)."""

    def __init__(self, key: str) -> None:
        super().__init__(f'Unknown key "{key}" in path')


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
