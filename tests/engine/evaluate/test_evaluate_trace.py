"""Explanations: the steps behind a result."""

from __future__ import annotations

from tests.engine.evaluate.builders import config_map, decide, deny, exception, policy


def _steps(found, kind):
    return [step for trace in found.traces for step in trace.steps if step.kind == kind]


def test_a_rule_that_does_not_match_says_why() -> None:
    rule = deny(match={"any": [{"resources": {"kinds": ["ConfigMap"], "names": ["x"]}}]})

    (step,) = _steps(decide(policy(rule), config_map(), trace=True), "match")

    assert step.holds is False
    assert "not matched by" in step.text


def test_conditions_and_variables_are_shown_with_their_values() -> None:
    conditions = {
        "all": [{"key": "{{ request.object.data.a }}", "operator": "Equals", "value": "1"}]
    }
    rule = {"name": "r", "validate": {"message": "m", "deny": {"conditions": conditions}}}

    found = decide(policy(rule), config_map(a="1"), trace=True)

    (variable,) = _steps(found, "variable")
    (condition,) = _steps(found, "condition")
    assert (variable.text, variable.value) == ("request.object.data.a", "1")
    assert (condition.holds, condition.value) == (True, ["1", "1"])


def test_the_exception_that_covered_is_shown() -> None:
    found = decide(policy(deny()), config_map(), exceptions=[exception("r")], trace=True)

    (step,) = _steps(found, "exception")
    assert (step.text, step.holds) == ("dev/e", True)


def test_nothing_is_recorded_unless_asked_for() -> None:
    assert decide(policy(deny()), config_map()).traces == []


def test_a_pattern_that_is_missed_shows_the_place_and_what_stands_there() -> None:
    rule = {"name": "r", "validate": {"message": "m", "pattern": {"data": {"a": "x"}}}}

    (step,) = _steps(decide(policy(rule), config_map(a="y"), trace=True), "pattern")

    assert (step.text, step.holds, step.value) == ("/data/a/", False, "y")
