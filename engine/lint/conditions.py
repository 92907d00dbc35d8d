"""Conditions whose operator, key or value cannot work (rows A-60, A-61, A-99)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lang.operators import OPERATORS

from .findings import Finding, error, sentence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.model import Json

DEPRECATED = {"In": "AnyIn or AllIn", "NotIn": "AnyNotIn or AllNotIn"}
"""Operators that policies should not use any more, and what they should use."""

_REQUESTED = ("CREATE", "UPDATE", "DELETE", "CONNECT")
_MISSING = "entered value of `key`, `value` or `operator` is missing or misspelled"


def check_conditions(
    conditions: Json, path: str, *, allowed: Sequence[str] = OPERATORS
) -> Iterator[Finding]:
    """Yield what is wrong with an any/all block or a flat list; `allowed` are the operators of the API version."""
    if isinstance(conditions, list):
        yield from _check_list(conditions, path, allowed)
    elif isinstance(conditions, dict):
        for name, listed in conditions.items():
            if name not in ("any", "all"):
                yield error(f"{path}.{name}", "conditions are written in `any` or `all`")
            elif isinstance(listed, list):
                yield from _check_list(listed, f"{path}.{name}", allowed)


def _check_list(listed: list[Json], path: str, allowed: Sequence[str]) -> Iterator[Finding]:
    for index, condition in enumerate(listed):
        at = f"{path}[{index}]"
        given = condition if isinstance(condition, dict) else {}
        operator = given.get("operator")
        if not operator or given.get("key") is None or given.get("value") is None:
            yield error(at, _MISSING)
        elif operator not in allowed:
            choices = " ".join(allowed)
            yield error(at, f"entered value of `operator` is invalid. valid values: [{choices}]")
        elif instead := DEPRECATED.get(operator):
            text = f"Operator {operator} has been deprecated and will be removed soon. Use {instead} instead."
            yield sentence(f"{at}.operator", text)
        yield from _check_operations(given.get("key"), given.get("value"), at)


def _check_operations(key: Json, value: Json, at: str) -> Iterator[Finding]:
    """Find what the operation of a request is compared with and never is."""
    if not isinstance(key, str) or key.replace(" ", "") != "{{request.operation}}":
        return
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str) and "{{" not in one and one not in _REQUESTED:
            yield error(
                f"{at}.value",
                f"unknown value '{one}' found under the 'value' field. Only the following values are allowed:"
                f" [{', '.join(_REQUESTED)}]",
            )
