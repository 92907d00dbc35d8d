"""Whether a failure blocks: the five places, in order."""

from __future__ import annotations

import pytest

from engine.model import Status
from tests.engine.evaluate.builders import config_map, decide, deny, policy


def _enforces(rule_fields=None, labels=None, **spec) -> bool:
    rule = deny()
    rule["validate"].update(rule_fields or {})
    found = decide(policy(rule, **spec), config_map(), namespace_labels=labels or {})
    (result,) = found.results
    return result.enforce


def test_audit_is_the_default() -> None:
    assert not _enforces()


@pytest.mark.parametrize("word", ["Enforce", "enforce"])
def test_the_policy_can_enforce(word) -> None:
    assert _enforces(validationFailureAction=word)


def test_the_rule_wins_over_the_policy() -> None:
    assert not _enforces({"failureAction": "Audit"}, validationFailureAction="Enforce")
    assert _enforces({"failureAction": "Enforce"}, validationFailureAction="Audit")


def test_an_override_of_the_policy_holds_in_its_namespaces() -> None:
    overrides = [{"action": "Enforce", "namespaces": ["de*"]}]
    others = [{"action": "Enforce", "namespaces": ["prod"]}]

    assert _enforces(validationFailureActionOverrides=overrides)
    assert not _enforces(validationFailureActionOverrides=others)


def test_an_override_of_the_rule_comes_first() -> None:
    rule = {
        "failureAction": "Enforce",
        "failureActionOverrides": [{"action": "Audit", "namespaces": ["dev"]}],
    }

    assert not _enforces(rule, validationFailureAction="Enforce")


def test_the_rules_own_action_hides_overrides_of_the_policy() -> None:
    overrides = [{"action": "Enforce", "namespaces": ["dev"]}]

    assert not _enforces({"failureAction": "Audit"}, validationFailureActionOverrides=overrides)


def test_an_override_can_select_namespaces_by_label() -> None:
    selector = {"matchLabels": {"tier": "prod"}}
    overrides = [{"action": "Enforce", "namespaceSelector": selector}]

    assert _enforces(labels={"tier": "prod"}, validationFailureActionOverrides=overrides)
    assert not _enforces(labels={"tier": "dev"}, validationFailureActionOverrides=overrides)


def test_an_override_with_names_and_selector_needs_both() -> None:
    selector = {"matchLabels": {"tier": "prod"}}
    both = [{"action": "Enforce", "namespaces": ["dev"], "namespaceSelector": selector}]

    assert _enforces(labels={"tier": "prod"}, validationFailureActionOverrides=both)
    assert not _enforces(labels={"tier": "dev"}, validationFailureActionOverrides=both)


def test_an_update_of_an_object_that_already_broke_the_rule_is_skipped() -> None:
    rule = {
        "name": "r",
        "validate": {
            "failureAction": "Enforce",
            "message": "m",
            "pattern": {"data": {"a": "good"}},
        },
    }
    bad, worse, good = config_map(a="bad"), config_map(a="worse"), config_map(a="good")

    def status(old, **fields):
        changed = {**rule, "validate": {**rule["validate"], **fields}}
        found = decide(policy(changed), worse, old_object=old, operation="UPDATE")
        return found.results[0].status

    assert status(bad) is Status.SKIP
    assert status(good) is Status.FAIL
    assert status(bad, allowExistingViolations=False) is Status.FAIL
    assert status(bad, failureAction="Audit") is Status.FAIL
