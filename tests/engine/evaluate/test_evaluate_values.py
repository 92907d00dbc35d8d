"""Values are data: what an object, a request or a look-up holds is never read as an expression of the policy."""

from __future__ import annotations

from typing import Any

import pytest

from engine.evaluate import Answer, ConfigMapLookup, Inputs, ListLookup, PolicySet, evaluate
from engine.model import Status, UserInfo, review_of
from tests.engine.evaluate.builders import NOW, config_map, decide, policy

SECRET = "s3cr3t"
EVIL = "{{ inner.data.token }}"
INNER = ConfigMapLookup("other", "inner")
ANSWERS = {INNER: Answer.found({"data": {"token": SECRET, "path": "inner.data.token"}})}
CONTEXT = [{"name": "inner", "configMap": {"name": "inner", "namespace": "other"}}]
X = "{{ request.object.data.x }}"


def _decided(rule: dict[str, Any], obj: dict[str, Any], **more: Any) -> Any:
    return decide(policy({"name": "r", "context": CONTEXT, **rule}), obj, answers=ANSWERS, **more)


def _everything(found: Any) -> str:
    return str([(r.message, r.patched, r.generated, r.properties) for r in found.results])


def _deny(key: str, message: str = "m") -> dict[str, Any]:
    condition = {"key": key, "operator": "NotEquals", "value": "-", "message": f"c {key}"}
    return {"validate": {"message": message, "deny": {"conditions": {"all": [condition]}}}}


def _variable(**entry: Any) -> dict[str, Any]:
    return {
        "context": [*CONTEXT, {"name": "v", "variable": entry}],
        "validate": {"message": "got {{ v }}", "deny": {}},
    }


RULES = {
    "message": {"validate": {"message": f"team {X}", "deny": {}}},
    "message that is no text, with conditions": _deny(
        f"k {X}", message="{{ request.object.data }}"
    ),
    "condition": _deny(f"k {X}"),
    "report property": {**_deny("k"), "reportProperties": {"team": f"is {X}"}},
    "pattern": {"validate": {"message": f"no {X}", "pattern": {"data": {"y": f"a {X}"}}}},
    "context value": _variable(value=f"v {X}"),
    "context default": _variable(value="{{ missing || '' }}", jmesPath="gone", default=f"v {X}"),
    "foreach": {
        "validate": {
            "foreach": [
                {
                    "list": "[request.object.data.x]",
                    "deny": {
                        "conditions": {
                            "all": [
                                {
                                    "key": "e {{ element }}",
                                    "operator": "NotEquals",
                                    "value": "-",
                                    "message": "e {{ element }}",
                                }
                            ]
                        }
                    },
                }
            ]
        }
    },
    "overlay": {"mutate": {"patchStrategicMerge": {"data": {"z": f"is {X}", f"k-{X}": "1"}}}},
    "patch": {"mutate": {"patchesJson6902": f'- {{op: add, path: /data/z, value: "is {X}"}}'}},
    "generated data": {
        "generate": {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "g",
            "namespace": "dev",
            "data": {"data": {"copied": f"is {X}"}},
        }
    },
}


@pytest.mark.parametrize("place", RULES)
def test_a_value_with_braces_is_text_wherever_a_policy_uses_it(place: str) -> None:
    found = _decided(RULES[place], config_map(x=EVIL, y="b"))

    assert found.missing == []
    assert found.results
    assert SECRET not in _everything(found)
    assert EVIL in _everything(found)


@pytest.mark.parametrize("place", RULES)
def test_a_switch_has_values_read_again(place: str) -> None:
    compiled = PolicySet.compile([policy({"name": "r", "context": CONTEXT, **RULES[place]})])
    inputs = Inputs(now=NOW, answers=ANSWERS, resolve_values=True)

    found = evaluate(compiled, review_of(config_map(x=EVIL, y="b")), inputs)

    assert SECRET in _everything(found)


def test_values_of_lookups_and_of_users_are_data_too() -> None:
    answers = {INNER: Answer.found({"data": {"token": SECRET, "tmpl": EVIL}})}
    message = "{{ inner.data.tmpl }} said {{ request.userInfo.username }}"
    rule = {"name": "r", "context": CONTEXT, "validate": {"message": message, "deny": {}}}

    found = decide(policy(rule), config_map(), answers=answers, user=UserInfo(username=EVIL))

    assert found.results[0].message == f"{EVIL} said {EVIL}"


def test_a_value_that_was_copied_stays_data_for_the_next_rule() -> None:
    copied = {"patchStrategicMerge": {"data": {"y": f"is {X}"}}}
    message = {"message": "y {{ request.object.data.y }}", "deny": {}}
    rules = policy(
        {"name": "copy", "mutate": copied},
        {"name": "show", "context": CONTEXT, "validate": message},
    )

    found = decide(rules, config_map(x=EVIL), answers=ANSWERS)

    assert found.results[-1].message == f"y is {EVIL}"


def test_braces_that_only_meet_in_a_text_make_no_variable() -> None:
    x, y = "{{ request.object.data.x }}", "{{ request.object.data.y }}"
    for text in (f"a {x} inner.data.token {y}", f"a {{{{ {x} }}}}"):
        rule = {"validate": {"message": text, "deny": {}}}

        found = _decided(rule, config_map(x="{{", y="}}"))

        assert SECRET not in _everything(found)


@pytest.mark.parametrize(
    ("expression", "value", "shown"),
    [
        ("'{{ V }}'", "a'b", "a'b"),
        ("'{{ V }}'", "a\\", "a\\"),
        ("'{{ V }}'", "' || inner.data.token || '", "' || inner.data.token || '"),
        ("'it\\'s {{ V }}'", '`"', "it's `\""),
        ("request.object.data.\"{{ V }}\" || 'none'", '" || inner.data.token || "', "none"),
        ('request.object.data."{{ V }}"', "y", "why"),
        ("request.object.data.{{ V }}", "y", "why"),
        ("request.object.{{ V }}", "data.y", "why"),
        ("`{{ V }}`[0]", '["`", 1]', "`"),
        ('`["{{ V }}"]`[0]', '"]` || inner.data.token || `["', '"]` || inner.data.token || `["'),
        ("[request.object.data.y][{{ V }}]", "0", "why"),
    ],
)
def test_a_value_in_an_expression_is_quoted_as_its_place_asks(
    expression: str, value: str, shown: str
) -> None:
    rule = {"validate": {"message": f"got {{{{ {_on_x(expression)} }}}}", "deny": {}}}

    found = _decided(rule, config_map(x=value, y="why"))

    assert found.results[0].message == f"got {shown}"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("{{ V }}", "inner.data.token"),
        ("request.object.data.gone || {{ V }}", "inner.data.token"),
        ("request.object.data.{{ V }}", "y || inner.data.token"),
        ("request.object.data.{{ V }}", "gone]"),
        ("request.object.data.{{ V }}(@)", "keys"),
        ("`{{ V }}` || `{{ V }}`", "1\\"),
        ("[request.object.data.{{ V }}]", "x,inner.data.token"),
    ],
)
def test_a_value_outside_quotes_can_only_go_on_a_path(expression: str, value: str) -> None:
    key = f"{{{{ {_on_x(expression)} }}}}"
    condition = {"key": key, "operator": "Equals", "value": "-"}
    rule = {"validate": {"message": "m", "deny": {"conditions": {"all": [condition]}}}}

    found = _decided(rule, config_map(x=value, y="why"))

    assert found.results[0].status is Status.ERROR
    assert SECRET not in _everything(found)
    assert value not in found.results[0].message


def _on_x(expression: str) -> str:
    return expression.replace("V", "request.object.data.x")


@pytest.mark.parametrize(
    ("entry", "value", "status"),
    [
        ({"jmesPath": "{{ request.object.data.x }}"}, "inner.data.token", Status.ERROR),
        ({"value": {"a": 1}, "jmesPath": "{{ request.object.data.x }}"}, "a", Status.FAIL),
        ({"value": {"a": 1}, "jmesPath": "{{ request.object.data.x }}"}, "a||a", Status.ERROR),
        ({"value": ["b"], "jmesPath": "[?@ == '{{ request.object.data.x }}']"}, "b", Status.FAIL),
        (
            {"value": ["b"], "jmesPath": "[?@ == '{{ request.object.data.x }}']"},
            "' || '",
            Status.FAIL,
        ),
    ],
)
def test_a_value_in_the_path_of_a_context_entry_is_data(
    entry: dict[str, Any], value: str, status: Status
) -> None:
    rule = _variable(**entry)
    condition = {"key": "{{ v }}", "operator": "NotEquals", "value": "-"}
    rule["validate"] = {"message": "m", "deny": {"conditions": {"all": [condition]}}}

    found = _decided(rule, config_map(x=value))

    assert found.results[0].status is status
    assert SECRET not in _everything(found)


def test_a_reference_in_a_value_of_a_pattern_is_text() -> None:
    pattern = {"data": {"y": "b", "x": "{{ request.object.data.x }}", "z": "$(./../y)"}}
    rule = {"validate": {"message": "m", "pattern": pattern}}

    same = _decided(rule, config_map(x="$(./../y)", y="b", z="b"))
    resolved = _decided(rule, config_map(x="$(./../y)", y="b", z="c"))

    assert same.results[0].status is Status.PASS
    assert resolved.results[0].status is Status.FAIL


def test_a_backslash_before_braces_of_a_value_stays() -> None:
    rule = {"validate": {"message": "got \\{{ a }} and " + X, "deny": {}}}

    found = _decided(rule, config_map(x="\\{{ b }}"))

    assert found.results[0].message == "got {{ a }} and \\{{ b }}"


def test_targets_of_mutations_are_chosen_by_values_as_text() -> None:
    target = {"apiVersion": "v1", "kind": "Secret", "namespace": "dev", "name": f"s-{X}"}
    rule = {"mutate": {"targets": [target], "patchStrategicMerge": {"data": {"a": "b"}}}}

    found = _decided(rule, config_map(x=EVIL))

    assert found.missing == [ListLookup("v1", "Secret", "dev", f"s-{EVIL}")]


def test_variables_that_nest_deeper_than_is_read_are_refused_and_not_half_resolved() -> None:
    text = "{{ " * 70 + "request.object.data.x" + " }}" * 70
    condition = {"key": text, "operator": "Equals", "value": "-"}
    rule = {"validate": {"message": "m", "deny": {"conditions": {"all": [condition]}}}}

    found = _decided(rule, config_map(x="y"))

    assert found.results[0].status is Status.ERROR
