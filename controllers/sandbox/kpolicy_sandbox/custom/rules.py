"""`x-kubernetes-validations` of CRDs: CEL rules over the value at their place.

Transition rules (with `oldSelf`) hold only between two objects, which validation here does not see: they are passed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.errors import invalid_field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kpolicy_sandbox.errors import Cause


def rule_causes(rules: list[dict[str, Any]], value: Any, path: str) -> Iterator[Cause]:
    """Yield one cause per rule that does not hold."""
    from engine.errors import EngineError
    from engine.lang.cel import compile as compiled

    for rule in rules:
        try:
            program = compiled(rule["rule"])
            if "oldSelf" in program.names or program({"self": value}) is True:
                continue
        except EngineError as error:
            yield _cause(path, f"{rule['rule']}: {error}")
            continue
        yield _cause(path, rule.get("message") or f"failed rule: {rule['rule']}")


def _cause(path: str, why: str) -> Cause:
    return invalid_field(path or "<nil>", {}, why)
