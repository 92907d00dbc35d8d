"""Lint of CEL expressions against the schemas of kinds: what no object has, and what is left alone because nobody knows."""

from __future__ import annotations

from typing import Any

import pytest

from engine.lint.cel_types import Schemas, rule_warnings, type_warnings
from engine.parse import parse_policy

TEXT = {"type": "string"}
SPEC = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer", "format": "int32"},
        "paused": {"type": "boolean"},
        "port": {"type": "string", "format": "int-or-string"},
        "created": {"type": "string", "format": "date-time"},
        "class": TEXT,
        "x-y": TEXT,
        "labels": {"type": "object", "additionalProperties": TEXT},
        "open": {"type": "object", "properties": {"known": TEXT}, "x-kubernetes-preserve-unknown-fields": True},
        "anything": {"type": "object"},
        "containers": {"type": "array", "items": {"$ref": "#/components/schemas/Container"}},
    },
}  # fmt: skip
DOCUMENT = {
    "components": {
        "schemas": {
            "Deployment": {
                "type": "object",
                "properties": {
                    "apiVersion": TEXT,
                    "kind": TEXT,
                    "metadata": {"allOf": [{"$ref": "#/components/schemas/Meta"}], "default": {}},
                    "spec": SPEC,
                },
                "x-kubernetes-group-version-kind": [
                    {"group": "apps", "version": "v1", "kind": "Deployment"}
                ],
            },
            "Meta": {"type": "object", "properties": {"name": TEXT, "namespace": TEXT}},
            "Container": {
                "type": "object",
                "properties": {"name": TEXT, "env": {"type": "array", "items": TEXT}},
            },
            "Loop": {"$ref": "#/components/schemas/Loop"},
        }
    }
}
SCHEMAS = Schemas(DOCUMENT)


def said(*expressions: str, variables: tuple[dict[str, Any], ...] = ()) -> list[str]:
    shape = SCHEMAS.of_kind("apps", "v1", "Deployment")
    return list(type_warnings(expressions, variables, SCHEMAS, shape))


def test_a_field_that_no_object_has_is_named_with_its_place_in_upstreams_words() -> None:
    assert said("object.replicas > 1") == [
        "ERROR: <input>:1:7: undefined field 'replicas'; | object.replicas > 1; | ......^;"
    ]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("!has(object.token)", "undefined field 'token'"),
        ("has(object.spec) && object.spec.replica > 1", "undefined field 'replica'"),
        ("oldObject.metadata.nme == ''", "undefined field 'nme'"),
        ("object.?spec.?paus.orValue(false)", "undefined field 'paus'"),
        ("object.spec.containers.all(c, c.image != '')", "undefined field 'image'"),
        ("object.spec.containers.exists(i, c, c.image != '')", "undefined field 'image'"),
        (
            "object.spec.containers.filter(c, c.name == 'a').all(c, c.nam == '')",
            "undefined field 'nam'",
        ),
        ("object.spec.containers.map(c, c.env)[0].all(e, e.x)", "type 'string' does not support"),
        ("object.spec.containers[0].image == ''", "undefined field 'image'"),
        ("cel.bind(s, object.spec, s.nothing)", "undefined field 'nothing'"),
        ("object.metadata.name.first == ''", "type 'string' does not support field selection"),
        ("object.spec.labels['a'].b == ''", "type 'string' does not support field selection"),
        ("object.spec.replicas == 'one'", "found no matching overload for '_==_' applied to '(int, string)'"),
        ("[1].all(n, object.spec.paused > n)", ""),
        ("true ? object.nothing : object.spec", "undefined field 'nothing'"),
        ("size([object.nothing]) > 0", "undefined field 'nothing'"),
        ("{'a': object.nothing}.size() > 0", "undefined field 'nothing'"),
        ("-object.nothing > 0", "undefined field 'nothing'"),
    ],
)  # fmt: skip
def test_mistakes_are_found_wherever_they_stand(expression: str, message: str) -> None:
    found = said(expression)
    assert [message in text for text in found] == ([True] if message else [])


@pytest.mark.parametrize(
    "expression",
    [
        "object.spec.replicas > 1 && object.spec.replicas > 1.5",
        "object.spec.labels.anything == 'a' && object.spec.labels['b'] == 'c'",
        "object.spec.open.more.of.it == 1 && object.spec.open.known == ''",
        "object.spec.anything.goes > 1",
        "object.spec.port == 80 || object.spec.port == 'http'",
        "timestamp(object.spec.created) > timestamp('2020-01-01T00:00:00Z')",
        "object.spec.__class__ == '' && object.spec.x__dash__y == ''",
        "request.whatever.it.holds == 1 && namespaceObject.metadata.x == ''",
        "object.spec.containers.size() > 1 && object.metadata.namespace == 'a'",
        "object.metadata.name + 'x' == 'yx' && object != null && object.spec.paused == true",
        "object.spec.labels.all(k, v, k != v) && object.spec.labels.exists(k, k == 'a')",
        "object.spec.containers.transformMap(i, c, c.name).size() > 0",
        "object.",
    ],
)
def test_what_is_sound_or_unknown_is_left_alone(expression: str) -> None:
    assert said(expression) == []


def test_variables_carry_the_shape_of_their_expression() -> None:
    variables = (
        {"name": "spec", "expression": "object.spec"},
        {"name": "first", "expression": "variables.spec.containers[0]"},
    )
    assert said("variables.first.name == ''", variables=variables) == []
    [found] = said("variables.first.image == ''", variables=variables)
    assert "undefined field 'image'" in found
    [found] = said("true", variables=({"name": "x", "expression": "object.nothing"},))
    assert "undefined field 'nothing'" in found


def test_references_in_a_circle_end_as_unknown() -> None:
    assert SCHEMAS.resolved({"$ref": "#/components/schemas/Loop"}) is None
    assert SCHEMAS.of_kind("", "v1", "Deployment") is None


def test_every_expression_of_a_rule_is_looked_at() -> None:
    cel = {
        "variables": [{"name": "v", "expression": "object.a"}],
        "expressions": [{"expression": "object.b == 1", "messageExpression": "object.c"}],
        "auditAnnotations": [{"key": "k", "valueExpression": "object.d"}],
    }
    rule = {
        "name": "r",
        "match": {"any": [{"resources": {"kinds": ["Deployment"]}}]},
        "celPreconditions": [{"name": "p", "expression": "object.e == 1"}],
        "validate": {"cel": cel},
    }
    policy = parse_policy(
        {
            "apiVersion": "kyverno.io/v1",
            "kind": "ClusterPolicy",
            "metadata": {"name": "p"},
            "spec": {"rules": [rule]},
        }
    )
    shape = SCHEMAS.of_kind("apps", "v1", "Deployment")
    found = "".join(rule_warnings(policy.rules[0], SCHEMAS, shape))
    assert [name for name in "abcde" if f"undefined field '{name}'" in found] == list("abcde")
