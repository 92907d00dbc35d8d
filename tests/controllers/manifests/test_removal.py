"""`kubectl kpolicy uninstall --apply` on a cluster of memory: ours goes in order, Kyverno's stays."""

from __future__ import annotations

import asyncio
from typing import Any

from controllers.kube.kinds import Kind
from controllers.manifests import removal
from controllers.manifests.bundle import Choice, removed
from tests.controllers.kube.fake import FakeClient

ADMISSION = "admissionregistration.k8s.io"
WEBHOOKS = Kind(ADMISSION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False)  # fmt: skip
CONFIG_MAPS = Kind("", "v1", "configmaps", "ConfigMap")
RESOURCE = "kyverno-resource-validating-webhook-cfg"
POLICY = "kyverno-policy-validating-webhook-cfg"


def _object(kind: Kind, name: str, *, is_ours: bool, namespace: str = "") -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if is_ours:
        metadata["annotations"] = {"kpolicy.io/owner": "kpolicy"}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}


def _removed(client: FakeClient, said: list[str]) -> list[tuple[str, str]]:
    """Remove everything of ours; what is said of it is added to `said`."""

    async def play() -> None:
        found = await removal.ours(client, removed(Choice()), said.append)
        await removal.remove(client, found, said.append, said.append)

    asyncio.run(play())
    return [(one.resource, one.name) for one in client.calls if one.verb == "delete"]


def test_what_is_ours_goes_webhooks_before_settings() -> None:
    said: list[str] = []
    client = FakeClient(
        _object(CONFIG_MAPS, "kyverno", is_ours=True, namespace="kyverno"),
        _object(WEBHOOKS, RESOURCE, is_ours=True),
        kinds=(WEBHOOKS, CONFIG_MAPS),
    )
    names = [name for _, name in _removed(client, said)]
    assert names == [RESOURCE, "kyverno"]
    assert said == [
        f"ValidatingWebhookConfiguration {RESOURCE}: deleted",
        "ConfigMap kyverno: deleted",
    ]


def test_what_kyverno_brought_under_the_same_names_stays() -> None:
    said: list[str] = []
    client = FakeClient(
        _object(WEBHOOKS, RESOURCE, is_ours=False),
        _object(WEBHOOKS, POLICY, is_ours=True),
        kinds=(WEBHOOKS,),
    )
    assert [name for _, name in _removed(client, said)] == [POLICY]
    assert f"ValidatingWebhookConfiguration {RESOURCE}: stays, it is not ours" in said


def test_what_is_not_there_is_not_named() -> None:
    client = FakeClient(_object(WEBHOOKS, POLICY, is_ours=True), kinds=(WEBHOOKS,))
    found = asyncio.run(removal.ours(client, removed(Choice()), print))
    assert [one["metadata"]["name"] for one, _, _ in found] == [POLICY]


def test_every_object_that_is_installed_carries_the_mark() -> None:
    from controllers.manifests.bundle import installed

    unmarked = [
        (one["kind"], one["metadata"]["name"])
        for one in installed(Choice())
        if "kpolicy.io/owner" not in one["metadata"].get("annotations", {})
    ]
    assert unmarked == []
