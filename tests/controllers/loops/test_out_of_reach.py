"""What rules would do to objects out of their policy's reach is not done, whichever way they try it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from controllers.kube import Kind
from controllers.kube.kinds import CONFIG_MAPS, GRANTS, POLICY_EXCEPTIONS, VALIDATING_WEBHOOKS
from controllers.lookups.answering import Lookups
from controllers.lookups.cluster import ClusterSource
from controllers.loops.cleanup.policies import CleanupLoop
from controllers.loops.cleanup.ttl import TtlLoop
from controllers.loops.generate.watching import PolicyWatch, SyncWatch
from controllers.loops.requests.consumer import Consumer
from controllers.loops.requests.work import Worker

from . import staging
from .staging import LISTED, Scene, cluster_policy, config_map, matching, scene

if TYPE_CHECKING:
    from controllers.kube import Discovery
    from tests.controllers.kube.fake import FakeClient

CEL_EXCEPTIONS = Kind("policies.kyverno.io", "v1", "policyexceptions", "PolicyException")
KINDS = tuple(
    replace(kind, verbs=LISTED)
    for kind in (GRANTS, VALIDATING_WEBHOOKS, POLICY_EXCEPTIONS, CEL_EXCEPTIONS)
)


@pytest.fixture(autouse=True)
def _as_in_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have questions answered as in a cluster, where a namespace is dropped for what has none."""

    def answers(client: FakeClient, discovery: Discovery) -> Lookups:
        return Lookups(cluster=ClusterSource(client, discovery))

    monkeypatch.setattr(staging, "ClusterAnswers", answers)


def of_namespace(name: str, *rules: dict[str, Any]) -> dict[str, Any]:
    made = cluster_policy(name, *rules)
    return {**made, "kind": "Policy", "metadata": {"name": name, "namespace": "shop"}}


def policies(*rules: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {"Policy": of_namespace("p", *rules), "ClusterPolicy": cluster_policy("p", *rules)}


def exception(name: str, kind: Kind = POLICY_EXCEPTIONS, **annotations: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "annotations": annotations}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": {"exceptions": []}}  # fmt: skip


def grant(name: str = "hot-fix") -> dict[str, Any]:
    decisions = [{"by": "alice", "verdict": "deny"}]
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "kpolicy.io/v1alpha1", "kind": "Grant", "metadata": metadata, "spec": {"decisions": decisions}}  # fmt: skip


def webhooks(name: str = "of-a-vendor") -> dict[str, Any]:
    hook = {"name": "a.example.org", "failurePolicy": "Fail"}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [hook],
    }


GRANTED = {"kpolicy.io/grant": "shop/hot-fix"}


def generating(obj: dict[str, Any], **fields: Any) -> dict[str, Any]:
    metadata = obj["metadata"]
    data = {"metadata": {"annotations": metadata.get("annotations") or {}}, "spec": obj.get("spec") or {}}  # fmt: skip
    place = {"namespace": metadata["namespace"]} if "namespace" in metadata else {}
    block = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": metadata["name"], **place, "data": data, **fields}  # fmt: skip
    return {"name": "make", "match": matching("ConfigMap"), "generate": block}


def changing(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    block = {"targets": [target], "patchStrategicMerge": patch}
    return {"name": "change", "match": matching("ConfigMap"), "mutate": block}


def leading(made: Scene) -> None:
    worker = Worker(made.context, made.sink.pending)
    sync = SyncWatch(made.context, worker.generator)
    made.start(Consumer(made.context, worker).run())
    made.start(PolicyWatch(made.context, worker.generator, sync).run())


async def played(made: Scene) -> None:
    leading(made)
    await made.rest()
    await made.request(config_map("trigger"))
    await made.rest(60)


@pytest.mark.parametrize("synchronize", [True, False])
@pytest.mark.parametrize("apply", [True, False])
@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("Policy", exception("free")),
        ("Policy", exception("free", CEL_EXCEPTIONS)),
        ("Policy", webhooks()),
        ("Policy", grant()),
        ("ClusterPolicy", exception("free", **GRANTED)),
        ("ClusterPolicy", exception("free", CEL_EXCEPTIONS, **GRANTED)),
        ("ClusterPolicy", grant()),
        ("ClusterPolicy", webhooks("kyverno-resource-validating-webhook-cfg")),
    ],
    ids=lambda value: value if isinstance(value, str) else value["kind"],
)
def test_nothing_out_of_reach_is_generated(
    kind: str, wanted: dict[str, Any], synchronize: bool, apply: bool
) -> None:
    async def play() -> None:
        policy = policies(generating(wanted, synchronize=synchronize))[kind]
        policy["spec"]["useServerSideApply"] = apply
        async with scene(policy, kinds=KINDS) as made:
            await played(made)
            assert made.client.stored(made.client.kind_of(wanted)) == []

    asyncio.run(play())


def test_a_cluster_policy_still_generates_an_exception_that_carries_no_grant() -> None:
    async def play() -> None:
        policy = cluster_policy("p", generating(exception("free")))
        async with scene(policy, kinds=KINDS) as made:
            await played(made)
            assert [one["metadata"]["name"] for one in made.client.stored(POLICY_EXCEPTIONS)] == ["free"]  # fmt: skip

    asyncio.run(play())


@pytest.mark.parametrize("apply", [True, False])
def test_an_exception_by_grant_is_not_overwritten_by_a_generated_one_of_its_name(apply: bool) -> None:  # fmt: skip
    async def play() -> None:
        wanted = exception("granted")
        wanted["spec"] = {"exceptions": [{"policyName": "*", "ruleNames": ["*"]}]}
        policy = cluster_policy("p", generating(wanted, synchronize=True), useServerSideApply=apply)
        async with scene(policy, exception("granted", **GRANTED), kinds=KINDS) as made:
            await played(made)
            [kept] = made.client.stored(POLICY_EXCEPTIONS)
            assert kept["spec"] == {"exceptions": []}

    asyncio.run(play())


def test_what_bears_a_policys_labels_in_another_namespace_is_not_deleted_for_it() -> None:
    async def play() -> None:
        policy = of_namespace("p", generating(config_map("made"), synchronize=True))
        async with scene(policy, kinds=KINDS) as made:
            await played(made)
            labels = made.stored(CONFIG_MAPS, "made", "shop")["metadata"]["labels"]
            made.put(config_map("theirs", "other", **labels))
            made.take(config_map("trigger"))
            made.take(policy)
            await made.rest(60)
            assert made.stored(CONFIG_MAPS, "made", "shop") is None
            assert made.stored(CONFIG_MAPS, "theirs", "other") is not None

    asyncio.run(play())


CHANGED = {"metadata": {"annotations": {"changed": "yes"}}}


@pytest.mark.parametrize(
    ("kind", "there"),
    [
        ("Policy", webhooks()),
        ("Policy", exception("plain")),
        ("Policy", exception("plain", CEL_EXCEPTIONS)),
        ("Policy", grant()),
        ("ClusterPolicy", grant()),
        ("ClusterPolicy", exception("granted", **GRANTED)),
        ("ClusterPolicy", exception("granted", CEL_EXCEPTIONS, **GRANTED)),
        ("ClusterPolicy", webhooks("kyverno-resource-validating-webhook-cfg")),
    ],
    ids=lambda value: value if isinstance(value, str) else value["kind"],
)
@pytest.mark.parametrize("by", ["name", "every name", "selector", "variable"])
def test_nothing_out_of_reach_is_changed(kind: str, there: dict[str, Any], by: str) -> None:
    async def play() -> None:
        there["metadata"]["labels"] = {"a": "b"}
        name = there["metadata"]["name"]
        where = {
            "name": {"name": name},
            "every name": {"name": "*"},
            "selector": {"selector": {"matchLabels": {"a": "b"}}},
            "variable": {"name": "{{ request.object.data.name }}"},
        }[by]
        target = {"apiVersion": there["apiVersion"], "kind": there["kind"], "namespace": "shop", **where}  # fmt: skip
        policy = policies(changing(target, CHANGED))[kind]
        async with scene(policy, there, kinds=KINDS) as made:
            leading(made)
            await made.rest()
            await made.request(config_map("trigger", data={"name": name}))
            await made.rest(60)
            [kept] = made.client.stored(made.client.kind_of(there))
            assert "changed" not in (kept["metadata"].get("annotations") or {})

    asyncio.run(play())


@pytest.mark.parametrize("there", [exception("plain"), exception("plain", CEL_EXCEPTIONS)])
def test_a_cluster_policy_changes_exceptions_without_a_grant_and_gives_them_none(
    there: dict[str, Any],
) -> None:
    async def play() -> None:
        target = {"apiVersion": there["apiVersion"], "kind": "PolicyException", "namespace": "shop", "name": "*"}  # fmt: skip
        taking = changing(target, {"metadata": {"annotations": GRANTED}})
        adding = {**changing(target, CHANGED), "name": "other"}
        async with scene(cluster_policy("p", taking, adding), there, kinds=KINDS) as made:
            await played(made)
            [kept] = made.client.stored(made.client.kind_of(there))
            assert kept["metadata"]["annotations"] == {"changed": "yes"}

    asyncio.run(play())


def cleaning(kind: str, *kinds: str) -> dict[str, Any]:
    metadata = {"name": "clean", "creationTimestamp": "2026-11-20T00:00:00Z"}
    if kind == "CleanupPolicy":
        metadata["namespace"] = "shop"
    spec = {"schedule": "* * * * *", "match": matching(*kinds)}
    return {"apiVersion": "kyverno.io/v2", "kind": kind, "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("kind", "there"),
    [
        ("CleanupPolicy", exception("plain")),
        ("CleanupPolicy", exception("plain", CEL_EXCEPTIONS)),
        ("CleanupPolicy", webhooks()),
        ("CleanupPolicy", grant()),
        ("ClusterCleanupPolicy", grant()),
        ("ClusterCleanupPolicy", exception("granted", **GRANTED)),
        ("ClusterCleanupPolicy", exception("granted", CEL_EXCEPTIONS, **GRANTED)),
        ("ClusterCleanupPolicy", webhooks("kyverno-resource-validating-webhook-cfg")),
    ],
    ids=lambda value: value if isinstance(value, str) else value["kind"],
)
@pytest.mark.parametrize("named", [True, False])
def test_nothing_out_of_reach_is_cleaned_up(kind: str, there: dict[str, Any], named: bool) -> None:
    async def play() -> None:
        kinds = (there["kind"],) if named else ("*",)
        stray = config_map("stray")
        async with scene(there, stray, cleaning(kind, "ConfigMap", *kinds), kinds=KINDS) as made:
            made.start(CleanupLoop(made.context).run())
            await made.rest(120)
            assert made.stored(CONFIG_MAPS, "stray", "shop") is None
            assert len(made.client.stored(made.client.kind_of(there))) == 1

    asyncio.run(play())


def test_a_ttl_label_ends_nothing_that_people_decide_about() -> None:
    async def play() -> None:
        labelled = [grant(), webhooks("kpolicy-grant-validating-webhook-cfg"), config_map("plain")]
        for one in labelled:
            one["metadata"] |= {"labels": {"cleanup.kyverno.io/ttl": "1s"}}
        async with scene(*labelled, kinds=KINDS) as made:
            made.start(TtlLoop(made.context).run())
            await made.rest(120)
            assert made.stored(CONFIG_MAPS, "plain", "shop") is None
            assert len(made.client.stored(GRANTS)) == 1
            assert len(made.client.stored(VALIDATING_WEBHOOKS)) == 1

    asyncio.run(play())
