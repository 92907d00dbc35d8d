from __future__ import annotations

import pytest

from engine.autogen import names_of
from engine.errors import DocumentError
from engine.lang import yaml
from kubectl_kpolicy.apply.values import parse_sets, read_values


def _document(text):
    return yaml.load_all(text, file="values.yaml")[0]


def _values(text, **more):
    return read_values(_document(text), **more)


def test_global_resource_and_set_values_win_in_this_order():
    found = _values(
        """
globalValues: {a: global, b: global, c: global}
policies:
- name: p
  resources:
  - name: web
    values: {b: resource, c: resource}
""",
        overrides={"c": "set"},
    )
    assert found.for_policy("p", "web") == {"a": "global", "b": "resource", "c": "set"}
    assert found.for_policy("p", "other") == {"a": "global", "b": "global", "c": "set"}
    assert found.for_policy("q", "web") == {"a": "global", "b": "global", "c": "set"}


def test_values_of_a_rule_hold_for_its_autogen_variants():
    found = _values("policies: [{name: p, rules: [{name: r, values: {x: 1}}]}]")
    assert {rule for _, rule in found.rules} == {"r", "autogen-r", "autogen-cronjob-r"}


def test_names_of_autogen_variants_are_cut_to_63_characters():
    assert [len(name) for name in names_of("r" * 60)] == [60, 63, 63]


def test_foreach_values_are_lists_by_variable():
    found = _values("policies: [{name: p, rules: [{name: r, foreachValues: {x: [1, 2]}}]}]")
    assert found.foreach["p", "r"] == {"x": [1, 2]}


def test_labels_come_from_selectors_and_from_namespace_objects():
    found = _values(
        """
namespaceSelector: [{name: dev, labels: {env: dev}}]
namespaces: [{apiVersion: v1, kind: Namespace, metadata: {name: prod, labels: {env: prod}}}]
"""
    )
    assert found.namespace_labels == {"dev": {"env": "dev"}, "prod": {"env": "prod"}}


def test_a_kind_can_stand_for_a_subresource_of_another():
    found = _values(
        """
subresources:
- subresource: {group: autoscaling, version: v1, kind: Scale, name: deployments/scale}
  parentResource: {group: apps, version: v1, kind: Deployment, name: deployments}
"""
    )
    parent = found.parents["autoscaling", "v1", "Scale"]
    assert (parent.group, parent.kind, parent.subresource) == ("apps", "Deployment", "scale")


def test_an_unknown_field_names_file_line_and_the_nearest_known_one():
    with pytest.raises(DocumentError) as caught:
        _values("policies:\n- name: p\n  resource: []\n")
    assert caught.value.message == "unknown field `policies[0].resource` in values file"
    assert (caught.value.at.file, caught.value.at.line) == ("values.yaml", 3)
    assert caught.value.help == "did you mean `resources`?"


def test_a_wrong_type_is_refused():
    with pytest.raises(DocumentError, match="must be a map"):
        _values("globalValues: [a]")


def test_field_names_are_read_without_regard_to_letter_case():
    assert _values("GlobalValues: {a: b}").everywhere == {"a": "b"}


def test_set_takes_comma_separated_pairs_as_strings():
    assert parse_sets(["a=1,b.c=x=y", "d="]) == {"a": "1", "b.c": "x=y", "d": ""}


def test_set_without_a_value_is_refused():
    with pytest.raises(DocumentError, match="cannot read `a` of --set"):
        parse_sets(["a"])
