"""A policy does only what its author may do himself: asked of the API server when it is written, whichever way it is said."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from controllers.kube import Discovery, Kind, Unreachable
from controllers.kube.accounts import ACCOUNTS, Job, account_user
from controllers.kube.kinds import PODS
from controllers.runtime.cluster_cache import ClusterCache
from controllers.runtime.metrics import Metrics
from controllers.webhook.policy_validation import PolicyValidator
from tests.controllers.kube.fake import WELL_KNOWN, FakeClient

from .staging import body, policy

USER = {"username": "mallory", "uid": "u-1", "groups": ["dev", "system:authenticated"], "extra": {"a": ["b"]}}  # fmt: skip
BACKGROUND = f"system:serviceaccount:kyverno:{ACCOUNTS[Job.BACKGROUND]}"
DEPLOYMENTS = Kind("apps", "v1", "deployments", "Deployment", subresources=("scale",))
NODES = Kind("", "v1", "nodes", "Node", False)
RBAC = "rbac.authorization.k8s.io"

Right = tuple[str, str, str]


class Rules:
    """Rights as RBAC has them: (namespace or `*`, verbs, `resource.group`); `*` in a request is allowed by a `*` only."""

    def __init__(self, *rights: Right) -> None:
        self.rights = rights
        self.asked: list[dict[str, Any]] = []

    def __call__(self, spec: Any) -> dict[str, Any]:
        self.asked.append(spec)
        wanted = spec.get("resourceAttributes") or spec["nonResourceAttributes"]
        return {"allowed": any(_allows(right, wanted) for right in self.rights)}


def _allows(right: Right, wanted: dict[str, Any]) -> bool:
    namespace, verbs, text = right
    resource, _, group = text.partition(".")
    name = wanted.get("resource", "")
    if below := wanted.get("subresource"):
        name = f"{name}/{below}"
    return (
        namespace in ("*", wanted.get("namespace"))
        and (verbs == "*" or wanted["verb"] in verbs.split())
        and resource in ("*", name)
        and (group in (wanted.get("group", ""), "*") or text == "*")
    )


EVERYTHING = ("*", "*", "*")
ADMIN_OF_SHOP = tuple(
    ("shop", "get list watch create update patch delete", one)
    for one in ("configmaps", "pods", "secrets", "deployments.apps", f"rolebindings.{RBAC}", f"roles.{RBAC}", "policies.kyverno.io", "cleanuppolicies.kyverno.io")
)  # fmt: skip


def ask(
    obj: dict[str, Any],
    *rights: Right,
    path: str = "policy",
    old: dict[str, Any] | None = None,
    user: dict[str, Any] = USER,
    client: FakeClient | None = None,
    plural: str = "",
    rules: Rules | None = None,
) -> dict[str, Any]:
    """Return the response to somebody who holds some rights."""

    async def go() -> dict[str, Any]:
        made = client or FakeClient()
        made.reviews["SubjectAccessReview"] = rules or Rules(*rights)
        discovery = Discovery(made, (*WELL_KNOWN, PODS, DEPLOYMENTS, NODES))
        jobs = {account_user("kyverno", job): [job] for job in Job}
        validator = PolicyValidator(
            ClusterCache(discovery, Metrics()), made, jobs_of=lambda who: jobs.get(who, ())
        )
        group, _, version = obj["apiVersion"].rpartition("/")
        kind = next((one for one in WELL_KNOWN if (one.group, one.kind) == (group, obj["kind"])), None)  # fmt: skip
        resource = {"group": group, "version": version, "resource": plural or (kind.plural if kind else "")}  # fmt: skip
        fields = {"operation": "UPDATE" if old else "CREATE", "oldObject": old, "userInfo": user, "resource": resource}  # fmt: skip
        answer = await getattr(validator, path)("", body(obj, **fields), 5.0)
        return orjson.loads(answer)["response"]

    return asyncio.run(go())


def message(response: dict[str, Any]) -> str:
    return "" if response["allowed"] else response["status"]["message"]


def written(rule: dict[str, Any], namespace: str = "", **spec: Any) -> dict[str, Any]:
    made = policy("p")
    if namespace:
        made["kind"] = "Policy"
        made["metadata"]["namespace"] = namespace
    match = {"any": [{"resources": {"kinds": ["ConfigMap"]}}]}
    made["spec"] = {"rules": [{"name": "r", "match": match, **rule}], "background": False, **spec}
    return made


def generate(
    api_version: str, called: str, namespace: str = "", /, **fields: Any
) -> dict[str, Any]:
    block = {"apiVersion": api_version, "kind": called, "name": "x", **({"namespace": namespace} if namespace else {}), "data": {}, **fields}  # fmt: skip
    return {"generate": {key: value for key, value in block.items() if value is not None}}


def targets(*entries: dict[str, Any], **mutate: Any) -> dict[str, Any]:
    return {"mutate": {"targets": list(entries), "patchStrategicMerge": {"data": {"a": "b"}}, **mutate}}  # fmt: skip


def target(api_version: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, **fields}


def reading(**entry: Any) -> dict[str, Any]:
    denying = {"deny": {"conditions": {"all": [{"key": "{{ found }}", "operator": "Equals", "value": "x"}]}}}  # fmt: skip
    return {"context": [{"name": "found", **entry}], "validate": {"message": "m", **denying}}


def calling(path: str, method: str = "GET") -> dict[str, Any]:
    return reading(apiCall={"urlPath": path, "method": method})


ROLE = {"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]}]}
GIVING = {"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}, "subjects": [{"kind": "User", "name": "mallory"}]}  # fmt: skip
GENERATING = {
    "rules": [
        {
            "name": "inner",
            "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]},
            "generate": {"apiVersion": "v1", "kind": "Secret", "name": "x", "namespace": "other", "data": {}},
        }
    ]
}  # fmt: skip
CLEANING = {"schedule": "* * * * *", "match": {"any": [{"resources": {"kinds": ["Secret"]}}]}}

VERIFYING = {
    "mutateDigest": False,
    "imageReferences": ["*"],
    "attestors": [{"entries": [{"keys": {"publicKeys": "x"}}]}],
}
PINNING = {**VERIFYING, "mutateDigest": True, "failureAction": "Enforce"}
BEYOND = {
    "generate elsewhere": written(generate("v1", "ConfigMap", "other")),
    "generate where a variable says": written(generate("v1", "ConfigMap", "{{ request.object.data.where }}")),
    "generate what a variable says": written(generate("v1", "{{ request.object.data.kind }}", "shop"), "shop"),
    "generate a kind not there yet": written(generate("late.example.org/v1", "Thing", "shop"), "shop"),
    "generate an exception": written(generate("kyverno.io/v2", "PolicyException", "shop")),
    "generate in a loop": written({"generate": {"foreach": [{"list": "request.object.data", **generate("v1", "Secret", "other")["generate"]}]}}),
    "generate for what is there": written({**generate("v1", "ConfigMap", "shop", generateExisting=True), "match": {"any": [{"resources": {"kinds": ["Node"]}}]}}),
    "carry what is not readable": written({**generate("v1", "ConfigMap", "shop"), "match": {"any": [{"resources": {"kinds": ["Secret"]}}]}}),
    "clone from elsewhere": written(generate("v1", "Secret", "shop", data=None, clone={"name": "key", "namespace": "ops"})),
    "clone a list from elsewhere": written(generate("v1", "Secret", "shop", data=None, apiVersion=None, kind=None, name=None, cloneList={"namespace": "ops", "kinds": ["v1/Secret"]})),
    "apply on the server elsewhere": written(generate("v1", "ConfigMap", "other", synchronize=True, orphanDownstreamOnPolicyDelete=True), useServerSideApply=True),
    "bind a role": written(generate(f"{RBAC}/v1", "RoleBinding", "shop", data=GIVING), "shop"),
    "bind a role of a variable": written(generate(f"{RBAC}/v1", "RoleBinding", "shop", data={"roleRef": {"kind": "ClusterRole", "name": "{{ request.object.data.role }}"}}), "shop"),
    "bind by a variable": written(generate(f"{RBAC}/v1", "RoleBinding", "shop", data="{{ request.object.data }}"), "shop"),
    "clone a binding": written(generate(f"{RBAC}/v1", "RoleBinding", "shop", data=None, clone={"name": "y", "namespace": "shop"}), "shop"),
    "write a role": written(generate(f"{RBAC}/v1", "Role", "shop", data={"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}), "shop"),
    "write a role of a variable": written(generate(f"{RBAC}/v1", "Role", "shop", data={"rules": [{"apiGroups": ["{{ request.object.data.g }}"], "resources": ["x"], "verbs": ["get"]}]}), "shop"),
    "clone a role": written(generate(f"{RBAC}/v1", "Role", "shop", data=None, clone={"name": "y", "namespace": "shop"}), "shop"),
    "change elsewhere": written(targets(target("v1", "ConfigMap", name="x", namespace="other"))),
    "change anywhere": written(targets(target("v1", "ConfigMap", name="x", namespace="*"))),
    "change by label": written(targets(target("v1", "ConfigMap", selector={"matchLabels": {"a": "b"}}))),
    "change what a variable says": written(targets(target("v1", "{{ request.object.data.kind }}", name="x"))),
    "change a role": written(targets(target(f"{RBAC}/v1", "Role", name="x", namespace="shop")), "shop"),
    "change a binding": written(targets(target(f"{RBAC}/v1", "RoleBinding", name="x", namespace="shop")), "shop"),
    "change a part": written(targets(target("apps/v1", "Deployment/scale", name="x", namespace="shop"))),
    "read beside a target": written(targets(target("v1", "ConfigMap", name="x", namespace="shop", context=[{"name": "c", "configMap": {"name": "x", "namespace": "other"}}]))),
    "change a vendor's webhooks": written(targets(target("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", name="x"))),
    "mutate what others write": written({"mutate": {"patchStrategicMerge": {"metadata": {"labels": {"a": "b"}}}}}),
    "pin what others write": written({"verifyImages": [PINNING]}),
    "pin in any place of a role": written({"verifyImages": [PINNING], "imageExtractors": {"Role": [{"path": "/rules/0/verbs/0"}]}, "match": {"any": [{"resources": {"kinds": ["Role"]}}]}}, "shop"),
    "mutate everything in a namespace": written({"mutate": {"patchStrategicMerge": {"metadata": {"labels": {"a": "b"}}}}, "match": {"any": [{"resources": {"kinds": ["*"]}}]}}, "shop"),
    "read a ConfigMap": written(reading(configMap={"name": "x", "namespace": "other"})),
    "read a ConfigMap of a variable": written(reading(configMap={"name": "x", "namespace": "{{ request.namespace }}"})),
    "call elsewhere": written(calling("/api/v1/namespaces/other/secrets/key")),
    "call where a variable says": written(calling("/api/v1/namespaces/{{ request.namespace }}/secrets")),
    "call for what a variable says": written(calling("/api/v1/namespaces/shop/{{ request.object.data.what }}")),
    "call a group of a variable": written(calling("/apis/{{ request.object.data.g }}/v1/things")),
    "call all": written(calling("{{ request.object.data.path }}")),
    "call with escapes": written(calling("/api/v1/namespaces/shop/%2e%2e/other/secrets")),
    "call a list of all": written(calling("/api/v1/secrets")),
    "call no resource": written(calling("/metrics")),
    "post": written(calling("/apis/authorization.k8s.io/v1/subjectaccessreviews", "POST")),
    "call in a loop": written({"validate": {"message": "m", "foreach": [{"list": "request.object.data", "context": [{"name": "c", "apiCall": {"urlPath": "/api/v1/nodes"}}], "deny": {}}]}}),
    "read what the server has cached": written(reading(globalReference={"name": "nobody-knows"})),
    "generate a policy that does more": written(generate("kyverno.io/v1", "Policy", "shop", data={"spec": GENERATING})),
    "generate a policy of a variable": written(generate("kyverno.io/v1", "Policy", "shop", data={"spec": "{{ request.object.data }}"})),
    "clone a policy": written(generate("kyverno.io/v1", "Policy", "shop", data=None, clone={"name": "a", "namespace": "shop"})),
    "generate a clean-up": written(generate("kyverno.io/v2", "ClusterCleanupPolicy", data={"spec": CLEANING})),
}  # fmt: skip


@pytest.mark.parametrize("way", BEYOND)
def test_an_author_is_refused_what_he_may_not_do_himself(way: str) -> None:
    refused = message(ask(BEYOND[way], *ADMIN_OF_SHOP))

    assert "`mallory` may not" in refused, refused


@pytest.mark.parametrize("way", BEYOND)
def test_an_administrator_of_the_cluster_writes_all_of_them(way: str) -> None:
    refused = message(ask(BEYOND[way], EVERYTHING))

    assert "may not" not in refused
    assert not refused or way == "generate a policy of a variable", refused


@pytest.mark.parametrize("way", BEYOND)
def test_whoever_may_bypass_writes_them_too(way: str) -> None:
    plural = "policies" if BEYOND[way]["kind"] == "Policy" else "clusterpolicies"
    response = ask(BEYOND[way], ("*", "bypass", f"{plural}.kpolicy.io"))

    assert response["allowed"] is True


@pytest.mark.parametrize("way", BEYOND)
def test_who_was_refused_to_make_it_is_refused_to_change_another_into_it(way: str) -> None:
    old = {**BEYOND[way], "spec": policy()["spec"]}
    response = ask(BEYOND[way], *ADMIN_OF_SHOP, old=old)

    assert "`mallory` may not" in message(response)


def test_what_changes_nothing_of_what_a_policy_does_is_not_asked_about() -> None:
    made = BEYOND["generate elsewhere"]
    labelled = {**made, "metadata": {**made["metadata"], "labels": {"a": "b"}}}

    assert ask(labelled, old=made)["allowed"] is True


def test_autogen_that_comes_to_concern_more_is_asked_about() -> None:
    before = written({"mutate": {"patchStrategicMerge": {"metadata": {"labels": {"a": "b"}}}}}, "shop")  # fmt: skip
    before["spec"]["rules"][0]["match"] = {"any": [{"resources": {"kinds": ["Pod"]}}]}
    after = {**before, "metadata": {**before["metadata"], "annotations": {}}}
    rights = [right for right in ADMIN_OF_SHOP if right[2] != "deployments.apps"]

    assert ask(before, *rights)["allowed"] is True
    assert "deployments.apps" in message(ask(after, *rights, old=before))


@pytest.mark.parametrize("said", ["trigger-uid", "trigger-kind"])
@pytest.mark.parametrize("after", ["", "another"])
def test_a_clean_up_of_one_object_that_comes_to_concern_others_is_asked_about(
    said: str, after: str
) -> None:
    made = policy("p")
    labels = {"generate.kyverno.io/trigger-uid": "u", "generate.kyverno.io/trigger-kind": "Secret"}
    match = {"any": [{"resources": {"kinds": ["Secret"], "names": ["x"]}}]}
    made |= {
        "apiVersion": "kyverno.io/v2",
        "kind": "ClusterCleanupPolicy",
        "spec": {**CLEANING, "match": match},
    }
    made["metadata"]["labels"] = labels
    name = f"generate.kyverno.io/{said}"
    kept = {key: text for key, text in labels.items() if key != name}
    changed = {**made["metadata"], "labels": {**kept, name: after} if after else kept}
    # an annotation of the same name is no label
    changed["annotations"] = {**made["metadata"]["annotations"], name: labels[name]}

    response = ask({**made, "metadata": changed}, path="cleanup", old=made)

    assert "may not list, delete secrets" in message(response)
    assert (
        ask({**made, "metadata": changed}, EVERYTHING, path="cleanup", old=made)["allowed"] is True
    )


@pytest.mark.parametrize("way", ["generate elsewhere", "generate a clean-up"])
def test_what_our_own_account_generates_was_asked_about_before(way: str) -> None:
    assert ask(BEYOND[way], user={"username": BACKGROUND})["allowed"] is True
    for other in (Job.CLEANUP, Job.REPORTS, Job.GRANTS):
        user = {"username": f"system:serviceaccount:kyverno:{ACCOUNTS[other]}"}
        assert ask(BEYOND[way], user=user)["allowed"] is False


WITHIN = {
    "generate": written(generate("v1", "ConfigMap", "shop", synchronize=True), "shop"),
    "clone": written(generate("v1", "Secret", "shop", data=None, clone={"name": "a", "namespace": "shop"}), "shop"),
    "change": written(targets(target("v1", "ConfigMap", name="x", namespace="shop")), "shop"),
    "change where a variable says": written(targets(target("v1", "ConfigMap", name="{{ request.object.data.name }}", namespace="shop")), "shop"),
    "pin": written({"verifyImages": [PINNING], "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}}, "shop"),
    "verify what others write": written({"verifyImages": [VERIFYING], "match": {"any": [{"resources": {"kinds": ["Node"]}}]}}),
    "mutate": written({"mutate": {"patchStrategicMerge": {"metadata": {"labels": {"a": "b"}}}}}, "shop"),
    "read": written(reading(configMap={"name": "x", "namespace": "{{ request.namespace }}"}), "shop"),
    "call": written(calling("/api/v1/namespaces/shop/secrets/{{ request.object.data.name }}"), "shop"),
    "write a role": written(generate(f"{RBAC}/v1", "Role", "shop", data=ROLE), "shop"),
    "label roles": written({"mutate": {"targets": [target(f"{RBAC}/v1", "Role", name="x", namespace="shop")], "patchStrategicMerge": {"metadata": {"labels": {"a": "b"}}}}}, "shop"),
    "validate": policy(),
}  # fmt: skip


@pytest.mark.parametrize("way", WITHIN)
def test_an_author_writes_what_he_may_do_himself(way: str) -> None:
    assert message(ask(WITHIN[way], *ADMIN_OF_SHOP)) == ""


@pytest.mark.parametrize(
    ("rights", "is_fine"),
    [((), False), ((("shop", "bind", f"clusterroles.{RBAC}"),), True), ((("shop", "get", "pods"),), True)],
)  # fmt: skip
def test_a_role_is_given_by_who_may_bind_it_or_holds_all_of_it(rights: Any, is_fine: bool) -> None:
    data = {"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "viewer"}}
    made = written(generate(f"{RBAC}/v1", "RoleBinding", "shop", data=data), "shop")
    role = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "viewer"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    }
    held = [right for right in ADMIN_OF_SHOP if right[2] != "pods"]
    response = ask(made, *held, *rights, client=FakeClient(role))

    assert response["allowed"] is is_fine
    assert is_fine or "may not bind clusterroles.rbac.authorization.k8s.io `viewer` in namespace shop" in message(response)  # fmt: skip


def test_a_role_too_large_to_be_compared_takes_the_right_to_bind_it() -> None:
    data = {"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "large"}}
    made = written(generate(f"{RBAC}/v1", "RoleBinding", "shop", data=data), "shop")
    resources = [f"kind{number}" for number in range(100)]
    role = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "large"},
        "rules": [{"apiGroups": [""], "resources": resources, "verbs": ["get"]}],
    }
    rules = Rules(*ADMIN_OF_SHOP, ("shop", "get", "*"))
    response = ask(made, client=FakeClient(role), rules=rules)

    assert response["allowed"] is False
    assert len(rules.asked) < 20


def test_the_question_is_about_who_asks_with_all_that_is_known_of_him() -> None:
    rules = Rules()
    ask(BEYOND["generate elsewhere"], rules=rules)

    assert len(rules.asked) > 1
    for spec in rules.asked:
        assert (spec["user"], spec["uid"], spec["groups"], spec["extra"]) == tuple(USER.values())


def test_the_refusal_names_verbs_resource_who_and_what_to_do() -> None:
    assert message(ask(BEYOND["generate elsewhere"], ("*", "get", "configmaps"))) == (
        "spec.rules[0].generate: `mallory` may not create configmaps in namespace other; a policy does only what its"
        " author may do: get these rights, or the verb `bypass` on clusterpolicies.kpolicy.io"
    )


def test_a_server_that_does_not_say_what_an_author_may_do_refuses() -> None:
    client = FakeClient()
    client.fail("review", Unreachable("no answer"), times=99, resource="subjectaccessreviews")
    response = ask(BEYOND["generate elsewhere"], EVERYTHING, client=client)

    assert message(response) == "what `mallory` may do could not be asked for: no answer"


def test_more_than_can_be_asked_about_is_refused_without_asking() -> None:
    entries = [{"name": f"c{number}", "configMap": {"name": f"c{number}", "namespace": "x"}} for number in range(300)]  # fmt: skip
    rules = Rules()
    condition = {"key": "{{ c1.data.a }}", "operator": "Equals", "value": "x"}
    rule = {"context": entries, "validate": {"message": "m", "deny": {"conditions": {"all": [condition]}}}}  # fmt: skip
    response = ask(written(rule), rules=rules)

    assert "more than can be asked about" in message(response)
    assert len(rules.asked) == 1


def test_an_entry_that_is_there_is_asked_about_by_what_it_reads() -> None:
    entry = {
        "apiVersion": "kyverno.io/v2beta1",
        "kind": "GlobalContextEntry",
        "metadata": {"name": "pods"},
        "spec": {"kubernetesResource": {"group": "", "version": "v1", "resource": "pods", "namespace": "shop"}},
    }  # fmt: skip
    made = written(reading(globalReference={"name": "pods.names"}))

    assert ask(made, *ADMIN_OF_SHOP, client=FakeClient(entry))["allowed"] is True
    assert "may not list pods in namespace shop" in message(ask(made, client=FakeClient(entry)))
    assert "may not list pods in namespace shop" in message(ask(entry, path="entry"))
    assert ask(entry, *ADMIN_OF_SHOP, path="entry")["allowed"] is True


@pytest.mark.parametrize("kind", ["ClusterCleanupPolicy", "CleanupPolicy"])
def test_a_clean_up_needs_the_right_to_delete_and_to_read_what_it_asks(kind: str) -> None:
    made = {
        "apiVersion": "kyverno.io/v2",
        "kind": kind,
        "metadata": {"name": "x"},
        "spec": CLEANING,
    }
    if kind == "CleanupPolicy":
        made["metadata"]["namespace"] = "shop"
    call = [{"name": "c", "apiCall": {"urlPath": "/api/v1/namespaces/shop/nothing-mine"}}]

    assert ask(made, *ADMIN_OF_SHOP, path="cleanup")["allowed"] is (kind == "CleanupPolicy")
    assert "may not list, delete secrets" in message(ask(made, path="cleanup"))
    reads = {**made, "spec": {**CLEANING, "context": call}}
    assert "may not list nothing-mine" in message(ask(reads, *ADMIN_OF_SHOP, path="cleanup"))
    assert ask(reads, EVERYTHING, path="cleanup")["allowed"] is True


@pytest.mark.parametrize(
    ("expression", "right"),
    [
        ('resource.Get("v1", "secrets", "other", "key").data.a == "b"', "get secrets `key` in namespace other"),
        ('resource.List("v1", "secrets", "other").items.size() > 0', "list secrets in namespace other"),
        ('resource.List("apps/v1", "deployments", "").items.size() > 0', "list deployments.apps"),
        ('resource.Post("authorization.k8s.io/v1", "subjectaccessreviews", {"a": "b"}).x == 1', "create subjectaccessreviews.authorization.k8s.io"),
        ('resource.get("v1", object.kind, "shop", "x").data.a == "b"', "get all resources of the core group `x` in namespace shop"),
        ('[1].all(x, resource.Get(object.apiVersion, "pods", "shop", "x").data.a == "b")', "get all resources `x` in namespace shop"),
        ('resource.get(resource.ToGVR("v1", "Secret"), "shop", "x").data.a == "b"', "get all resources `x`"),
        ('globalContext.Get("nobody-knows", "x").a == 1', "list all resources"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("where", ["validations", "variables", "matchConditions"])
def test_expressions_look_up_what_their_author_may(expression: str, right: str, where: str) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}  # fmt: skip
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]}
    spec[where] = [{"name": "x", "expression": expression}] if where != "validations" else [{"expression": expression}]  # fmt: skip
    made = {"apiVersion": "policies.kyverno.io/v1", "kind": "ValidatingPolicy", "metadata": {"name": "x"}, "spec": spec}  # fmt: skip

    assert f"may not {right}" in message(ask(made, plural="validatingpolicies"))
    assert ask(made, EVERYTHING)["allowed"] is True


@pytest.mark.parametrize("kind", ["DeletingPolicy", "NamespacedDeletingPolicy"])
def test_who_writes_a_deleting_policy_may_list_and_delete_what_it_names(kind: str) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"]}
    place = {"namespace": "shop"} if kind.startswith("Namespaced") else {}
    made = {"apiVersion": "policies.kyverno.io/v1", "kind": kind, "metadata": {"name": "x", **place}, "spec": {"schedule": "* * * * *", "matchConstraints": {"resourceRules": [rule]}}}  # fmt: skip

    assert "may not list, delete secrets" in message(ask(made))
    assert ask(made, *ADMIN_OF_SHOP)["allowed"] is bool(place)
    assert ask(made, EVERYTHING)["allowed"] is True
    rule["resources"] = ["grants"]
    rule["apiGroups"] = ["kpolicy.io"]
    assert "no policy may clean up objects of kpolicy.io" in message(ask(made, EVERYTHING))


def labelled(**labels: str) -> dict[str, Any]:
    metadata = {"name": "x", "namespace": "shop", "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def test_only_who_may_delete_an_object_has_a_label_delete_it() -> None:
    soon, later = (labelled(**{"cleanup.kyverno.io/ttl": text}) for text in ("1s", "1h"))
    may_write = ("shop", "create update", "configmaps")

    for old in (None, labelled(), later):
        assert "may not delete this object" in message(ask(soon, may_write, path="label", old=old))
        assert ask(soon, *ADMIN_OF_SHOP, path="label", old=old)["allowed"] is True
    assert ask(soon, may_write, path="label", old=soon)["allowed"] is True
    assert ask(labelled(), may_write, path="label", old=soon)["allowed"] is True
    for job, is_asked in zip(Job, (True, False, True, True, False), strict=True):
        response = ask(soon, path="label", user={"username": account_user("kyverno", job)})
        assert response["allowed"] is not is_asked, job


@pytest.mark.parametrize(
    "rule",
    [
        generate("v1", "ConfigMap", "shop", data={"metadata": {"labels": {"cleanup.kyverno.io/ttl": "1s"}}}),
        targets(target("v1", "ConfigMap", name="x", namespace="shop"), patchStrategicMerge={"metadata": {"labels": {"cleanup.kyverno.io/ttl": "1s"}}}),
        targets(target("v1", "ConfigMap", name="x", namespace="shop"), patchStrategicMerge={"metadata": {"labels": {"{{ request.object.data.key }}": "1s"}}}),
        {"mutate": {"patchesJson6902": "- {op: add, path: /metadata/labels/cleanup.kyverno.io~1ttl, value: 1s}"}},
        {"mutate": {"patchesJson6902": "- {op: add, path: /metadata, value: '{{ request.object.data }}'}"}},
        {"mutate": {"patchStrategicMerge": {"metadata": "{{ request.object.data }}"}}},
        generate("v1", "ConfigMap", "shop", data="{{ request.object.data }}"),
        targets(target("v1", "ConfigMap", name="x", namespace="shop"), patchStrategicMerge={"metadata": {"labels": {"generate.kyverno.io/policy-name": "p"}}}),
        targets(target("v1", "ConfigMap", name="x", namespace="shop"), patchStrategicMerge={"metadata": {"labels": {"+(cleanup.kyverno.io/ttl)": "1s"}}}),
        {"mutate": {"patchStrategicMerge": {"metadata": {"labels": {"+(generate.kyverno.io/trigger-uid)": "u"}}}}},
        {"mutate": {"patchesJson6902": "- {op: add, path: /metadata/labels/generate.kyverno.io~1policy-name, value: p}"}},
        {"mutate": {"patchesJson6902": '- {op: add, path: "/metadata/labels/cle\\u0061nup.kyverno.io~1ttl", value: 1s}'}},
        {"mutate": {"patchesJson6902": '[{"op": "add", "path": "/metadata/labels", "value": {"cle\\u0061nup.kyverno.io/ttl": "1s"}}]'}},
        {"mutate": {"patchesJson6902": "- {op: copy, from: /metadata/annotations, path: /metadata/labels}"}},
        {"mutate": {"patchesJson6902": '- {op: "c\\u006fpy", from: /data, path: /metadata}'}},
        {"mutate": {"patchesJson6902": "{{ request.object.data.patch }}"}},
        {"mutate": {"patchStrategicMerge": {"metadata": {"+(labels)": "{{ request.object.metadata.annotations }}"}}}},
        {"mutate": {"foreach": [{"list": "request.object.data", "patchesJson6902": "{{ element }}"}]}},
        targets(target("v1", "ConfigMap", name="x", namespace="shop"), patchStrategicMerge=None, patchesJson6902="- {op: move, from: /data, path: /metadata/labels}"),
    ],
)  # fmt: skip
def test_a_rule_that_labels_for_deletion_needs_the_right_to_delete(rule: dict[str, Any]) -> None:
    rights = [("shop", "get list create update patch", "configmaps")]

    assert "may not delete configmaps" in message(ask(written(rule, "shop"), *rights))
    assert ask(written(rule, "shop"), *ADMIN_OF_SHOP)["allowed"] is True


LOOKING_ANYWHERE = written(
    {
        "match": {"any": [{"resources": {"kinds": ["{{ request.object.data.k }}"]}}]},
        "validate": {"message": "{{ request.object.data }}", "deny": {}},
    }
)["spec"]


@pytest.mark.parametrize(
    ("data", "missing"),
    [
        ({"spec": LOOKING_ANYWHERE}, "get secrets"),
        ({"spec": policy()["spec"], "metadata": "{{ request.object.data }}"}, "* all resources"),
    ],
)
def test_what_a_variable_decides_about_a_generated_policy_is_asked_for_all(
    data: dict[str, Any], missing: str
) -> None:
    made = written(generate("kyverno.io/v1", "ClusterPolicy", data=data))
    rights = (("*", "get create delete", "clusterpolicies.kyverno.io"), ("*", "get", "configmaps"))

    assert f"may not {missing}" in message(ask(made, *rights))
    assert ask(made, EVERYTHING)["allowed"] is True


SAYING = {"message": "m {{ request.object.data.password }}", "deny": {}}
LOOKING: dict[str, dict[str, Any]] = {
    "a message": {"validate": SAYING},
    "a pattern": {"validate": {"message": "m", "pattern": {"data": {"password": "a*"}}}},
    "a pattern with an anchor": {
        "validate": {"message": "m", "pattern": {"=(data)": {"password": "a*"}}}
    },
    "one of several patterns": {
        "validate": {"message": "m", "anyPattern": [{"stringData": {"password": "a*"}}]}
    },
    "an annotation": {
        "validate": {"message": "m", "pattern": {"metadata": {"annotations": {"a": "b"}}}}
    },
    "a key": {
        "validate": {
            "message": "m",
            "pattern": {"metadata": {"labels": {"{{ request.object.data.password }}": "?*"}}},
        }
    },
    "an operator": {
        "validate": {"message": "{{ request.name.x && request.object.data.password }}", "deny": {}}
    },
    "a condition": {
        "validate": {
            "message": "m",
            "deny": {
                "conditions": {"any": [{"key": "{{ @ }}", "operator": "Equals", "value": "b"}]}
            },
        }
    },
    "a precondition": {
        "validate": {"message": "m", "deny": {}},
        "preconditions": {
            "all": [
                {
                    "key": "{{ request.oldObject.data.password || '' }}",
                    "operator": "Equals",
                    "value": "b",
                }
            ]
        },
    },
    "a variable after a name": {
        "validate": {
            "message": "{{ request.object.metadata.name || request.object.data.password }}",
            "deny": {},
        }
    },
    "a context": {
        "context": [{"name": "seen", "variable": {"jmesPath": "request.object.data"}}],
        "validate": {"message": "{{ seen }}", "deny": {}},
    },
    "an expression": {
        "validate": {
            "message": "m",
            "cel": {"expressions": [{"expression": "object.data.password == 'a'"}]},
        }
    },
    "what an expression says": {
        "validate": {
            "message": "m",
            "cel": {
                "expressions": [{"expression": "false", "messageExpression": "string(request)"}]
            },
        }
    },
}
NAMES = {
    "message": "{{ request.operation }} of {{request.object.metadata.name}} by {{ request.userInfo.username }}: {{ request.object.metadata.labels.team || 'no' }} team",
    "pattern": {"metadata": {"labels": {"team": "?*"}, "=(namespace)": "?*"}},
}


@pytest.mark.parametrize("kinds", [["Secret"], ["v1/Secret"], ["Sec*"], ["Pod", "*/Secret"]])
@pytest.mark.parametrize("way", LOOKING)
def test_who_looks_into_secrets_may_read_them_himself(way: str, kinds: list[str]) -> None:
    match = {"any": [{"resources": {"kinds": kinds, "namespaces": ["shop"]}}]}
    made = written({**LOOKING[way], "match": match})

    assert "may not get secrets in namespace shop" in message(ask(made))
    assert message(ask(made, ("shop", "get", "secrets"))) == ""
    match["any"][0]["resources"]["kinds"] = ["ConfigMap"]
    assert message(ask(made)) == ""


@pytest.mark.parametrize("kind", ["Secret", "*"])
def test_who_looks_at_names_and_labels_of_secrets_need_not_read_them(kind: str) -> None:
    match = {"any": [{"resources": {"kinds": [kind]}}]}

    assert message(ask(written({"validate": NAMES, "match": match}))) == ""


@pytest.mark.parametrize("kind", ["Pod/*", "v1/Pod/*", "Pod.*"])
def test_every_part_of_an_object_is_changed_by_who_may_write_every_part(kind: str) -> None:
    rule = {"mutate": {"patchStrategicMerge": {"command": ["id"]}}, "match": {"any": [{"resources": {"kinds": [kind], "operations": ["CONNECT"]}}]}}  # fmt: skip
    may_write = ("*", "get list create update", "pods")

    assert "may not create pods/*" in message(ask(written(rule), may_write))
    assert ask(written(rule), may_write, ("*", "create", "pods/*"))["allowed"] is True


@pytest.mark.parametrize(
    "metadata",
    [
        {"annotations": {"pod-policies.kyverno.io/autogen-controllers": "all"}},
        {"annotations": {"{{ request.object.data.key }}": "all"}},
        {"annotations": {"$patch": "delete"}},
        {"annotations": {"$patch": "replace", "team": "blue"}},
        {"annotations": None, "labels": {"team": "blue"}},
        {"$patch": "replace", "labels": {"team": "blue"}},
        {"labels": {"$patch": "delete"}},
        {"+(annotations)": "{{ request.object.metadata.labels }}"},
    ],
)
def test_a_rule_that_may_have_policies_concern_more_kinds_needs_all_that_they_could_do(
    metadata: dict[str, Any],
) -> None:
    noted = {"metadata": metadata}
    rules = (
        targets(target("kyverno.io/v1", "ClusterPolicy", name="x"), patchStrategicMerge=noted),
        {
            "mutate": {"patchStrategicMerge": noted},
            "match": {"any": [{"resources": {"kinds": ["ClusterPolicy"]}}]},
        },
    )
    rights = [
        ("*", "get list create update patch delete", one)
        for one in ("configmaps", "clusterpolicies.kyverno.io")
    ]
    for rule in rules:
        assert "may not * all resources" in message(ask(written(rule), *rights))
        assert ask(written(rule), EVERYTHING)["allowed"] is True
    noted["metadata"] = {"annotations": {"team": "blue"}}
    for rule in rules:
        assert ask(written(rule), *rights)["allowed"] is True


@pytest.mark.parametrize(
    "keys",
    [
        {"publicKeys": "k8s://ops/cosign"},
        {"publicKeys": "{{ request.object.metadata.annotations.key }}"},
        {"secret": {"namespace": "ops", "name": "cosign"}},
    ],
)
def test_a_public_key_is_taken_only_from_a_secret_that_the_author_may_read(keys) -> None:
    attestors = [{"entries": [{"keys": keys}]}]
    verifying = {
        "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
        "verifyImages": [{**VERIFYING, "attestors": attestors}],
    }
    signed = {
        "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]},
        "validate": {"manifests": {"attestors": attestors}},
    }
    for rule in (verifying, signed):
        assert "may not get secrets" in message(ask(written(rule), *ADMIN_OF_SHOP))


@pytest.mark.parametrize(
    "secret", ["ops/pull", "{{ request.namespace }}/pull", "ops/{{ request.object.metadata.name }}"]
)
def test_a_registry_is_shown_only_credentials_that_the_author_may_read(secret: str) -> None:
    given = {"imageRegistryCredentials": {"secrets": [secret]}}
    verifying = {
        "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
        "verifyImages": [{**VERIFYING, **given}],
    }
    looking = reading(imageRegistry={"reference": "ghcr.io/a/b", **given})
    ivpol = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ImageValidatingPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "credentials": {"secrets": [secret]},
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                    }
                ]
            },
            "attestors": [{"name": "a", "cosign": {"key": {"data": "x"}}}],
            "validations": [{"expression": "true"}],
        },
    }
    for made in (written(verifying), written(looking), ivpol):
        assert "may not get secrets" in message(ask(made, *ADMIN_OF_SHOP))
        assert "secrets" not in message(ask(made, ("*", "get", "secrets")))
    verifying["verifyImages"][0]["imageRegistryCredentials"] = {"secrets": ["shared"]}
    assert "secrets" not in message(ask(written(verifying)))


def test_a_native_policy_is_made_only_for_who_may_keep_it_himself() -> None:
    cel = {"generate": True, "expressions": [{"expression": "true"}]}
    rule = {"name": "r", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}, "validate": {"cel": cel}}  # fmt: skip
    obj = {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "p"},
        "spec": {"background": False, "rules": [rule]},
    }
    group = "admissionregistration.k8s.io"
    policies = ("*", "create update delete", f"validatingadmissionpolicies.{group}")
    bindings = ("*", "create update delete", f"validatingadmissionpolicybindings.{group}")
    off = {**obj, "spec": {"background": False, "rules": [{**rule, "validate": {"cel": {**cel, "generate": False}}}]}}  # fmt: skip

    assert ask(obj, policies, bindings)["allowed"] is True
    assert ask(off)["allowed"] is True
    refused = message(ask(obj, policies))
    assert f"validatingadmissionpolicybindings.{group} `cpol-p-binding`" in refused
