"""Results that are handed out ready-made must be those that the rule itself would give."""

from __future__ import annotations

from typing import Any

import pytest

from engine.evaluate import Inputs, PolicySet, evaluate
from engine.lang.chance import Chance
from engine.model import Status, review_of

from .builders import config_map, decide, policy


def pattern(**more: Any) -> dict[str, Any]:
    return {"name": "r", "validate": {"message": "m", "pattern": {"data": {"a": "x"}}, **more}}


def _asked(review: Any, *rules: dict[str, Any], inputs: Inputs | None = None, **spec: Any) -> Any:
    policies = PolicySet.compile([policy(*rules, **spec)])
    return evaluate(policies, review, inputs or Inputs())


def test_ready_results_are_those_that_a_traced_evaluation_comes_to() -> None:
    rules = [
        pattern(),
        {"name": "either", "validate": {"anyPattern": [{"data": {"a": "y"}}, {"data": {"a": "x"}}]}},
        {"name": "sets", "mutate": {"patchStrategicMerge": {"data": {"+(b)": "1", "c": "2"}}}},
        {"name": "idle", "mutate": {"patchStrategicMerge": {"data": {"+(a)": "1"}}}},
        {"name": "applies", "validate": {"message": "m", "pattern": {"data": {"(a)": "y", "b": "?*"}}}},
        {"name": "short", "validate": {"pattern": {"data": {"a": [1, 2]}}}},
        {"name": "says", "validate": {"message": "{{ request.object.data.a }}", "pattern": {"data": {"a": "x"}}}},
    ]  # fmt: skip
    policies = PolicySet.compile([policy(*rules)])
    for data in ({"a": "x"}, {"a": "y"}, {"a": "z"}, {}, {"a": "x", "b": None}, {"a": [1]}):
        for operation in ("CREATE", "UPDATE", "CREATE"):
            before = config_map(**data) if operation == "UPDATE" else None
            review = review_of(config_map(**data), operation=operation, old_object=before)
            quick = evaluate(policies, review, Inputs())
            traced = evaluate(policies, review, Inputs(), trace=True)
            assert quick.results == traced.results
            assert quick.patched == traced.patched


def test_failures_at_the_same_place_are_one_result_until_there_are_too_many_places() -> None:
    rule = {"name": "r", "validate": {"pattern": {"metadata": {"labels": {"*": "x"}}}}}
    policies = PolicySet.compile([policy(rule)])

    def failed(key: str) -> Any:
        obj = {**config_map(), "metadata": {"name": "c", "labels": {key: "y"}}}
        (result,) = evaluate(policies, review_of(obj), Inputs()).results
        assert result.message.endswith(f"rule r failed at path /metadata/labels/{key}/")
        return result

    first = failed("a")
    assert failed("a") is first
    for number in range(20):
        failed(f"k{number}")
    assert failed("a") is not first
    assert failed("k" * 1000) is not failed("k" * 1000)


def test_where_nothing_is_to_change_all_objects_get_one_result_and_stay_as_they_are() -> None:
    rule = {"name": "r", "mutate": {"patchStrategicMerge": {"data": {"+(a)": "1"}}}}
    policies = PolicySet.compile([policy(rule)])

    def asked(**data: str) -> Any:
        return evaluate(policies, review_of(config_map(**data)), Inputs())

    one, other, changed = asked(a="x"), asked(a="y", b="z"), asked(b="z")
    assert one.results[0] is other.results[0]
    assert (one.results[0].status, one.results[0].patched) == (Status.SKIP, None)
    assert one.patched == config_map(a="x")
    assert changed.patched == config_map(a="1", b="z")
    assert asked(a="x").results[0] is one.results[0]


def test_a_later_pattern_of_any_pattern_says_which_it_was() -> None:
    rule = {"name": "r", "validate": {"anyPattern": [{"data": {"a": "y"}}, {"data": {"a": "x"}}]}}

    (result,) = decide(policy(rule), config_map(a="x")).results

    assert result.message == "validation rule 'r' anyPattern[1] passed."


@pytest.mark.parametrize("value", ["x", "y"])
def test_whether_a_result_enforces_follows_the_overrides_of_its_namespace(value: str) -> None:
    overrides = [{"action": "Enforce", "namespaces": ["dev"]}]
    rule = pattern(failureAction="Audit", failureActionOverrides=overrides)
    elsewhere = {**config_map(a=value), "metadata": {"name": "c", "namespace": "prod"}}
    policies = PolicySet.compile([policy(rule)])

    found = [
        evaluate(policies, review_of(obj), Inputs()).results[0].enforce
        for obj in (config_map(a=value), elsewhere, config_map(a=value))
    ]

    assert found == [True, False, True]


def test_a_deletion_gets_no_answer_from_a_pattern() -> None:
    review = review_of(config_map(a="x"), operation="DELETE")

    assert _asked(review, pattern()).results == []


def test_operations_are_told_apart_by_the_same_policies() -> None:
    match = {"any": [{"resources": {"kinds": ["ConfigMap"], "operations": ["UPDATE"]}}]}
    policies = PolicySet.compile([policy({**pattern(), "match": match})])

    found = [
        len(evaluate(policies, review_of(config_map(a="x"), operation=one), Inputs()).results)
        for one in ("CREATE", "UPDATE", "CREATE")
    ]

    assert found == [0, 1, 0]


def test_names_are_asked_of_every_object() -> None:
    match = {"any": [{"resources": {"kinds": ["ConfigMap"], "names": ["c"]}}]}
    policies = PolicySet.compile([policy({**pattern(), "match": match})])
    other = {**config_map(a="x"), "metadata": {"name": "d", "namespace": "dev"}}

    found = [
        len(evaluate(policies, review_of(obj), Inputs()).results)
        for obj in (config_map(a="x"), other)
    ]

    assert found == [1, 0]


def test_a_policy_that_stops_early_stops_no_other_of_the_same_name() -> None:
    first = policy(pattern(), {**pattern(), "name": "second"}, applyRules="One")
    again = policy(pattern(), applyRules="One")
    plain = policy(pattern(), {**pattern(), "name": "third"})
    policies = PolicySet.compile([first, again, plain])

    found = evaluate(policies, review_of(config_map(a="x")), Inputs())

    assert [result.rule for result in found.results] == ["r", "r", "r", "third"]


def test_a_rule_sees_what_a_constant_patch_before_it_left() -> None:
    sets = {"name": "sets", "mutate": {"patchStrategicMerge": {"data": {"a": "x"}}}}
    adds = {
        "name": "adds",
        "mutate": {"patchesJson6902": '[{"op": "copy", "from": "/data/a", "path": "/data/b"}]'},
    }

    found = _asked(review_of(config_map()), sets, adds, pattern())

    assert found.patched["data"] == {"a": "x", "b": "x"}
    assert [result.status for result in found.results] == [Status.PASS] * 3


def test_a_constant_patch_that_does_not_apply_is_an_error_of_its_rule_each_time() -> None:
    rule = {
        "name": "r",
        "mutate": {"patchesJson6902": '[{"op": "replace", "path": "/x/y", "value": 1}]'},
    }
    policies = PolicySet.compile([policy(rule)])
    review = review_of(config_map())

    first, second = (evaluate(policies, review, Inputs()).results for _ in range(2))

    assert first == second
    assert first[0].status is Status.ERROR
    assert first[0].message.startswith("failed to patch resource")


def test_a_seed_that_takes_work_is_made_with_the_first_number() -> None:
    made = []

    def seed() -> bytes:
        made.append(1)
        return b"seed"

    chance = Chance(seed)
    assert not made
    assert [chance.below(1000) for _ in range(20)] == [
        given.below(1000) for given in [Chance(b"seed")] for _ in range(20)
    ]
    assert made == [1]
