"""DeletingPolicies: what an object must be to go, and what keeps it (rows DP-02, DP-03, CX-06, CC-13)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.cleanup.plan import Plan, plan
from engine.cleanup.timed import read_timed
from engine.errors import PolicyError
from engine.evaluate import Answer, Inputs, PolicySet, evaluate
from engine.evaluate.asking import conclude
from engine.evaluate.cel.exceptions import compile_cel_exception
from engine.model import Review, review_of
from engine.parse.celpolicies import parse_cel_exception, parse_cel_policy

NOW = datetime(2026, 11, 21, 10, 18, 30, tzinfo=UTC)
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}


def deleting(*conditions: str, ns: str = "", rules: Any = (PODS,), **fields: Any) -> dict[str, Any]:
    metadata = {"name": "tidy", "creationTimestamp": "2026-11-21T09:30:00Z"}
    constraints = {"resourceRules": list(rules), **fields.pop("constraints", {})}
    named = [{"name": f"c{n}", "expression": one} for n, one in enumerate(conditions)]
    status = fields.pop("status", {})
    return {
        "apiVersion": "policies.kyverno.io/v1beta1",
        "kind": "NamespacedDeletingPolicy" if ns else "DeletingPolicy",
        "metadata": {**metadata, **({"namespace": ns} if ns else {})},
        "spec": {"schedule": "0 * * * *", "matchConstraints": constraints, "conditions": named, **fields},
        "status": status,
    }  # fmt: skip


def excepting(condition: str = "", kind: str = "DeletingPolicy", **spec: Any) -> Any:
    conditions = [{"name": "c", "expression": condition}] if condition else []
    document = {
        "apiVersion": "policies.kyverno.io/v1beta1", "kind": "PolicyException",
        "metadata": {"name": "keep", "namespace": "ops"},
        "spec": {"policyRefs": [{"name": "tidy", "kind": kind}], "matchConditions": conditions, **spec},
    }  # fmt: skip
    return parse_cel_exception(document)


def pod(name: str = "a", namespace: str = "dev", **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace, **metadata}}  # fmt: skip


def resolve(lookups: Any) -> dict[Any, Answer]:
    labels = {"env": "test"}
    return {one: Answer.found({"metadata": {"name": one.name, "labels": labels}}) for one in lookups}  # fmt: skip


def planned(document: Any, *objects: Any, exceptions: Any = (), **how: Any) -> Plan:
    compiled = [compile_cel_exception(one) for one in exceptions]
    return conclude(plan(read_timed(document, compiled), objects, Inputs(now=NOW), **how), resolve)


def answers(document: Any, review: Review, *exceptions: Any) -> list[tuple[str, str, str]]:
    policies = PolicySet.compile([parse_cel_policy(document)], exceptions)
    assert not policies.problems
    found = evaluate(policies, review, Inputs(now=NOW))
    return [(one.rule, str(one.status), one.message) for one in found.results]


def test_what_is_selected_and_meets_all_conditions_goes() -> None:
    document = deleting("object.metadata.name == 'a'", "has(object.metadata.labels)")
    found = planned(document, pod(labels={}), pod("a"), pod("b", labels={}))
    assert [one.goes for one in found.decisions] == [True, False, False]
    assert found.decisions[1].reason == "condition `c1` does not hold"
    assert found.run_at == datetime(2026, 11, 21, 10, 0, tzinfo=UTC)


def test_the_last_run_counts_and_how_dependents_go_is_passed_on() -> None:
    document = deleting(status={"lastExecutionTime": "2026-11-21T10:00:05Z"}, deletionPropagationPolicy="Orphan")  # fmt: skip
    found = planned(document, pod())
    assert found.run_at == datetime(2026, 11, 21, 11, 0, tzinfo=UTC)
    assert (found.propagation, len(found.deletions)) == ("Orphan", 1)


@pytest.mark.parametrize(
    ("rule", "selected"),
    [
        (PODS, True),
        ({**PODS, "operations": ["UPDATE"]}, True),
        ({**PODS, "resourceNames": ["b"]}, False),
        ({**PODS, "apiVersions": ["v2"]}, False),
        ({**PODS, "scope": "Cluster"}, False),
    ],
)
def test_rules_select_whatever_operations_they_name(rule, selected) -> None:
    assert bool(planned(deleting(rules=[rule]), pod()).decisions) is selected


def test_selectors_exclusions_and_no_rules_keep_an_object_out() -> None:
    labelled = {"objectSelector": {"matchLabels": {"a": "b"}}}
    assert not planned(deleting(constraints=labelled), pod()).decisions
    assert planned(deleting(constraints=labelled), pod(labels={"a": "b"})).deletions
    excluded = {"excludeResourceRules": [{**PODS, "operations": ["CREATE"], "resourceNames": ["a"]}]}  # fmt: skip
    assert not planned(deleting(constraints=excluded), pod()).decisions
    assert not planned(deleting(rules=[]), pod()).decisions


def test_a_kind_is_known_by_what_the_server_calls_it() -> None:
    rule = {"apiGroups": ["x.io"], "apiVersions": ["v1"], "resources": ["oxen"]}
    ox = {"apiVersion": "x.io/v1", "kind": "Ox", "metadata": {"name": "a", "namespace": "dev"}}
    assert planned(deleting(rules=[rule]), ox, resource="oxen").deletions
    assert not planned(deleting(rules=[rule]), ox, resource="oxes").decisions


def test_namespaces_are_looked_up_and_a_namespace_is_its_own() -> None:
    condition = "namespaceObject.metadata.labels.env == 'test'"
    assert planned(deleting(condition), pod()).deletions
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["namespaces"]}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x", "labels": {"env": "test"}}}  # fmt: skip
    assert planned(deleting(condition, rules=[rule]), space).deletions


def test_variables_and_libraries_are_there_and_the_request_is_not() -> None:
    variables = [{"name": "n", "expression": "object.metadata.name"}, {"name": "m", "expression": "variables.n + 'x'"}]  # fmt: skip
    assert planned(deleting("variables.m == 'ax'", variables=variables), pod()).deletions
    for unbound in ("request.operation == 'CREATE'", "oldObject == null", "exceptions.allowedValues.size() == 0"):  # fmt: skip
        [decision] = planned(deleting(unbound), pod()).decisions
        assert (decision.goes, decision.error is None) == (False, False), unbound


@pytest.mark.parametrize(
    ("exception", "kept"),
    [
        (excepting(), True),
        (excepting("object.metadata.name == 'a'"), True),
        (excepting("object.metadata.name == 'b'"), False),
        (excepting("variables.n == 'a'"), True),
        (excepting(images=["x"], allowedValues=["y"]), True),
        (excepting(reportResult="pass"), True),
        (excepting(expiresAt="2026-11-21T10:00:00Z"), False),
        (excepting(expiresAt="2026-11-21T11:00:00Z"), True),
        (excepting(kind="NamespacedDeletingPolicy"), False),
    ],
)
def test_any_exception_that_matches_protects_the_object_until_it_ends(exception, kept) -> None:
    document = deleting(variables=[{"name": "n", "expression": "object.metadata.name"}])
    [decision] = planned(document, pod(), exceptions=[exception]).decisions
    assert decision.goes is not kept
    if kept:
        assert decision.reason == "protected by exception `ops/keep`"
    assert answers(document, review_of(pod()), exception)[0][1] == ("fail" if kept else "pass")


@pytest.mark.parametrize("broken", ["object.spec.x == 1", "1 / 0 == 1"])
def test_what_cannot_be_evaluated_keeps_the_object_and_says_why(broken) -> None:
    [decision] = planned(deleting(broken), pod()).decisions
    assert (decision.goes, decision.error is None) == (False, False)
    [decision] = planned(deleting(), pod(), exceptions=[excepting(broken)]).decisions
    assert (decision.goes, decision.error is None) == (False, False)
    [(rule, status, message)] = answers(deleting(broken), review_of(pod()))
    assert (rule, status) == ("tidy", "error")
    assert message


def test_a_policy_of_a_namespace_stays_in_it_and_away_from_what_decides() -> None:
    document = deleting(ns="dev")
    assert len(planned(document, pod(), pod(namespace="ops")).deletions) == 1
    rule = {"apiGroups": ["kyverno.io"], "apiVersions": ["v2"], "resources": ["policyexceptions"]}
    exception = {"apiVersion": "kyverno.io/v2", "kind": "PolicyException", "metadata": {"name": "e", "namespace": "dev"}}  # fmt: skip
    assert not planned(deleting(ns="dev", rules=[rule]), exception).decisions
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["namespaces"]}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "dev"}}
    assert not planned(deleting(ns="dev", rules=[rule]), space).decisions


def test_what_guards_people_is_out_of_reach() -> None:
    rule = {"apiGroups": ["kpolicy.io"], "apiVersions": ["v1alpha1"], "resources": ["grants"]}
    grant = {"apiVersion": "kpolicy.io/v1alpha1", "kind": "Grant", "metadata": {"name": "g", "namespace": "dev"}}  # fmt: skip
    [decision] = planned(deleting(rules=[rule]), grant).decisions
    assert not decision.goes
    assert "no policy may clean up" in decision.reason


def test_documents_of_any_form_are_judged_by_their_conditions_alone() -> None:
    document = deleting("object.size > 3")
    for size, said in ((4, ("tidy", "pass", "json matched")), (2, ("tidy", "fail", "json did not match"))):  # fmt: skip
        assert answers(document, Review(object={"size": size}, operation="", payload="JSON")) == [said]  # fmt: skip
    other = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "size": 4}
    assert answers(document, Review(object=other, operation="", payload="JSON")) == []


def test_the_answers_about_objects_are_upstreams() -> None:
    document = deleting("object.metadata.name == 'a'")
    assert answers(document, review_of(pod())) == [("tidy", "pass", "resource matched")]
    assert answers(document, review_of(pod("b"))) == [("tidy", "fail", "resource did not match")]


@pytest.mark.parametrize("fields", [{"schedule": "x"}, {"schedule": ""}])
def test_an_unreadable_schedule_is_refused(fields) -> None:
    with pytest.raises(PolicyError):
        read_timed(deleting(**fields))
    with pytest.raises(PolicyError):
        read_timed(deleting("object."))
