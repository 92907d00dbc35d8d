"""Why policies decide as they do: the same reasons as lines and as a tree, with what rules have to know looked up."""

from __future__ import annotations

import asyncio
from typing import Any

from engine.evaluate import Answer
from kubectl_kpolicy.cluster.explaining import explained_by_engine
from kubectl_kpolicy.output.explanation import Reason, lines
from tests.plugin.scene import NOW, world

POLICY: dict[str, Any] = {
    "apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "owners"},
    "spec": {"rules": [{
        "name": "named",
        "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]},
        "context": [{"name": "known", "configMap": {"name": "teams", "namespace": "ops"}}],
        "validate": {"message": "not {{ known.data.team }}", "deny": {"conditions": {"all": [{"key": "{{ known.data.team }}", "operator": "NotEquals", "value": "{{ request.object.data.team }}"}]}}},
    }]},
}  # fmt: skip


def explained(team: str) -> tuple[list[Reason], list[Any]]:
    asked: list[Any] = []

    async def resolve(lookups: Any) -> dict[Any, Answer]:
        asked.extend(lookups)
        return {one: Answer.found({"data": {"team": "blue"}}) for one in lookups}

    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}, "data": {"team": team}}  # fmt: skip
    there = world({"clusterpolicies": [POLICY]})
    return asyncio.run(explained_by_engine(there, obj, NOW, resolve)), asked


def test_a_rule_that_has_to_look_something_up_is_explained_with_what_was_found() -> None:
    [reason], asked = explained("red")
    assert (reason.text, reason.state, len(asked)) == ("owners", "fail", 1)
    told = "\n".join(lines(reason.parts))
    assert "not blue" in told
    assert "variable" in told
    [reason], _ = explained("blue")
    assert reason.state == "pass"


def test_a_tree_and_lines_hold_the_same_steps() -> None:
    [reason], _ = explained("red")
    [rule] = reason.parts
    told = list(lines([rule]))
    assert told[0] == "  owners / named"
    assert len(told) == 1 + len(rule.parts)
    assert [line.split()[-1] for line in told if "=>" in line] == ["blue"]


def cel_policy(kind: str, **spec: Any) -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}  # fmt: skip
    return {"apiVersion": "policies.kyverno.io/v1", "kind": kind, "metadata": {"name": kind.lower()}, "spec": {"matchConstraints": {"resourceRules": [rule]}, **spec}}  # fmt: skip


def test_policies_in_cel_are_explained_too_with_their_exceptions_and_timers_are_not() -> None:
    async def resolve(lookups: Any) -> dict[Any, Answer]:
        return {one: Answer.found(None) for one in lookups}

    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}}
    validating = cel_policy("ValidatingPolicy", validations=[{"expression": "has(object.data)", "message": "no data"}])  # fmt: skip
    exception = {"apiVersion": "policies.kyverno.io/v1", "kind": "PolicyException", "metadata": {"name": "e", "namespace": "shop"}, "spec": {"policyRefs": [{"name": "validatingpolicy", "kind": "ValidatingPolicy"}]}}  # fmt: skip
    deleting = cel_policy("DeletingPolicy", schedule="* * * * *")
    there = {"celpolicies": [validating, deleting]}
    [reason] = asyncio.run(explained_by_engine(world(there), obj, NOW, resolve))
    assert (reason.text, reason.state) == ("vpol:validatingpolicy", "fail")
    assert "no data" in "\n".join(lines(reason.parts))
    excepted = world(there | {"celexceptions": [exception]})
    [reason] = asyncio.run(explained_by_engine(excepted, obj, NOW, resolve))
    assert reason.state == "skip"


def test_a_code_that_stays_in_an_object_is_in_no_reason_why() -> None:
    code = "7GQ2-K9XD-PM4T-WZ81-VN30"

    async def resolve(lookups: Any) -> dict[Any, Answer]:
        return {one: Answer.found(None) for one in lookups}

    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}}
    obj["metadata"] |= {"annotations": {"kpolicy.io/code": f"{code},x"}}
    seen = "object.metadata.annotations['kpolicy.io/code']"
    rule = {"expression": "false", "messageExpression": "'brought ' + variables.seen"}
    given = {"variables": [{"name": "seen", "expression": seen}], "validations": [rule]}
    made = cel_policy("ValidatingPolicy", **given)
    reasons = asyncio.run(explained_by_engine(world({"celpolicies": [made]}), obj, NOW, resolve))
    told = "\n".join(lines(reasons[0].parts))
    assert "brought (hidden),x" in told
    assert code not in str(reasons)
