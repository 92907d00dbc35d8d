"""`x-kubernetes-validations` of CRDs: CEL rules over the value at their place.

Transition rules (with `oldSelf`) hold only between two objects, which validation here does not see: they are passed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.errors import Cause, invalid_field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kpolicy_sandbox.expressions import Expressions

_PASSED_OVER = "rules of the schema (x-kubernetes-validations) are not evaluated: the sandbox was started without `--expressions`"


def rule_causes(
    expressions: Expressions, rules: list[dict[str, Any]], value: Any, path: str
) -> Iterator[Cause]:
    """Yield one cause per rule that does not hold."""
    for rule in rules:
        try:
            program = expressions.compile(rule["rule"])
            if "oldSelf" in program.names or program({"self": value}) is True:
                continue
        except ValueError as error:
            yield _cause(path, f"{rule['rule']}: {error}")
            continue
        yield _cause(path, rule.get("message") or f"failed rule: {rule['rule']}")


def passed_over(warnings: list[str], *_: Any) -> Iterator[Cause]:
    """Yield nothing, and warn once that no rule is evaluated."""
    if _PASSED_OVER not in warnings:
        warnings.append(_PASSED_OVER)
    return iter(())


def _cause(path: str, why: str) -> Cause:
    return invalid_field(path or "<nil>", {}, why)
