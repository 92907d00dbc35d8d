"""What the leader keeps: configurations in step with policies, repaired when others change them, certificates renewed in order."""

from __future__ import annotations

import asyncio
import base64
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from controllers.kube import Conflict, Discovery, Invalid, KubeError, NotFound, Unreachable
from controllers.kube.kinds import CLUSTER_POLICIES, MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS
from controllers.kube.reflector import Informers
from controllers.runtime.cluster_cache import WATCHED, ClusterCache
from controllers.runtime.metrics import Metrics
from controllers.runtime.options import Options
from controllers.runtime.process import Runtime
from controllers.runtime.queues import BackgroundQueue
from controllers.store.policies import content_hash
from controllers.webhook import webhook_controller
from controllers.webhook.certificates import (
    AUTHORITY_LIFE,
    LEAF_LIFE,
    RENEW_BEFORE,
    expiry,
    is_usable,
    trusts,
)
from controllers.webhook.secrets import (
    ensure_certificates,
    secret_name,
    stored_certificates,
    watch_certificates,
)
from controllers.webhook.webhook_controller import (
    OVERLAP,
    SETTLE,
    WebhookController,
    foreign_webhooks,
)
from tests.clock import ManualClock, settle
from tests.controllers.kube.fake import (
    NAMESPACED_VALIDATING_POLICIES,
    VALIDATING_POLICIES,
    FakeClient,
)

from .staging import NOW, policy

VALIDATING = "kyverno-resource-validating-webhook-cfg"
NAMES = ["kyverno-svc.kyverno.svc"]


class Kept:
    """A webhook_controller on a client in memory, and what it loaded."""

    def __init__(self, client: type[FakeClient] = FakeClient) -> None:
        self.clock = ManualClock(NOW)
        self.client = client(clock=self.clock)
        metrics = Metrics()
        discovery = Discovery(self.client)
        self.cache = ClusterCache(discovery, metrics)
        self.informers = Informers(self.client, clock=self.clock)
        self.runtime = Runtime(
            self.client,
            self.clock,
            self.cache,
            metrics,
            None,
            self.informers,
            BackgroundQueue(metrics),
            b"k" * 32,
            options=Options(),
        )  # type: ignore[arg-type] # fmt: skip - nothing is looked up here
        self.loaded: list[Any] = []
        self.webhook_controller = WebhookController(self.runtime, NAMES, "", self.loaded.append)

    def put(self, obj: dict[str, Any]) -> None:
        self.cache.put(CLUSTER_POLICIES, obj)

    async def webhooks(self) -> list[str]:
        found = await self.client.get(VALIDATING_WEBHOOKS, VALIDATING)
        return [one["name"] for one in found["webhooks"]]

    async def bundle(self) -> bytes:
        found = await self.client.get(VALIDATING_WEBHOOKS, VALIDATING)
        return base64.b64decode(found["webhooks"][0]["clientConfig"]["caBundle"])


@asynccontextmanager
async def kept(*, ready: bool = True, leads: bool = True, client: type[FakeClient] = FakeClient):
    stage = Kept(client)
    await stage.cache.discovery.refresh()
    if ready:
        for kind in WATCHED:
            stage.cache.listed(kind)
    task = asyncio.create_task(stage.webhook_controller.lead()) if leads else None
    try:
        yield stage
    finally:
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await stage.informers.close()


def run(test: Any, **options: Any) -> None:
    async def go() -> None:
        async with kept(**options) as stage:
            await test(stage)

    asyncio.run(go())


def test_policies_are_asked_for_and_that_is_told() -> None:
    async def test(stage: Kept) -> None:
        await stage.clock.advance(1)
        assert await stage.webhooks() == []
        stage.put(policy())
        assert stage.runtime.configured.policies == {}
        await stage.clock.advance(1)
        assert await stage.webhooks() == ["validate.kyverno.svc-fail"]
        assert stage.runtime.configured.policies == {"team": content_hash(policy())}
        stage.cache.remove(CLUSTER_POLICIES, policy())
        await stage.clock.advance(1)
        assert await stage.webhooks() == []
        assert stage.runtime.configured.policies == {}

    run(test)


def test_a_policy_counts_at_once_in_a_calm_and_many_are_one_change() -> None:
    async def test(stage: Kept) -> None:
        await stage.clock.advance(10)
        stage.put(policy("first"))
        await settle()
        assert await stage.webhooks() == ["validate.kyverno.svc-fail"]
        before = len([call for call in stage.client.calls if call.verb == "update"])
        for number in range(20):
            stage.put(policy(f"more-{number}", failurePolicy="Ignore"))
            await settle()
        assert await stage.webhooks() == ["validate.kyverno.svc-fail"]
        await stage.clock.advance(SETTLE)
        assert len(await stage.webhooks()) == 2
        assert len([call for call in stage.client.calls if call.verb == "update"]) == before + 1

    run(test)


def test_nothing_is_written_before_all_policies_are_known() -> None:
    async def test(stage: Kept) -> None:
        await stage.clock.advance(10)
        assert stage.client.stored(VALIDATING_WEBHOOKS) == []
        for kind in WATCHED:
            stage.cache.listed(kind)
        await stage.clock.advance(1)
        assert len(stage.client.stored(VALIDATING_WEBHOOKS)) == 8

    run(test, ready=False)


def test_nothing_is_written_twice() -> None:
    async def test(stage: Kept) -> None:
        stage.put(policy())
        await stage.clock.advance(1)
        await settle()
        stage.client.calls.clear()
        stage.webhook_controller.mark()
        await stage.clock.advance(1)
        assert {call.verb for call in stage.client.calls} <= {"get", "watch"}

    run(test)


def test_a_policy_waits_for_no_reading_of_what_is_known() -> None:
    async def test(stage: Kept) -> None:
        await stage.clock.advance(10)
        stage.client.calls.clear()
        stage.put(policy())
        await settle()
        assert await stage.webhooks() == ["validate.kyverno.svc-fail"]
        [written] = [call for call in stage.client.calls if call.verb == "update"]
        before = stage.client.calls[: stage.client.calls.index(written)]
        assert {call.resource for call in before} <= {"secrets"}

    run(test)


@pytest.mark.parametrize("error", [Conflict("somebody was quicker"), NotFound("it is gone")])
def test_a_configuration_that_changed_unseen_is_read_and_written(error: KubeError) -> None:
    async def test(stage: Kept) -> None:
        await stage.clock.advance(10)
        stage.put(policy())
        stage.client.fail("update", error)
        await settle()
        assert await stage.webhooks() == ["validate.kyverno.svc-fail"]

    run(test)


@pytest.mark.parametrize("harm", ["webhooks", "label", "deleted"])
def test_what_others_change_is_put_right(harm: str) -> None:
    async def test(stage: Kept) -> None:
        stage.put(policy())
        await stage.clock.advance(1)
        found = await stage.client.get(VALIDATING_WEBHOOKS, VALIDATING)
        if harm == "webhooks":
            await stage.client.update(VALIDATING_WEBHOOKS, {**found, "webhooks": []})
        elif harm == "label":
            labels = {**found["metadata"]["labels"], "mine": "x"}
            weak = [{**found["webhooks"][0], "failurePolicy": "Ignore"}]
            await stage.client.update(VALIDATING_WEBHOOKS, {**found, "webhooks": weak, "metadata": {**found["metadata"], "labels": labels}})  # fmt: skip
        else:
            await stage.client.delete(VALIDATING_WEBHOOKS, VALIDATING)
        await stage.clock.advance(5)
        after = await stage.client.get(VALIDATING_WEBHOOKS, VALIDATING)
        assert after["webhooks"][0]["failurePolicy"] == "Fail"
        assert harm != "label" or after["metadata"]["labels"]["mine"] == "x"

    run(test)


def test_a_server_that_fails_is_tried_again() -> None:
    async def test(stage: Kept) -> None:
        stage.put(policy())
        stage.client.fail("create", Unreachable("no answer"), resource=MUTATING_WEBHOOKS.plural)
        await stage.clock.advance(1)
        assert stage.runtime.configured.policies == {}
        await stage.clock.advance(10)
        assert "team" in stage.runtime.configured.policies

    run(test)


class Strict(FakeClient):
    """Refuses, as an API server does, a whole configuration for one word in one of its webhooks."""

    refused = "broken"

    async def create(self, kind: Any, obj: Any, **options: Any) -> Any:
        self._check(obj)
        return await super().create(kind, obj, **options)

    async def update(self, kind: Any, obj: Any, **options: Any) -> Any:
        self._check(obj)
        return await super().update(kind, obj, **options)

    def _check(self, obj: Any) -> None:
        self.seen = [*getattr(self, "seen", ()), obj["metadata"]["name"]]
        if any(self.refused in str({**one, "name": ""}) for one in obj.get("webhooks") or ()):
            raise Invalid("it is broken")


BROKEN = {"webhookConfiguration": {"matchConditions": [{"name": "x", "expression": "broken("}]}}
FINE = {"webhookConfiguration": {"matchConditions": [{"name": "x", "expression": "true"}]}}


def in_cel(name: str, namespace: str = "", **constraints: Any) -> dict[str, Any]:
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "NamespacedValidatingPolicy" if namespace else "ValidatingPolicy",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "spec": {
            "matchConstraints": {"resourceRules": [rule], **constraints},
            "validations": [{"expression": "true"}],
        },
    }


def test_a_webhook_that_no_server_takes_does_not_stop_other_policies() -> None:
    async def test(stage: Kept) -> None:
        stage.put(policy())
        stage.put(policy("fine", **FINE))
        stage.put(policy("wrong", **BROKEN))
        await stage.clock.advance(1)
        assert await stage.webhooks() == [
            "validate.kyverno.svc-fail",
            "validate.kyverno.svc-fail-finegrained-fine",
        ]
        assert sorted(stage.runtime.configured.policies) == ["fine", "team"]

    run(test, client=Strict)


def test_the_selector_of_a_tenants_policy_does_not_stop_those_of_the_cluster() -> None:
    async def test(stage: Kept) -> None:
        selector = {"matchLabels": {"broken": "!"}}
        stage.cache.put(VALIDATING_POLICIES, in_cel("wide"))
        stage.cache.put(NAMESPACED_VALIDATING_POLICIES, in_cel("p", "shop"))
        bad = in_cel("p", "mallory", objectSelector=selector)
        stage.cache.put(NAMESPACED_VALIDATING_POLICIES, bad)
        await stage.clock.advance(1)
        assert len(await stage.webhooks()) == 2
        assert sorted(stage.runtime.configured.policies) == ["nvpol:shop/p", "vpol:wide"]

    run(test, client=Strict)


def test_policies_that_are_too_large_together_leave_out_the_largest() -> None:
    async def test(stage: Kept) -> None:
        text = "true " + "|| true" * 100_000
        stage.put(policy())
        for name, length in (("large", len(text)), ("larger", len(text) // 2)):
            condition = {"name": "x", "expression": text[:length]}
            stage.put(policy(name, webhookConfiguration={"matchConditions": [condition]}))
        await stage.clock.advance(1)
        assert await stage.webhooks() == [
            "validate.kyverno.svc-fail",
            "validate.kyverno.svc-fail-finegrained-larger",
        ]
        assert sorted(stage.runtime.configured.policies) == ["larger", "team"]

    run(test)


def probes(stage: Kept) -> int:
    return sum(name.startswith("kpolicy-probe-") for name in stage.client.seen)


def test_what_a_server_refused_is_not_put_before_it_again_until_it_says_something_else() -> None:
    async def test(stage: Kept) -> None:
        stage.put(policy("wrong", **BROKEN))
        await stage.clock.advance(1)
        assert await stage.webhooks() == []
        assert probes(stage) == 1
        stage.put(policy())
        await stage.clock.advance(1)
        assert await stage.webhooks() == ["validate.kyverno.svc-fail"]
        assert probes(stage) == 2
        stage.put(policy("wrong", **FINE))
        await stage.clock.advance(1)
        assert len(await stage.webhooks()) == 2

    run(test, client=Strict)


def test_everybody_ends_up_with_the_certificates_of_whoever_came_first() -> None:
    async def go() -> None:
        client = FakeClient()
        one, other = await asyncio.gather(*(ensure_certificates(client, "kyverno", NAMES, NOW) for _ in range(2)))  # fmt: skip
        kept_ = await stored_certificates(client, "kyverno")
        assert kept_ in (one, other)
        assert kept_ == await ensure_certificates(client, "kyverno", NAMES, NOW)

    asyncio.run(go())


def test_certificates_nobody_can_use_are_made_anew() -> None:
    async def go() -> None:
        client = FakeClient()
        first = await ensure_certificates(client, "kyverno", NAMES, NOW)
        name = secret_name("tls-pair", "kyverno")
        secret = await client.get(SECRETS, name, "kyverno")
        await client.update(SECRETS, {**secret, "data": {"tls.crt": "!", "tls.key": "!"}})
        assert await stored_certificates(client, "kyverno") is None
        second = await ensure_certificates(client, "kyverno", NAMES, NOW)
        assert second != first
        later = NOW + timedelta(days=400)
        third = await ensure_certificates(client, "kyverno", NAMES, later)
        assert is_usable(third, later)

    asyncio.run(go())


def test_through_years_of_renewals_whoever_trusts_the_configurations_trusts_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(webhook_controller, "RENEWAL_CHECK", 3600.0 * 24 * 5)

    async def test(stage: Kept) -> None:
        stage.put(policy())
        await stage.clock.advance(5)
        for _ in range(75):
            for pause in (3600 * 24 * 10, OVERLAP / 2, OVERLAP, OVERLAP):
                await stage.clock.advance(pause)
                stage.webhook_controller.mark()
                await stage.clock.advance(0.3)
                leaf = stage.loaded[-1].leaf.certificate
                assert trusts(await stage.bundle(), leaf)
                assert expiry(leaf) > stage.clock.now()

    run(test)


async def due(stage: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait until the authority is to be replaced."""
    stage.put(policy())
    await stage.clock.advance(5)
    monkeypatch.setattr(webhook_controller, "RENEWAL_CHECK", 3600.0 * 24 * 400)
    life = AUTHORITY_LIFE.total_seconds() - RENEW_BEFORE.total_seconds()
    for part in (LEAF_LIFE.total_seconds() - RENEW_BEFORE.total_seconds(),) * 2:
        life -= part
        await stage.clock.advance(part)
        stage.webhook_controller.mark()
        await stage.clock.advance(2 * OVERLAP)
    await stage.clock.advance(life)


def test_nothing_is_shown_that_a_new_authority_signed_before_api_servers_had_time_to_take_it_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(webhook_controller, "RENEWAL_CHECK", 3600.0 * 24 * 30)

    async def test(stage: Kept) -> None:
        await due(stage, monkeypatch)
        before, old = await stage.bundle(), stage.loaded[-1].leaf
        stage.webhook_controller.mark()
        trusted_at = shown_at = None
        for _ in range(100):
            await stage.clock.advance(0.5)
            if trusted_at is None and await stage.bundle() != before:
                trusted_at = stage.clock.now()
            leaf = stage.loaded[-1].leaf
            if shown_at is None and leaf != old and trusts(await stage.bundle(), leaf.certificate):
                shown_at = stage.clock.now()
        assert trusted_at is not None
        assert shown_at is not None
        assert (shown_at - trusted_at).total_seconds() >= OVERLAP

    run(test)


def test_a_pair_that_somebody_else_was_quicker_to_store_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(webhook_controller, "RENEWAL_CHECK", 3600.0 * 24 * 30)

    async def test(stage: Kept) -> None:
        await due(stage, monkeypatch)
        stage.client.fail(
            "update", Conflict("somebody was quicker"), times=1000, resource="secrets"
        )
        stored = await stored_certificates(stage.client, "kyverno")
        stage.webhook_controller.mark()
        await stage.clock.advance(3 * OVERLAP)
        assert stage.loaded[-1] == stored

    run(test)


def test_policies_count_at_once_while_an_authority_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(webhook_controller, "RENEWAL_CHECK", 3600.0 * 24 * 30)

    async def test(stage: Kept) -> None:
        await due(stage, monkeypatch)
        stage.webhook_controller.mark()
        await stage.clock.advance(1)
        stage.put(policy("other", failurePolicy="Ignore"))
        await stage.clock.advance(1)
        assert len(await stage.webhooks()) == 2

    run(test)


def test_a_new_pair_reaches_replicas_that_only_watch() -> None:
    async def test(stage: Kept) -> None:
        seen: list[Any] = []
        first = await ensure_certificates(stage.client, "kyverno", NAMES, NOW)
        watch_certificates(stage.informers, "kyverno", seen.append)
        await settle()
        assert seen == [first.leaf]
        await stage.clock.advance(1)
        name = secret_name("tls-pair", "kyverno")
        secret = await stage.client.get(SECRETS, name, "kyverno")
        await stage.client.update(SECRETS, {**secret, "data": {"tls.crt": "", "tls.key": ""}})
        await settle()
        assert seen == [first.leaf]

    run(test, leads=False)


def test_webhooks_of_kyverno_itself_are_noticed_and_ours_are_not() -> None:
    async def test(stage: Kept) -> None:
        await stage.webhook_controller.bring_in_step()
        assert await foreign_webhooks(stage.client) == []
        foreign = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "kyverno-verify", "labels": {"webhook.kyverno.io/managed-by": "kyverno"}},
            "webhooks": [{"name": "x"}],
        }  # fmt: skip
        await stage.client.create(MUTATING_WEBHOOKS, foreign)
        assert await foreign_webhooks(stage.client) == ["kyverno-verify"]

    run(test, leads=False)


def test_a_conflict_ends_the_round_and_says_so() -> None:
    async def test(stage: Kept) -> None:
        await stage.webhook_controller.bring_in_step()
        stage.put(policy())
        stage.client.fail("update", Conflict("somebody was quicker"))
        with pytest.raises(Conflict):
            await stage.webhook_controller.bring_in_step()
        assert stage.runtime.configured.policies == {}

    run(test, leads=False)
