"""Native policies from ValidatingPolicies and MutatingPolicies: nearly the same words (rows NG-06, NG-10)."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from engine.evaluate.cel.autogen import variants
from engine.evaluate.cel.exceptions import CompiledCelException, naming
from engine.model.kinds import KUBERNETES, is_enabled, mode_of, rules_of
from engine.reach import OWN_GROUP, POLICY_GROUPS

from . import objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from engine.model import Block, Json, Policy


_LENT: Final = re.compile(r"\bexceptions\.(allowedImages|allowedValues)\b")
_ANY: Final = "*"


def translated_validating(
    policy: Policy, exceptions: Sequence[CompiledCelException], now: datetime
) -> objects.Documents:
    """Return the ValidatingAdmissionPolicy of a ValidatingPolicy; raises NotNative."""
    spec = policy.raw["spec"]
    _check(policy, objects.VALIDATING)
    found = _counting(policy, exceptions, now, objects.VALIDATING)
    conditions = [*(spec.get("matchConditions") or ()), *_negated(found, spec)]
    variables = [*(spec.get("variables") or ()), *_lists(found, spec)]
    made: dict[str, Any] = {
        "failurePolicy": policy.failure_policy,
        "matchConstraints": objects.constraints(spec.get("matchConstraints") or {}),
        "validations": spec.get("validations") or [],
        "variables": variables,
        "matchConditions": conditions,
        "auditAnnotations": spec.get("auditAnnotations"),
    }
    actions = list(spec.get("validationActions") or ("Deny",))
    said = _reworded(objects.given(made, made))
    return objects.documents(policy, said, {"validationActions": actions})


def translated_mutating(
    policy: Policy, exceptions: Sequence[CompiledCelException], now: datetime
) -> objects.Documents:
    """Return the MutatingAdmissionPolicy of a MutatingPolicy; raises NotNative."""
    spec = policy.raw["spec"]
    _check(policy, objects.MUTATING)
    no = partial(objects.skipped, objects.MUTATING)
    if (spec.get("evaluation") or {}).get("useServerSideApply") is True:
        raise no(
            ": useServerSideApply is enabled, which mutates atomic fields that a native MutatingAdmissionPolicy rejects."
        )
    if is_enabled(spec, "mutateExisting"):
        raise no(": mutateExisting is enabled.")
    if _reaches_guarded(rules_of(spec)):
        raise no(": it could reach objects that no policy may change.")
    found = _counting(policy, exceptions, now, objects.MUTATING)
    if any(one.lends for one in found):
        raise no(": a policy exception with images or values is configured.")
    made: dict[str, Any] = {
        "failurePolicy": policy.failure_policy,
        "matchConstraints": objects.constraints(spec.get("matchConstraints") or {}),
        "matchConditions": [*_negated(found, spec), *(spec.get("matchConditions") or ())],
        "variables": spec.get("variables"),
        "mutations": spec.get("mutations"),
        "reinvocationPolicy": spec.get("reinvocationPolicy") or "Never",
    }
    return objects.documents(policy, objects.given(made, made), {})


def _check(policy: Policy, kind: str) -> None:
    """Refuse what no native policy of a kind can do."""
    spec = policy.raw["spec"]
    if not objects.asks_for_native(policy):
        raise objects.skipped(kind, ": not enabled.")
    if any(True for _ in variants(spec)):
        raise objects.skipped(kind, ": pod controllers autogen is enabled.")
    if not policy.admission:
        raise objects.skipped(kind, ": admission is disabled.")
    if mode_of(spec) != KUBERNETES:
        raise objects.skipped(kind, ": the evaluation mode is not Kubernetes.")


def _counting(
    policy: Policy, exceptions: Sequence[CompiledCelException], now: datetime, kind: str
) -> list[CompiledCelException]:
    """Return the exceptions that count.

    INVARIANT: one that ends is never written into a native policy, which has no clock: the policy stays with us until then.
    """
    found = [one for one in naming(exceptions, policy) if one.ends is None or one.ends > now]
    ends = [one.ends for one in found if one.ends is not None]
    if ends:
        raise objects.skipped(kind, ": a policy exception that ends is configured.", min(ends))
    return found


def _negated(exceptions: Iterable[CompiledCelException], spec: Block) -> list[dict[str, Json]]:
    """Return match conditions that leave out what exceptions except: all conditions of one together, as it says.

    Each condition is an expression by itself, or its exception would not have been compiled.
    """
    taken = {str(one.get("name")) for one in spec.get("matchConditions") or ()}
    made: list[dict[str, Json]] = []
    for one in exceptions:
        if one.lends:
            continue
        listed = one.exception.match_conditions
        name = str(listed[0].get("name") or "") if listed else one.exception.name
        if name in taken:
            name = f"{one.exception.namespace}.{one.exception.name}.{name}"
        taken.add(name)
        made.append({"name": name, "expression": f"!({_all(listed)})"})
    return made


def _all(conditions: Sequence[Block]) -> str:
    texts = [str(one.get("expression")) for one in conditions]
    if len(texts) == 1:
        return texts[0]
    return " && ".join(f"({text})" for text in texts) or "true"


def _lists(exceptions: Iterable[CompiledCelException], spec: Block) -> list[dict[str, Json]]:
    """Return the variables that stand for what exceptions lend; where expressions read them they are there, if empty."""
    lending = [one for one in exceptions if one.lends]
    if not lending and not _LENT.search(str(spec)):
        return []
    return [
        {"name": name, "expression": " + ".join(_lent(lending, field)) or "[]"}
        for name, field in (("allowedImages", "images"), ("allowedValues", "allowed_values"))
    ]


def _lent(lending: Iterable[CompiledCelException], field: str) -> Iterable[str]:
    for one in lending:
        words = getattr(one.exception, field)
        text = f"[{', '.join(map(_quoted, words))}]"
        listed = one.exception.match_conditions
        if words:
            yield f"(({_all(listed)}) ? {text} : [])" if listed else text


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def _reworded(value: Any) -> Any:
    """Return a spec in which expressions read variables where the policy reads its exceptions."""
    if isinstance(value, dict):
        return {key: _reworded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_reworded(one) for one in value]
    return _LENT.sub(r"variables.\1", value) if isinstance(value, str) else value


def _reaches_guarded(rules: Iterable[Block]) -> bool:
    """Tell whether rules bring what is out of reach: a native policy is not asked for each object, as our rules are."""
    guarded = {_ANY, OWN_GROUP, *POLICY_GROUPS}
    return any(guarded & set(rule.get("apiGroups") or (_ANY,)) for rule in rules)
