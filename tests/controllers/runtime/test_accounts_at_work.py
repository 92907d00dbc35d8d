"""A replica under exactly the shipped rights: every call of it arrives as the account of its job, and none is refused to it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from controllers.kube import Client, Forbidden, KubeError, NotFound, connect, load_access
from controllers.kube.access import Impersonation
from controllers.kube.accounts import ACCOUNTS, CONTROLLERS, Accounts, Job, Minted, account_user
from controllers.kube.clock import ServerClock
from controllers.kube.discovery import Discovery
from controllers.kube.kinds import (
    CLUSTER_POLICIES,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    GRANT_POLICIES,
    GRANTS,
    NAMESPACES,
    POLICY_EXCEPTIONS,
    POLICY_REPORTS,
    SECRETS,
    Kind,
)
from controllers.manifests.bundle import Choice, installed
from controllers.replica import Replica
from controllers.runtime.options import read_options
from kpolicy_sandbox.http import handler
from kpolicy_sandbox.pki import CALLER
from kpolicy_sandbox.server import Sandbox
from kubectl_kpolicy.session.expressions import EngineExpressions

if TYPE_CHECKING:
    from pathlib import Path

    from controllers.kube.access import Access

NETWORK_POLICIES = Kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
DEADLINE = 240.0
"""Seconds that something may take on a crowded machine; what holds is seen at once."""
WRITES = frozenset({"create", "update", "patch", "delete"})
MATCHING = {"any": [{"resources": {"kinds": ["ConfigMap"], "namespaces": ["shop"]}}]}

MAKES = {
    "name": "close",
    "match": {"any": [{"resources": {"kinds": ["ConfigMap"], "names": ["open"]}}]},
    "generate": {
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "name": "closed", "namespace": "shop",
        "synchronize": True, "data": {"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}},
    },
}  # fmt: skip
CHANGES = {
    "name": "mark",
    "match": {"any": [{"resources": {"kinds": ["ConfigMap"], "names": ["open"]}}]},
    "mutate": {
        "targets": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "namespace": "shop"}],
        "patchStrategicMerge": {"metadata": {"labels": {"marked": "yes"}}},
    },
}  # fmt: skip
NEEDS = {
    "name": "needs-team",
    "match": MATCHING,
    "validate": {
        "failureAction": "Audit", "message": "a team is needed", "pattern": {"metadata": {"labels": {"team": "?*"}}},
    },
}  # fmt: skip


def policy(name: str, rule: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": name}, "spec": {"rules": [rule]},
    }  # fmt: skip


def config_map(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "shop"},
    }


def exception(ends: str) -> dict[str, Any]:
    metadata = {
        "name": "short",
        "namespace": "shop",
        "annotations": {"kpolicy.io/expires-at": ends},
    }
    return {
        "apiVersion": "kyverno.io/v2", "kind": "PolicyException", "metadata": metadata,
        "spec": {"exceptions": [{"policyName": "team", "ruleNames": ["needs-team"]}], "match": {"any": [{"resources": {"kinds": ["ConfigMap"], "names": ["x"]}}]}},
    }  # fmt: skip


LIMITS = {
    "apiVersion": "kpolicy.io/v1alpha1", "kind": "GrantPolicy", "metadata": {"name": "all"},
    "spec": {"maxDuration": "4h", "approvers": [{"users": ["bob"]}]},
}  # fmt: skip
GRANT = {
    "apiVersion": "kpolicy.io/v1alpha1", "kind": "Grant", "metadata": {"name": "mine", "namespace": "shop"},
    "spec": {"requester": "ada", "policy": "team", "rules": ["needs-team"], "target": {"kind": "ConfigMap", "name": "open"},
             "duration": "1h", "reason": "because it must be"},
}  # fmt: skip


class Calls:
    """Who asked for what, and whether he might."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: set[tuple[str, str, str, bool]] = set()
        judged = handler.demand

        def demand(cluster: Any, user: Any, question: Any) -> None:
            below = f"/{question.subresource}" if question.subresource else ""
            what = (user.name, question.verb, question.path or f"{question.plural}{below}")
            try:
                judged(cluster, user, question)
            except Exception:
                self.seen.add((*what, False))
                raise
            self.seen.add((*what, True))

        monkeypatch.setattr(handler, "demand", demand)

    def refused(self) -> set[tuple[str, str, str]]:
        ours = {account_user("kyverno", job) for job in Job}
        return {(user, verb, what) for user, verb, what, fine in self.seen if user in ours and not fine}  # fmt: skip

    def writers(self, what: str, *verbs: str) -> set[Job]:
        """Return the jobs as whose account something was written."""
        users = {user for user, verb, name, fine in self.seen if fine and name == what and verb in (verbs or WRITES)}  # fmt: skip
        return {job for job in Job if account_user("kyverno", job) in users}


async def eventually(holds: Any) -> None:
    async with asyncio.timeout(DEADLINE):
        while not await holds():
            await asyncio.sleep(0.05)


async def there(client: Client, kind: Kind, name: str, namespace: str = "") -> Any:
    try:
        return await client.get(kind, name, namespace)
    except NotFound:
        return None


async def install(client: Client) -> None:
    """Create everything that is shipped but the Deployment, and wait until rights are collected."""
    discovery = Discovery(client)
    for one in installed(Choice()):
        if one["kind"] == "Deployment":
            continue
        kind = discovery.find(one["apiVersion"], one["kind"])
        if kind is None:
            await discovery.refresh()
            kind = discovery.find(one["apiVersion"], one["kind"])
        assert kind is not None, one["kind"]
        await client.create(kind, one)

    async def collected() -> bool:
        found = [await client.get(CLUSTER_ROLES, f"kyverno:{part}") for part in CONTROLLERS]
        return all(one.get("rules") for one in found)

    await eventually(collected)


@asynccontextmanager
async def replica(sandbox: Sandbox, access: Access, admin: Client):
    """Yield a replica that is ready, under the account that the Deployment names."""
    flags = [
        "--host=127.0.0.1", "--port=0", "--metrics-port=-1", "--server-url=auto", "--drain=50ms", "--workers=0",
        f"--client-ca={sandbox.files.authority}", f"--client-name={CALLER}",
    ]  # fmt: skip
    clock = ServerClock()
    own = Minted(admin, "kyverno", ACCOUNTS[Job.ADMISSION])
    bare = replace(access, credentials=own)
    client = connect(bare, clock=clock)
    accounts = Accounts.each(client, bare, "kyverno", clock)
    await accounts.prove(clock)
    made = Replica(read_options(flags, {}), client, clock=clock, accounts=accounts)
    task = asyncio.create_task(made.run())
    ready = asyncio.create_task(made.ready.wait())
    try:
        await asyncio.wait((task, ready), timeout=DEADLINE, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        yield made, accounts
    finally:
        ready.cancel()
        made.stop.set()
        await asyncio.wait_for(asyncio.gather(task, return_exceptions=True), DEADLINE)
        await accounts.close()
        await client.close()


async def accepted(admin: Client, body: Any) -> bool:
    """Tell whether a policy is taken, which waits for webhooks that answer."""
    try:
        await admin.create(CLUSTER_POLICIES, body)
    except KubeError:
        return False
    return True


async def work(admin: Client, access: Access) -> None:
    """Have every job done: generate, mutate existing, report, sweep, grant, note."""
    for name, rule in (("makes", MAKES), ("changes", CHANGES), ("team", NEEDS)):
        await eventually(partial(accepted, admin, policy(name, rule)))

    async def in_force() -> bool:
        found = (await admin.list_all(CLUSTER_POLICIES)).items
        conditions = [(one.get("status") or {}).get("conditions") or [{}] for one in found]
        return all(one[0].get("status") == "True" for one in conditions)

    await eventually(in_force)
    await admin.create(CONFIG_MAPS, config_map("other"))
    await admin.create(CONFIG_MAPS, config_map("open"))
    over = (datetime.now(UTC) - timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    await admin.create(POLICY_EXCEPTIONS, exception(over))
    await admin.create(GRANT_POLICIES, LIMITS)
    ada, bob = (
        connect(replace(access, impersonate=Impersonation(name, ("system:masters",))))
        for name in ("ada", "bob")
    )
    try:
        await ada.create(GRANTS, GRANT)
        await bob.patch(GRANTS, "mine", "shop", {"spec": {"decisions": [{"by": "bob", "verdict": "approve"}]}})  # fmt: skip
    finally:
        await ada.close()
        await bob.close()


async def worked(admin: Client) -> bool:
    marked = await admin.get(CONFIG_MAPS, "other", "shop")
    return bool(
        await there(admin, NETWORK_POLICIES, "closed", "shop")
        and (marked["metadata"].get("labels") or {}).get("marked")
        and (await admin.list_all(POLICY_REPORTS, "shop")).items
        and await there(admin, POLICY_EXCEPTIONS, "grant-mine", "shop")
        and await there(admin, POLICY_EXCEPTIONS, "short", "shop") is None
    )


def test_each_call_arrives_as_the_account_of_its_job_and_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(monkeypatch)

    async def go() -> None:
        async with Sandbox.start(tmp_path, expressions=EngineExpressions()) as sandbox:
            access = load_access(sandbox.kubeconfig)
            admin = connect(access)
            try:
                await install(admin)
                namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
                await admin.create(NAMESPACES, namespace)
                async with replica(sandbox, access, admin) as (_, accounts):
                    await work(admin, access)
                    await eventually(lambda: worked(admin))
                    assert calls.refused() == set()
                    await refusals(accounts.of(Job.BACKGROUND))
            finally:
                await admin.close()

    asyncio.run(go())
    only = {
        "networkpolicies": Job.BACKGROUND, "configmaps": Job.BACKGROUND, "policyreports": Job.REPORTS,
        "grants/status": Job.GRANTS, "auditsegments": Job.GRANTS, "leases": Job.ADMISSION,
        "serviceaccounts/token": Job.ADMISSION,
        "clusterpolicies/status": Job.ADMISSION, "validatingwebhookconfigurations": Job.ADMISSION,
        "events": Job.ADMISSION,
    }  # fmt: skip
    assert {what: calls.writers(what) for what in only} == {what: {job} for what, job in only.items()}  # fmt: skip
    assert calls.writers("updaterequests", "create") >= {Job.ADMISSION}
    assert calls.writers("updaterequests", "delete") == {Job.BACKGROUND}
    assert calls.writers("auditnotes", "create") == {Job.ADMISSION}
    assert calls.writers("auditnotes", "delete") == {Job.GRANTS}
    assert calls.writers("policyexceptions", "delete") == {Job.CLEANUP}
    assert calls.writers("policyexceptions", "create") == {Job.GRANTS}


async def refusals(background: Client) -> None:
    """The account of background work may write none of what lets somebody else through."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "kyverno"}}  # fmt: skip
    later = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    refused: list[tuple[Kind, Any]] = [
        (POLICY_EXCEPTIONS, exception(later)), (GRANTS, GRANT), (GRANT_POLICIES, LIMITS),
        (SECRETS, secret), (CLUSTER_POLICIES, policy("mine", NEEDS)),
    ]  # fmt: skip
    for kind, obj in refused:
        with pytest.raises(Forbidden):
            await background.create(kind, obj)
