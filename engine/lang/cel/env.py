"""What an evaluation may know and spend beyond its bindings.

The engine has no clock and no network. Whoever evaluates brings instant, chance, answers and a cost budget in, so that an
evaluation can be replayed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from engine.lang.chance import Chance

from .errors import BudgetError, CelError

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
