"""What cleanup policies would delete, and when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.cleanup.plan import Plan, compile_cleanup, plan
from engine.errors import PolicyError
from engine.evaluate import Answer, ConfigMapLookup, Inputs
from engine.evaluate.asking import MOST_ROUNDS, conclude
from engine.model import CleanupPolicy

NOW = datetime(2026, 11, 21, 10, 18, 30, tzinfo=UTC)
PODS = {"any": [{"resources": {"kinds": ["Pod"]}}]}
TRIGGER = {
    "generate.kyverno.io/trigger-uid": "u1",
    "generate.kyverno.io/trigger-kind": "PolicyException",
}
ONE_EXCEPTION = {
    "any": [
        {"resources": {"kinds": ["PolicyException"], "namespaces": ["dev"], "names": ["emergency"]}}
    ]
}


def thing(name: str, kind: str = "Pod", namespace: str = "dev", **metadata: Any) -> dict[str, Any]:
    version = "v1" if kind == "Pod" else "kyverno.io/v2"
    metadata = {"name": name, "namespace": namespace, **metadata}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def policy(**fields: Any) -> CleanupPolicy:
    fields = {
        "schedule": "0 * * * *",
        "match": PODS,
        "created_at": "2026-11-21T09:30:00Z",
        **fields,
    }
    return CleanupPolicy(kind=fields.pop("kind", "ClusterCleanupPolicy"), name="p", **fields)


def planned(made: CleanupPolicy, *objects: dict[str, Any], now: datetime = NOW, answers: Any = None, **how: Any) -> Plan:  # fmt: skip
    resolve = answers or (lambda _lookups: pytest.fail("asked for what nobody has to know"))
    return conclude(plan(compile_cleanup(made), objects, Inputs(now=now), **how), resolve)


def names(found: Plan) -> list[str]:
    return [decision.object["metadata"]["name"] for decision in found.deletions]


def test_matched_objects_go_and_others_are_not_mentioned() -> None:
    found = planned(policy(), thing("a"), thing("b", kind="PolicyException"))

    assert [(one.object["metadata"]["name"], one.goes) for one in found.decisions] == [("a", True)]
    assert found.decisions[0].reason == "matched by ClusterCleanupPolicy `p`"


def test_an_empty_match_deletes_nothing() -> None:
    assert planned(policy(match={}), thing("a")).decisions == ()


def test_an_excluded_object_stays_and_is_listed() -> None:
    exclude = {"any": [{"resources": {"names": ["keep-*"]}}]}

    found = planned(policy(exclude=exclude), thing("keep-me"), thing("a"))

    assert names(found) == ["a"]
    assert found.decisions[0].reason == "excluded by the policy"


def test_a_namespaced_policy_stays_in_its_namespace() -> None:
    made = policy(kind="CleanupPolicy", namespace="dev")

    found = planned(made, thing("a"), thing("b", namespace="prod"), thing("c", namespace=""))

    assert names(found) == ["a"]
    assert found.deletions[0].reason == "matched by CleanupPolicy `dev/p`"


def test_namespace_labels_decide_namespace_selectors() -> None:
    match = {
        "any": [
            {"resources": {"kinds": ["Pod"], "namespaceSelector": {"matchLabels": {"env": "dev"}}}}
        ]
    }

    found = planned(
        policy(match=match),
        thing("a"),
        thing("b", namespace="prod"),
        namespace_labels={"dev": {"env": "dev"}},
    )

    assert names(found) == ["a"]


def test_conditions_decide_with_what_was_looked_up_and_an_error_keeps_the_object() -> None:
    asked: list[Any] = []

    def answers(lookups: Any) -> dict[Any, Answer]:
        asked.extend(lookups)
        return {one: Answer.found({"data": {"age": "old"}}) for one in lookups}

    key = "{{ target.metadata.labels.age }}"
    made = policy(
        context=({"name": "wanted", "configMap": {"name": "settings", "namespace": "dev"}},),
        conditions={"any": [{"key": key, "operator": "Equals", "value": "{{ wanted.data.age }}"}]},
    )
    things = [thing(age, labels={"age": age}) for age in ("old", "new")]

    found = planned(made, *things, thing("odd"), answers=answers)

    assert names(found) == ["old"]
    assert asked == [ConfigMapLookup("dev", "settings")]
    reasons = [one.reason for one in found.decisions]
    assert reasons[:2] == [
        "matched by ClusterCleanupPolicy `p`, and its conditions hold",
        "the conditions do not hold",
    ]
    assert reasons[2].startswith("the conditions could not be checked: ")
    assert [one.error is None for one in found.decisions] == [True, True, False]


def test_conditions_that_never_stop_asking_keep_the_object_and_say_so() -> None:
    names = [f"a{number}" for number in range(MOST_ROUNDS + 1)]
    entries = [{"name": one, "configMap": {"name": one, "namespace": "dev"}} for one in names]
    key = "".join(f"{{{{ {one}.data.x }}}}" for one in names)
    conditions = {"any": [{"key": key, "operator": "NotEquals", "value": "x"}]}
    made = policy(context=tuple(entries), conditions=conditions)

    def answers(lookups: Any) -> dict[Any, Answer]:
        return {one: Answer.found({"data": {"x": "y"}}) for one in lookups}

    [decision] = planned(made, thing("a"), answers=answers).decisions
    assert not decision.goes
    assert decision.error is not None
    assert "more answers from outside" in decision.reason


def test_a_chain_of_context_entries_that_is_too_long_keeps_the_object() -> None:
    entries = [{"name": "a0", "variable": {"value": "x"}}]
    entries += [{"name": f"a{n}", "variable": {"value": f"{{{{ a{n - 1} }}}}"}} for n in range(1, 2000)]  # fmt: skip
    conditions = {"any": [{"key": "{{ a1999 }}", "operator": "Equals", "value": "x"}]}

    [decision] = planned(policy(context=tuple(entries), conditions=conditions), thing("a")).decisions  # fmt: skip

    assert not decision.goes
    assert "nested too deeply" in decision.reason


def test_what_the_configuration_keeps_from_policies_stays() -> None:
    found = planned(policy(), thing("a"), is_filtered=lambda obj: obj["metadata"]["name"] == "a")

    assert names(found) == []
    assert found.decisions[0].reason == "left out by the resource filters of the configuration"


def test_an_object_that_is_already_going_is_left_alone() -> None:
    found = planned(policy(), thing("a", deletionTimestamp="2026-11-21T10:00:00Z"))

    assert (found.deletions, found.decisions[0].reason) == ((), "already being deleted")


def test_the_next_run_counts_from_creation_and_then_from_the_last_run() -> None:
    assert planned(policy()).run_at == datetime(2026, 11, 21, 10, tzinfo=UTC)
    ran = policy(last_execution_at="2026-11-21T10:00:05Z")
    assert planned(ran).run_at == datetime(2026, 11, 21, 11, tzinfo=UTC)


def test_a_policy_in_a_file_runs_from_now() -> None:
    assert planned(policy(created_at="")).run_at == datetime(2026, 11, 21, 11, tzinfo=UTC)


def test_a_schedule_that_never_comes_has_no_run() -> None:
    found = planned(policy(schedule="0 0 30 2 *"))

    assert found.run_at is None


def test_the_propagation_is_passed_on_where_it_is_known() -> None:
    assert planned(policy(propagation="Orphan")).propagation == "Orphan"
    assert planned(policy(propagation="Sideways")).propagation == ""


def test_an_unreadable_schedule_is_refused() -> None:
    with pytest.raises(PolicyError):
        compile_cleanup(policy(schedule="soon"))


def generated(**fields: Any) -> CleanupPolicy:
    fields = {
        "schedule": "18 14 21 11 6",
        "match": ONE_EXCEPTION,
        "labels": TRIGGER,
        "created_at": "2026-11-21T10:18:30Z",
        **fields,
    }
    return policy(**fields)


def exception(name: str = "emergency", uid: str = "u1") -> dict[str, Any]:
    return thing(name, kind="PolicyException", uid=uid)


def test_a_policy_generated_for_one_object_deletes_it_four_hours_later() -> None:
    found = planned(generated(), exception())

    assert names(found) == ["emergency"]
    assert found.run_at == datetime(2026, 11, 21, 14, 18, tzinfo=UTC)


def test_a_later_namesake_is_not_deleted() -> None:
    found = planned(generated(), exception(uid="u2"))

    assert found.deletions == ()
    assert found.decisions[0].reason == (
        "not the object that the policy was made for, which has UID `u1`"
    )
    assert planned(generated(), thing("emergency", kind="PolicyException")).deletions == ()


def test_a_generated_policy_is_spent_after_its_run() -> None:
    found = planned(generated(last_execution_at="2026-11-21T14:18:01Z"), exception())

    assert (found.spent, found.decisions, found.run_at) == (True, (), None)
    assert not planned(generated(), exception()).spent


def test_a_date_a_fortnight_away_is_not_a_week_early() -> None:
    made = generated(schedule="24 19 20 2 1", created_at="2023-02-06T19:24:30Z")

    assert planned(made).run_at == datetime(2023, 2, 20, 19, 24, tzinfo=UTC)


@pytest.mark.parametrize(
    "fields",
    [
        {"labels": {}},
        {"labels": {**TRIGGER, "generate.kyverno.io/trigger-kind": "Namespace"}},
        {"match": {"any": [{"resources": {"kinds": ["PolicyException"]}}]}},
        {"match": {"any": [{"resources": {"kinds": ["PolicyException"], "names": ["e*"]}}]}},
        {"match": {"any": [{"resources": {"kinds": ["PolicyException"], "names": ["emergency", "b"]}}]}},
        {"match": {"any": [{"resources": {"kinds": ["PolicyException", "Pod"], "names": ["emergency"]}}]}},
        {"match": {"any": [*ONE_EXCEPTION["any"], {"resources": {"kinds": ["PolicyException"]}}]}},
    ],
)  # fmt: skip
def test_a_policy_for_more_than_its_trigger_recurs_as_upstream(fields: dict[str, Any]) -> None:
    made = generated(last_execution_at="2026-11-21T14:18:01Z", **fields)

    found = planned(made, exception(uid="u2"), now=NOW + timedelta(days=7))

    assert names(found) == ["emergency"]
    assert found.run_at == datetime(2026, 11, 28, 14, 18, tzinfo=UTC)


@pytest.mark.parametrize(
    "match",
    [
        {"all": ONE_EXCEPTION["any"]},
        {"resources": {"kinds": ["PolicyException"], "name": "emergency"}},
        {"any": [{"resources": {"kinds": ["kyverno.io/v2/PolicyException"], "names": ["emergency"]}}]},
    ],
)  # fmt: skip
def test_a_generated_policy_is_recognised_however_it_is_written(match: dict[str, Any]) -> None:
    assert planned(generated(match=match), exception()).deletions
    assert not planned(generated(match=match), exception(uid="u2")).deletions


def test_a_generated_policy_without_a_trigger_kind_is_bound_to_the_object_all_the_same() -> None:
    made = generated(labels={"generate.kyverno.io/trigger-uid": "u1"})

    assert not planned(made, exception(uid="u2")).deletions


def test_what_is_out_of_the_policys_reach_stays_and_the_plan_says_why() -> None:
    granted = thing("granted", kind="PolicyException")
    granted["apiVersion"] = "kyverno.io/v2"
    granted["metadata"]["annotations"] = {"kpolicy.io/grant": "dev/hot-fix"}
    plain = {**thing("plain", kind="PolicyException"), "apiVersion": "kyverno.io/v2"}
    every = {"any": [{"resources": {"kinds": ["PolicyException"]}}]}

    found = planned(policy(match=every), granted, plain)

    assert names(found) == ["plain"]
    assert found.decisions[0].reason == "no policy may clean up an exception that carries a grant"
