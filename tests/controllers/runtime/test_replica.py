"""Whole replicas against the sandbox: nothing bad gets through while they start, lead, stop and are gone."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from controllers.kube import Client, KubeError, connect, load_access
from controllers.kube.kinds import (
    CLUSTER_POLICIES,
    CRDS,
    LEASES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    PODS,
    VALIDATING_WEBHOOKS,
)
from controllers.manifests.crds import definitions
from controllers.manifests.written import LEASE
from controllers.replica import Replica
from controllers.runtime.options import read_options
from engine.errors import EngineError
from kpolicy_sandbox.server import Sandbox
from kubectl_kpolicy.session.expressions import EngineExpressions

POLICY = {
    "apiVersion": "kyverno.io/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "team", "annotations": {"pod-policies.kyverno.io/autogen-controllers": "none"}},
    "spec": {
        "background": False,
        "rules": [
            {
                "name": "needs-team",
                "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
                "validate": {
                    "failureAction": "Enforce",
                    "message": "a team is needed",
                    "pattern": {"metadata": {"labels": {"team": "?*"}}},
                },
            }
        ],
    },
}  # fmt: skip
if TYPE_CHECKING:
    from pathlib import Path

QUICK = (
    "--host=127.0.0.1",
    "--port=0",
    "--metrics-port=-1",
    "--server-url=auto",
    "--drain=50ms",
    "--accounts=own",
)


def pod(name: str, **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}  # fmt: skip


@asynccontextmanager
async def cluster(folder: Path):
    """Yield (client, kubeconfig) of a sandbox with our kinds."""
    async with Sandbox.start(folder, expressions=EngineExpressions()) as sandbox:
        client = connect(load_access(sandbox.kubeconfig))
        try:
            for definition in definitions():
                if definition["spec"]["group"] in ("kyverno.io", "wgpolicyk8s.io"):
                    await client.create(CRDS, definition)
            for name in ("kyverno", "shop"):
                await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})  # fmt: skip
            yield client, sandbox.kubeconfig
        finally:
            await client.close()


@asynccontextmanager
async def replica(kubeconfig: Path, *flags: str):
    """Yield a replica that is ready."""
    options = read_options([f"--kubeconfig={kubeconfig}", *QUICK, *flags], {})
    client = connect(load_access(kubeconfig))
    made = Replica(options, client)
    task = asyncio.create_task(made.run())
    ready = asyncio.create_task(made.ready.wait())
    try:
        await asyncio.wait((task, ready), timeout=30, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        assert made.ready.is_set()
        yield made
    finally:
        ready.cancel()
        made.stop.set()
        await asyncio.wait_for(asyncio.gather(task, return_exceptions=True), 30)
        await client.close()


async def eventually(condition: Any) -> None:
    async with asyncio.timeout(30):
        while not await condition():
            await asyncio.sleep(0.05)


async def enforced(client: Client) -> None:
    """Wait until the policy is in the configurations."""

    async def is_asked() -> bool:
        try:
            found = await client.get(VALIDATING_WEBHOOKS, "kyverno-resource-validating-webhook-cfg")
        except KubeError:
            return False
        return bool(found.get("webhooks"))

    await eventually(is_asked)


async def refusal(client: Client, obj: dict[str, Any]) -> str:
    """Return why a Pod is refused, empty when it is not."""
    try:
        await client.create(PODS, obj)
    except KubeError as error:
        return error.message
    return ""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_bad_pods_are_denied_and_good_ones_are_not(tmp_path: Path, workers: str) -> None:
    async def go() -> None:
        async with (
            cluster(tmp_path) as (client, kubeconfig),
            replica(kubeconfig, f"--workers={workers}", "--metrics-port=0") as made,
        ):
            await client.create(CLUSTER_POLICIES, POLICY)
            await enforced(client)
            assert 'admission webhook "validate.kyverno.svc-fail" denied the request' in await refusal(client, pod("bad"))  # fmt: skip
            assert await refusal(client, pod("good", team="blue")) == ""
            trusting = ssl.create_default_context()
            trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
            async with aiohttp.ClientSession() as session:
                for page in ("liveness", "readiness"):
                    answer = await session.get(f"https://127.0.0.1:{made.port}/health/{page}", ssl=trusting)  # fmt: skip
                    assert answer.status == 200
                answer = await session.get(f"http://127.0.0.1:{made.metrics_port}/metrics")
                assert "kyverno_policy_rule_info_total" in await answer.text()
            broken = {**POLICY, "metadata": {"name": "broken"}, "spec": {"rules": [{"name": "x", "match": {"any": []}}]}}  # fmt: skip
            with pytest.raises(KubeError, match=r"validate-policy\.kyverno\.svc"):
                await client.create(CLUSTER_POLICIES, broken)

    asyncio.run(go())


def test_one_of_two_replicas_leads_and_the_other_takes_over(tmp_path: Path) -> None:
    async def go() -> None:
        async with (
            cluster(tmp_path) as (client, kubeconfig),
            replica(kubeconfig, "--workers=0", "--identity=two") as second,
            replica(kubeconfig, "--workers=0", "--identity=one") as first,
        ):

            async def one_leads() -> bool:
                return first.is_leading or second.is_leading

            await eventually(one_leads)
            assert first.is_leading is not second.is_leading
            lease = await client.get(LEASES, LEASE, "kyverno")
            leader = second if second.is_leading else first
            assert lease["spec"]["holderIdentity"] == leader.runtime.identity  # type: ignore[union-attr] # - it runs
            other = first if leader is second else second
            leader.stop.set()

            async def moved() -> bool:
                return other.is_leading

            await eventually(moved)

            async def is_accepted() -> bool:
                """Tell whether the webhooks lead to the new leader yet."""
                try:
                    await client.create(CLUSTER_POLICIES, POLICY)
                except KubeError:
                    return False
                return True

            await eventually(is_accepted)
            await enforced(client)
            assert "denied" in await refusal(client, pod("bad"))

    asyncio.run(go())


def test_nothing_bad_gets_through_while_replicas_come_and_go(tmp_path: Path) -> None:
    async def go() -> None:
        async with cluster(tmp_path) as (client, kubeconfig):
            async with replica(kubeconfig, "--workers=0", "--port=0"):
                await client.create(CLUSTER_POLICIES, POLICY)
                await enforced(client)
            done = asyncio.Event()
            answers: list[str] = []

            async def attack() -> None:
                while not done.is_set():
                    answers.append(await refusal(client, pod(f"bad-{len(answers)}")))

            attackers = [asyncio.create_task(attack()) for _ in range(4)]
            for workers in ("0", "1"):
                async with replica(kubeconfig, f"--workers={workers}"):
                    await enforced(client)
            done.set()
            await asyncio.gather(*attackers)
            assert answers
            assert all(answers)
            assert (await client.list_all(PODS, "shop")).items == []
            assert "denied" not in await refusal(client, pod("nobody-there", team="blue"))

    asyncio.run(go())


def test_two_engines_never_act_on_the_same_policies(tmp_path: Path) -> None:
    async def go() -> None:
        async with cluster(tmp_path) as (client, kubeconfig):
            foreign = {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "MutatingWebhookConfiguration",
                "metadata": {"name": "kyverno-resource-mutating-webhook-cfg", "labels": {"webhook.kyverno.io/managed-by": "kyverno"}},
                "webhooks": [
                    {
                        "name": "mutate.kyverno.svc-fail",
                        "admissionReviewVersions": ["v1"],
                        "sideEffects": "None",
                        "failurePolicy": "Ignore",
                        "clientConfig": {"url": "https://127.0.0.1:1/"},
                        "rules": [{"apiGroups": ["none"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["x"]}],
                    }
                ],
            }  # fmt: skip
            await client.create(MUTATING_WEBHOOKS, foreign)
            with pytest.raises(EngineError, match="Kyverno's webhooks are in this cluster"):
                async with replica(kubeconfig, "--workers=0"):
                    pass
            async with replica(kubeconfig, "--workers=0", "--observe-only"):
                await client.create(CLUSTER_POLICIES, POLICY)
                assert await refusal(client, pod("bad")) == ""
            assert (await client.list_all(VALIDATING_WEBHOOKS)).items == []

    asyncio.run(go())
