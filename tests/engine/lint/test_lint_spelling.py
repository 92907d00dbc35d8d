"""Fields that no request has are found, with the one that was meant, and nothing else is."""

from __future__ import annotations

import pytest

from engine.lint import lint_policy
from engine.lint.cel_expressions import NAMES, check_expression
from engine.lint.spelling import misspelt_in_jmespath
from engine.parse import parse_policy


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        (
            "request.objct.metadata.name",
            "`request` has no field `objct`; did you mean `request.object`?",
        ),
        (
            "request.OldObject",
            "`request` has no field `OldObject`; did you mean `request.oldObject`?",
        ),
        (
            "request.userinfo.username",
            "`request` has no field `userinfo`; did you mean `request.userInfo`?",
        ),
        (
            "request.userInfo.userName",
            "`request.userInfo` has no field `userName`; did you mean `request.userInfo.username`?",
        ),
        (
            "request.object.metdata.name",
            "`request.object` has no field `metdata`; did you mean `request.object.metadata`?",
        ),
        (
            "request.object.metadata.lables.app",
            "`request.object.metadata` has no field `lables`; did you mean `request.object.metadata.labels`?",
        ),
        ("request.zzz", "`request` has no field `zzz`"),
        (
            "length(request.objct.spec.containers[]) > `1`",
            "`request` has no field `objct`; did you mean `request.object`?",
        ),
        (
            "request.objct.spec.containers[?name == 'a'].image | [0]",
            "`request` has no field `objct`; did you mean `request.object`?",
        ),
        (
            "{a: request.operation, b: [request.operaton]}",
            "`request` has no field `operaton`; did you mean `request.operation`?",
        ),
        (
            "request.\"objct\".spec || 'x'",
            "`request` has no field `objct`; did you mean `request.object`?",
        ),
    ],
)
def test_a_field_that_no_request_has_is_told_with_the_one_that_was_meant(expression, told):
    assert [one.message for one in misspelt_in_jmespath(expression)] == [told]


@pytest.mark.parametrize(
    "expression",
    [
        "request.object.spec.anything.at.all",
        "request.object.metadata.labels.lables",
        'request.object.metadata.annotations."a.b/c"',
        "request.roles[].x",
        "request.options.dryRun",
        "request.object.meta",
        "element.request.objct",
        "images.containers.*.registry",
        "request.object.spec.containers[?request.objct]",
        "request.object.spec.containers[].request.objct",
        "map(&request.objct, request.object.spec.items)",
        "request",
        "@",
        "'request.objct'",
    ],
)
def test_what_may_be_there_is_left_alone(expression):
    assert list(misspelt_in_jmespath(expression)) == []


def test_expressions_in_cel_are_read_alike():
    text = "object.metdata.name == request.object.metdata.name"
    assert sorted((one.severity, one.message) for one in check_expression(text, "", NAMES)) == [
        ("warning", "`object` has no field `metdata`; did you mean `object.metadata`?"),
        (
            "warning",
            "`request.object` has no field `metdata`; did you mean `request.object.metadata`?",
        ),
    ]
    right = "has(object.metadata.labels) && object.status.x == params.metdata"
    assert not list(check_expression(right, "", NAMES))


def _policy(**rule):
    return parse_policy(
        {
            "apiVersion": "kyverno.io/v1",
            "kind": "ClusterPolicy",
            "metadata": {"name": "p"},
            "spec": {
                "rules": [
                    {"name": "r", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}, **rule}
                ]
            },
        }
    )


def test_a_misspelt_variable_of_a_rule_is_a_warning_at_its_place():
    deny = {
        "conditions": {
            "all": [
                {"key": "{{ request.objct.metadata.name }}", "operator": "Equals", "value": "x"}
            ]
        }
    }
    (found,) = lint_policy(_policy(validate={"message": "no", "deny": deny}))
    assert found.severity == "warning"
    assert found.path == "spec.rules[0].validate.deny.conditions.all[0].key"
    assert found.message.endswith("did you mean `request.object`?")


def test_a_misspelt_path_of_a_context_variable_is_a_warning():
    context = [{"name": "x", "variable": {"jmesPath": "request.object.metdata.name"}}]
    (found,) = lint_policy(
        _policy(context=context, validate={"message": "{{ x }}", "pattern": {"a": "b"}})
    )
    assert found.path == "spec.rules[0].context[0].variable.jmesPath"
    of_value = [
        {"name": "x", "variable": {"value": {"request": 1}, "jmesPath": "request.anything"}}
    ]
    assert not lint_policy(
        _policy(context=of_value, validate={"message": "{{ x }}", "pattern": {"a": "b"}})
    )


@pytest.mark.parametrize(
    ("written", "meant"), [("reqest.object.kind", "request"), ("podCont", "podCount"), ("zzz", "")]
)
def test_a_root_that_is_unknown_is_refused_with_the_known_one_that_was_meant(written, meant):
    context = [{"name": "podCount", "variable": {"value": 1}}]
    pattern = {"a": f"{{{{ {written} }}}}"}
    (found,) = lint_policy(_policy(context=context, validate={"message": "no", "pattern": pattern}))
    assert found.severity == "error"
    assert found.help == (f"did you mean `{meant}`?" if meant else "")
