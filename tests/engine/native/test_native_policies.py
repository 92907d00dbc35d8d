"""Which native policy stands for a policy, and when none can (rows NG-01 to NG-12)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from engine.evaluate.cel.exceptions import compile_cel_exception
from engine.exceptions import compile_exception
from engine.model.kinds import BY_NAME, loaded
from engine.native import NotNative, translated
from engine.parse import parse_exception
from engine.parse.celpolicies import parse_cel_exception

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.native import Documents

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
KINDS = {
    "Pod": [("", "v1", "pods"), ("", "v1", "pods/ephemeralcontainers")],
    "Deployment": [("apps", "v1", "deployments")],
    "StatefulSet": [("apps", "v1", "statefulsets")],
}
RULE = {
    "apiGroups": ["apps"],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["deployments"],
}
EXPRESSION = [{"expression": "object.spec.replicas < 4", "message": "too many"}]


def resolve(kind: str) -> Iterator[tuple[str, str, str]]:
    yield from KINDS.get(kind, ())


def native(policy: dict[str, Any], *exceptions: dict[str, Any]) -> Documents:
    parsed = loaded(BY_NAME[policy["kind"]].family.parser)(policy, strict=False)
    classic = [
        compile_exception(parse_exception(one))
        for one in exceptions
        if one["apiVersion"].startswith("kyverno.io")
    ]
    of_cel = [
        compile_cel_exception(parse_cel_exception(one))
        for one in exceptions
        if one["apiVersion"].startswith("policies")
    ]
    return translated(parsed, classic, of_cel, NOW, resolve)


def cpol(
    match: dict[str, Any], exclude: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    rule = {
        "name": "r",
        "match": match,
        **({"exclude": exclude} if exclude else {}),
        "validate": {"failureAction": "Enforce", "cel": {"generate": True, "expressions": EXPRESSION}},
    }  # fmt: skip
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "p", "uid": "u"},
        "spec": {"rules": [{**rule, **more}]},
    }


def resources(*kinds: str, **more: Any) -> dict[str, Any]:
    return {"resources": {**({"kinds": list(kinds)} if kinds else {}), **more}}


def of_cel(kind: str, **spec: Any) -> dict[str, Any]:
    switch = "mutatingAdmissionPolicy" if kind == "MutatingPolicy" else "validatingAdmissionPolicy"
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": kind,
        "metadata": {"name": "p", "uid": "u"},
        "spec": {
            "autogen": {switch: {"enabled": True}},
            "matchConstraints": {"resourceRules": [RULE]},
            **spec,
        },
    }


def vpol(**spec: Any) -> dict[str, Any]:
    return of_cel("ValidatingPolicy", **{"validations": EXPRESSION, **spec})


def mpol(**spec: Any) -> dict[str, Any]:
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}
    return of_cel("MutatingPolicy", **{"mutations": [mutation], **spec})


def polex(kind: str, *conditions: str, **spec: Any) -> dict[str, Any]:
    listed = [{"name": f"c{number}", "expression": one} for number, one in enumerate(conditions)]
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "PolicyException",
        "metadata": {"name": "e", "namespace": "n"},
        "spec": {"policyRefs": [{"name": "p", "kind": kind}], "matchConditions": listed, **spec},
    }


def exception(*entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {"name": "e", "namespace": "n", **more},
        "spec": {
            "exceptions": [{"policyName": "p", "ruleNames": ["r"]}],
            "match": {"any": list(entries)},
        },
    }


def test_one_rule_of_kinds_becomes_rules_of_resources_with_a_binding_of_its_action() -> None:
    made = native(cpol({"any": [resources("StatefulSet", "Deployment", "Pod", operations=["CREATE"])]}))  # fmt: skip

    rules = made.policy["spec"]["matchConstraints"]["resourceRules"]
    assert [(one["apiGroups"], one["resources"]) for one in rules] == [
        (["apps"], ["deployments", "statefulsets"]),
        ([""], ["pods", "pods/ephemeralcontainers"]),
    ]
    assert made.policy["metadata"]["name"] == "cpol-p"
    assert made.policy["metadata"]["ownerReferences"] == [
        {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "name": "p", "uid": "u"}
    ]
    assert made.binding["metadata"]["name"] == "cpol-p-binding"
    assert made.binding["spec"] == {"policyName": "cpol-p", "validationActions": ["Deny"]}


def test_namespaces_and_selectors_become_selectors() -> None:
    made = native(
        cpol(
            {"all": [resources("Pod", namespaces=["a"], selector={"matchLabels": {"b": "c"}})]},
            preconditions=None,
        )
    )

    found = made.policy["spec"]["matchConstraints"]
    wanted = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a"]}
    assert found["namespaceSelector"] == {"matchExpressions": [wanted]}
    assert found["objectSelector"] == {"matchLabels": {"b": "c"}}


def test_namespaces_that_are_left_out_are_left_out_with_what_is_in_them() -> None:
    made = native(
        cpol({"any": [resources("Pod")]}, {"any": [resources(namespaces=["a"], operations=["CREATE"])]})
    )  # fmt: skip

    [excluded] = made.policy["spec"]["matchConstraints"]["excludeResourceRules"]
    assert (excluded["resources"], excluded["resourceNames"]) == (["namespaces"], ["a"])
    [condition] = made.policy["spec"]["matchConditions"]
    assert (
        condition["expression"]
        == "!(request.namespace in ['a'] && request.operation in ['CREATE'])"
    )


def test_an_exception_of_kinds_and_names_is_left_out() -> None:
    made = native(
        cpol({"any": [resources("Deployment")]}), exception(resources("Deployment", names=["tool"]))
    )

    [excluded] = made.policy["spec"]["matchConstraints"]["excludeResourceRules"]
    assert (excluded["resources"], excluded["resourceNames"]) == (["deployments"], ["tool"])


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (cpol({"any": [resources("Pod", annotations={"a": "b"})]}), "annotations"),
        (cpol({"any": [{**resources("Pod"), "clusterRoles": ["x"]}]}), "roles, clusterRoles"),
        (cpol({"all": [resources("Pod"), resources("Pod", names=["a"])]}), "multiple 'all'"),
        (cpol({"any": [resources("Pod", namespaces=["a-*"])]}), "wildcards"),
        (cpol({"any": [resources("Pod")]}, {"any": [resources("Pod", namespaces=["a"])]}), "kinds in namespaces"),
        (cpol({"any": [resources("Pod")]}, {"any": [resources("Pod", selector={})]}, context=[{"name": "x"}]), "context"),
        (cpol({"any": [resources("Pod", selector={"matchLabels": {"a": "b"}}), resources("Deployment")]}), "some matched"),
        (cpol({"any": [resources("Unknown")]}), "`Unknown` is not served"),
    ],
)  # fmt: skip
def test_what_a_native_policy_cannot_say_stays_with_us(policy: dict[str, Any], reason: str) -> None:
    with pytest.raises(NotNative, match=reason) as refused:
        native(policy)
    assert refused.value.message.startswith("skip generating ValidatingAdmissionPolicy: ")


def test_more_than_one_rule_and_rules_of_patterns_stay_with_us() -> None:
    policy = cpol({"any": [resources("Pod")]})
    [rule] = policy["spec"]["rules"]
    several = {**policy, "spec": {"rules": [rule, {**rule, "name": "s"}]}}
    pattern = {**rule, "validate": {"message": "m", "pattern": {"metadata": {"name": "?*"}}}}

    with pytest.raises(NotNative, match="multiple rules are not applicable"):
        native(several)
    with pytest.raises(NotNative, match="for non CEL rules"):
        native({**policy, "spec": {"rules": [pattern]}})


def test_an_exception_that_ends_keeps_a_policy_with_us_until_then() -> None:
    soon = exception(resources("Deployment", names=["tool"]), annotations={"kpolicy.io/expires-at": "2026-11-22T13:00:00Z"})  # fmt: skip
    over = exception(resources("Deployment", names=["tool"]), annotations={"kpolicy.io/expires-at": "2026-11-22T11:00:00Z"})  # fmt: skip
    policy = cpol({"any": [resources("Deployment")]})

    with pytest.raises(NotNative, match="that ends") as refused:
        native(policy, soon)
    assert refused.value.until == datetime(2026, 11, 22, 13, 0, tzinfo=UTC)
    assert "excludeResourceRules" not in native(policy, over).policy["spec"]["matchConstraints"]
    with pytest.raises(NotNative, match="that ends"):
        native(vpol(), polex("ValidatingPolicy", "true", expiresAt="2026-11-22T13:00:00Z"))


def test_a_validating_policy_keeps_its_words_and_leaves_out_what_all_conditions_of_an_exception_except() -> None:  # fmt: skip
    policy = vpol(failurePolicy="Ignore", matchConditions=[{"name": "own", "expression": "true"}])
    one = native(policy, polex("ValidatingPolicy", "object.a"))
    two = native(policy, polex("ValidatingPolicy", "object.a", "object.b"))

    assert one.policy["spec"]["failurePolicy"] == "Ignore"
    assert one.policy["spec"]["validations"] == EXPRESSION
    assert one.policy["spec"]["matchConditions"] == [
        {"name": "own", "expression": "true"},
        {"name": "c0", "expression": "!(object.a)"},
    ]
    assert two.policy["spec"]["matchConditions"][1]["expression"] == "!((object.a) && (object.b))"
    assert one.policy["metadata"]["name"] == "vpol-p"
    owner = one.policy["metadata"]["ownerReferences"][0]
    assert owner["apiVersion"] == "policies.kyverno.io/v1beta1"
    assert one.binding["spec"]["validationActions"] == ["Deny"]


def test_what_exceptions_lend_becomes_variables_that_say_when() -> None:
    check = [{"expression": "object.i in exceptions.allowedImages"}]
    lent = polex("ValidatingPolicy", "object.a", images=["it's"], allowedValues=["v"])
    without = native(vpol(validations=check))
    made = native(vpol(validations=check), lent)

    assert made.policy["spec"]["validations"] == [
        {"expression": "object.i in variables.allowedImages"}
    ]
    assert made.policy["spec"]["variables"] == [
        {"name": "allowedImages", "expression": "((object.a) ? ['it\\'s'] : [])"},
        {"name": "allowedValues", "expression": "((object.a) ? ['v'] : [])"},
    ]
    assert [one["expression"] for one in without.policy["spec"]["variables"]] == ["[]", "[]"]


def test_a_mutating_policy_keeps_its_selectors_and_puts_exceptions_first() -> None:
    constrained = {"resourceRules": [RULE], "objectSelector": {"matchLabels": {"a": "b"}}}
    policy = mpol(matchConstraints=constrained, matchConditions=[{"name": "o", "expression": "true"}])  # fmt: skip
    made = native(policy, polex("MutatingPolicy", "object.a"))

    assert made.policy["spec"]["matchConstraints"]["objectSelector"] == {"matchLabels": {"a": "b"}}
    assert [one["name"] for one in made.policy["spec"]["matchConditions"]] == ["c0", "o"]
    assert made.policy["spec"]["reinvocationPolicy"] == "Never"
    assert made.binding["spec"] == {"policyName": "mpol-p"}


@pytest.mark.parametrize("group", ["*", "kpolicy.io", "kyverno.io", "policies.kyverno.io"])
def test_no_native_mutation_reaches_what_no_policy_may_change(group: str) -> None:
    rules = [{**RULE, "apiGroups": [group], "resources": ["*"]}]

    with pytest.raises(NotNative, match="no policy may change"):
        native(mpol(matchConstraints={"resourceRules": rules}))


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (vpol(autogen={}), "not enabled."),
        (mpol(autogen={}), "not enabled."),
        (vpol(evaluation={"admission": {"enabled": False}}), "admission is disabled."),
        (mpol(evaluation={"useServerSideApply": True}), "useServerSideApply is enabled"),
        (mpol(evaluation={"mutateExisting": {"enabled": True}}), "mutateExisting is enabled."),
        (vpol(matchConstraints={"resourceRules": [{**RULE, "apiGroups": [""], "resources": ["pods"]}]}), "autogen is enabled."),
    ],
)  # fmt: skip
def test_policies_in_cel_that_cannot_be_native_say_why(policy: dict[str, Any], reason: str) -> None:
    with pytest.raises(NotNative, match=reason):
        native(policy)
