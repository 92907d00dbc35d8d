"""Rules with `validate.cel`: what is asked in which order, and what an answer means."""

from __future__ import annotations

from typing import Any

import pytest

from engine.evaluate import Answer, ListLookup, ObjectLookup, PolicySet
from engine.model import Status, UserInfo
from tests.engine.evaluate.builders import config_map, decide, policy


def _rule(*expressions: Any, preconditions: Any = None, **more: Any) -> dict[str, Any]:
    found = [
        item if isinstance(item, dict) else {"expression": item, "message": "no"}
        for item in expressions
    ]
    rule = {"name": "r", "validate": {"cel": {"expressions": found, **more}}}
    return {**rule, "celPreconditions": preconditions} if preconditions else rule


def _result(rule: dict[str, Any], obj: dict[str, Any] | None = None, **more: Any) -> Any:
    (result,) = decide(policy(rule), obj or config_map(a="1"), **more).results
    return result


def test_an_object_that_meets_every_expression_passes() -> None:
    result = _result(_rule("object.data.a == '1'", "has(object.data)"))

    assert (result.status, result.message) == (Status.PASS, "Validation rule 'r' passed.")


def test_the_first_expression_that_is_false_gives_its_message() -> None:
    result = _result(_rule("true", {"expression": "false", "message": "first"}, "false"))

    assert (result.status, result.message) == (Status.FAIL, "first")


def test_an_expression_that_cannot_be_evaluated_is_not_met() -> None:
    result = _result(_rule("object.data.b == '1'"))

    assert result.status is Status.FAIL
    assert result.message == "expression 'object.data.b == '1'' resulted in error: no such key: b"


def test_an_expression_that_is_not_a_bool_is_not_met() -> None:
    assert _result(_rule("object.data.a")).status is Status.FAIL


def test_a_message_expression_wins_over_the_message() -> None:
    said = {"expression": "false", "message": "m", "messageExpression": "'a is ' + object.data.a"}

    assert _result(_rule(said)).message == "a is 1"


@pytest.mark.parametrize(
    "expression", ["object.data.b", "1", "''", "'two\\nlines'", "'x' + string(1/0)"]
)
def test_a_message_expression_without_a_text_leaves_the_message(expression: str) -> None:
    said = {"expression": "false", "message": "m", "messageExpression": expression}

    assert _result(_rule(said)).message == "m"


def test_variables_are_evaluated_when_read_and_may_read_each_other() -> None:
    variables = [
        {"name": "broken", "expression": "1 / 0 == 1"},
        {"name": "two", "expression": "variables.one + 1"},
        {"name": "one", "expression": "1"},
    ]

    assert _result(_rule("variables.two == 2", variables=variables)).status is Status.PASS
    assert _result(_rule("variables.broken", variables=variables)).status is Status.FAIL


def test_a_variable_that_depends_on_itself_is_an_error_of_the_expression() -> None:
    variables = [{"name": "x", "expression": "variables.x"}]
    result = _result(_rule("variables.x", variables=variables))

    assert result.status is Status.FAIL
    assert "variable `x` depends on itself" in result.message


def test_preconditions_that_are_false_skip_the_rule() -> None:
    result = _result(_rule("false", preconditions=[{"name": "no", "expression": "1 > 2"}]))

    assert (result.status, result.message) == (Status.SKIP, "cel preconditions not met")


def test_a_false_precondition_wins_over_one_that_cannot_be_evaluated() -> None:
    conditions = [{"name": "e", "expression": "1/0 == 1"}, {"name": "no", "expression": "false"}]

    assert _result(_rule("true", preconditions=conditions)).status is Status.SKIP
    assert _result(_rule("true", preconditions=conditions[:1])).status is Status.FAIL


def test_audit_annotations_become_properties_of_the_result() -> None:
    annotations = [
        {"key": "who", "valueExpression": "request.userInfo.username"},
        {"key": "none", "valueExpression": "null"},
    ]
    result = _result(_rule("true", auditAnnotations=annotations), user=UserInfo(username="ann"))

    assert (result.status, dict(result.properties)) == (Status.PASS, {"who": "ann"})


def test_or_value_of_something_that_is_no_optional_is_that_thing() -> None:
    assert _result(_rule("object.data.orValue({}).a == '1'")).status is Status.PASS


PARAMS = {
    "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
    "paramRef": {"name": "limits", "namespace": "ops", "parameterNotFoundAction": "Deny"},
}
LIMITS = ObjectLookup("v1", "ConfigMap", "ops", "limits")


def test_params_are_looked_up_and_read() -> None:
    found = Answer.found({"data": {"a": "1"}})
    rule = _rule("object.data.a == params.data.a", **PARAMS)

    assert _result(rule, answers={LIMITS: found}).status is Status.PASS
    assert _result(rule, config_map(a="2"), answers={LIMITS: found}).status is Status.FAIL


def test_a_rule_asks_for_its_params_before_it_answers() -> None:
    evaluation = decide(policy(_rule("true", **PARAMS)), config_map())

    assert (evaluation.results, evaluation.missing) == ([], [LIMITS])


def test_params_that_are_not_there_deny_or_allow_as_the_rule_says() -> None:
    nothing = {LIMITS: Answer.found(None)}
    allows = {**PARAMS, "paramRef": {**PARAMS["paramRef"], "parameterNotFoundAction": "Allow"}}

    assert _result(_rule("false", **PARAMS), answers=nothing).status is Status.ERROR
    assert _result(_rule("false", **allows), answers=nothing).status is Status.PASS


def test_every_selected_parameter_has_to_be_met() -> None:
    rule = _rule(
        "object.data.a != params.data.a",
        paramKind=PARAMS["paramKind"],
        paramRef={"selector": {"matchLabels": {"t": "x"}}, "namespace": "ops"},
    )
    lookup = ListLookup("v1", "ConfigMap", "ops", selector='{"matchLabels":{"t":"x"}}')
    both = Answer.found([{"data": {"a": "0"}}, {"data": {"a": "1"}}])

    assert _result(rule, answers={lookup: both}).status is Status.FAIL
    assert _result(rule, config_map(a="5"), answers={lookup: both}).status is Status.PASS


@pytest.mark.parametrize(
    ("expression", "said"),
    [("object.(", "does not compile"), ("secrets.data == ''", "undeclared reference to `secrets`")],
)
def test_an_expression_that_cannot_work_leaves_the_policy_out(expression: str, said: str) -> None:
    (problem,) = PolicySet.compile([policy(_rule(expression))]).problems

    assert said in problem.error.message


def test_a_pod_rule_is_extended_to_controllers() -> None:
    rule = {
        **_rule("object.spec.containers.all(c, c.image != 'bad')"),
        "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
    }
    template = {"spec": {"containers": [{"name": "c", "image": "bad"}]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "dev"},
        "spec": {"template": template},
    }
    (result,) = decide(policy(rule), deployment).results

    assert (result.rule, result.status) == ("autogen-r", Status.FAIL)
