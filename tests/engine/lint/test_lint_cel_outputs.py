"""What expressions of policies come to, and what those of a namespace may not do: refused when a policy is written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from engine.errors import EngineError
from engine.lang.yaml import load_all
from engine.model.kinds import BY_NAME, loaded
from engine.parse.celpolicies import parse_cel_policy
from tests.engine.observed.match_table import SHARED
from tests.engine.observed.whole import rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
TRUE = {"expression": "true"}


def errors(doc: dict[str, Any]) -> list[str]:
    policy = parse_cel_policy(doc)
    findings = loaded(BY_NAME[policy.kind].family.linter)(policy)
    return [str(one) for one in findings if one.severity == "error"]


def said(kind: str, **spec: Any) -> list[str]:
    namespace = {"namespace": "a"} if kind.startswith("Namespaced") else {}
    document = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": kind,
        "metadata": {"name": "p", **namespace},
        "spec": {"matchConstraints": {"resourceRules": [RULE]}, **spec},
    }
    return errors(document)


def places(found: list[str]) -> list[str]:
    return [one.partition(": ")[0] for one in found]


def patches(expression: str, **spec: Any) -> list[str]:
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
    return said("MutatingPolicy", mutations=[mutation], **spec)


def configuration(expression: str) -> list[str]:
    block = {"expression": expression}
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": block}
    return said("MutatingPolicy", mutations=[mutation])


@pytest.mark.parametrize(
    "expression",
    [
        "[1]",
        "['a', 'b']",
        "[{'op': 'add', 'path': '/a', 'value': 'b'}]",
        "[Object{}]",
        "[[JSONPatch{op: 'add'}]]",
        "object.spec.containers.map(c, c.name == 'a')",
        "object.a == 1 ? ['a'] : []",
        "['a'] + ['b']",
        "JSONPatch{op: 'add'}",
        "[]",
        "[object.a]",
        "object.b.map(x, variables.c)",
        "object.b.filter(x, x == 1)",
    ],
)
def test_a_list_of_something_else_than_patches_is_refused(expression: str) -> None:
    variables = [{"name": "c", "expression": "[JSONPatch{op: 'add'}]"}]
    [found] = patches(expression, variables=variables)

    assert found.startswith("spec.mutations[0].jsonPatch.expression: Invalid value: ")
    assert found.endswith("output is expected to be of type list(JSONPatch)")


@pytest.mark.parametrize(
    "expression",
    [
        "[JSONPatch{op: 'remove', path: '/a'}]",
        "object.a == 1 ? [JSONPatch{op: 'add'}] : []",
        "[JSONPatch{op: 'add'}] + object.b.map(x, JSONPatch{op: 'add'})",
        "variables.c",
        "variables.c + [JSONPatch{op: 'add'}]",
        "[[JSONPatch{op: 'add'}]].flatten()",
        "variables.c.filter(x, x.op == 'add')",
    ],
)
def test_a_list_that_may_hold_patches_is_accepted(expression: str) -> None:
    variables = [{"name": "c", "expression": "[JSONPatch{op: 'add'}]"}]
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}

    assert said("MutatingPolicy", variables=variables, mutations=[mutation]) == []


@pytest.mark.parametrize(
    ("expression", "name", "expected"),
    [
        ("Object{spec: Object.metadata{}}", "Object.metadata", "Object.spec"),
        ("Object{spec: Object{}}", "Object", "Object.spec"),
        ("Object{spec: Object.spec{a: Object.spec.b{}}}", "Object.spec.b", "Object.spec.a"),
        ("Object{spec: Object.spec{a: [Object.a{}]}}", "Object.a", "Object.spec.a"),
        ("Object{spec: Object.spec{a: {'x': Object.a{}}}}", "Object.a", "Object.spec.a"),
        ("Object{spec: Object.spec{a: object.b.map(x, Object.spec{})}}", "Object.spec", "Object.spec.a"),
        ("object.a == 1 ? Object{} : Object{spec: Object.status{}}", "Object.status", "Object.spec"),
        ("cel.bind(x, 1, Object{spec: Object.status{}})", "Object.status", "Object.spec"),
    ],
)  # fmt: skip
def test_a_part_of_a_configuration_that_is_called_after_another_place_is_refused(
    expression: str, name: str, expected: str
) -> None:
    [found] = configuration(expression)

    assert found.startswith("spec.mutations[0].applyConfiguration.expression: Invalid value: ")
    assert found.endswith(
        f'type mismatch: unexpected type name "{name}", expected "{expected}",'
        " which matches field name path from root Object type"
    )


@pytest.mark.parametrize(
    "expression",
    [
        "Object{metadata: Object.metadata{labels: {'a': 'b'}}}",
        "Object{metadata: Object.metadata{labels: Object.metadata.labels{a: 'b'}}}",
        "Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name})}}",
        "Object{spec: Object.spec{a: variables.b}}",
        "Object{spec: object.a == 1 ? Object.spec{} : Object.spec{b: 1}}",
    ],
)
def test_a_configuration_whose_parts_are_called_after_their_places_is_accepted(
    expression: str,
) -> None:
    variables = [{"name": "b", "expression": "Object.spec.a{}"}]
    block = {"expression": expression}
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": block}

    assert said("MutatingPolicy", variables=variables, mutations=[mutation]) == []


@pytest.mark.parametrize(
    "expression", ["1", "'a'", "object.a", "[generator.Apply('a', [])]", "{'a': true}"]
)
def test_what_a_generating_policy_does_comes_to_a_boolean(expression: str) -> None:
    [found] = said("GeneratingPolicy", generate=[{"expression": expression}])

    assert found.startswith("spec.generate[0].expression: Invalid value: ")
    assert found.endswith("output is expected to be of type bool")


def test_expressions_of_generation_are_compiled_and_read_what_there_is() -> None:
    template = {"value": "a: (( variables.b ))", "interpolate": "cel"}
    generate = [{"expression": "generator.Apply('a', [object])"}, {"expression": "nothing && true"}]

    assert places(said("GeneratingPolicy", generate=[*generate, {"template": template}])) == [
        "spec.generate[1].expression",
        "spec.generate[2].template",
    ]


def test_images_are_texts_and_references_are_chosen_by_a_boolean() -> None:
    found = said(
        "ImageValidatingPolicy",
        attestors=[{"name": "a", "cosign": {"key": {"data": "x"}}}],
        validations=[TRUE],
        images=[{"name": "x", "expression": "[1]"}, {"name": "y", "expression": "['a']"}],
        matchImageReferences=[{"expression": "'a'"}],
        matchConditions=[{"name": "c", "expression": "1"}],
    )

    assert places(found) == [
        "spec.matchConditions[0].expression",
        "spec.images[0].expression",
        "spec.matchImageReferences[0].expression",
    ]


def test_what_says_the_targets_of_a_mutation_comes_to_a_map() -> None:
    targets = {"expression": "['a']"}

    [found] = said("MutatingPolicy", targetMatchConstraints=targets)

    assert found.endswith("output type must be a map")
    assert said("MutatingPolicy", targetMatchConstraints={"expression": "object"}) == []


CALL = "http.Get('http://x').a"
MUTATION = {"patchType": "JSONPatch", "jsonPatch": {"expression": f"{CALL} ? [JSONPatch{{}}] : []"}}
IMAGES = {"attestors": [{"name": "a", "cosign": {"key": {"data": "x"}}}], "validations": [TRUE]}
CALLING: list[tuple[str, dict[str, Any]]] = [
    ("ValidatingPolicy", {"validations": [{"expression": f"{CALL} == 1"}]}),
    ("ValidatingPolicy", {"validations": [{**TRUE, "messageExpression": f"string({CALL})"}]}),
    (
        "ValidatingPolicy",
        {"validations": [TRUE], "variables": [{"name": "a", "expression": CALL}]},
    ),
    (
        "ValidatingPolicy",
        {"validations": [TRUE], "matchConditions": [{"name": "a", "expression": f"{CALL} == 1"}]},
    ),
    (
        "ValidatingPolicy",
        {"validations": [TRUE], "auditAnnotations": [{"key": "a", "valueExpression": f"string({CALL})"}]},
    ),
    ("MutatingPolicy", {"mutations": [MUTATION]}),
    ("GeneratingPolicy", {"generate": [{"expression": f"{CALL} == 1"}]}),
    (
        "GeneratingPolicy",
        {"generate": [{"template": {"value": f"a: (( {CALL} ))", "interpolate": "cel"}}]},
    ),
    (
        "DeletingPolicy",
        {"schedule": "* * * * *", "conditions": [{"name": "a", "expression": f"{CALL} == 1"}]},
    ),
    ("ImageValidatingPolicy", {**IMAGES, "images": [{"name": "x", "expression": f"[string({CALL})]"}]}),
    ("ImageValidatingPolicy", {**IMAGES, "matchImageReferences": [{"expression": f"{CALL} == ref"}]}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "spec"), CALLING)
def test_a_policy_of_a_namespace_does_not_call_out(kind: str, spec: dict[str, Any]) -> None:
    assert said(f"Namespaced{kind}", **spec) == [
        "spec: Forbidden: http.* is not allowed in namespaced policies"
    ]
    assert said(kind, **spec) == []


@pytest.mark.parametrize(
    ("call", "of_namespaces"),
    [
        ("resource.Get('v1', 'pods', 'a', 'b')", "resource.Get('v1', 'pods', 'b')"),
        ("resource.List('v1', 'pods', 'a', {})", "resource.List('v1', 'pods')"),
        ("resource.Post('v1', 'pods', 'a', {'a': 'b'})", "resource.Post('v1', 'pods', {'a': 'b'})"),
    ],
)
@pytest.mark.parametrize("part", ["validations", "matchConditions", "variables"])
def test_only_policies_of_the_cluster_say_in_which_namespace_objects_are(
    call: str, of_namespaces: str, part: str
) -> None:
    def of(kind: str, call: str) -> list[str]:
        spec: dict[str, Any] = {"validations": [TRUE]}
        named = {} if part == "validations" else {"name": "a"}
        spec[part] = [*spec.get(part, ()), {**named, "expression": f"{call} != null"}]
        return said(kind, **spec)

    assert of("ValidatingPolicy", call) == []
    assert of("NamespacedValidatingPolicy", of_namespaces) == []
    [found] = of("NamespacedValidatingPolicy", call)
    assert re.match(rf"spec\.{part}\[.*found no matching overload for '", found)


def test_version_and_resource_may_come_as_one() -> None:
    variables = [
        {"name": "kind", "expression": "resource.ToGVR('v1', 'Pod')"},
        {"name": "pod", "expression": "resource.get(variables.kind, 'a', 'b')"},
    ]

    assert said("ValidatingPolicy", variables=variables, validations=[TRUE]) == []


@pytest.mark.parametrize(
    ("kind", "expression", "name"),
    [
        ("ValidatingPolicy", "authorizer.path('/x').check('get').allowed()", "authorizer"),
        ("ValidatingPolicy", "params.x == 1", "params"),
        ("ValidatingPolicy", "generator.Apply('a', [])", "generator"),
        ("ValidatingPolicy", "size([JSONPatch{op: 'add'}]) > 0", "JSONPatch"),
        ("ValidatingPolicy", "Object.spec{} != null", "Object"),
        ("ValidatingPolicy", "jsonpatch.escapeKey('a') == 'a'", "jsonpatch"),
        ("ValidatingPolicy", "verifyImageSignatures('a', []) > 0", "verifyImageSignatures"),
        ("ImageValidatingPolicy", "x509.decode('a') != null", "x509"),
        ("ImageValidatingPolicy", "size(exceptions.allowedImages) > 0", "exceptions"),
    ],
)
def test_what_only_other_kinds_know_is_undeclared(kind: str, expression: str, name: str) -> None:
    parts = IMAGES if kind.startswith("Image") else {}
    [found] = said(kind, **{**parts, "validations": [{"expression": expression}]})

    assert found.endswith(f"undeclared reference to '{name}' (in container '')")


@pytest.mark.parametrize(
    "expression",
    [
        "object.items.all(generator, generator.startsWith('a'))",
        "object.items.all(i, x509, x509.startsWith('a') && i > 0)",
        "cel.bind(jsonpatch, 'a', jsonpatch.startsWith('a'))",
    ],
)
def test_a_name_that_a_macro_binds_is_no_function_of_another_kind(expression: str) -> None:
    kind = "ImageValidatingPolicy" if "x509" in expression else "ValidatingPolicy"
    parts = IMAGES if kind.startswith("Image") else {}

    assert said(kind, **{**parts, "validations": [{"expression": expression}]}) == []


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("request.roles == []", "undefined field 'roles'"),
        ("request.userInfo.name == 'a'", "undefined field 'name'"),
        ("namespaceObject.labels.x == 'a'", "undefined field 'labels'"),
        ("size(exceptions.images) > 0", "undefined field 'images'"),
        (
            "request.operation == 1",
            "found no matching overload for '_==_' applied to '(string, int)'",
        ),
        (
            "variables.n + 'a' == 'b'",
            "found no matching overload for '_+_' applied to '(int, string)'",
        ),
        ("duration('x') > duration('1s')", "invalid duration argument"),
        ("timestamp('x') > timestamp(0)", "invalid timestamp argument"),
        ("object.a.matches('(')", "invalid matches argument"),
    ],
)
def test_what_is_of_another_type_or_shape_is_refused(expression: str, fault: str) -> None:
    variables = [{"name": "n", "expression": "1"}]
    [found] = said(
        "ValidatingPolicy", variables=variables, validations=[{"expression": expression}]
    )

    assert found.endswith(fault)


@pytest.mark.parametrize(
    "expression",
    [
        "'system:masters' in request.userInfo.groups && request.kind.kind == 'Pod'",
        "request.userInfo.extra['a'].exists(x, x == 'b') && request.object.a == 1",
        "namespaceObject.metadata.labels.?x.orValue('') == 'a' && namespaceObject != null",
        "object.image in exceptions.allowedImages && object.v in exceptions.allowedValues",
        "variables.n + 1 == 2 && !request.dryRun",
        "timestamp(object.metadata.creationTimestamp) < time.now()",
    ],
)
def test_what_a_request_holds_is_known(expression: str) -> None:
    variables = [{"name": "n", "expression": "1"}]

    assert (
        said("ValidatingPolicy", variables=variables, validations=[{"expression": expression}])
        == []
    )


@pytest.mark.parametrize(
    ("generate", "fault"),
    [
        ([], "spec.generate: Invalid value: 0: spec.generate in body should have at least 1 items"),
        (
            [{}],
            "spec.generate[0]: Invalid value: exactly one of expression or template must be set",
        ),
        (
            [{"expression": "true", "template": {"value": "a: b"}}],
            "spec.generate[0]: Invalid value: exactly one of expression or template must be set",
        ),
    ],
)
def test_what_is_generated_is_said_in_one_way(generate: list[Any], fault: str) -> None:
    assert said("GeneratingPolicy", generate=generate) == [fault]


def test_a_text_or_a_field_called_http_calls_nobody() -> None:
    validations = [{"expression": "object.http == 'http.Get' && {'http': 1}.http == 1"}]

    assert said("NamespacedValidatingPolicy", validations=validations) == []


REFUSED = {
    ("chainsaw/kyverno/test/conformance/chainsaw/generating-policies/validate/missing-match-constraints", "zk-kafka-address"),
    ("chainsaw/kyverno/test/conformance/chainsaw/mutating-policies/existing/reject-all-modes-disabled", "test-mpol-all-modes-disabled"),
    ("chainsaw/kyverno/test/conformance/chainsaw/mutating-policies/subresources", "mpol-subresources"),
    ("chainsaw/kyverno/test/conformance/chainsaw/validating-policies/validation-checks/missing-match-constraints", "check-deployment-labels"),
    ("chainsaw/kyverno/test/conformance/chainsaw/namespaced-generating-policies/data/cross-namespace-denied", "cross-ns-escalate"),
    ("conformance/kyverno/test/cli/test-deleting-policy/deleting-json", "deleting-json"),
    ("conformance/kyverno/test/cli/test-deleting-policy/deleting-json", "deleting-json-fail"),
}  # fmt: skip
"""Policies that upstream's tests show to be refused by its webhook, or that its command line alone takes."""


KIND = re.compile(
    r"^kind: (Namespaced)?(Validating|Mutating|Generating|Deleting|ImageValidating)Policy\s*$",
    re.MULTILINE,
)


def published(place: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for file in sorted(place.rglob("policy.yaml")):
        for text in (file.read_text() if file.is_file() else "").split("\n---\n"):
            if not KIND.search(text):
                continue
            value = load_all(text)[0].value
            if isinstance(value, dict) and "spec" in value:
                yield file, value


@pytest.mark.conformance
@pytest.mark.parametrize("folder", ["conformance", "chainsaw"])
def test_published_policies_in_cel_are_accepted(folder: str) -> None:
    seen, refused = 0, set()
    for file, doc in published(SHARED / folder):
        try:
            found = errors(doc)
        except EngineError:
            continue
        seen += 1
        if found:
            refused.add((str(file.parent.relative_to(SHARED)), doc["metadata"]["name"]))

    if not seen:
        pytest.skip(f"published files not found at {SHARED / folder}; set KPOLICY_SHARED")
    assert refused == {one for one in REFUSED if one[0].startswith(f"{folder}/")}


def test_policies_that_upstream_answered_with_are_accepted() -> None:
    policies = {row["file"]: row["policy"] for row in rows("celkinds")}

    assert {file: found for file, one in policies.items() if (found := errors(one))} == {}
