"""One trial: evaluate an input under a budget, and say what must not have happened."""

from __future__ import annotations

from typing import Any

from engine.errors import EngineError, EvaluationError
from engine.lang import cel

BUDGETS = (200, 5_000, 1_000_000)


def answer(lookup: Any) -> Any:
    """Answer lookups: access checks with a decision, some with a refusal, others with data."""
    if isinstance(lookup, cel.lookups.GlobalContext):
        raise EvaluationError("no such entry")
    return {"allowed": True, "items": [{"a": 1}], "a": None}


def outcome(expression: str, bindings: dict[str, Any]) -> str:
    """Return `value`, `error`, `budget` or `syntax`; the length chooses the budget. Whatever else is raised, or an error that only hides one, is a finding."""
    try:
        program = cel.compile(expression)
    except cel.CelSyntaxError:
        return "syntax"
    env = cel.CelEnv(cost_budget=BUDGETS[len(expression) % 3], ask=answer)
    try:
        program(bindings, env)
    except cel.BudgetError:
        return "budget"
    except EngineError as error:
        if "internal error" in error.message:
            raise AssertionError(error.message) from error
        return "error"
    assert env.budget >= 0, "ran past its budget"
    return "value"
