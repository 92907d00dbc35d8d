"""Lint of what is written in CEL: expressions that do not compile, names that nobody declares, fields that nobody knows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from engine.evaluate.cel.bindings import NAMES
from engine.lint import lint_binding, lint_cel_exception, lint_cel_policy
from engine.lint.cel_expressions import NAMES as KNOWN
from engine.parse.celpolicies import parse_binding, parse_cel_exception, parse_cel_policy
from kubectl_kpolicy import entry

if TYPE_CHECKING:
    from pathlib import Path

RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}  # fmt: skip


def vpol(*expressions: str, kind: str = "ValidatingPolicy", **spec: Any) -> dict[str, Any]:
    group = "policies.kyverno.io" if kind.endswith("ValidatingPolicy") else "admissionregistration.k8s.io"  # fmt: skip
    return {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [RULE]},
            "validations": [{"expression": text, "message": "m"} for text in expressions],
            **spec,
        },
    }


def said(doc: dict[str, Any]) -> list[str]:
    return [f"{one.severity}: {one}" for one in lint_cel_policy(parse_cel_policy(doc))]


def test_the_names_are_those_that_evaluation_binds() -> None:
    assert KNOWN == NAMES


def test_sound_policies_of_all_kinds_have_no_findings() -> None:
    variables = [{"name": "a", "expression": "object.data"}, {"name": "b", "expression": "variables.a.size()"}]  # fmt: skip
    text = "variables.b > 0 && object.data.all(key, key != 'x') && type(object) == map"

    assert said(vpol(text, variables=variables)) == []
    assert said(vpol("'x' in exceptions.allowedValues")) == []
    assert said(vpol(text, variables=variables, kind="ValidatingAdmissionPolicy")) == []


@pytest.mark.parametrize(
    ("expression", "finding"),
    [
        ("object.", 'Invalid value: "object.": compilation failed: ERROR: <input>:1:8: '),
        (
            "true &&\n objct.x",
            "compilation failed: ERROR: <input>:2:2: undeclared reference to 'objct'",
        ),
        ("variables.x", "compilation failed: ERROR: <input>:1:10: undefined field 'x'"),
        (
            "[1].exists(i, variables['x'] == i)",
            "compilation failed: ERROR: <input>:1:24: undefined field 'x'",
        ),
        ("", "Required value: expression is empty"),
        ("nothing(object)", "undeclared reference to 'nothing'"),
    ],
)
def test_an_expression_that_cannot_work_is_an_error_at_its_place(
    expression: str, finding: str
) -> None:
    [found] = said(vpol("true", expression))

    assert found.startswith("error: spec.validations[1].expression: ")
    assert finding in found


def test_optional_variables_may_be_missing() -> None:
    assert said(vpol("has(variables.x) || variables.?x.orValue(1) == 1")) == []


def test_every_list_of_expressions_is_checked() -> None:
    doc = vpol(
        "true",
        matchConditions=[{"name": "c", "expression": "a"}],
        variables=[{"name": "v", "expression": "b"}],
        auditAnnotations=[{"key": "k", "valueExpression": "c"}],
    )
    doc["spec"]["validations"][0]["messageExpression"] = "d"

    assert [one.split(": ")[1] for one in said(doc)] == [
        "spec.matchConditions[0].expression",
        "spec.variables[0].expression",
        "spec.validations[0].messageExpression",
        "spec.auditAnnotations[0].valueExpression",
    ]


def test_names_stand_once_and_variables_before_they_are_read() -> None:
    twice = [{"name": "a", "expression": "1"}, {"name": "a", "expression": "2"}]
    later = [{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}]

    assert said(vpol("true", variables=twice)) == [
        'error: spec.variables[0].name: Duplicate value: "a"'
    ]
    [found] = said(vpol("true", variables=later))
    assert found.startswith("error: spec.variables[0].expression: Invalid value: ")
    assert found.endswith("undefined field 'b'")


def test_a_policy_that_concerns_or_checks_nothing_is_refused() -> None:
    nothing = (
        "error: spec.matchConstraints: Required value: "
        "a matchConstraints with at least one resource rule is required"
    )
    for kind in ("ValidatingPolicy", "NamespacedValidatingPolicy", "ValidatingAdmissionPolicy"):
        assert said(vpol("true", matchConstraints={}, kind=kind)) == [nothing]
    assert said(vpol("true", matchConstraints={}, evaluation={"mode": "JSON"})) == []
    [found] = said(vpol())
    assert found.startswith("error: spec.validations: Required value")


def test_rules_that_leave_a_part_open_are_told() -> None:
    rule = {key: value for key, value in RULE.items() if key != "operations"}
    [found] = said(vpol("true", matchConstraints={"resourceRules": [rule]}))

    assert found == "warning: spec.matchConstraints.resourceRules[0].operations: unset means all"


def test_settings_stay_within_what_the_api_server_takes() -> None:
    [found] = said(vpol("true", webhookConfiguration={"timeoutSeconds": 31}))
    assert "between 1 and 30" in found
    [found] = said(vpol("true", validationActions=["Deny", "Deny"]))
    assert found.startswith("error: spec.validationActions: Duplicate value")
    doc = vpol("true")
    doc["spec"]["validations"][0]["message"] = "a\nb"
    assert "must not contain line breaks" in said(doc)[0]


@pytest.mark.parametrize(
    ("selector", "finding"),
    [
        ({"matchExpressions": [{"key": "a", "operator": "Near"}]}, '"Near" is not a valid label selector operator'),
        ({"matchExpressions": [{"key": "a b", "operator": "Exists"}]}, 'key: Invalid value: "a b": name part'),
        ({"matchLabels": {"team": "core-*"}}, 'values[0][team]: Invalid value: "core-*": a valid label'),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "kind", ["ValidatingPolicy", "NamespacedValidatingPolicy", "ValidatingAdmissionPolicy"]
)
def test_selectors_are_those_that_the_api_server_takes(
    kind: str, selector: dict[str, Any], finding: str
) -> None:
    constraints = {"resourceRules": [RULE], "objectSelector": selector, "namespaceSelector": {}}

    [found] = said(vpol("true", kind=kind, matchConstraints=constraints))

    assert found.startswith("error: spec.matchConstraints.objectSelector: Invalid value: {")
    assert finding in found


def test_conditions_of_native_policies_are_named_as_the_api_server_demands() -> None:
    conditions = [{"name": "not a name", "expression": "true"}]

    [found] = said(vpol("true", kind="ValidatingAdmissionPolicy", matchConditions=conditions))

    assert found.startswith('error: spec.matchConditions[0].name: Invalid value: "not a name": ')
    assert said(vpol("true", matchConditions=conditions)) == []


def test_mutations_are_checked() -> None:
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{"}}
    doc = vpol(kind="MutatingAdmissionPolicy", mutations=[mutation])
    del doc["spec"]["validations"]
    [found] = said(doc)
    assert found.startswith("error: spec.mutations[0].jsonPatch.expression: Invalid value")

    doc["spec"]["mutations"] = []
    assert said(doc) == [
        "error: spec.mutations: Required value: a policy has at least one mutation"
    ]


def exception(**spec: Any) -> list[str]:
    doc = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "PolicyException",
        "metadata": {"name": "e", "namespace": "ops"},
        "spec": {"policyRefs": [{"name": "p", "kind": "ValidatingPolicy"}], **spec},
    }
    return [f"{one.severity}: {one}" for one in lint_cel_exception(parse_cel_exception(doc))]


def test_exceptions_name_policies_and_end_at_an_instant() -> None:
    assert exception(expiresAt="2026-11-21T10:00:00Z") == []
    assert exception(policyRefs=[])[0].startswith("error: spec.policyRefs: Required value")
    [found] = exception(policyRefs=[{"name": "p", "kind": "Policy"}])
    assert found.startswith('error: spec.policyRefs[0].kind: Unsupported value: "Policy"')
    assert exception(policyRefs=[{"name": "p", "kind": "MutatingPolicy"}]) == []
    [found] = exception(expiresAt="tomorrow")
    assert found.startswith('error: spec.expiresAt: Invalid value: "tomorrow"')
    [found] = exception(matchConditions=[{"name": "x", "expression": "variables.y"}])
    assert "undefined field 'y'" in found


def binding(**spec: Any) -> list[str]:
    doc = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "b"},
        "spec": {"policyName": "p", "validationActions": ["Deny"], **spec},
    }
    return [str(one) for one in lint_binding(parse_binding(doc))]


def test_bindings_name_a_policy_and_say_what_a_failure_does() -> None:
    assert binding() == []
    assert binding(policyName="")[0].startswith("spec.policyName: Required value")
    assert binding(validationActions=[])[0].startswith("spec.validationActions: Required value")
    assert "both Deny and Warn" in binding(validationActions=["Deny", "Warn"])[0]


TEXT = """\
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata:
  name: p
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  validationAction: [Deny]
  validations:
  - message: m
    expression: object.spec ==
"""


def lint(capsys: Any, path: Path, text: str) -> tuple[int, list[dict[str, Any]]]:
    (path / "p.yaml").write_text(text)
    code = entry.main(["lint", str(path / "p.yaml"), "-o", "json", "-q"])
    return code, json.loads(capsys.readouterr().out)["findings"]


def test_the_command_gives_the_line_of_each_finding(capsys: Any, tmp_path: Path) -> None:
    code, found = lint(capsys, tmp_path, TEXT)

    assert code == 1
    assert [(one["line"], one["path"]) for one in found] == [
        (9, "spec.validationAction"),
        (12, "spec.validations[0].expression"),
    ]
    assert found[0]["help"] == "did you mean `validationActions`?"


def test_the_command_checks_exceptions_native_policies_and_bindings(
    capsys: Any, tmp_path: Path
) -> None:
    native = vpol("object.", kind="ValidatingAdmissionPolicy")
    bound = {**native, "kind": "ValidatingAdmissionPolicyBinding", "spec": {"policyName": "p"}}
    waived = {**vpol(), "kind": "PolicyException", "spec": {"policyRefs": []}}
    text = "\n---\n".join(json.dumps(one) for one in (native, bound, waived))
    code, found = lint(capsys, tmp_path, text)

    assert code == 1
    assert [one["path"] for one in found] == [
        "spec.validations[0].expression",
        "spec.validationActions",
        "spec.policyRefs",
    ]


SOMETHING = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["pods"],
}


def of_kind(kind: str, **spec: Any) -> list[str]:
    document = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": kind,
        "metadata": {"name": "p"},
        "spec": {"matchConstraints": {"resourceRules": [SOMETHING]}, **spec},
    }
    found = lint_cel_policy(parse_cel_policy(document))
    return [str(one) for one in found if one.severity == "error"]


@pytest.mark.parametrize(
    "expression",
    [
        "1",
        "'a'",
        "null",
        "[true]",
        "{'a': true}",
        "object.spec.hostNetwork",
        "oldObject['a']",
        "true ? 1 : 2",
        "true ? true : object.a",
    ],
)
def test_a_validation_that_comes_to_no_boolean_is_refused(expression: str) -> None:
    said = of_kind("ValidatingPolicy", validations=[{"expression": expression}])

    assert len(said) == 1
    assert said[0].startswith("spec.validations[0].expression: Invalid value: ")
    assert said[0].endswith("output is expected to be of type bool")


@pytest.mark.parametrize(
    "expression",
    [
        "true",
        "!false",
        "object.a == 1",
        "object.a && true",
        "has(object.a)",
        "[1].exists(x, x > 0)",
        "object.a in [1]",
        "object.?a.orValue(true)",
        "variables.a",
        "size([]) < 1",
    ],
)
def test_a_validation_that_may_come_to_a_boolean_is_accepted(expression: str) -> None:
    variables = [{"name": "a", "expression": "true"}]

    assert (
        of_kind("ValidatingPolicy", variables=variables, validations=[{"expression": expression}])
        == []
    )


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"matchConditions": [{"name": "a", "expression": "object.a"}]},
            "spec.matchConditions[0].expression",
        ),
        (
            {"auditAnnotations": [{"key": "a", "valueExpression": "1"}]},
            "spec.auditAnnotations[0].valueExpression",
        ),
        (
            {"validations": [{"expression": "true", "messageExpression": "1"}]},
            "spec.validations[0].messageExpression",
        ),
    ],
)
def test_other_expressions_have_their_types_too(spec: dict[str, Any], expected: str) -> None:
    said = of_kind("ValidatingPolicy", **{"validations": [{"expression": "true"}], **spec})

    assert [one.partition(": ")[0] for one in said] == [expected]


@pytest.mark.parametrize(
    ("kind", "expression", "is_refused"),
    [
        ("ApplyConfiguration", "1", True),
        ("ApplyConfiguration", "{'metadata': {}}", True),
        ("ApplyConfiguration", "Object{}", False),
        ("ApplyConfiguration", "object.a == 1 ? Object{} : Object{spec: Object.spec{}}", False),
        ("JSONPatch", "'a'", True),
        ("JSONPatch", "[]", True),
        ("JSONPatch", "false ? [JSONPatch{op: 'test'}] : []", False),
    ],
)
def test_a_mutation_comes_to_what_its_form_takes(
    kind: str, expression: str, is_refused: bool
) -> None:
    field = kind[0].lower().replace("j", "json") + kind[1:].removeprefix("SON")
    mutation = {"patchType": kind, field: {"expression": expression}}

    assert bool(of_kind("MutatingPolicy", mutations=[mutation])) is is_refused


def test_conditions_of_what_is_made_native_read_no_variables() -> None:
    spec = {
        "autogen": {"mutatingAdmissionPolicy": {"enabled": True}},
        "variables": [{"name": "a", "expression": "true"}],
        "matchConditions": [{"name": "c", "expression": "variables.a"}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{}]"}}],
    }

    assert (
        "variables cannot be referenced in matchConditions" in of_kind("MutatingPolicy", **spec)[0]
    )
    assert of_kind("MutatingPolicy", **{**spec, "autogen": {}}) == []
