"""ValidatingAdmissionPolicy and MutatingAdmissionPolicy with their bindings and params."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import PolicyError
from engine.evaluate import Answer, Inputs, ListLookup, ObjectLookup, PolicySet, evaluate
from engine.model import Review
from engine.parse.celpolicies import parse_cel_policy
from tests.engine.celpolicies.documents import (
    admission,
    binding,
    config_map,
    decide,
    document,
    rule,
    statuses,
)

CHECK = [{"expression": "object.data.a == '1'", "message": "no"}]


def _policy(**spec: Any) -> Any:
    return admission(**{"validations": CHECK, **spec})


def test_a_policy_answers_under_its_own_name() -> None:
    (result,) = decide(_policy(), config_map(a="2")).results

    assert (result.policy, result.rule, result.status, result.message) == ("p", "p", "fail", "no")
    assert result.enforce


def test_a_policy_without_a_message_names_the_expression() -> None:
    policy = _policy(validations=[{"expression": "1 > 2"}])

    assert decide(policy, config_map()).results[0].message == "failed expression: 1 > 2"


def test_what_cannot_be_evaluated_fails_or_is_an_error_as_the_failure_policy_says() -> None:
    assert statuses(_policy(), config_map()) == ["fail"]
    assert statuses(_policy(failurePolicy="Ignore"), config_map()) == ["error"]


def test_match_conditions_leave_objects_out() -> None:
    no = [{"name": "n", "expression": "false"}]
    broken = [{"name": "n", "expression": "object.x.y"}]

    (left_out,) = decide(_policy(matchConditions=no), config_map(a="2")).results
    assert (left_out.status, left_out.message) == ("skip", "match conditions aren't met")
    assert statuses(_policy(matchConditions=broken), config_map(a="1")) == ["error"]
    assert statuses(_policy(matchConditions=broken, failurePolicy="Ignore"), config_map()) == [
        "skip"
    ]


@pytest.mark.parametrize(("actions", "blocks"), [(["Deny"], True), (["Audit", "Warn"], False)])
def test_the_binding_says_what_a_failure_does(actions: list[str], blocks: bool) -> None:
    (result,) = decide(_policy(), config_map(a="2"), bindings=[binding(validationActions=actions)]).results  # fmt: skip

    assert result.enforce is blocks


def test_a_policy_answers_once_for_each_binding_that_fits() -> None:
    narrow = binding(matchResources={"resourceRules": [rule("configmaps", resourceNames=["d"])]})

    assert statuses(_policy(), config_map(a="2"), bindings=[narrow, binding()]) == ["fail"]
    assert statuses(_policy(), config_map("d", a="2"), bindings=[narrow, binding()]) == ["fail"] * 2


def test_a_binding_cannot_widen_its_policy() -> None:
    wide = binding(matchResources={"resourceRules": [rule("*")]})
    secret = {**config_map(a="2"), "kind": "Secret"}

    assert statuses(_policy(), secret, bindings=[wide]) == []


def test_a_binding_binds_policies_of_its_name_and_kind() -> None:
    others = [binding(policyName="q"), binding("MutatingAdmissionPolicyBinding")]

    assert statuses(_policy(), config_map(a="2"), bindings=[*others, binding(matchResources={"objectSelector": {"matchLabels": {"x": "y"}}})]) == []  # fmt: skip


PARAMS = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
AS_PARAM = [{"expression": "object.data.a == params.data.a"}]
LOOKUP = ObjectLookup("v1", "ConfigMap", "dev", "limits")


def test_params_without_a_namespace_are_those_beside_the_object() -> None:
    policy = _policy(validations=AS_PARAM, **PARAMS)
    bound = [binding(paramRef={"name": "limits", "parameterNotFoundAction": "Deny"})]
    found = {LOOKUP: Answer.found({"data": {"a": "1"}})}

    assert decide(policy, config_map(a="1"), bindings=bound).missing == [LOOKUP]
    assert statuses(policy, config_map(a="1"), bindings=bound, answers=found) == ["pass"]
    assert statuses(policy, config_map(a="2"), bindings=bound, answers=found) == ["fail"]


def test_params_that_are_not_there_err_or_are_passed_over() -> None:
    policy = _policy(validations=AS_PARAM, **PARAMS)
    wide = ObjectLookup("v1", "ConfigMap", "", "limits")
    none = {LOOKUP: Answer.found(None), wide: Answer.found(None)}

    def asked(action: str) -> list[str]:
        bound = [binding(paramRef={"name": "limits", "parameterNotFoundAction": action})]
        return statuses(policy, config_map(a="1"), bindings=bound, answers=none)

    assert asked("Deny") == ["error"]
    assert asked("Allow") == []


def test_every_selected_parameter_has_to_be_met() -> None:
    policy = _policy(validations=[{"expression": "object.data.a != params.data.a"}], **PARAMS)
    bound = [binding(paramRef={"selector": {"matchLabels": {"t": "x"}}, "namespace": "ops"})]
    lookup = ListLookup("v1", "ConfigMap", "ops", selector='{"matchLabels":{"t":"x"}}')
    both = {lookup: Answer.found([{"data": {"a": "0"}}, {"data": {"a": "1"}}])}

    assert statuses(policy, config_map(a="1"), bindings=bound, answers=both) == ["fail"]
    assert statuses(policy, config_map(a="5"), bindings=bound, answers=both) == ["pass"]


def test_parameters_whose_match_conditions_do_not_hold_are_not_asked() -> None:
    policy = _policy(
        validations=[{"expression": "object.data.a == params.data.a"}],
        matchConditions=[{"name": "on", "expression": "params.data.on == 'y'"}],
        **PARAMS,
    )
    bound = [binding(paramRef={"selector": {"matchLabels": {"t": "x"}}, "namespace": "ops"})]
    lookup = ListLookup("v1", "ConfigMap", "ops", selector='{"matchLabels":{"t":"x"}}')

    def asked(*on: str) -> list[str]:
        found = [{"data": {"a": str(place), "on": one}} for place, one in enumerate(on)]
        return statuses(
            policy, config_map(a="1"), bindings=bound, answers={lookup: Answer.found(found)}
        )

    assert asked("n", "n") == ["skip"]
    assert asked("n", "y") == ["pass"]
    assert asked("y", "y") == ["fail"]


def _mutating(*expressions: str, **spec: Any) -> Any:
    mutations = [
        {"patchType": "JSONPatch", "jsonPatch": {"expression": text}}
        if text.startswith("[")
        else {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}
        for text in expressions
    ]
    return admission("MutatingAdmissionPolicy", mutations=mutations, **spec)


def _patched(policy: Any, obj: Any, **more: Any) -> Any:
    evaluation = decide(policy, obj, **more)
    assert [str(result.status) for result in evaluation.results] == ["pass"]
    return evaluation.patched


LABEL = "Object{metadata: Object.metadata{labels: {'a': 'b'}}}"


def test_an_apply_configuration_is_merged_into_the_object() -> None:
    obj = config_map(labels={"x": "y"}, k="v")

    assert _patched(_mutating(LABEL), obj)["metadata"]["labels"] == {"x": "y", "a": "b"}
    assert obj == config_map(labels={"x": "y"}, k="v")


def test_a_json_patch_is_applied() -> None:
    patch = "[JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('a/b'), value: 'x'}]"

    assert _patched(_mutating(patch), config_map())["data"] == {"a/b": "x"}


def test_each_mutation_sees_what_the_one_before_left() -> None:
    policy = _mutating("Object{data: {'n': 'x'}}", "Object{data: {'m': object.data.n + 'y'}}")

    assert _patched(policy, config_map())["data"] == {"n": "x", "m": "xy"}


def test_a_mutation_that_changes_nothing_leaves_the_very_object() -> None:
    obj = config_map(a="1")

    assert _patched(_mutating("Object{}"), obj) is obj


def test_lists_with_merge_keys_are_merged() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "dev"},
        "spec": {"containers": [{"name": "a", "image": "x", "args": ["1"]}, {"name": "b"}]},
    }
    text = (
        "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'a', tty: true},"
        " Object.spec.containers{name: 'c'}]}}"
    )
    policy = _mutating(text, matchConstraints={"resourceRules": [rule("pods")]})

    assert _patched(policy, pod)["spec"]["containers"] == [
        {"name": "a", "image": "x", "args": ["1"], "tty": True},
        {"name": "b"},
        {"name": "c"},
    ]


@pytest.mark.parametrize(
    "expression", ["1 + 1", "object.x.y", "[1]", "Object{data: {'q': quantity('1')}}"]
)
def test_an_expression_that_gives_no_patch_is_an_error(expression: str) -> None:
    assert statuses(_mutating(expression), config_map()) == ["error"]


def test_match_conditions_and_deletions_leave_objects_as_they_are() -> None:
    no = [{"name": "n", "expression": "false"}]
    everything = {"resourceRules": [rule("*", operations=["*"])]}

    assert statuses(_mutating(LABEL, matchConditions=no), config_map()) == []
    compiled = PolicySet.compile([_mutating(LABEL, matchConstraints=everything)])
    assert not compiled.problems
    gone = Review(object=None, old_object=config_map(), operation="DELETE", kind="ConfigMap")
    assert evaluate(compiled, gone, Inputs()).results == []


def test_selected_params_can_be_read_one_by_one_and_as_a_list() -> None:
    policy = _mutating("Object{data: {'first': params.items[0].data.v, 'own': params.data.v}}", **PARAMS)  # fmt: skip
    bound = [binding("MutatingAdmissionPolicyBinding", paramRef={"selector": {}, "namespace": "ops"})]  # fmt: skip
    named = [binding("MutatingAdmissionPolicyBinding", paramRef={"selector": {"matchLabels": {"t": "x"}}, "namespace": "ops"})]  # fmt: skip
    lookup = ListLookup("v1", "ConfigMap", "ops", selector='{"matchLabels":{"t":"x"}}')
    both = {lookup: Answer.found([{"data": {"v": "1"}}, {"data": {"v": "2"}}])}

    assert _patched(policy, config_map(), bindings=named, answers=both)["data"] == {"first": "1", "own": "2"}  # fmt: skip
    assert decide(policy, config_map(), bindings=bound).missing != []


def test_a_mutation_without_its_expression_is_refused() -> None:
    policy = admission("MutatingAdmissionPolicy", mutations=[{"patchType": "JSONPatch"}])
    (problem,) = PolicySet.compile([policy]).problems

    assert "mutations[0].jsonPatch.expression" in problem.error.message


def test_fields_that_no_such_policy_has_are_refused() -> None:
    doc = document(
        "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "p", {"validation": []}
    )
    with pytest.raises(PolicyError, match=r"unknown field `spec\.validation`"):
        parse_cel_policy(doc)
