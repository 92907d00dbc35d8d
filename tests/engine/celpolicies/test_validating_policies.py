"""ValidatingPolicy and its namespaced twin: order of questions, actions, autogen, modes, exceptions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.evaluate import (
    Answer,
    ApiCallLookup,
    GlobalLookup,
    Inputs,
    ObjectLookup,
    PolicySet,
    evaluate,
)
from engine.model import Review, review_of
from tests.engine.celpolicies.documents import (
    NOW,
    config_map,
    decide,
    exception,
    pod,
    rule,
    statuses,
    validating,
)


def _result(*given: Any, **more: Any) -> Any:
    (result,) = decide(*given, **more).results
    return result


def test_a_policy_has_one_answer_without_a_rule_name() -> None:
    passed, failed = _result(validating("true"), config_map()), _result(validating(), config_map())

    assert (passed.policy, passed.rule, passed.status, passed.message) == (
        "p",
        "",
        "pass",
        "success",
    )
    assert (failed.status, failed.message) == ("fail", "no")


def test_an_expression_that_cannot_be_evaluated_is_an_error() -> None:
    result = _result(validating("object.data.x == 1"), config_map())

    assert result.status == "error"
    assert "no such key: x" in result.message


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Answer.failed("entry `e` not found", is_missing=True), "pass"),
        (Answer.absent(), "pass"),
        (Answer.failed("the call failed"), "error"),
        (Answer.found({"x": 1}), "fail"),
    ],
)
def test_an_entry_that_is_not_there_is_null_and_one_that_cannot_be_had_an_error(
    answer: Answer, status: str
) -> None:
    policy = PolicySet.compile([validating('globalContext.get("e", "part") == null')], ())
    inputs = Inputs(now=NOW, answers={GlobalLookup("e.part"): answer})
    found = evaluate(policy, review_of(config_map()), inputs)
    assert [one.status for one in found.results] == [status]


@pytest.mark.parametrize(
    ("actions", "blocks", "warns"),
    [(None, True, False), (["Deny"], True, False), (["Audit"], False, False), (["Warn"], False, True), (["Audit", "Deny"], True, False)],
)  # fmt: skip
def test_deny_blocks_and_is_the_default(actions: Any, blocks: bool, warns: bool) -> None:
    policy = validating(**({"validationActions": actions} if actions else {}))

    assert _result(policy, config_map()).enforce is blocks
    assert policy.emit_warning is warns


def test_a_match_condition_that_is_false_skips_the_object() -> None:
    conditions = [{"name": "n", "expression": "object.metadata.name == 'other'"}]

    assert statuses(validating(matchConditions=conditions), config_map()) == ["skip"]
    assert statuses(validating(matchConditions=conditions), config_map("other")) == ["fail"]


def test_a_match_condition_that_cannot_be_evaluated_errs_unless_errors_are_ignored() -> None:
    broken = {"matchConditions": [{"name": "n", "expression": "object.data.x == 1"}]}

    assert statuses(validating("true", **broken), config_map()) == ["error"]
    result = _result(validating("true", **broken), config_map())
    assert (result.rule, result.message) == ("evaluation", "failed to load context: no such key: x")
    assert statuses(validating(failurePolicy="Ignore", **broken), config_map()) == ["skip"]


def test_audit_annotations_become_properties() -> None:
    notes = [{"key": "name", "valueExpression": "object.metadata.name"}]
    result = _result(validating("true", auditAnnotations=notes), config_map())

    assert dict(result.properties) == {"name": "c"}


def test_the_namespace_of_the_object_can_be_read() -> None:
    policy = validating("namespaceObject.metadata.labels.tier == 'prod'")
    found = {"metadata": {"name": "dev", "labels": {"tier": "prod"}}}
    answers = {ObjectLookup("v1", "Namespace", "", "dev"): Answer.found(found)}

    assert statuses(policy, config_map(), answers=answers) == ["pass"]
    assert decide(policy, config_map()).missing == [ObjectLookup("v1", "Namespace", "", "dev")]


def test_a_namespace_that_nobody_knows_is_null_and_one_of_known_labels_has_these() -> None:
    policy = validating("namespaceObject == null || namespaceObject.metadata.labels.tier == 'prod'")
    answers = {ObjectLookup("v1", "Namespace", "", "dev"): Answer.found(None)}

    assert statuses(policy, config_map(), answers=answers) == ["pass"]
    for tier, status in (("prod", "pass"), ("test", "fail")):
        review = review_of(config_map(), namespace_labels={"tier": tier})
        [result] = evaluate(
            PolicySet.compile([policy], ()), review, Inputs(answers=answers)
        ).results
        assert result.status == status


def test_conditions_may_read_variables() -> None:
    variables = [{"name": "wanted", "expression": "object.metadata.name == 'c'"}]
    conditions = [{"name": "n", "expression": "variables.wanted"}]
    policy = validating("false", variables=variables, matchConditions=conditions)

    assert statuses(policy, config_map()) == ["fail"]


def test_objects_of_the_cluster_are_looked_up() -> None:
    policy = validating("resource.Get('v1', 'configmaps', 'ops', 'm').data.a == '1'")
    lookup = ApiCallLookup("GET", "/api/v1/namespaces/ops/configmaps/m")

    assert decide(policy, config_map()).missing == [lookup]
    found = {lookup: Answer.found({"data": {"a": "1"}})}
    assert statuses(policy, config_map(), answers=found) == ["pass"]


@pytest.mark.parametrize(
    "expression",
    ["http.Get('https://example.com').body == 1", "resource.Get('v1', 'secrets', 'ops', 's').data.a == 'x'"],
)  # fmt: skip
def test_a_namespaced_policy_reaches_no_service_and_no_other_namespace(expression: str) -> None:
    evaluation = decide(validating(expression, namespace="dev"), config_map())

    assert [str(result.status) for result in evaluation.results] == ["error"]
    assert evaluation.missing == []


def test_a_namespaced_policy_answers_in_its_namespace_only() -> None:
    assert statuses(validating(namespace="dev"), config_map()) == ["fail"]
    assert statuses(validating(namespace="ops"), config_map()) == []


DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d", "namespace": "dev"},
    "spec": {"template": {"metadata": {"labels": {"a": "t"}}, "spec": pod("bad")["spec"]}},
}
CRON_JOB = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "j", "namespace": "dev"},
    "spec": {"jobTemplate": {"spec": {"template": {"spec": pod("bad")["spec"]}}}},
}
IMAGES = "object.spec.containers.all(c, c.image != 'bad')"


def _for_pods(expression: str = IMAGES, constraints: Any = None, **spec: Any) -> Any:
    found = {"resourceRules": [rule("pods")], **(constraints or {})}
    return validating(expression, matchConstraints=found, **spec)


def test_a_policy_for_pods_is_extended_to_their_controllers() -> None:
    for obj in (pod("bad"), DEPLOYMENT, CRON_JOB):
        assert statuses(_for_pods(), obj) == ["fail"]
    assert statuses(_for_pods("object.metadata.labels.a == 't'"), DEPLOYMENT) == ["pass"]


def test_the_controllers_can_be_chosen() -> None:
    some = {"autogen": {"podControllers": {"controllers": ["cronjobs"]}}}
    none = {"autogen": {"podControllers": {"controllers": []}}}

    assert statuses(_for_pods(**some), CRON_JOB) == ["fail"]
    assert statuses(_for_pods(**some), DEPLOYMENT) == []
    assert statuses(_for_pods(**none), CRON_JOB) == []
    assert statuses(_for_pods(**none), pod("bad")) == ["fail"]


@pytest.mark.parametrize(
    "constraints",
    [
        {"objectSelector": {"matchLabels": {"a": "b"}}},
        {"excludeResourceRules": [rule("pods", resourceNames=["d"])]},
        {"resourceRules": [rule("pods", resourceNames=["d"])]},
        {"resourceRules": [rule("pods"), rule("services")]},
    ],
)
def test_a_policy_that_selects_pods_otherwise_is_not_extended(constraints: Any) -> None:
    review = {"namespace_labels": {"a": "b"}}

    assert statuses(_for_pods(constraints=constraints), DEPLOYMENT, **review) == []


def _judged(policy: Any, value: Any, mode: str) -> list[str]:
    review = Review(object=value, operation="", payload=mode)
    found = evaluate(PolicySet.compile([policy]), review, Inputs()).results
    return [str(result.status) for result in found]


def test_a_policy_of_json_mode_judges_documents_and_nothing_else() -> None:
    policy = validating("object.a == 1", evaluation={"mode": "JSON"})

    assert _judged(policy, {"a": 1}, "JSON") == ["pass"]
    assert _judged(policy, {"a": 2}, "JSON") == ["fail"]
    assert _judged(policy, {"a": 1}, "HTTP") == []
    assert statuses(policy, config_map()) == []
    assert _judged(validating(), config_map(), "JSON") == []


def test_an_exception_takes_the_object_out_of_the_policy() -> None:
    result = _result(validating(), config_map(), exceptions=[exception()])

    assert (result.status, result.exceptions) == ("skip", ("ops/e",))
    assert result.message == "rule is skipped due to policy exception: ops/e"


def test_an_exception_covers_only_what_its_conditions_hold_for() -> None:
    found = exception(matchConditions=[{"name": "n", "expression": "object.metadata.name == 'c'"}])
    broken = exception(matchConditions=[{"name": "n", "expression": "object.x.y == 1"}])

    assert statuses(validating(), config_map(), exceptions=[found]) == ["skip"]
    assert statuses(validating(), config_map("d"), exceptions=[found]) == ["fail"]
    assert statuses(validating(), config_map(), exceptions=[broken]) == ["fail"]


@pytest.mark.parametrize(
    "reference",
    [{"name": "q", "kind": "ValidatingPolicy"}, {"name": "p", "kind": "MutatingPolicy"}],
)
def test_an_exception_covers_only_policies_of_its_name_and_kind(reference: Any) -> None:
    found = exception(policyRefs=[reference])

    assert statuses(validating(), config_map(), exceptions=[found]) == ["fail"]


def test_an_excepted_object_can_be_reported_as_a_pass() -> None:
    found = exception(reportResult="pass")

    assert statuses(validating(), config_map(), exceptions=[found]) == ["pass"]
    assert statuses(validating(), config_map(), exceptions=[found, exception()]) == ["pass"]
    first = exception(labels={"polex.kyverno.io/priority": "1"})
    assert statuses(validating(), config_map(), exceptions=[found, first]) == ["skip"]


@pytest.mark.parametrize(
    "limit",
    [
        {"expiresAt": "2026-11-21T10:18:00Z"},
        {"annotations": {"kpolicy.io/expires-at": "2026-11-21T10:18:00Z"}},
    ],
    ids=["spec", "annotation"],
)
def test_an_exception_ends_at_the_instant_it_names(limit: Any) -> None:
    before = datetime(2026, 11, 21, 10, 17, 59, tzinfo=UTC)
    found = exception(**limit)

    assert statuses(validating(), config_map(), exceptions=[found], now=before) == ["skip"]
    assert statuses(validating(), config_map(), exceptions=[found]) == ["fail"]


@pytest.mark.parametrize(
    "limit", [{"expiresAt": "soon"}, {"annotations": {"kpolicy.io/expires-at": "?"}}]
)
def test_an_exception_with_an_end_that_cannot_be_read_covers_nothing(limit: Any) -> None:
    assert statuses(validating(), config_map(), exceptions=[exception(**limit)]) == ["fail"]


def test_an_exception_with_values_lends_them_and_takes_nothing_out() -> None:
    policy = validating("object.data.a in exceptions.allowedValues")
    lends = exception(allowedValues=["1"])

    assert statuses(policy, config_map(a="1"), exceptions=[lends]) == ["pass"]
    assert statuses(policy, config_map(a="2"), exceptions=[lends]) == ["fail"]
    assert statuses(policy, config_map(a="1")) == ["fail"]


def test_the_steps_show_conditions_expressions_and_exceptions() -> None:
    (trace,) = decide(validating(), config_map(), exceptions=[exception(matchConditions=[{"name": "n", "expression": "1 > 2"}])], trace=True).traces  # fmt: skip
    shown = [(step.kind, step.holds) for step in trace.steps]

    assert shown == [("match", True), ("condition", False), ("exception", False), ("expression", False), ("result", None)]  # fmt: skip


def test_a_policy_that_cannot_compile_leaves_the_others_alone() -> None:
    found = PolicySet.compile([validating("object.("), validating("true")])

    assert (len(found.problems), len(found.policies)) == (1, 1)


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        ({"expression": "object.data.x == 1"}, "error: no such key: x"),
        ({"expression": "false"}, "CEL expression validation failed at index 0"),
        (
            {"expression": "false", "messageExpression": "object.data.x"},
            "failed to evaluate message expression: no such key: x",
        ),
    ],
)
def test_what_is_not_met_is_told_as_kyverno_tells_it(validation, message) -> None:
    result = _result(validating(validations=[validation]), config_map())

    assert (result.message, result.properties["cel.validationIndex"]) == (message, "0")


def test_an_exception_counts_before_the_match_conditions() -> None:
    conditions = [{"name": "n", "expression": "object.data.x == 1"}]
    result = _result(validating(matchConditions=conditions), config_map(), exceptions=[exception()])

    assert (result.rule, str(result.status)) == ("exception", "skip")


@pytest.mark.parametrize("expression", ["object.data.x == '1'", "object.data.x == '2'", "object.data.y == '1'", "1"])  # fmt: skip
def test_asked_at_once_or_step_by_step_a_policy_answers_the_same(expression: str) -> None:
    policies = PolicySet.compile([validating(expression)])
    review = Review(object=config_map(x="1"), kind="ConfigMap")

    at_once = evaluate(policies, review, Inputs())
    assert at_once.results == evaluate(policies, review, Inputs(), trace=True).results
    assert len(at_once.results) == 1


def test_whether_a_policy_concerns_a_review_is_told_anew_for_each_resource_and_mode() -> None:
    policies = PolicySet.compile([validating("true")])

    def asked(resource: str, **more: Any) -> int:
        request = {"resource": {"group": "", "version": "v1", "resource": resource}}
        review = Review(object=config_map(), kind="ConfigMap", request=request, **more)
        return len(evaluate(policies, review, Inputs()).results)

    found = [asked("configmaps"), asked("others"), asked("configmaps", payload="HTTP")]
    assert found == [1, 0, 0]
    assert [asked("configmaps"), asked("others"), asked("configmaps", payload="HTTP")] == found
