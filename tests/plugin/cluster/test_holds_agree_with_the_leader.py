"""What holds back a clean-up holds it everywhere: the leader, the listing, the plan, and a run by hand say the same."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from controllers.kube.kinds import CONFIG_MAPS
from controllers.loops.cleanup.policies import CleanupLoop
from controllers.loops.cleanup.ttl import TtlLoop
from engine.vocabulary import TTL_LABEL
from kubectl_kpolicy.cluster.cleanup import cleanup_rows, hold_of
from kubectl_kpolicy.cluster.planning import plans_of
from tests.controllers.loops.staging import NOW, config_map, matching, scene
from tests.plugin.scene import world

POLICY = {
    "apiVersion": "kyverno.io/v2",
    "kind": "ClusterCleanupPolicy",
    "metadata": {"name": "tidy", "uid": "u-tidy", "creationTimestamp": NOW.isoformat()},
    "spec": {"schedule": "30 10 * * *", "match": matching("ConfigMap")},
}
LATER = timedelta(minutes=40)
HELD = [
    {},
    {"pause": "ben"},
    {"after": "2026-11-21T09:00:00Z ben"},
    {"after": "2026-11-21T15:00:00Z ben"},
    {"after": "tomorrow ben: wait"},
    {"after": "2026-11-21T09:00:00 ben"},
    {"skip": "2026-11-21T09:00:00Z ben"},
    {"skip": "2026-11-21T10:30:00Z ben"},
    {"skip": "2026-11-21T15:00:00Z ben"},
    {"skip": "next ben"},
    {"skip": "2026-11-21T09:00:00Z ben", "after": "tomorrow ben"},
]


def annotated(obj: dict[str, Any], annotations: dict[str, str]) -> dict[str, Any]:
    named = {f"kpolicy.io/cleanup-{key}": value for key, value in annotations.items()}
    return {**obj, "metadata": {**obj["metadata"], **({"annotations": named} if named else {})}}


async def _agreed(loop: Any, resource: str, *objects: dict[str, Any]) -> None:
    async with scene(*objects) as made:
        now = made.clock.now() + LATER
        rows = cleanup_rows(world({resource: [objects[0]]}), now)
        plans = await plans_of(made.client, rows, now)
        told = any(one.goes for one in plans) and not any(hold_of(row, now) for row in rows)
        is_shown_held = rows[0].text("state") in ("paused", "skip", "postponed")
        made.start(loop(made.context).run())
        await made.rest(LATER.total_seconds())
        deleted = not made.stored(CONFIG_MAPS)
        assert told == deleted
        if objects[0]["kind"] == "ConfigMap" or (len(plans) == 1 and plans[0].goes):
            assert is_shown_held != deleted


@pytest.mark.parametrize("annotations", HELD)
def test_on_a_policy(annotations) -> None:
    asyncio.run(_agreed(CleanupLoop, "clustercleanuppolicies", annotated(POLICY, annotations), config_map("a")))  # fmt: skip


@pytest.mark.parametrize("annotations", HELD)
def test_on_an_object_of_a_policy(annotations) -> None:
    asyncio.run(_agreed(CleanupLoop, "clustercleanuppolicies", POLICY, annotated(config_map("a"), annotations)))  # fmt: skip


@pytest.mark.parametrize("annotations", HELD)
def test_on_an_object_with_a_label(annotations) -> None:
    made = config_map("a", **{TTL_LABEL: "1m"})
    made["metadata"]["creationTimestamp"] = NOW.isoformat()
    asyncio.run(_agreed(TtlLoop, "ttl", annotated(made, annotations)))


def test_what_the_filters_leave_out_is_kept_by_the_leader_and_by_the_plan() -> None:
    asyncio.run(_agreed(CleanupLoop, "clustercleanuppolicies", POLICY, config_map("a", "kube-system")))  # fmt: skip
