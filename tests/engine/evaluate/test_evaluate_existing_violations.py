"""Updates of objects that broke a rule before: forgiven, unless the request itself is what the rule refuses (row A-71)."""

from __future__ import annotations

from typing import Any

import pytest

from engine.model import Status
from tests.engine.evaluate.builders import config_map, decide, policy

_POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "dev"}}


def _status(kind: str, before: dict[str, Any], after: dict[str, Any], **review: Any) -> Status:
    rule = {
        "name": "r",
        "match": {"any": [{"resources": {"kinds": [kind]}}]},
        "validate": {"failureAction": "Enforce", "deny": {}},
    }
    found = decide(policy(rule), after, old_object=before, operation="UPDATE", **review)
    (result,) = found.results
    return result.status


def test_an_update_of_an_object_that_broke_the_rule_before_is_let_through() -> None:
    assert _status("ConfigMap", config_map(a="1"), config_map(a="2")) is Status.SKIP


def test_a_request_for_a_subresource_that_a_rule_refuses_is_no_violation_from_before() -> None:
    found = _status("Pod/ephemeralcontainers", _POD, _POD, subresource="ephemeralcontainers")

    assert found is Status.FAIL


def test_a_rule_for_the_object_forgives_a_request_for_its_subresource() -> None:
    assert _status("Pod", _POD, _POD, subresource="ephemeralcontainers") is Status.SKIP


def _updated(rule: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> Status:
    found = decide(policy(rule), after, old_object=before, operation="UPDATE")
    (result,) = found.results
    return result.status


def test_a_rule_that_did_not_concern_the_object_before_was_not_broken_by_it() -> None:
    condition = {"key": "{{ request.object.data.lock || '' }}", "operator": "Equals", "value": "on"}
    rule = {
        "name": "r",
        "preconditions": {"all": [condition]},
        "validate": {"failureAction": "Enforce", "pattern": {"data": {"key": "abc"}}},
    }
    before, after = config_map(key="x"), config_map(key="x", lock="on")

    assert _updated(rule, before, after) is Status.FAIL
    assert _updated(rule, after, after) is Status.SKIP


def test_the_context_of_the_object_before_is_computed_from_it() -> None:
    condition = {"key": "{{ found }}", "operator": "Equals", "value": "bad"}
    rule = {
        "name": "r",
        "context": [{"name": "found", "variable": {"jmesPath": "request.object.data.a"}}],
        "validate": {"failureAction": "Enforce", "deny": {"conditions": {"any": [condition]}}},
    }

    assert _updated(rule, config_map(a="good"), config_map(a="bad")) is Status.FAIL
    assert _updated(rule, config_map(a="bad"), config_map(a="bad")) is Status.SKIP


_BUT_ADMINS = {"exclude": {"any": [{"clusterRoles": ["cluster-admin"]}]}}
_HAS_A = {"key": "{{ request.object.data.a || '' }}", "operator": "NotEquals", "value": ""}


def _asks(key: str, value: Any, operator: str = "AnyIn") -> dict[str, Any]:
    return {"conditions": {"any": [{"key": key, "operator": operator, "value": value}]}}


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        (
            {"deny": _asks("{{ request.userInfo.username || '' }}", "root", "NotEquals")},
            Status.FAIL,
        ),
        (
            {**_BUT_ADMINS, "deny": _asks("{{ request.operation }}", ["CREATE", "UPDATE"])},
            Status.FAIL,
        ),
        ({**_BUT_ADMINS, "deny": {}}, Status.FAIL),
        (
            {
                **_BUT_ADMINS,
                "preconditions": {"all": [_HAS_A]},
                "deny": _asks("{{ request.operation }}", ["CREATE", "UPDATE"]),
            },
            Status.FAIL,
        ),
        ({**_BUT_ADMINS, "preconditions": {"all": [_HAS_A]}, "deny": {}}, Status.SKIP),
        ({**_BUT_ADMINS, "deny": {"conditions": {"any": [_HAS_A]}}}, Status.SKIP),
        ({**_BUT_ADMINS, "pattern": {"data": {"a": "9"}}}, Status.SKIP),
        ({"deny": _asks("{{ request.operation }}", ["CREATE", "UPDATE"])}, Status.SKIP),
    ],
)
def test_a_rule_about_who_asks_and_not_about_the_object_forgives_nothing(
    rule: dict[str, Any], status: Status
) -> None:
    checks = {key: rule[key] for key in ("deny", "pattern") if key in rule}
    rest = {key: value for key, value in rule.items() if key not in checks}
    whole = {"name": "r", **rest, "validate": {"failureAction": "Enforce", **checks}}

    assert _updated(whole, config_map(a="1"), config_map(a="2")) is status
