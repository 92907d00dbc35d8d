"""GeneratingPolicy and its namespaced twin: what a trigger wants, from expressions and templates, and what is foreseen of it."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import PolicyError
from engine.evaluate import Answer, ApiCallLookup, Inputs, PolicySet, evaluate
from engine.generate.foreseen import OPEN, foreseen
from engine.model import Review
from engine.parse.celpolicies import parse_cel_exception, parse_cel_policy
from tests.engine.celpolicies.documents import KYVERNO, config_map, decide, document, rule

MAP = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}, "data": {"a": "b"}}'
MADE = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "made", "namespace": "dev"},
    "data": {"a": "b"},
}


def generating(*items: Any, namespace: str = "", **spec: Any) -> Any:
    """Return a policy `p` for ConfigMaps; items are expressions, or templates as maps."""
    kind = "NamespacedGeneratingPolicy" if namespace else "GeneratingPolicy"
    generate = [{"expression": one} if isinstance(one, str) else {"template": one} for one in items]
    body = {
        "matchConstraints": {"resourceRules": [rule("configmaps")]},
        "generate": generate,
        **spec,
    }
    place = {"namespace": namespace} if namespace else {}
    return parse_cel_policy(document(KYVERNO, kind, "p", body, **place))


def template(text: str, interpolate: str = "cel") -> dict[str, str]:
    return {"value": text, "interpolate": interpolate}


def result_of(*given: Any, **more: Any) -> Any:
    (result,) = decide(*given, **more).results
    return result


def made_by(*items: Any, obj: Any = None, **more: Any) -> list[Any]:
    result = result_of(generating(*items, **more), obj or config_map())
    assert result.status == "pass", result.message
    return list(result.generated)


def error_of(*items: Any, **more: Any) -> str:
    result = result_of(generating(*items, **more), config_map())
    assert result.status == "error"
    assert result.generated == ()
    return str(result.message)


def test_an_expression_generates_by_applying_and_the_answer_bears_the_name_of_the_policy():
    result = result_of(generating(f'generator.Apply("dev", [{MAP}])'), config_map())

    assert (result.rule, result.status, result.message) == ("p", "pass", "policy evaluated successfully")  # fmt: skip
    assert result.generated == (MADE,)


def test_an_expression_that_is_false_generates_nothing_and_is_no_failure():
    assert made_by('object.metadata.name == "other" && generator.apply("dev", [])') == []


def test_the_namespace_of_the_call_replaces_that_of_the_object():
    text = MAP.replace('"name": "made"', '"name": "made", "namespace": "other"')

    assert made_by(f'generator.apply("dev", [{text}])') == [MADE]


def test_what_belongs_to_no_namespace_gets_none():
    (role,) = made_by(
        'generator.apply("dev", [{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}}])'
    )

    assert "namespace" not in role["metadata"]


def test_what_was_read_from_the_cluster_is_a_copy_without_the_bookkeeping_of_the_server():
    source = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "pull", "namespace": "platform", "uid": "u", "resourceVersion": "7", "labels": {"team": "core"},
            "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [], "ownerReferences": [{"uid": "o"}],
        },
        "data": {"a": "Yg=="},
    }  # fmt: skip
    path = "/api/v1/namespaces/platform/secrets/pull"
    answers = {ApiCallLookup("GET", path): Answer.found(source)}
    policy = generating(
        'generator.apply("dev", [resource.Get("v1", "secrets", "platform", "pull")])'
    )

    assert result_of(policy, config_map(), answers=answers).generated == (
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": "pull",
                "namespace": "dev",
                "labels": {"team": "core", "generate.kyverno.io/source-uid": "u"},
            },
            "data": {"a": "Yg=="},
        },
    )


def test_the_objects_of_a_list_are_of_its_kind_whatever_they_say():
    listed = '{"apiVersion": "v1", "kind": "ConfigMapList", "items": [{"kind": "Secret", "metadata": {"name": "a"}}]}'

    (one,) = made_by(f'generator.apply("dev", [{listed}])')

    assert (one["apiVersion"], one["kind"]) == ("v1", "ConfigMap")


@pytest.mark.parametrize("value", ["null", '"text"', '{"kind": "ConfigMap"}', '{"apiVersion": "v1", "kind": "List", "items": [1]}'])  # fmt: skip
def test_what_is_no_object_cannot_be_generated(value: str):
    assert error_of(f'generator.apply("dev", [dyn({value})])').startswith("failed to evaluate policy: ")  # fmt: skip


def test_every_item_is_asked_in_order_and_an_error_leaves_nothing():
    assert error_of(f'generator.apply("dev", [{MAP}])', "object.data.none == 1") == (
        "failed to evaluate policy: no such key: none"
    )


def test_an_exception_comes_before_the_match_conditions():
    policy = generating(
        f'generator.apply("dev", [{MAP}])',
        matchConditions=[{"name": "n", "expression": "object.data.none == 1"}],
    )
    body = {"policyRefs": [{"name": "p", "kind": "GeneratingPolicy"}]}
    skip = parse_cel_exception(document(KYVERNO, "PolicyException", "e", body, namespace="ops"))

    assert result_of(policy, config_map()).message == (
        "failed to execute matching: expression 'object.data.none == 1' resulted in error: no such key: none"
    )
    result = result_of(policy, config_map(), exceptions=[skip])
    assert (result.rule, result.status, result.exceptions) == ("exception", "skip", ("ops/e",))
    assert result.message == "rule is skipped due to policy exception: ops/e"


def test_a_match_condition_that_is_false_gives_no_answer():
    policy = generating("true", matchConditions=[{"name": "n", "expression": "false"}])

    assert decide(policy, config_map()).results == []


def test_audit_annotations_are_properties():
    annotations = [{"key": "who", "valueExpression": "object.metadata.name"}]

    assert result_of(generating("true", auditAnnotations=annotations), config_map()).properties == {
        "who": "c"
    }


def test_of_a_deletion_the_object_is_what_was_there():
    text = MAP.replace('"made"', "object.metadata.name")
    deletes = {"matchConstraints": {"resourceRules": [rule("configmaps", operations=["DELETE"])]}}
    policy = generating(f'generator.apply("dev", [{text}])', **deletes)
    review = Review(None, config_map("gone"), "DELETE", kind="ConfigMap")

    (result,) = evaluate(PolicySet.compile([policy]), review, Inputs()).results

    assert result.generated[0]["metadata"]["name"] == "gone"


TEXT = r"""
apiVersion: v1
kind: ConfigMap
metadata:
  name: "(( object.metadata.name ))-made"
  namespace: dev
  labels: (( object.metadata.labels ))
data:
  plain: '\(( kept ))'
  (( key )): left
  count: "(( string(size(object.metadata.labels) + 1) ))"
  both: (( object.metadata.name )) and (( object.metadata.labels.team ))
  odd: (( object.metadata.name + "))" ))
"""


def test_a_template_takes_values_from_expressions_and_leaves_everything_else():
    (made,) = made_by(template(TEXT), obj=config_map(labels={"team": "core"}))

    assert made["metadata"] == {"name": "c-made", "namespace": "dev", "labels": {"team": "core"}}
    assert made["data"] == {
        "plain": "(( kept ))",
        "(( key ))": "left",
        "count": "2",
        "both": "c and core",
        "odd": "c))",
    }


def test_a_template_without_interpolation_is_taken_literally_and_may_hold_several_documents():
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: x}\ndata: {k: (( a ))}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: b, namespace: z}\n"

    one, other = made_by(template(text, "none"))

    assert one["data"] == {"k": "(( a ))"}
    assert (one["metadata"]["namespace"], other["metadata"]["namespace"]) == ("x", "z")


def test_a_template_whose_expression_fails_says_in_which_document():
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: (( object.none ))}\n"

    assert error_of(template(text)) == (
        "failed to evaluate policy: failed to render generation template: document 2: no such key: none"
    )


@pytest.mark.parametrize("text", ["{", "- a", "kind: (( object", "kind: (( object. ))", ""])
def test_a_template_that_cannot_work_is_refused(text: str):
    problems = PolicySet.compile([generating(template(text))]).problems

    assert isinstance(problems[0].error, PolicyError)


def test_a_policy_of_a_namespace_generates_there():
    policy = generating(f"generator.apply([{MAP}])", namespace="dev")

    assert result_of(policy, config_map()).generated == (MADE,)


@pytest.mark.parametrize(
    ("namespace", "expression"),
    [
        ("dev", f'generator.apply("dev", [{MAP}])'),
        ("", f"generator.apply([{MAP}])"),
        ("dev", 'resource.Get("v1", "secrets", "other", "s").data.a == "b"'),
        ("", 'resource.Get("v1", "secrets", "s").data.a == "b"'),
    ],
)
def test_a_call_as_policies_of_the_other_scope_make_it_is_refused(namespace: str, expression: str):
    problems = PolicySet.compile([generating(expression, namespace=namespace)]).problems

    assert "found no matching overload" in problems[0].error.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: other}",
            'cross-namespace generation denied: a policy in namespace "dev" cannot generate resources into namespace "other"',
        ),
        (
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}",
            'cross-scope generation denied: a policy scoped to namespace "dev" cannot generate cluster-scoped resource v1/Namespace',
        ),
    ],
)
def test_a_policy_of_a_namespace_does_not_generate_outside_it(text: str, message: str):
    assert error_of(template(text), namespace="dev") == f"failed to evaluate policy: {message}"


def test_a_policy_of_a_namespace_reads_what_is_in_it_without_naming_it():
    path = "/api/v1/namespaces/dev/configmaps/src"
    answers = {ApiCallLookup("GET", path): Answer.found(MADE)}
    policy = generating(
        'generator.apply([resource.get("v1", "configmaps", "src")])', namespace="dev"
    )

    assert result_of(policy, config_map(), answers=answers).generated == (MADE,)


def _foreseen(*items: Any, namespace: str = "", **spec: Any) -> list[Any]:
    policy = generating(*items, namespace=namespace, **spec)
    kept = ("apiVersion", "kind", "resource", "namespace", "name")
    return [
        None if block is None else {key: block[key] for key in kept if key in block}
        for _, block in foreseen(policy.raw["spec"], namespace)
    ]


FORESEEN = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "dev", "name": "made"}
COPY = {"apiVersion": "v1", "resource": "secrets", "namespace": "dev", "name": OPEN}


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        (f"[{MAP}]", [FORESEEN]),
        (f"true ? [{MAP}] : []", [FORESEEN]),
        (f"[{MAP}] + [{MAP}]", [FORESEEN, FORESEEN]),
        (f"[1, 2].map(x, {MAP})", [FORESEEN]),
        (f"cel.bind(one, {MAP}, [one])", [FORESEEN]),
        ("variables.all", [FORESEEN]),
        ("[variables.all[0]]", [FORESEEN]),
        ('[resource.List("v1", "secrets", "x")]', [COPY]),
        ('resource.list("v1", "secrets", "x").items', [COPY]),
        ('resource.list("v1", "secrets", "x").items.filter(s, true)', [COPY]),
        ('resource.list("v1", "secrets", "x").items.map(s, s)', [COPY]),
        ("[object]", [None]),
        ("object.items", [None]),
        ('resource.get("v1", "secrets", "x", "y").items', [None]),
        (f'[{{"a": {MAP}}}["a"]]', [None]),
        ('[{"apiVersion": "v1", "kind": "SecretList", "items": []}]', [None]),
        ('[{"apiVersion": "v1", ?"kind": optional.of("Secret"), "metadata": {}}]', [None]),
        ("[object].map(variables, variables)", [None]),
    ],
)
def test_what_a_policy_will_make_is_read_from_its_expressions_or_not_at_all(
    argument: str, expected: list[Any]
):
    variables = [{"name": "all", "expression": f"[{MAP}]"}]

    assert _foreseen(f'generator.apply("dev", {argument})', variables=variables) == expected


def test_what_only_a_trigger_decides_is_open():
    text = MAP.replace('"made"', "object.metadata.name")

    assert _foreseen(f"generator.apply(object.metadata.namespace, [{text}])") == [
        {**FORESEEN, "namespace": OPEN, "name": OPEN}
    ]
    assert _foreseen(template(TEXT)) == [{**FORESEEN, "name": OPEN}]


DOUBLED = "cel.bind(x, x + x, "


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("expression", "variables"),
    [
        (f'cel.bind(x, [{MAP}], {DOUBLED * 4}generator.Apply("dev", x))))))', ()),
        ('generator.Apply("dev", [variables.a])', ("{'kind': variables.a, 'b': variables.a}",)),
        ('generator.Apply("dev", variables.a)', ("variables.a + variables.a",)),
    ],
)
def test_what_names_itself_over_and_over_is_not_read_for_ever(
    expression: str, variables: tuple[str, ...]
) -> None:
    named = [{"name": "a", "expression": one} for one in variables]

    assert None in _foreseen(expression, variables=named)


def test_the_conditions_of_an_exception_generate_nothing() -> None:
    spec = {
        "policyRefs": [{"name": "p", "kind": "GeneratingPolicy"}],
        "matchConditions": [{"name": "c", "expression": f'!generator.Apply("dev", [{MAP}])'}],
    }
    generating_too = parse_cel_exception(
        document(KYVERNO, "PolicyException", "e", spec, namespace="ops")
    )
    result = result_of(generating("true"), config_map(), exceptions=(generating_too,))

    assert (result.status, result.generated) == ("pass", ())


def test_an_exception_lends_its_values_to_what_is_generated() -> None:
    spec = {"policyRefs": [{"name": "p", "kind": "GeneratingPolicy"}], "allowedValues": ["lent"]}
    lending = parse_cel_exception(document(KYVERNO, "PolicyException", "e", spec, namespace="ops"))
    named = MAP.replace('"made"', "exceptions.allowedValues[0]")

    policy = generating(f'generator.Apply("dev", [{named}])')

    (made,) = result_of(policy, config_map(), exceptions=(lending,)).generated
    assert made["metadata"]["name"] == "lent"
