"""Exceptions at the instant of the decision."""

from __future__ import annotations

from datetime import timedelta

import pytest

from engine.model import Status, UserInfo
from tests.engine.evaluate.builders import NOW, config_map, decide, deny, exception, policy


def _status(**case):
    (result,) = decide(policy(deny()), config_map(), **case).results
    return result.status


def test_an_exception_skips_the_rule_and_is_named() -> None:
    (result,) = decide(policy(deny()), config_map(), exceptions=[exception("r")]).results

    assert result.status is Status.SKIP
    assert result.exceptions == ("dev/e",)
    assert result.message.startswith("rule is skipped due to policy exceptions")
    assert "dev/e" in result.message


@pytest.mark.parametrize("names", [("other",), ("R",), ("r2",), ()])
def test_an_exception_for_other_rules_does_not_count(names) -> None:
    assert _status(exceptions=[exception(*names)]) is Status.FAIL


def test_rule_names_of_exceptions_take_wildcards() -> None:
    assert _status(exceptions=[exception("r*")]) is Status.SKIP


@pytest.mark.parametrize("name", ["p2", "*", "P", "dev/p"])
def test_policy_names_of_exceptions_are_exact(name) -> None:
    assert _status(exceptions=[exception("r", policy_name=name)]) is Status.FAIL


def test_an_exception_of_a_namespaced_policy_names_its_namespace() -> None:
    local = policy(deny(), namespace="dev")

    named = decide(local, config_map(), exceptions=[exception("r", policy_name="dev/p")])
    bare = decide(local, config_map(), exceptions=[exception("r", policy_name="p")])

    assert named.results[0].status is Status.SKIP
    assert bare.results[0].status is Status.FAIL


def test_an_exception_that_matches_nothing_covers_nothing() -> None:
    assert _status(exceptions=[exception("r", match={})]) is Status.FAIL


def test_an_exception_covers_only_what_it_matches() -> None:
    other = {"any": [{"resources": {"kinds": ["ConfigMap"], "names": ["d"]}}]}

    assert _status(exceptions=[exception("r", match=other)]) is Status.FAIL


@pytest.mark.parametrize(
    ("seconds", "status"), [(-1, Status.SKIP), (0, Status.FAIL), (1, Status.FAIL)]
)
def test_expiry_counts_at_the_instant_of_the_decision(seconds, status) -> None:
    ends = exception("r", annotations={"kpolicy.io/expires-at": NOW.isoformat()})

    assert _status(exceptions=[ends], now=NOW + timedelta(seconds=seconds)) is status


def test_a_ttl_label_ends_an_exception_from_its_creation() -> None:
    made = exception(
        "r",
        labels={"cleanup.kyverno.io/ttl": "1h"},
        creationTimestamp=NOW.strftime("%Y-%m-%dT%H:%M:%SZ"),
    )

    assert _status(exceptions=[made], now=NOW + timedelta(minutes=59)) is Status.SKIP
    assert _status(exceptions=[made], now=NOW + timedelta(minutes=61)) is Status.FAIL


def test_conditions_of_an_exception_see_the_object() -> None:
    conditions = {
        "all": [
            {"key": "{{ request.object.data.ticket || '' }}", "operator": "Equals", "value": "T-?*"}
        ]
    }
    made = exception("r", conditions=conditions)

    with_ticket = decide(policy(deny()), config_map(ticket="T-7"), exceptions=[made])
    without = decide(policy(deny()), config_map(), exceptions=[made])

    assert with_ticket.results[0].status is Status.SKIP
    assert without.results[0].status is Status.FAIL


def test_an_exception_whose_conditions_fail_to_evaluate_does_not_count() -> None:
    conditions = {
        "all": [{"key": "{{ request.object.data.nope }}", "operator": "Equals", "value": "x"}]
    }

    assert _status(exceptions=[exception("r", conditions=conditions)]) is Status.FAIL


def test_an_exception_for_a_user_covers_that_user_alone() -> None:
    match = {
        "any": [
            {"resources": {"kinds": ["ConfigMap"]}, "subjects": [{"kind": "User", "name": "chip"}]}
        ]
    }
    made = exception("r", match=match, background=False)

    assert _status(exceptions=[made], user=UserInfo(username="chip")) is Status.SKIP
    assert _status(exceptions=[made], user=UserInfo(username="dale")) is Status.FAIL


def test_exceptions_hold_for_mutate_rules_too() -> None:
    change = {"name": "r", "mutate": {"patchStrategicMerge": {"data": {"a": "1"}}}}

    found = decide(policy(change), config_map(), exceptions=[exception("r")])

    assert found.results[0].status is Status.SKIP
    assert found.patched == config_map()
