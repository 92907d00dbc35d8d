"""The order in which a rule asks, and what later rules see of earlier ones."""

from __future__ import annotations

from engine.model import RuleType, Status
from tests.engine.evaluate.builders import config_map, decide, deny, exception, policy


def _statuses(found):
    return [(result.rule, result.status) for result in found.results]


def test_a_rule_that_does_not_match_gives_no_answer() -> None:
    rule = deny(match={"any": [{"resources": {"kinds": ["Secret"]}}]})

    found = decide(policy(rule), config_map())

    assert found.results == []


def test_preconditions_that_do_not_hold_skip_the_rule_and_say_so() -> None:
    rule = deny(
        preconditions={
            "all": [{"key": "a", "operator": "Equals", "value": "b", "message": "a is not b"}]
        }
    )

    (result,) = decide(policy(rule), config_map()).results

    assert result.status is Status.SKIP
    assert result.message == "preconditions not met; a is not b"


def test_a_failing_precondition_is_not_rescued_by_an_exception() -> None:
    rule = deny(
        preconditions={
            "all": [{"key": "{{ request.object.data.nope }}", "operator": "Equals", "value": "b"}]
        }
    )

    (result,) = decide(policy(rule), config_map(), exceptions=[exception("r")]).results

    assert result.status is Status.ERROR
    assert result.message.startswith("failed to evaluate preconditions: ")


def test_apply_one_stops_after_the_first_rule_that_was_applied() -> None:
    found = decide(policy(deny("a"), deny("b"), applyRules="One"), config_map())

    assert _statuses(found) == [("a", Status.FAIL)]


def test_apply_one_goes_on_after_a_skip() -> None:
    never = {"any": []}
    found = decide(
        policy(deny("a", preconditions=never), deny("b"), deny("c"), applyRules="One"), config_map()
    )

    assert _statuses(found) == [("a", Status.SKIP), ("b", Status.FAIL)]


def test_all_rules_are_applied_by_default() -> None:
    found = decide(policy(deny("a"), deny("b")), config_map())

    assert _statuses(found) == [("a", Status.FAIL), ("b", Status.FAIL)]


def test_mutations_come_first_and_later_rules_see_them() -> None:
    check = {"name": "check", "validate": {"message": "x", "pattern": {"data": {"a": "set"}}}}
    change = {"name": "change", "mutate": {"patchStrategicMerge": {"data": {"a": "set"}}}}
    more = {
        "name": "more",
        "mutate": {"patchStrategicMerge": {"data": {"b": "{{ request.object.data.a }}!"}}},
    }
    before = config_map()

    found = decide([policy(check, name="v"), policy(change, more, name="m")], before)

    assert [result.rule for result in found.results] == ["change", "more", "check"]
    assert {result.status for result in found.results} == {Status.PASS}
    assert found.patched["data"] == {"a": "set", "b": "set!"}
    assert before == config_map()


def test_a_bad_policy_does_not_stop_the_others() -> None:
    from engine.evaluate import PolicySet

    bad = policy(
        deny(preconditions={"all": [{"key": "a", "operator": "Like", "value": "b"}]}), name="bad"
    )

    compiled = PolicySet.compile([bad, policy(deny())])

    assert [problem.policy.name for problem in compiled.problems] == ["bad"]
    assert "`Like`" in compiled.problems[0].error.message
    assert [item.policy.name for item in compiled.policies] == ["p"]


def test_results_tell_what_kind_of_rule_answered() -> None:
    (result,) = decide(policy(deny()), config_map()).results

    assert (result.policy, result.type) == ("p", RuleType.VALIDATION)


def test_a_namespaced_policy_decides_in_its_own_namespace_only() -> None:
    inside = decide(policy(deny(), namespace="dev"), config_map())
    outside = decide(policy(deny(), namespace="prod"), config_map())

    assert [result.policy for result in inside.results] == ["dev/p"]
    assert outside.results == []


def test_a_mutation_that_fails_ends_the_mutations_of_its_policy() -> None:
    def labels(name: str, value: str) -> dict[str, object]:
        patch = {"metadata": {"labels": {"tier": value}}}
        return deny(name=name, validate=None, mutate={"patchStrategicMerge": patch})

    rules = [labels("first", "{{ request.object.data.nope }}"), labels("second", "b")]

    found = decide(policy(*rules), config_map())

    assert _statuses(found) == [("first", Status.ERROR)]
    assert found.patched == config_map()
