"""What a review made is freed when it is answered, by counting references: nothing of it waits for a collection of garbage.

A circle of references would keep the whole request, and every review would be given fresh memory, which costs more than all else.
"""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from .staging import body, mutating, pod, policy, staged
from .test_cel_policies import exception, vpol

REVIEWS = 20
GOOD, BAD = pod(labels={"team": "a"}), pod()
VARIABLES = {"variables": [{"name": "team", "expression": "object.metadata.labels.team"}]}


def mpol(expression: str = "Object{metadata: Object.metadata{labels: {'team': 'x'}}}") -> dict[str, Any]:  # fmt: skip
    """Return a MutatingPolicy."""
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    spec = {**vpol()["spec"], "validations": None, "mutations": [mutation]}
    return {**vpol(), "kind": "MutatingPolicy", "spec": {k: v for k, v in spec.items() if v}}


def asking(text: str) -> dict[str, Any]:
    """Return a ClusterPolicy with a condition that reads variables."""
    made = policy()
    made["spec"]["rules"][0]["validate"] = {
        "message": "{{ request.operation }} of {{ request.object.metadata.name }}",
        "deny": {"conditions": {"any": [{"key": text, "operator": "Equals", "value": "a"}]}},
    }
    return made


CASES = {
    "a pattern that is met": (policy(), "validate", "fail", GOOD),
    "a pattern that is not met": (policy(), "validate", "fail", BAD),
    "a condition": (asking("{{ request.object.metadata.labels.team }}"), "validate", "fail", GOOD),
    "a condition that fails": (asking("{{ request.object.nothing }}"), "validate", "fail", GOOD),
    "a patch": (mutating(), "mutate", "fail", BAD),
    "a patch that changes nothing": (mutating(), "mutate", "fail", GOOD),
    "an expression that holds": (vpol(), "validate", "fail/vpol", GOOD),
    "an expression that does not": (vpol(), "validate", "fail/vpol", BAD),
    "a variable": (vpol(expression="variables.team == 'a'", **VARIABLES), "validate", "fail/vpol", GOOD),
    "a variable that fails": (vpol(expression="variables.team == 'a'", **VARIABLES), "validate", "fail/vpol", BAD),
    "a mutation": (mpol(), "mutate", "fail/mpol", BAD),
    "a mutation that changes nothing": (mpol("Object{}"), "mutate", "fail/mpol", BAD),
    "a mutation that fails": (mpol("Object{metadata: object.nothing}"), "mutate", "fail/mpol", BAD),
}  # fmt: skip


@pytest.mark.parametrize(("made", "stage", "lane", "obj"), CASES.values(), ids=CASES)
def test_a_review_leaves_no_garbage(
    made: dict[str, Any], stage: str, lane: str, obj: dict[str, Any]
) -> None:
    assert garbage(made, stage, lane, body(obj)) == 0


def test_a_review_under_an_exception_leaves_no_garbage() -> None:
    assert garbage([vpol(), exception()], "validate", "fail/vpol", body(BAD)) == 0


def garbage(made: Any, stage: str, lane: str, sent: bytes) -> int:
    """Return how many objects wait for a collection after some reviews that are like those before them."""

    async def go() -> int:
        async with staged(*(made if isinstance(made, list) else [made])) as staging:

            async def ask() -> None:
                for _ in range(REVIEWS):
                    await staging.reviewer.review(stage, lane, sent, 5.0)
                await staging.background_queue.finish()

            await ask()
            gc.collect()
            gc.disable()
            try:
                await ask()
                return gc.collect()
            finally:
                gc.enable()

    return asyncio.run(go())
