"""Policies and exceptions of policies.kyverno.io do only what their authors may, wherever an expression or a template says it."""

from __future__ import annotations

from typing import Any

import pytest

from .test_author_rights import ADMIN_OF_SHOP, EVERYTHING, RBAC, ask, message, written

GROUP = "policies.kyverno.io/v1"
BINDING = f'{{"apiVersion": "{RBAC}/v1", "kind": "RoleBinding", "metadata": {{"name": "x"}}}}'
APPLY = f'generator.Apply("kube-system", [{BINDING}])'
SECRET = 'resource.Get("v1", "secrets", "kube-system", "token").data.token'
CONFIG_MAP = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: shop}\ndata:\n  a: |-\n    "
)
NOTHING_LEFT = (("*", "get", "configmaps"), ("*", "get create update", "configmaps"))


def rules(resource: str, group: str = "", *operations: str) -> dict[str, Any]:
    rule = {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": [*(operations or ("CREATE",))],
        "resources": [resource],
    }
    return {"resourceRules": [rule]}


def policy(kind: str, namespace: str = "", /, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "p", **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": GROUP, "kind": kind, "metadata": metadata, "spec": spec}


def generating(*items: dict[str, Any], **spec: Any) -> dict[str, Any]:
    made = {"matchConstraints": rules("configmaps"), "generate": list(items), **spec}
    return policy("GeneratingPolicy", **made)


def template(value: str) -> dict[str, Any]:
    return {"template": {"interpolate": "cel", "value": CONFIG_MAP + value}}


HIDDEN = f'generator.Apply("kube-system", [object]) && cel.bind(object, {BINDING.replace(RBAC + "/v1", "v1").replace("RoleBinding", "ConfigMap")}, true)'


@pytest.mark.parametrize(
    ("made", "missing"),
    [
        (generating(template(f"(( {SECRET} ))")), "get secrets `token` in namespace kube-system"),
        (generating(template(f"x (( 1 )) (( {SECRET} ))")), "get secrets `token`"),
        (
            generating(template(f"(( {APPLY} ))")),
            f"create rolebindings.{RBAC} in namespace kube-system",
        ),
        (
            generating(
                {"expression": "true"}, matchConditions=[{"name": "c", "expression": APPLY}]
            ),
            f"create rolebindings.{RBAC}",
        ),
        (
            generating(
                {"expression": "true"},
                auditAnnotations=[{"key": "a", "valueExpression": f"string({APPLY})"}],
            ),
            f"create rolebindings.{RBAC}",
        ),
        (generating({"expression": HIDDEN}), "* all resources"),
    ],
)
def test_a_generating_policy_is_asked_about_wherever_it_reads_or_makes_something(
    made: dict[str, Any], missing: str
) -> None:
    assert missing in message(ask(made, *NOTHING_LEFT))
    assert ask(made, EVERYTHING)["allowed"] is True


def test_a_template_that_reads_what_its_author_may_read_is_accepted() -> None:
    made = generating(template(f"(( {SECRET} ))"))

    assert ask(made, *NOTHING_LEFT, ("kube-system", "get", "secrets"))["allowed"] is True


REPLACING = '[JSONPatch{op: "replace", path: "/subjects/0/name", value: "mallory"}]'
LABELLING = '[JSONPatch{op: "add", path: "/metadata/labels/team", value: "a"}]'


def mutating(expression: str, match: dict[str, Any], namespace: str = "") -> dict[str, Any]:
    kind = "NamespacedMutatingPolicy" if namespace else "MutatingPolicy"
    is_patch = expression.startswith("[")
    key, type_ = (
        ("jsonPatch", "JSONPatch") if is_patch else ("applyConfiguration", "ApplyConfiguration")
    )
    mutation = {"patchType": type_, key: {"expression": expression}}
    return policy(kind, namespace, matchConstraints=match, mutations=[mutation])


def mutating_classic(kind: str, namespace: str = "", **mutate: Any) -> dict[str, Any]:
    match = {"any": [{"resources": {"kinds": [kind], "operations": ["CREATE"]}}]}
    return written({"match": match, "mutate": mutate}, namespace)


SUBJECT = {"subjects": [{"kind": "User", "name": "mallory"}]}
LABELS = {"metadata": {"labels": {"team": "a"}}}
BINDINGS, CLUSTER_ROLES = rules("rolebindings", RBAC), rules("clusterroles", RBAC)
CREATING = tuple(
    ("*", "create update", one)
    for one in (
        f"rolebindings.{RBAC}",
        f"clusterroles.{RBAC}",
        f"roles.{RBAC}",
        "clusterpolicies.kyverno.io",
    )
)


@pytest.mark.parametrize(
    ("made", "missing"),
    [
        (mutating(REPLACING, BINDINGS), "bind all resources"),
        (mutating(REPLACING, BINDINGS, "shop"), f"bind all resources of {RBAC} in namespace shop"),
        (mutating("Object{subjects: []}", BINDINGS), "bind all resources"),
        (
            mutating("has(object.x) ? Object{} : Object{subjects: []}", BINDINGS),
            "bind all resources",
        ),
        (
            mutating('[JSONPatch{op: "add", path: object.metadata.name, value: 1}]', BINDINGS),
            "bind all resources",
        ),
        (mutating(f"{LABELLING} + {REPLACING}", BINDINGS), "bind all resources"),
        (mutating("Object{rules: []}", CLUSTER_ROLES), f"escalate clusterroles.{RBAC}"),
        (mutating(LABELLING, CLUSTER_ROLES), f"escalate clusterroles.{RBAC}"),
        (
            mutating(
                "Object{spec: Object.spec{rules: []}}", rules("clusterpolicies", "kyverno.io")
            ),
            "* all resources",
        ),
        (
            mutating_classic(f"{RBAC}/v1/RoleBinding", patchStrategicMerge=SUBJECT),
            "bind all resources",
        ),
        (
            mutating_classic(
                f"{RBAC}/v1/RoleBinding", "shop", patchStrategicMerge={**LABELS, **SUBJECT}
            ),
            "bind all resources",
        ),
        (
            mutating_classic(f"{RBAC}/v1/ClusterRole", patchStrategicMerge=LABELS),
            "escalate clusterroles",
        ),
        (
            mutating_classic(
                f"{RBAC}/v1/Role", patchesJson6902="- {op: add, path: /rules/0, value: {}}"
            ),
            "escalate roles",
        ),
        (
            mutating_classic(
                "kyverno.io/v1/ClusterPolicy", patchStrategicMerge={"spec": {"rules": []}}
            ),
            "* all resources",
        ),
    ],
)
def test_who_has_others_give_power_otherwise_than_they_meant_may_give_it_himself(
    made: dict[str, Any], missing: str
) -> None:
    assert missing in message(ask(made, *CREATING))
    assert ask(made, EVERYTHING)["allowed"] is True


@pytest.mark.parametrize(
    "made",
    [
        mutating(LABELLING, BINDINGS),
        mutating(
            'Object{metadata: Object.metadata{labels: Object.metadata.labels{team: "a"}}}', BINDINGS
        ),
        mutating_classic(f"{RBAC}/v1/RoleBinding", patchStrategicMerge=LABELS),
        mutating_classic("kyverno.io/v1/ClusterPolicy", patchStrategicMerge=LABELS),
    ],
)
def test_labels_of_bindings_and_policies_give_nobody_power(made: dict[str, Any]) -> None:
    assert message(ask(made, *CREATING)) == ""


AUTOGEN = "pod-policies.kyverno.io/autogen-controllers"
NOTING = (
    '[JSONPatch{op: "add", path: "/metadata/annotations/%s", value: "all"}]',
    '[JSONPatch{op: "remove", path: "/metadata/annotations/%s"}]',
    '[JSONPatch{op: "add", path: "/metadata/annotations/" + jsonpatch.escapeKey("%s"), value: "all"}]',
    '[JSONPatch{op: "add", path: "/metadata/annotations", value: {"%s": "all"}}]',
    '[JSONPatch{op: "add", path: "/metadata", value: Object.metadata{annotations: {"%s": "all"}}}]',
    'Object{metadata: Object.metadata{annotations: {"%s": "all"}}}',
)


@pytest.mark.parametrize(
    "expression",
    [
        *(one % AUTOGEN.replace("/", "~1") for one in NOTING[:2]),
        *(one % AUTOGEN for one in NOTING[2:]),
        '[JSONPatch{op: "remove", path: "/metadata/annotations"}]',
        '[JSONPatch{op: "add", path: "/metadata/annotations", value: {"team": "all"}}]',
        '[JSONPatch{op: "add", path: "/metadata", value: Object.metadata{name: "x"}}]',
        '[JSONPatch{op: "remove", path: "/metadata/labels/generate.kyverno.io~1trigger-uid"}]',
        '[JSONPatch{op: "move", from: "/spec/failurePolicy", path: "/metadata/annotations/a"}]',
        '[JSONPatch{op: "copy", from: "/metadata/annotations/a", path: "/metadata/annotations/" + object.kind}]',
        "Object{metadata: Object.metadata{annotations: object.metadata.labels}}",
        "Object{metadata: object.metadata}",
    ],
)
@pytest.mark.parametrize("plural", ["clusterpolicies", "clustercleanuppolicies"])
def test_who_has_others_policies_do_otherwise_by_their_metadata_may_do_everything(
    expression: str, plural: str
) -> None:
    made = mutating(expression, rules(plural, "kyverno.io"))
    may_write = ("*", "create update delete", f"{plural}.kyverno.io")

    assert "may not * all resources" in message(ask(made, may_write))
    assert ask(made, EVERYTHING)["allowed"] is True


@pytest.mark.parametrize("expression", [*(one % "team" for one in NOTING[:3]), NOTING[5] % "team"])
def test_other_annotations_of_policies_are_written_by_who_may_write_policies(
    expression: str,
) -> None:
    made = mutating(expression, rules("clusterpolicies", "kyverno.io"))

    assert message(ask(made, *CREATING)) == ""


@pytest.mark.parametrize(
    "said",
    [
        {"validations": [{"expression": "object.data.password != 'a'"}]},
        {"validations": [{"expression": "false", "messageExpression": "string(oldObject.data)"}]},
        {"validations": [{"expression": "[object].exists(o, o.data.password == 'a')"}]},
        {"validations": [{"expression": "request.object.data.size() == 1"}]},
        {
            "validations": [{"expression": "variables.a == 'a'"}],
            "variables": [{"name": "a", "expression": "object.data.password"}],
        },
        {
            "validations": [{"expression": "true"}],
            "matchConditions": [{"name": "c", "expression": "object['data'].size() == 1"}],
        },
        {
            "validations": [{"expression": "true"}],
            "auditAnnotations": [{"key": "k", "valueExpression": "string(object)"}],
        },
    ],
)
@pytest.mark.parametrize("plural", ["secrets", "*"])
def test_an_expression_looks_into_secrets_of_who_may_read_them(
    said: dict[str, Any], plural: str
) -> None:
    for namespace in ("", "shop"):
        kind = "NamespacedValidatingPolicy" if namespace else "ValidatingPolicy"
        made = policy(kind, namespace, matchConstraints=rules(plural), **said)

        assert "may not get secrets" in message(ask(made))
        assert message(ask(made, (namespace or "*", "get", "secrets"))) == ""
        made["spec"]["matchConstraints"] = rules("configmaps")
        assert message(ask(made)) == ""


def test_an_expression_about_names_and_labels_of_secrets_need_not_read_them() -> None:
    expression = "object.metadata.?labels.team.hasValue() || oldObject.metadata.name == request.name || request.operation == 'DELETE'"
    made = policy(
        "ValidatingPolicy",
        matchConstraints=rules("secrets"),
        validations=[{"expression": expression}],
    )

    assert message(ask(made)) == ""


@pytest.mark.parametrize(
    "resource",
    [
        "subjectaccessreviews.authorization.k8s.io",
        "tokenreviews.authentication.k8s.io",
        "certificatesigningrequests.certificates.k8s.io",
        "certificatesigningrequests/approval.certificates.k8s.io",
    ],
)
def test_who_changes_what_counts_by_who_asked_may_do_everything(resource: str) -> None:
    plural, _, group = resource.partition(".")
    made = mutating('[JSONPatch{op: "replace", path: "/spec", value: {}}]', rules(plural, group))

    assert "may not * all resources" in message(ask(made, ("*", "create update", resource)))
    assert ask(made, EVERYTHING)["allowed"] is True


def test_what_autogen_makes_of_a_mutating_policy_is_asked_about() -> None:
    adding = mutating("Object{spec: Object.spec{hostNetwork: true}}", rules("pods"))
    may_write = (("*", "create update", "pods"), ("*", "create update", "deployments.apps"))

    assert "may not create daemonsets.apps" in message(ask(adding, *may_write))
    adding["spec"]["autogen"] = {"podControllers": {"controllers": ["deployments"]}}
    assert ask(adding, *may_write)["allowed"] is True
    assert "may not create deployments.apps" in message(ask(adding, may_write[0]))


def test_what_autogen_lets_set_off_changes_of_targets_is_read_by_its_author() -> None:
    made = mutating("Object{data: {'a': string(object.spec)}}", rules("pods"))
    made["spec"] |= {
        "evaluation": {"mutateExisting": {"enabled": True}},
        "targetMatchConstraints": rules("configmaps"),
    }
    may_write = (("*", "get list update delete", "configmaps"), ("*", "get", "pods"))

    assert "may not get daemonsets.apps" in message(ask(made, *may_write))
    made["spec"]["autogen"] = {"podControllers": {"controllers": []}}
    assert message(ask(made, *may_write)) == ""


@pytest.mark.parametrize("label", ["cleanup.kyverno.io/ttl", "generate.kyverno.io/policy-name"])
@pytest.mark.parametrize(
    "mutation",
    [
        "Object{metadata: Object.metadata{labels: {'%s': 'p'}}}",
        '[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("%s"), value: "p"}]',
    ],
)
def test_who_writes_a_label_that_deletes_may_delete_himself(mutation: str, label: str) -> None:
    may_write = ("*", "create get update", "configmaps")
    made = mutating(mutation % label, rules("configmaps"))

    assert "may not delete configmaps" in message(ask(made, may_write))
    assert ask(mutating(mutation % "team", rules("configmaps")), may_write)["allowed"] is True


def test_who_has_others_run_another_command_may_run_commands_himself() -> None:
    command = '[JSONPatch{op: "replace", path: "/command", value: ["id"]}]'
    made = mutating(command, rules("pods/exec", "", "CONNECT"))
    match = {"any": [{"resources": {"kinds": ["Pod/exec"], "operations": ["CONNECT"]}}]}
    classic = written({"match": match, "mutate": {"patchStrategicMerge": {"command": ["id"]}}})

    for one in (made, classic):
        assert "may not create pods/exec" in message(ask(one))
        assert message(ask(one, ("*", "create", "pods/exec"))) == ""


def exception(expression: str) -> dict[str, Any]:
    spec = {
        "policyRefs": [{"name": "p", "kind": "ValidatingPolicy"}],
        "matchConditions": [{"name": "c", "expression": expression}],
    }
    return policy("PolicyException", "shop", **spec)


@pytest.mark.parametrize(
    ("expression", "missing"),
    [
        (f'{SECRET}.startsWith("a")', "get secrets `token` in namespace kube-system"),
        ('http.Post("https://example.com", object).statusCode == 200', "* all resources"),
        ('http.Client("ca").Get("https://example.com").statusCode == 200', "* all resources"),
        ('globalContext.Get("nobody-knows", "x").a == 1', "list all resources"),
    ],
)
def test_the_conditions_of_an_exception_read_what_its_author_may(
    expression: str, missing: str
) -> None:
    made = exception(expression)

    assert missing in message(ask(made, *ADMIN_OF_SHOP, path="exception"))
    assert ask(made, EVERYTHING, path="exception")["allowed"] is True
    assert missing in message(ask(made, *ADMIN_OF_SHOP, path="exception", old=exception("true")))
    assert ask(made, *ADMIN_OF_SHOP, path="exception", old=made)["allowed"] is True


def test_an_exception_that_reads_nothing_needs_no_rights_of_its_author() -> None:
    assert ask(exception('object.metadata.name == "a"'), path="exception")["allowed"] is True


MANY = [f"x{number}" for number in range(100)]
WIDE = {
    "apiGroups": MANY,
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": MANY,
    "resourceNames": MANY,
}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", ["MutatingPolicy", "DeletingPolicy"])
def test_words_of_a_rule_that_multiply_are_not_asked_about_one_by_one(kind: str) -> None:
    match = {"matchConstraints": {"resourceRules": [WIDE]}}
    patch = {
        "patchType": "JSONPatch",
        "jsonPatch": {"expression": '[JSONPatch{op: "remove", path: "/spec"}]'},
    }
    work = {"schedule": "0 * * * *"} if kind == "DeletingPolicy" else {"mutations": [patch]}

    assert "* all resources" in message(ask(policy(kind, **match, **work), *CREATING))


@pytest.mark.timeout(30)
def test_a_role_of_words_that_multiply_takes_the_right_to_escalate() -> None:
    rule = {"apiGroups": MANY, "resources": MANY, "verbs": MANY}
    block = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "name": "x",
        "data": {"rules": [rule]},
    }

    assert "escalate clusterroles" in message(ask(written({"generate": block}), *CREATING))


def test_a_policy_that_names_more_than_a_webhook_is_told_of_is_refused() -> None:
    rule = {**WIDE, "resources": [f"x{number}" for number in range(2000)]}
    made = policy(
        "ValidatingPolicy",
        matchConstraints={"resourceRules": [rule]},
        validations=[{"expression": "true"}],
    )

    assert "more than a webhook is told of (2000)" in message(ask(made, EVERYTHING))
