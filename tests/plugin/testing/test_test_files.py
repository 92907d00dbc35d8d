from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import DocumentError
from engine.lang import yaml
from kubectl_kpolicy.testing.format import read_case

HEAD = "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t}\n"


def _read(text):
    document = yaml.load_all(HEAD + text, file="t/kyverno-test.yaml")[0]
    return read_case(Path("t/kyverno-test.yaml"), document)


def _refused(text):
    with pytest.raises(DocumentError) as caught:
        _read(text)
    return caught.value


def test_paths_start_from_the_folder_of_the_file():
    case = _read("policies: [../p.yaml]\nvariables: v.yaml\n")
    assert case.paths("policies") == [Path("t/../p.yaml")]
    assert case.paths("variables") == [Path("t/v.yaml")]
    assert case.paths("resources") == []


def test_a_result_names_policy_rule_kind_and_resources():
    case = _read(
        "results: [{policy: ns/p, rule: r, kind: Pod, result: fail, resources: [a, dev/b, v1/Pod/dev/c]}]"
    )
    (found,) = case.expectations
    assert (found.policy, found.rule, found.status) == ("ns/p", "r", "fail")
    assert [(one.namespace, one.name, one.kind) for one in found.resources] == [
        ("", "a", "Pod"),
        ("dev", "b", "Pod"),
        ("dev", "c", "Pod"),
    ]


def test_resource_specs_name_group_version_kind_and_namespace():
    case = _read(
        "results: [{policy: p, result: pass, resourceSpecs: [{group: apps, version: v1, kind: Deployment, namespace: d, name: w}]}]"
    )
    (declared,) = case.expectations[0].resources
    assert (declared.group, declared.version, declared.kind) == ("apps", "v1", "Deployment")
    assert declared.text == "Deployment/d/w"


def test_generated_resources_may_be_one_or_many():
    case = _read(
        "results: [{policy: p, result: pass, generatedResource: a.yaml, generatedResources: [b.yaml]}]"
    )
    assert case.expectations[0].generated == ("a.yaml", "b.yaml")


def test_an_unknown_field_is_refused_with_its_line():
    error = _refused("results:\n- policy: p\n  reslut: pass\n")
    assert error.message == "unknown field `results[0].reslut` in test file"
    assert (error.at.file, error.at.line) == ("t/kyverno-test.yaml", 6)
    assert error.help == "did you mean `result`?"


def test_an_unknown_verdict_is_refused():
    error = _refused("results: [{policy: p, result: passed}]")
    assert error.message == "`results[0].result` of test file is `passed`"


def test_a_result_without_a_policy_is_refused():
    assert "policy" in _refused("results: [{result: pass}]").message


def test_an_unknown_operation_is_refused():
    assert "operation" in _refused("results: [{policy: p, result: pass, operation: PATCH}]").message


def test_the_old_schema_is_refused_with_a_way_out():
    document = yaml.load_all("name: t\npolicies: [a]\n")[0]
    with pytest.raises(DocumentError) as caught:
        read_case(Path("x"), document)
    assert caught.value.message == "test file uses a deprecated schema"
    assert "apiVersion" in caught.value.help


def test_flags_of_policy_kinds_are_read_in_any_letter_case():
    case = _read("results: [{policy: p, result: pass, isMUtatingPolicy: true}]")
    assert case.expectations[0].policy == "p"
