"""Kinds written in CEL are watched when the server has them: waited for at the start, followed when they come later."""

from __future__ import annotations

import asyncio
from typing import Any

from controllers.kube import Discovery
from controllers.kube.kinds import CEL_EXCEPTIONS, Kind
from controllers.kube.reflector import Informers
from controllers.runtime.cluster_cache import WATCHED, ClusterCache
from controllers.runtime.feed import everything, take_over
from controllers.runtime.metrics import Metrics
from controllers.runtime.watching import Watches
from tests.clock import ManualClock, settle
from tests.controllers.kube.fake import VALIDATING_POLICIES, WELL_KNOWN, FakeClient

OLDER = Kind("policies.kyverno.io", "v1beta1", "validatingpolicies", "ValidatingPolicy", False)
POLICY = {
    "apiVersion": "policies.kyverno.io/v1beta1",
    "kind": "ValidatingPolicy",
    "metadata": {"name": "p"},
    "spec": {"validations": [{"expression": "true"}]},
}


def cache(*kinds: Kind) -> ClusterCache:
    return ClusterCache(Discovery(FakeClient(), (*WELL_KNOWN, *kinds)), Metrics())


def test_what_the_server_has_is_waited_for_in_the_version_that_it_has() -> None:
    assert cache().watched == WATCHED
    assert cache(OLDER).watched == (*WATCHED, OLDER)
    made = cache(OLDER, CEL_EXCEPTIONS)
    for kind in WATCHED:
        made.listed(kind)
    assert made.missing == (
        "policyexceptions.policies.kyverno.io",
        "validatingpolicies.policies.kyverno.io",
    )
    made.listed(OLDER)
    made.listed(CEL_EXCEPTIONS)
    assert made.is_ready


def run(story: Any) -> None:
    async def go() -> None:
        client = FakeClient(clock=ManualClock())
        discovery = Discovery(client)
        await discovery.refresh()
        made = ClusterCache(discovery, Metrics())
        informers = Informers(client, clock=client.clock)
        watches = Watches(informers, made, "kyverno")
        try:
            await settle(80)
            await story(client, made, watches)
        finally:
            watches.stop()
            await informers.close()

    asyncio.run(go())


def test_a_kind_that_comes_later_is_followed_and_keeps_nobody_waiting() -> None:
    async def story(client: FakeClient, made: ClusterCache, watches: Watches) -> None:
        told: list[Kind] = []
        made.on_listed.append(told.append)
        assert made.is_ready
        client.put(POLICY)
        made.discovery._kinds = (*made.discovery, OLDER)
        client._kinds[-1] = OLDER
        watches.follow_served()
        watches.follow_served()
        assert made.is_ready
        await settle(80)
        assert told == [OLDER]

    run(story)


def test_a_worker_takes_over_kinds_that_its_parent_came_to_know_later() -> None:
    worker = cache(OLDER)
    parent = cache()
    for kind in WATCHED:
        parent.listed(kind)
        worker.listed(kind)
    assert not worker.is_ready
    parent.listed(VALIDATING_POLICIES)
    [message] = everything({VALIDATING_POLICIES: []}, parent)  # type: ignore[dict-item] # - an empty store
    assert take_over(worker, message)
    assert worker.is_ready
    assert take_over(worker, {"t": "PUT", "k": str(OLDER), "o": POLICY})
    assert list(worker.policies.snapshot.compiled) == ["vpol:p"]
