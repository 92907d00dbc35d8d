"""MutatingPolicy: the object under review, existing objects, exceptions, autogen, and what is out of reach."""

from __future__ import annotations

from typing import Any

import pytest

from engine.evaluate import Answer, ApiCallLookup, Inputs, ListLookup, PolicySet, evaluate
from engine.evaluate.cel.autogen import variants
from engine.evaluate.cel.mutating_policies import effects
from engine.model import Review, review_of
from engine.parse.celpolicies import parse_cel_exception, parse_cel_policy
from tests.engine.celpolicies.documents import KYVERNO, NOW, config_map, document, pod, rule

LABEL = "Object{metadata: Object.metadata{labels: Object.metadata.labels{seen: 'yes'}}}"


def apply(expression: str) -> dict[str, Any]:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patch(expression: str) -> dict[str, Any]:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def mutating(*mutations: Any, namespace: str = "", **spec: Any) -> Any:
    kind = "NamespacedMutatingPolicy" if namespace else "MutatingPolicy"
    body = {
        "matchConstraints": {"resourceRules": [rule("configmaps")]},
        "mutations": list(mutations) or [apply(LABEL)],
        **spec,
    }
    place = {"namespace": namespace} if namespace else {}
    return parse_cel_policy(document(KYVERNO, kind, "p", body, **place))


def excepting(**spec: Any) -> Any:
    body = {"policyRefs": [{"name": "p", "kind": "MutatingPolicy"}], **spec}
    return parse_cel_exception(document(KYVERNO, "PolicyException", "e", body, namespace="ops"))


def answer(policy: Any, obj: Any = None, *, exceptions: Any = (), answers: Any = None) -> Any:
    obj = config_map(a="1") if obj is None else obj
    review = obj if isinstance(obj, Review) else review_of(obj)
    compiled = PolicySet.compile([policy], exceptions)
    assert not compiled.problems, compiled.problems
    return evaluate(compiled, review, Inputs(now=NOW, answers=answers or {}))


def said(found: Any) -> list[tuple[str, str, str]]:
    return [(one.rule, str(one.status), one.message) for one in found.results]


def test_each_mutation_sees_what_the_one_before_left_and_the_request_as_it_was() -> None:
    found = answer(
        mutating(
            apply("Object{data: {'b': object.data.a + '2'}}"),
            patch("[JSONPatch{op: 'add', path: '/data/c', value: object.data.b + '3'}]"),
            apply("Object{data: {'d': string(has(request.object.data.b))}}"),
        )
    )

    assert said(found) == [("", "pass", "success")]
    assert found.patched["data"] == {"a": "1", "b": "12", "c": "123", "d": "false"}


def test_all_mutations_count_or_none() -> None:
    found = answer(mutating(apply(LABEL), apply("Object{data: {'b': object.data.nothing}}")))

    assert said(found) == [
        ("evaluation", "error", "failed to evaluate policy: no such key: nothing")
    ]
    assert "labels" not in found.patched["metadata"]


def test_nothing_to_change_passes_and_conditions_that_do_not_hold_skip() -> None:
    assert said(answer(mutating(apply("Object{}")))) == [("", "pass", "success")]
    no = [{"name": "n", "expression": "object.data.a == '2'"}]
    assert said(answer(mutating(matchConditions=no))) == [("", "skip", "skip")]
    assert said(answer(mutating(), pod())) == []


def test_conditions_may_read_variables() -> None:
    variables = [{"name": "one", "expression": "object.data.a == '1'"}]
    condition = [{"name": "n", "expression": "variables.one"}]

    assert said(answer(mutating(variables=variables, matchConditions=condition))) == [
        ("", "pass", "success")
    ]


def test_errors_of_conditions_are_told_together() -> None:
    broken = [{"name": str(n), "expression": "object.spec.x"} for n in range(2)]

    assert said(answer(mutating(matchConditions=broken))) == [
        ("evaluation", "error", "failed to evaluate policy: no such key: spec; no such key: spec")
    ]


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("[JSONPatch{op: 'remove', path: '/data/x'}]", "error in remove for path: '/data/x': Unable to remove nonexistent key: x: missing value"),
        ("[JSONPatch{op: 'add', path: '/x/y', value: 1}]", 'add operation does not apply: doc is missing path: "/x/y": missing value'),
        ("[JSONPatch{op: 'replace', path: '/data/x', value: 1}]", "replace operation does not apply: doc is missing key: /data/x: missing value"),
    ],
)  # fmt: skip
def test_patches_make_no_parents_and_remove_only_what_is_there(expression: str, text: str) -> None:
    assert said(answer(mutating(patch(expression)))) == [
        ("evaluation", "error", f"failed to evaluate policy: JSON Patch: {text}")
    ]


PATCHED, ORIGINAL = (
    f"failed to convert {what} object to typed object: " for what in ("patch", "original")
)
WHOLE = "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: "
ELEMENT = "associative list with keys has an element that omits key field"
CONTAINER = "Object{spec: Object.spec{containers: [Object.spec.containers{%s}]}}"


def for_pods(*mutations: Any, **spec: Any) -> Any:
    return mutating(*mutations, matchConstraints={"resourceRules": [rule("pods")]}, **spec)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (
            "Object{spec: Object.spec{spec: 1}}",
            f"{PATCHED}.spec.spec: field not declared in schema",
        ),
        (
            "Object{spec: Object.spec{hostNetwork: 'yes'}}",
            f"{PATCHED}.spec.hostNetwork: expected boolean, got &{{yes}}",
        ),
        (
            "Object{spec: Object.spec{priority: 'x'}}",
            f"{PATCHED}.spec.priority: expected numeric (int or float), got string",
        ),
        (
            "Object{spec: Object.spec{containers: 'x'}}",
            f"{PATCHED}.spec.containers: expected list, got &{{x}}",
        ),
        (
            "Object{spec: Object.spec{securityContext: [{'a': 1}]}}",
            f"{PATCHED}.spec.securityContext: expected map, got &{{[map[a:1]]}}",
        ),
        (
            CONTAINER % "name: 'a', image: 5",
            f'{PATCHED}.spec.containers[name="a"].image: expected string, got &value.valueUnstructured{{Value:5}}',
        ),
        (
            CONTAINER % "image: 'x'",
            f'{PATCHED}.spec.containers: element 0: {ELEMENT} "name" (and doesn\'t have default value)',
        ),
        (
            CONTAINER % "name: 'a', ports: [{'containerPort': 80}, {'containerPort': 80}]",
            f'{PATCHED}.spec.containers[name="a"].ports: duplicate entries for key [containerPort=80,protocol="TCP"]',
        ),
        (CONTAINER % "name: 'a', args: ['x']", f"{WHOLE}.spec.containers[0].args"),
        ("Object{spec: Object.spec{nodeSelector: {'a': 'b'}}}", f"{WHOLE}.spec.nodeSelector"),
        (
            "Object{spec: Object.spec{tolerations: [Object.spec.tolerations{key: 'a'}]}}",
            f"{WHOLE}.spec.tolerations",
        ),
    ],
)
def test_a_configuration_has_to_fit_the_kind_of_the_object(expression: str, text: str) -> None:
    found = answer(for_pods(apply(expression)), pod())

    said_so = f"failed to evaluate policy: error applying patch: {text}"
    assert said(found) == [("evaluation", "error", said_so)]


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ("variables.meta", [("Object.spec", "Object")]),
        ("Object{spec: variables.meta}", []),
        ("Object{metadata: variables.meta}", [("Object.spec", "Object.metadata")]),
        ("Object{metadata: Object.metadata{labels: variables.labels}}", [("Object.labels", "Object.metadata.labels")]),
        ("Object{spec: Object.spec{containers: [variables.meta]}}", [("Object.spec", "Object.spec.containers")]),
        (
            "Object{spec: variables.labels, metadata: variables.meta}",
            [("Object.labels", "Object.spec"), ("Object.spec", "Object.metadata")],
        ),
    ],
)  # fmt: skip
def test_parts_of_a_configuration_that_come_from_elsewhere_bear_the_names_of_their_places(
    expression: str, wrong: list[tuple[str, str]]
) -> None:
    variables = [
        {"name": "meta", "expression": "Object.spec{}"},
        {"name": "labels", "expression": "Object.labels{}"},
    ]
    found = answer(for_pods(apply(expression), variables=variables), pod())

    if expression == "variables.meta":
        text = "unsupported return type from ApplyConfiguration expression: Object.spec"
    else:
        told = [
            f'unexpected type name "{name}", expected "{place}", which matches field name path from root Object type'
            for name, place in wrong
        ]
        text = "type mismatch: " + "\n".join(told)
    expected = ("evaluation", "error", f"failed to evaluate policy: {text}")
    assert said(found) == [expected if wrong else ("", "pass", "success")]


def test_a_map_is_no_configuration() -> None:
    variables = [{"name": "a", "expression": "dyn({'metadata': object.metadata})"}]
    found = answer(mutating(apply("variables.a"), variables=variables))

    text = "unsupported return type from ApplyConfiguration expression: map"
    assert said(found) == [("evaluation", "error", f"failed to evaluate policy: {text}")]


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        ("op: variables.one, path: '/a'", "unexpected type int64 for JSONPatchType 'op' field"),
        ("op: 'add', path: '/a', valeu: 1", "unexpected JSONPatchType field: valeu"),
        (
            "op: 'add', path: '/data/x', value: Object{spec: Object.status{}}",
            'type mismatch: unexpected type name "Object.status", expected "Object.spec", which matches field name path from root Object type',
        ),
    ],
)
def test_patches_have_four_fields_and_values_whose_parts_are_called_after_their_places(
    operation: str, text: str
) -> None:
    variables = [{"name": "one", "expression": "1"}]
    found = answer(mutating(patch(f"[JSONPatch{{{operation}}}]"), variables=variables))

    assert said(found) == [("evaluation", "error", f"failed to evaluate policy: {text}")]


def test_a_policy_that_uses_server_side_apply_sets_lists_and_maps_as_a_whole() -> None:
    policy = for_pods(
        apply("Object{spec: Object.spec{tolerations: [Object.spec.tolerations{key: 'a'}]}}"),
        evaluation={"useServerSideApply": True},
    )

    assert answer(policy, pod()).patched["spec"]["tolerations"] == [{"key": "a"}]


def test_objects_of_files_are_held_against_their_kinds_and_those_of_a_server_are_not() -> None:
    odd = pod()
    odd["spec"]["isNew"] = True
    policy = PolicySet.compile([for_pods(apply(LABEL))])

    [from_file] = evaluate(policy, review_of(odd), Inputs(now=NOW)).results
    assert from_file.message.endswith(f"{ORIGINAL}.spec.isNew: field not declared in schema")
    [stored] = evaluate(policy, review_of(odd), Inputs(now=NOW, is_stored=True)).results
    assert str(stored.status) == "pass"


def test_kinds_that_nobody_describes_take_any_field() -> None:
    odd = {"apiVersion": "example.org/v1", "kind": "Ox", "metadata": {"name": "x"}}
    everything = {"resourceRules": [rule("*", group="*")]}
    policy = mutating(apply("Object{spec: Object.spec{any: [1]}}"), matchConstraints=everything)

    assert answer(policy, odd).patched["spec"] == {"any": [1]}


def test_a_test_that_fails_ends_a_patch_and_passes() -> None:
    found = answer(
        mutating(
            patch(
                "[JSONPatch{op: 'add', path: '/data/b', value: 'x'},"
                " JSONPatch{op: 'test', path: '/data/a', value: '2'}]"
            )
        )
    )

    assert said(found) == [("", "pass", "success")]
    assert found.patched["data"] == {"a": "1"}


def test_audit_annotations_see_the_changed_object() -> None:
    noted = [{"key": "k", "valueExpression": "object.metadata.labels.seen"}]
    found = answer(mutating(auditAnnotations=noted))

    assert found.results[0].properties == {"k": "yes"}


def test_an_exception_leaves_the_object_as_it_is() -> None:
    found = answer(mutating(), exceptions=[excepting()])

    text = "rule is skipped due to policy exception: ops/e"
    assert said(found) == [("exception", "skip", text)]
    assert found.results[0].exceptions == ("ops/e",)
    assert "labels" not in found.patched["metadata"]
    passed = answer(mutating(), exceptions=[excepting(reportResult="pass")])
    assert said(passed) == [("exception", "pass", "rule is passed due to policy exception: ops/e")]


def test_a_broken_exception_breaks_nothing() -> None:
    broken = excepting(matchConditions=[{"name": "n", "expression": "object.nothing.x"}])

    assert said(answer(mutating(), exceptions=[broken])) == [("", "pass", "success")]


def test_a_fine_grained_exception_only_lends_its_lists() -> None:
    policy = mutating(apply("Object{data: {'n': string(size(exceptions.allowedValues))}}"))
    found = answer(policy, exceptions=[excepting(allowedValues=["x", "y"])])

    assert said(found) == [("", "pass", "success")]
    assert found.patched["data"]["n"] == "2"


def test_a_namespaced_policy_changes_what_is_in_its_namespace_only() -> None:
    assert said(answer(mutating(namespace="dev"))) == [("", "pass", "success")]
    assert said(answer(mutating(namespace="shop"))) == []


def test_what_decides_about_policies_is_not_changed() -> None:
    wide = {"resourceRules": [rule("*", group="*", apiVersions=["*"])]}
    grant = {
        "apiVersion": "kpolicy.io/v1alpha1", "kind": "Grant",
        "metadata": {"name": "g", "namespace": "dev"}, "spec": {},
    }  # fmt: skip

    found = answer(mutating(matchConstraints=wide), grant)

    assert [one.status for one in found.results] == ["skip"]
    assert found.patched is grant


# --- existing objects ------------------------------------------------------------------------------------------------

EXISTING = {"evaluation": {"mutateExisting": {"enabled": True}}}
TARGETS = {"resourceRules": [rule("configmaps")]}
LISTED = ListLookup("v1", "", "", resource="configmaps")


def on_pods(*mutations: Any, **spec: Any) -> Any:
    rules = {"resourceRules": [rule("pods")]}
    given = {"matchConstraints": rules, "targetMatchConstraints": TARGETS, **EXISTING, **spec}
    return mutating(*mutations, **given)


def changed(found: Any) -> list[str]:
    return [
        target.after["metadata"]["name"]
        for one in found.results
        for target in one.targets
        if target.after is not target.before
    ]


def test_targets_are_changed_and_the_trigger_is_not() -> None:
    there = {LISTED: Answer.found([config_map("a"), config_map("b", labels={"seen": "yes"})])}
    found = answer(on_pods(), pod(), answers=there)

    assert said(found) == [("", "pass", "success")] * 2
    assert changed(found) == ["a"]


def test_without_target_constraints_trigger_and_existing_objects_are_changed() -> None:
    there = {LISTED: Answer.found([config_map("a")])}
    found = answer(mutating(**EXISTING), answers=there)

    assert changed(found) == ["a"]
    assert found.patched["metadata"]["labels"] == {"seen": "yes"}


def test_exclusions_and_operations_of_targets_count() -> None:
    there = {LISTED: Answer.found([config_map("a"), config_map("b")])}
    without_b = {**TARGETS, "excludeResourceRules": [rule("configmaps", resourceNames=["b"])]}
    found = answer(on_pods(targetMatchConstraints=without_b), pod(), answers=there)
    assert changed(found) == ["a"]

    gone = {"resourceRules": [rule("configmaps", operations=["DELETE"])]}
    assert changed(answer(on_pods(targetMatchConstraints=gone), pod(), answers=there)) == []


def test_a_target_that_errs_skips_or_is_exempted_is_told_and_the_others_are_changed() -> None:
    there = {
        LISTED: Answer.found([config_map("a", x="1"), config_map("b"), config_map("c", x="2")])
    }
    policy = on_pods(
        apply("Object{data: {'y': object.data.x}}"),
        targetMatchConditions=[{"name": "n", "expression": "object.metadata.name != 'c'"}],
    )
    found = answer(policy, pod(), answers=there)

    assert said(found) == [
        ("", "pass", "success"),
        ("evaluation", "error", "failed to evaluate policy: no such key: x"),
        ("", "skip", "skip"),
    ]
    assert [one.targets[0].before["metadata"]["name"] for one in found.results] == ["a", "b", "c"]
    spared = excepting(matchConditions=[{"name": "n", "expression": "object.kind == 'ConfigMap'"}])
    exempted = answer(policy, pod(), answers=there, exceptions=[spared])
    assert {one.rule for one in exempted.results} == {"exception"}


def test_expressions_about_a_target_read_the_request_of_the_trigger() -> None:
    there = {LISTED: Answer.found([config_map("a")])}
    policy = on_pods(apply("Object{data: {'by': request.object.metadata.name + object.kind}}"))
    (result,) = answer(policy, pod(), answers=there).results

    assert result.targets[0].after["data"] == {"by": "xConfigMap"}


def test_an_expression_may_give_the_targets() -> None:
    target = "{'apiVersion': dyn('v1'), 'kind': dyn('ConfigMap'), 'metadata': dyn({'name': object.metadata.name, 'namespace': dyn('dev')})}"
    found = answer(on_pods(targetMatchConstraints={"expression": target}), pod())
    assert changed(found) == ["x"]

    both = f"{{'items': [{target}, {target}]}}"
    assert changed(answer(on_pods(targetMatchConstraints={"expression": both}), pod())) == ["x"] * 2


def test_what_is_listed_says_what_it_is_though_the_server_says_it_once() -> None:
    listed = {"apiVersion": "v1", "kind": "ConfigMapList", "items": [{"metadata": {"name": "x"}, "data": {}}]}  # fmt: skip
    there = {ApiCallLookup("GET", "/api/v1/namespaces/dev/configmaps"): Answer.found(listed)}
    target = 'resource.list("v1", "configmaps", object.metadata.namespace)'
    policy = on_pods(targetMatchConstraints={"expression": target})
    assert changed(answer(policy, pod(), answers=there)) == ["x"]


@pytest.mark.parametrize(
    ("resource", "part"), [("pods", ""), ("pods/resize", "resize"), ("pods/status", "status")]
)
def test_a_rule_says_by_which_part_its_targets_are_written(resource: str, part: str) -> None:
    there = {ListLookup("v1", "", "", resource="pods"): Answer.found([pod(a="b")])}
    policy = mutating(targetMatchConstraints={"resourceRules": [rule(resource)]}, **EXISTING)
    (result,) = answer(policy, answers=there).results
    assert [one.subresource for one in result.targets] == [part]

    one = "{'apiVersion': dyn('v1'), 'kind': dyn('Pod'), 'metadata': dyn({'name': 'x', 'namespace': 'dev'})}"
    given = {"resourceRules": [rule(resource)], "expression": one}
    (result,) = answer(mutating(targetMatchConstraints=given, **EXISTING)).results
    assert [one.subresource for one in result.targets] == [part]


def test_a_part_that_nobody_names_is_written_to_nothing() -> None:
    policy = mutating(targetMatchConstraints={"resourceRules": [rule("pods/*")]}, **EXISTING)
    assert answer(policy).results == []


def test_a_patch_is_applied_once_to_pods_with_autogen() -> None:
    there = {ListLookup("v1", "", "", resource="pods"): Answer.found([pod(a="b")])}
    policy = mutating(
        patch("[JSONPatch{op: 'add', path: '/spec/containers/-', value: Object{name: 'x'}}]"),
        matchConstraints={"resourceRules": [rule("pods")]},
        targetMatchConstraints={"resourceRules": [rule("pods")]},
        **EXISTING,
    )
    (result,) = answer(policy, pod(), answers=there).results

    assert [one["name"] for one in result.targets[0].after["spec"]["containers"]] == ["c", "x"]


# --- autogen ---------------------------------------------------------------------------------------------------------


def test_variants_are_as_upstream_writes_them() -> None:
    spec = {
        "matchConstraints": {"resourceRules": [rule("pods")]},
        "matchConditions": [{"name": "n", "expression": "has(object.spec.x) && object.metadata.name != ''"}],
        "mutations": [
            apply("Object{ spec: Object.spec{ hostNetwork: false } }"),
            apply("true ? Object{} : Object{spec: Object.spec{}}"),
            patch("[JSONPatch{op: 'add', path: '/spec/x', value: object.spec.y}]"),
        ],
    }  # fmt: skip
    defaults, cron = variants(spec)

    assert [defaults.name, cron.name] == ["defaults", "cronjobs"]
    assert defaults.resources == (
        "daemonsets",
        "deployments",
        "replicasets",
        "statefulsets",
        "jobs",
    )
    assert defaults.spec["matchConditions"][0]["expression"] == (
        "has(object.spec.template.spec.x) && object.metadata.name != ''"
    )
    said = [one.get("applyConfiguration") for one in defaults.spec["mutations"]]
    assert said[0]["expression"] == (
        "Object{spec: Object.spec{template: Object.spec.template{"
        " spec: Object.spec.template.spec{ hostNetwork: false } }}}"
    )
    assert said[1]["expression"] == "true ? Object{} : Object{spec: Object.spec.template.spec{}}"
    assert defaults.spec["mutations"][2] == spec["mutations"][2]
    assert cron.spec["mutations"][0]["applyConfiguration"]["expression"].startswith(
        "Object{spec: Object.spec{jobTemplate: Object.spec.jobTemplate{spec: Object.spec.jobTemplate.spec{"
    )
    assert defaults.spec["matchConstraints"]["resourceRules"] == [
        {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
         "resources": ["daemonsets", "deployments", "replicasets", "statefulsets"]},
        {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
         "resources": ["jobs"]},
    ]  # fmt: skip


# --- what a policy does ----------------------------------------------------------------------------------------------


def verbs(policy: Any) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.at.rpartition(".")[2], one.verbs) for one in effects(policy)]


def test_the_author_is_asked_for_what_the_policy_does() -> None:
    assert verbs(mutating()) == [("matchConstraints", ("create", "update"))]
    triggers = [
        ("matchConstraints", ("get",))
    ] * 4  # Pods, and what autogen adds: two groups of controllers, and CronJobs
    assert verbs(on_pods()) == [("targetMatchConstraints", ("get", "list", "update")), *triggers]
    assert verbs(on_pods(targetMatchConstraints={"resourceRules": [rule("pods/resize")]})) == [
        ("targetMatchConstraints", ("get", "list")),
        ("targetMatchConstraints", ("update",)),
        *triggers,
    ]


@pytest.mark.parametrize(
    "mutation",
    [
        apply("Object{metadata: Object.metadata{labels: {'cleanup.kyverno.io/ttl': '1m'}}}"),
        apply("Object{metadata: Object.metadata{labels: object.data}}"),
        apply("Object{metadata: Object.metadata{labels: {object.data.k: '1m'}}}"),
        patch("[JSONPatch{op: 'add', path: '/metadata/labels/' + object.data.k, value: '1m'}]"),
        patch("[JSONPatch{op: 'add', path: variables.path, value: '1m'}]"),
        patch("[JSONPatch{op: 'add', path: '/metadata/labels', value: object.data}]"),
        apply("Object{metadata: Object.metadata{labels: {'cleanup.kyverno' + '.io/ttl': '1m'}}}"),
        apply(
            "Object{metadata: Object.metadata{labels: Object.metadata.labels{`cleanup.kyverno.io/ttl`: '1m'}}}"
        ),
        apply("Object{metadata: Object.metadata{?labels: optional.of(object.data)}}"),
        apply("object.data.on ? Object{} : Object{metadata: object.data}"),
        apply("Object{spec: Object.spec{template: Object.spec.template{metadata: object.data}}}"),
        apply("Object{spec: object.data}"),
        apply("cel.bind(o, Object{metadata: object.data}, o)"),
        apply("variables.whole"),
        patch(
            "[JSONPatch{op: 'add', path: '/metadata/labels/cleanup.kyverno.io~1ttl', value: '1m'}]"
        ),
        patch("[JSONPatch{op: 'add', path: '/metadata/' + 'labels', value: object.data}]"),
        patch(
            "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'cleanup.kyverno' + '.io/ttl': '1m'}}]"
        ),
        patch(
            "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('cleanup.kyverno.io/ttl'), value: '1m'}]"
        ),
        patch("[JSONPatch{op: 'replace', path: '', value: object.data}]"),
        patch("[JSONPatch{op: 'replace', path: '/spec/template', value: object.data}]"),
        patch("[JSONPatch{op: 'copy', from: '/spec/data', path: '/metadata/labels'}]"),
        patch(
            "object.data.map(k, JSONPatch{op: 'add', path: '/metadata/labels/' + k, value: '1m'})"
        ),
        patch("variables.patches"),
        patch(
            "[JSONPatch{op: 'add', path: '/spec/volumeClaimTemplates/0/metadata/labels/a', value: object.data}]"
        ),
        patch(
            "[JSONPatch{op: 'add', path: '/spec/claims', value: [{'metadata': {'labels': {'cleanup.kyverno.io/ttl': '1m'}}}]}]"
        ),
        patch("[JSONPatch{op: 'test', path: '/a', value: 1}] + variables.patches"),
    ],
)
def test_who_may_not_delete_writes_no_labels_that_nobody_knows(mutation: Any) -> None:
    [(_, asked)] = verbs(mutating(mutation))
    assert asked == ("create", "update", "delete")


@pytest.mark.parametrize(
    "mutation",
    [
        apply("Object{metadata: Object.metadata{labels: {'team': object.metadata.name}}}"),
        apply("Object{metadata: Object.metadata{annotations: object.metadata.annotations}}"),
        apply(
            "has(object.spec) ? Object{spec: Object.spec{replicas: object.spec.replicas}} : Object{}"
        ),
        apply(
            "Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name})}}"
        ),
        apply(
            "Object{spec: Object.spec{template: Object.spec.template{metadata: Object.spec.template.metadata{labels: {'a': 'b'}}}}}"
        ),
        patch("[JSONPatch{op: 'add', path: '/metadata/labels/team', value: object.metadata.name}]"),
        patch(
            "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: 'x'}]"
        ),
        patch(
            "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'team': object.metadata.name}}]"
        ),
        patch("[JSONPatch{op: 'replace', path: '/spec/replicas', value: variables.n}]"),
        patch(
            "object.spec.containers.map(c, JSONPatch{op: 'add', path: '/spec/containers/' + c.name, value: c})"
        ),
        patch(
            "has(object.metadata.labels) ? [] : [JSONPatch{op: 'add', path: '/metadata/labels', value: {}}]"
        ),
    ],
)
def test_who_may_not_delete_writes_labels_that_are_known_and_everything_else(mutation: Any) -> None:
    [(_, asked)] = verbs(mutating(mutation))
    assert asked == ("create", "update")
