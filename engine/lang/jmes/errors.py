"""What can go wrong with an expression, as its own exceptions.

Apart from the general errors because callers treat them differently: a syntax error is a fault of the policy and is
found when it is loaded, an unknown key is often just an optional field.
"""

from __future__ import annotations

from engine.errors import EngineError, EvaluationError


class ExpressionError(EngineError):
    """Text that is not an expression, or one nested deeper than is evaluated."""


class UnknownKeyError(EvaluationError):
    """A key that an object does not have, where the expression does not turn this into null (row V-20)."""

    def __init__(self, key: str) -> None:
        super().__init__(f'Unknown key "{key}" in path')
