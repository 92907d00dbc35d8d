"""What the hooks of a Helm release do, on a cluster of memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controllers import installation
from controllers.kube import KubeError
from controllers.kube.kinds import (
    CLUSTER_ROLE_BINDINGS,
    CRDS,
    LEASES,
    PODS,
    SECRETS,
    VALIDATING_WEBHOOKS,
    Kind,
)
from controllers.manifests.bundle import WRITER
from controllers.manifests.crds import definitions
from controllers.manifests.deploy import NAME, SELECTOR
from controllers.manifests.written import LEASE, secrets
from tests.clock import ManualClock
from tests.controllers.kube.fake import FakeClient

DEPLOYMENTS = Kind("apps", "v1", "deployments", "Deployment")
WEBHOOK = "kyverno-resource-validating-webhook-cfg"


def _object(kind: Kind, name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    place = {"namespace": namespace} if namespace else {}
    metadata = {"name": name, **place, "annotations": {"kpolicy.io/owner": "kpolicy"}}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **more}


def _cluster(*more: dict[str, Any]) -> FakeClient:
    return FakeClient(
        _object(CLUSTER_ROLE_BINDINGS, WRITER),
        _object(VALIDATING_WEBHOOKS, WEBHOOK),
        _object(DEPLOYMENTS, NAME, "kyverno", spec={"replicas": 3}),
        *(_object(SECRETS, name, "kyverno") for name in secrets("kyverno")),
        _object(SECRETS, "of-somebody-else", "kyverno"),
        _object(LEASES, LEASE, "kyverno"),
        *more,
        kinds=(DEPLOYMENTS,),
    )


def _leave(client: FakeClient, *, with_kinds: bool = False) -> None:
    asyncio.run(installation.leave(client, client.clock, "kyverno", with_kinds=with_kinds))


def test_the_right_goes_then_webhooks_then_replicas_then_what_they_kept() -> None:
    client = _cluster()
    _leave(client)
    changes = [(one.verb, one.name) for one in client.calls if one.verb in ("delete", "patch")]
    assert changes[:3] == [("delete", WRITER), ("delete", WEBHOOK), ("patch", NAME)]
    assert {name for _, name in changes[3:]} == {*secrets("kyverno"), LEASE}
    assert [one["metadata"]["name"] for one in client.stored(SECRETS)] == ["of-somebody-else"]


def test_a_webhook_that_a_replica_restores_while_it_ends_goes_too() -> None:
    client = _cluster(_object(PODS, "leader", "kyverno"))
    pod = client.stored(PODS)[0]
    client.put({**pod, "metadata": {**pod["metadata"], "labels": dict(SELECTOR)}})

    class Ending(ManualClock):
        async def sleep(self, seconds: float) -> None:
            client.put(_object(VALIDATING_WEBHOOKS, WEBHOOK))
            client.take(PODS, "leader", "kyverno")

    asyncio.run(installation.leave(client, Ending(), "kyverno"))
    assert client.stored(VALIDATING_WEBHOOKS) == []


def test_a_replica_that_does_not_end_is_said_and_what_it_kept_stays() -> None:
    client = _cluster(_object(PODS, "stuck", "kyverno"))
    pod = client.stored(PODS)[0]
    client.put({**pod, "metadata": {**pod["metadata"], "labels": dict(SELECTOR)}})

    class Passing(ManualClock):
        async def sleep(self, seconds: float) -> None:
            self.elapsed = getattr(self, "elapsed", 0.0) + 60.0

        def monotonic(self) -> float:
            return getattr(self, "elapsed", 0.0)

    with pytest.raises(KubeError, match="replicas are still running"):
        asyncio.run(installation.leave(client, Passing(), "kyverno"))
    assert len(client.stored(SECRETS)) == len(secrets("kyverno")) + 1


def test_kinds_go_only_where_that_is_asked_for_and_only_ours() -> None:
    ours, theirs = definitions()[0], {**definitions()[1]}
    theirs["metadata"] = {"name": theirs["metadata"]["name"]}
    for with_kinds, left in ((False, 2), (True, 1)):
        client = _cluster(ours, theirs)
        _leave(client, with_kinds=with_kinds)
        assert len(client.stored(CRDS)) == left
        assert theirs["metadata"]["name"] in {
            one["metadata"]["name"] for one in client.stored(CRDS)
        }


def test_leaving_where_nothing_is_installed_changes_nothing() -> None:
    client = FakeClient(kinds=(DEPLOYMENTS,))
    _leave(client, with_kinds=True)
    assert client.stored(CRDS) == []


def test_kinds_that_are_missing_or_behind_are_brought_and_those_of_others_stay() -> None:
    first, second = definitions()[:2]
    behind = {
        **first,
        "spec": {**first["spec"], "versions": [], "conversion": {"strategy": "None"}},
    }
    theirs = {**second, "metadata": {"name": second["metadata"]["name"]}, "spec": {"group": "x"}}
    client = FakeClient(behind, theirs)
    asyncio.run(installation.bring_kinds(client))
    there = {one["metadata"]["name"]: one["spec"] for one in client.stored(CRDS)}
    assert len(there) == len(definitions())
    assert there[first["metadata"]["name"]] == {**first["spec"], "conversion": {"strategy": "None"}}
    assert there[second["metadata"]["name"]] == {"group": "x"}


def test_without_a_cluster_one_line_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:  # fmt: skip
    assert installation.main(["leave", f"--kubeconfig={tmp_path / 'none'}"]) == 1
    assert capsys.readouterr().err.startswith("error: ")
