"""Context entries: questions to the outside, lazily, and answers as data."""

from __future__ import annotations

from engine.evaluate import Answer, ApiCallLookup, ConfigMapLookup, GlobalLookup
from engine.model import Status
from tests.engine.evaluate.builders import config_map, decide, policy

LOOKUP = ConfigMapLookup("dev", "settings")


def _rule(key, *entries, value="x"):
    conditions = {"all": [{"key": key, "operator": "Equals", "value": value}]}
    return policy(
        {
            "name": "r",
            "context": list(entries),
            "validate": {"message": "m", "deny": {"conditions": conditions}},
        }
    )


def _settings():
    return {
        "name": "settings",
        "configMap": {"name": "settings", "namespace": "{{ request.namespace }}"},
    }


def test_a_rule_asks_for_what_it_needs() -> None:
    found = decide(_rule("{{ settings.data.a }}", _settings()), config_map())

    assert found.missing == [LOOKUP]
    assert found.results == []


def test_an_entry_that_is_not_mentioned_is_not_asked_for() -> None:
    found = decide(_rule("y", _settings()), config_map())

    assert found.missing == []
    assert found.results[0].status is Status.PASS


def test_an_answer_is_used() -> None:
    answer = Answer.found({"data": {"a": "x"}, "metadata": {"name": "settings"}})

    found = decide(
        _rule("{{ settings.data.a }}", _settings()), config_map(), answers={LOOKUP: answer}
    )

    assert found.results[0].status is Status.FAIL


def test_a_failed_answer_is_an_error_that_names_the_entry() -> None:
    found = decide(
        _rule("{{ settings.data.a }}", _settings()),
        config_map(),
        answers={LOOKUP: Answer.failed("gone")},
    )

    (result,) = found.results
    assert result.status is Status.ERROR
    assert "failed to get configmap dev/settings : gone" in result.message


def test_an_absent_answer_leaves_the_entry_unknown() -> None:
    found = decide(
        _rule("{{ settings.data.a || 'x' }}", _settings()),
        config_map(),
        answers={LOOKUP: Answer.absent()},
    )

    assert found.results[0].status in {Status.FAIL, Status.ERROR}


def test_entries_see_the_entries_before_them() -> None:
    first = {"name": "first", "variable": {"value": "x"}}
    second = {"name": "second", "variable": {"jmesPath": "first"}}

    assert (
        decide(_rule("{{ second }}", first, second), config_map()).results[0].status is Status.FAIL
    )


def test_an_entry_does_not_see_itself_or_later_ones() -> None:
    first = {"name": "first", "variable": {"jmesPath": "second"}}
    second = {"name": "second", "variable": {"jmesPath": "first"}}

    (result,) = decide(_rule("{{ first }}", first, second), config_map()).results

    assert result.status is Status.ERROR


def test_an_api_call_asks_with_its_path_and_uses_its_expression() -> None:
    entry = {
        "name": "count",
        "apiCall": {
            "urlPath": "/api/v1/namespaces/{{ request.namespace }}/pods",
            "jmesPath": "items | length(@)",
        },
    }
    lookup = ApiCallLookup("GET", "/api/v1/namespaces/dev/pods")
    answers = {lookup: Answer.found({"items": [{}, {}]})}

    asked = decide(_rule("{{ count }}", entry, value=2), config_map())
    told = decide(_rule("{{ count }}", entry, value=2), config_map(), answers=answers)

    assert asked.missing == [lookup]
    assert told.results[0].status is Status.FAIL


def test_the_default_of_an_api_call_stands_in_for_an_error() -> None:
    entry = {"name": "n", "apiCall": {"urlPath": "/x", "default": "x"}}
    answers = {ApiCallLookup("GET", "/x"): Answer.failed("503")}

    assert (
        decide(_rule("{{ n }}", entry), config_map(), answers=answers).results[0].status
        is Status.FAIL
    )


def test_a_global_entry_is_asked_for_by_name() -> None:
    entry = {"name": "g", "globalReference": {"name": "teams", "jmesPath": "[0]"}}
    answers = {GlobalLookup("teams"): Answer.found(["x"])}

    assert (
        decide(_rule("{{ g }}", entry), config_map(), answers=answers).results[0].status
        is Status.FAIL
    )
