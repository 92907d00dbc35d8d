"""How long policies take: which requests are measured, and what a measurement counts for."""

from __future__ import annotations

import asyncio
import gc
from typing import Any
from weakref import ref

import pytest

from controllers.runtime.metrics import EXECUTION as NAME
from controllers.runtime.metrics import Metrics, Times
from controllers.webhook.timing import EVERY, Sample, Timing
from engine.evaluate import Inputs, PolicySet, evaluate
from engine.model import Review
from engine.parse import parse_policy

from .staging import NOW, body, pod, policy, staged


class Ticks:
    """A clock that is later by a known time at each look."""

    def __init__(self, *steps: float) -> None:
        self._steps = list(steps)
        self._now = 0.0

    def __call__(self) -> float:
        self._now += self._steps.pop(0)
        return self._now


def rule(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
        "validate": {"message": "m", "pattern": {"metadata": {"labels": {"team": "?*"}}}},
        **fields,
    }


def policies(*documents: tuple[str, list[dict[str, Any]]]) -> PolicySet:
    return PolicySet.compile(
        parse_policy(
            {
                "apiVersion": "kyverno.io/v1",
                "kind": "ClusterPolicy",
                "metadata": {"name": name},
                "spec": {"background": False, "rules": rules},
            }
        )
        for name, rules in documents
    )


def asked(made: PolicySet, weight: int = 1, waited: float = 0.0) -> Sample:
    review = Review(object=pod(), operation="CREATE", version="v1", kind="Pod")
    inputs = Inputs(now=NOW)
    return Sample(made, review, inputs, evaluate(made, review, inputs).results, weight, waited)


def times(metrics: Metrics) -> dict[tuple[str, str], Times]:
    return {(labels[0], labels[5]): found for labels, found in metrics._times[NAME].items()}


def test_the_first_request_about_a_kind_is_measured_and_then_every_hundredth_for_all() -> None:
    timing, made = Timing(Metrics()), policies(("p", [rule("r")]))
    weights = [timing.passed(made, "Pod").due() for _ in range(1 + 2 * EVERY)]
    assert [one for one in weights if one] == [1, EVERY, EVERY]
    assert weights[0] == 1
    assert sum(weights) == len(weights)
    assert timing.passed(made, "Service").due() == 1


def test_the_time_of_a_policy_is_shared_by_its_rules_and_counts_for_those_not_measured() -> None:
    metrics = Metrics()
    timing = Timing(metrics, Ticks(0, 0.004, 0, 0.3))
    made = policies(("quick", [rule("a"), rule("b")]), ("slow", [rule("c")]))
    timing.measure(asked(made, weight=100))
    found = times(metrics)
    assert found.keys() == {("quick", "a"), ("quick", "b"), ("slow", "c")}
    assert found["quick", "a"].counts[0] == 100
    assert round(found["quick", "a"].total, 6) == 0.2
    assert sum(found["slow", "c"].counts) == 100
    assert round(found["slow", "c"].total, 6) == 30.0


def test_policies_that_wait_for_answers_are_not_asked_again_and_share_what_was_waited() -> None:
    metrics = Metrics()
    timing = Timing(metrics, Ticks(0, 0.001, 0))
    call = {"name": "x", "configMap": {"name": "x", "namespace": "y"}}
    deny = {"conditions": {"any": [{"key": "{{ x.data.y }}", "operator": "Equals", "value": "z"}]}}
    waits = rule("waits", context=[call], validate={"message": "m", "deny": deny})
    made = policies(("plain", [rule("r")]), ("waits", [waits]))
    one = asked(made, waited=0.5)
    answered = policies(("waits", [rule("waits")]))
    results = [*one.results, *asked(answered).results]
    timing.measure(Sample(made, one.review, one.inputs, results, 1, 0.5))
    found = times(metrics)
    assert round(found["waits", "waits"].total, 6) == 0.5
    assert round(found["plain", "r"].total, 6) == 0.001


def test_what_is_remembered_of_policies_goes_with_them() -> None:
    timing, made = Timing(Metrics()), policies(("p", [rule("r")]))
    timing.passed(made, "Pod").due()
    timing.measure(asked(made))
    policy = ref(made.for_kind("Pod")[0].policies[0])

    del made
    gc.collect()

    assert policy() is None


def test_the_labels_are_those_of_the_results() -> None:
    metrics = Metrics()
    Timing(metrics).measure(asked(policies(("p", [rule("r")]))))
    [labels] = metrics._times[NAME]
    assert labels == (
        "p", "-", "cluster", "audit", "true", "r", "Validation", "fail", "admission_request",
        "Pod", "shop", "create",
    )  # fmt: skip


async def _eventually(metrics: Metrics, policy_name: str) -> Times:
    async with asyncio.timeout(10):
        while not (found := [one for (name, _), one in times(metrics).items() if name == policy_name]):  # fmt: skip
            await asyncio.sleep(0.01)
    return found[0]


@pytest.mark.parametrize("action", ["Enforce", "Audit"])
def test_a_request_has_its_policies_measured_after_its_answer(action: str) -> None:
    async def play() -> None:
        async with staged(policy("team", validationFailureAction=action)) as stage:
            await stage.ask("validate", body(pod(labels={"team": "core"})))
            found = await _eventually(stage.metrics, "team")
            assert sum(found.counts) == 1
            assert found.total > 0
            exposed = stage.metrics.exposition().decode()
            assert f'{NAME}_count{{policy_background_mode="true",policy_name="team"' in exposed

    asyncio.run(play())
