"""Counts of results: each request counts once, whichever way its results came."""

from __future__ import annotations

import asyncio

from prometheus_client.parser import text_string_to_metric_families

from .staging import Stage, body, mutating, pod, policy, staged


def counted(stage: Stage) -> dict[tuple[str, str], float]:
    return {
        (sample.labels["policy_name"], sample.labels["rule_result"]): sample.value
        for family in text_string_to_metric_families(stage.metrics.exposition().decode())
        for sample in family.samples
        if sample.name == "kyverno_policy_results_total"
    }


def test_requests_that_take_turns_are_all_counted() -> None:
    async def play() -> None:
        async with staged(policy(), mutating()) as stage:
            for _ in range(3):
                await stage.ask("mutate", body(pod(labels={"team": "blue"})))
                await stage.ask("validate", body(pod(labels={"team": "blue"})))
                await stage.ask("mutate", body(pod()))
            assert counted(stage) == {("add-team", "skip"): 3, ("add-team", "pass"): 3, ("team", "pass"): 3}  # fmt: skip

    asyncio.run(play())
