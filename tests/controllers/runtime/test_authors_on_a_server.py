"""An administrator of one namespace against a whole replica on the sandbox: no policy gets him more than he has."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from controllers.kube import Client, KubeError, connect, load_access
from controllers.kube.access import Impersonation
from controllers.kube.client import APPLY, MERGE
from controllers.kube.kinds import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    POLICIES,
    POLICY_EXCEPTIONS,
    ROLE_BINDINGS,
    VALIDATING_WEBHOOKS,
)
from controllers.manifests.rbac import roles

from .test_replica import cluster, eventually, replica

if TYPE_CHECKING:
    from pathlib import Path

RBAC = "rbac.authorization.k8s.io"


def binding(kind: Any, role: str, namespace: str = "") -> dict[str, Any]:
    metadata = {"name": f"mallory-{role.replace(':', '-')}", **({"namespace": namespace} if namespace else {})}  # fmt: skip
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": kind.kind,
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": "mallory", "apiGroup": RBAC}],
    }


@asynccontextmanager
async def mallory(folder: Path):
    """Yield (an administrator of the cluster, one of namespace `shop`) with everything of ours running."""
    async with cluster(folder) as (client, kubeconfig):
        for role in roles():
            if role["kind"] == "ClusterRole":
                await client.create(CLUSTER_ROLES, role)
        await client.create(ROLE_BINDINGS, binding(ROLE_BINDINGS, "admin", "shop"))
        async with replica(kubeconfig):
            person = connect(
                replace(
                    load_access(kubeconfig),
                    impersonate=Impersonation("mallory", ("system:authenticated",)),
                )
            )
            try:
                await eventually(lambda: is_checked(client))
                yield client, person
            finally:
                await person.close()


async def is_checked(client: Client) -> bool:
    found = await client.list_all(VALIDATING_WEBHOOKS)
    return any(one["metadata"]["name"].startswith("kyverno-policy-") for one in found.items)


def policy(rule: dict[str, Any], name: str = "p") -> dict[str, Any]:
    match = {"any": [{"resources": {"kinds": ["ConfigMap"]}}]}
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "Policy",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"background": False, "rules": [{"name": "r", "match": match, **rule}]},
    }


def generate(api_version: str, kind: str, data: Any) -> dict[str, Any]:
    block = {
        "apiVersion": api_version,
        "kind": kind,
        "name": "x",
        "namespace": "shop",
        "data": data,
    }
    return {"generate": block}


EXCEPTION = {
    "spec": {
        "exceptions": [{"policyName": "*", "ruleNames": ["*"]}],
        "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
    }
}
GIVING = {"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}, "subjects": [{"kind": "User", "name": "mallory", "apiGroup": RBAC}]}  # fmt: skip
WEBHOOKS = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "name": "of-a-vendor", "namespace": "shop"}  # fmt: skip
ATTEMPTS = {
    "an exception by generation": (generate("kyverno.io/v2", "PolicyException", EXCEPTION), "may not generate policies, exceptions"),
    "a vendor's webhooks by target": ({"mutate": {"targets": [WEBHOOKS], "patchStrategicMerge": {"a": "b"}}}, "may not change policies, exceptions or configurations"),
    "a decision by mutation": ({"mutate": {"patchesJson6902": '[{"op": "add", "path": "/spec/decisions", "value": []}]'}, "match": {"any": [{"resources": {"kinds": ["*"]}}]}}, "may not create, update, * all resources"),
    "all of the namespace by a binding": (generate(f"{RBAC}/v1", "RoleBinding", GIVING), "may not bind clusterroles.rbac.authorization.k8s.io `cluster-admin` in namespace shop"),
    "a quota by generation": (generate("v1", "ResourceQuota", {"spec": {}}), "may not create resourcequotas in namespace shop"),
}  # fmt: skip


async def refused(call: Any) -> str:
    try:
        await call
    except KubeError as error:
        return error.message
    return ""


def test_no_policy_of_a_namespace_gets_its_author_more_than_he_has(tmp_path: Path) -> None:
    async def go() -> None:
        async with mallory(tmp_path) as (client, person):
            harmless = policy(generate("v1", "Secret", {}), "fine")
            assert not await refused(person.create(POLICIES, harmless))
            for way, (rule, text) in ATTEMPTS.items():
                spec = {"spec": policy(rule)["spec"]}
                calls = (
                    person.create(POLICIES, policy(rule)),
                    person.patch(POLICIES, "fine", "shop", spec, content_type=MERGE),
                    person.patch(POLICIES, "new", "shop", policy(rule, "new"), content_type=APPLY, field_manager="m"),
                )  # fmt: skip
                for call in calls:
                    assert text in await refused(call), way
            kept = await client.get(POLICIES, "fine", "shop")
            assert kept["spec"]["rules"] == harmless["spec"]["rules"]
            await person.create(CONFIG_MAPS, {"metadata": {"name": "trigger", "namespace": "shop"}})
            assert not (await client.list_all(POLICY_EXCEPTIONS)).items

    asyncio.run(go())


def test_the_verb_bypass_is_handed_out_by_who_owns_the_cluster(tmp_path: Path) -> None:
    async def go() -> None:
        async with mallory(tmp_path) as (client, person):
            made = policy(generate("v1", "ResourceQuota", {"spec": {}}))
            assert "or the verb `bypass` on policies.kpolicy.io" in await refused(person.create(POLICIES, made))  # fmt: skip
            given = binding(CLUSTER_ROLE_BINDINGS, "kpolicy:policies:bypass")
            await client.create(CLUSTER_ROLE_BINDINGS, given)
            assert not await refused(person.create(POLICIES, made))

    asyncio.run(go())


async def refused_update(person: Client, spec: dict[str, Any]) -> str:
    """Why a policy's new spec is refused, once the engine's own writes of its status leave the update a turn."""
    for _ in range(20):
        last = await person.get(POLICIES, "p", "shop")
        answer = await refused(person.update(POLICIES, {**last, "spec": spec}))
        if "the object has been modified" not in answer:
            break
    return answer


@pytest.mark.parametrize("verb", ["update", "patch"])
def test_a_policy_that_is_going_is_not_rewritten_into_more(tmp_path: Path, verb: str) -> None:
    async def go() -> None:
        async with mallory(tmp_path) as (_, person):
            held = policy(generate("v1", "Secret", {}))
            held["metadata"]["finalizers"] = ["example.org/held"]
            await person.create(POLICIES, held)
            await person.delete(POLICIES, "p", "shop")
            going = await person.get(POLICIES, "p", "shop")
            assert going["metadata"]["deletionTimestamp"]
            more = policy(generate("v1", "ResourceQuota", {"spec": {}}))["spec"]
            if verb == "update":
                answer = await refused_update(person, more)
            else:
                change = person.patch(POLICIES, "p", "shop", {"spec": more}, content_type=MERGE)
                answer = await refused(change)
            assert "may not create resourcequotas" in answer
            await person.patch(POLICIES, "p", "shop", {"metadata": {"finalizers": None}}, content_type=MERGE)  # fmt: skip

    asyncio.run(go())
