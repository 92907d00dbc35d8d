"""Policies that take long to read: refused within bounds, on the account of who writes them, so that nobody else waits."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import orjson
import pytest

from controllers.kube import Discovery
from controllers.kube.kinds import PODS
from controllers.runtime.cluster_cache import ClusterCache
from controllers.runtime.evaluating import BoundedEvaluator
from controllers.runtime.metrics import Metrics
from controllers.webhook import policy_validation as desks
from controllers.webhook.policy_validation import PolicyValidator
from tests.controllers.kube.fake import WELL_KNOWN, FakeClient

from .staging import body

MATCH = {"any": [{"resources": {"kinds": ["Pod"]}}]}
CALM = 3.0
"""Seconds of processor time: the bound is half of one, and a tick may come late."""


def many_rules() -> list[dict[str, Any]]:
    pattern = {"metadata": {"name": "?*"}}
    return [
        {"name": f"r{number}", "match": MATCH, "validate": {"message": "x", "pattern": pattern}}
        for number in range(10_000)
    ]


def deep_expression() -> list[dict[str, Any]]:
    text = "{{ " + "a." * 300_000 + "b }}"
    return [{"name": "r", "match": MATCH, "validate": {"message": text, "pattern": {"a": "b"}}}]


def chained_context() -> list[dict[str, Any]]:
    context = [
        {"name": f"v{at}", "variable": {"value": f"{{{{ v{at - 1} }}}}" if at else "1"}}
        for at in range(15_000)
    ]
    validate = {"message": "{{ v9 }}", "pattern": {"a": "b"}}
    return [{"name": "r", "match": MATCH, "context": context, "validate": validate}]


def policy(rules: list[dict[str, Any]], namespace: str = "shop") -> dict[str, Any]:
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "Policy",
        "metadata": {"name": "p", "namespace": namespace},
        "spec": {"rules": rules},
    }


def small(namespace: str) -> dict[str, Any]:
    return policy(many_rules()[:1], namespace)


def answers(*objects: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return the responses of one validator, asked one after the other."""
    monkeypatch.setattr(desks, "PROCESS", BoundedEvaluator(now=lambda: 0.0))

    async def go() -> list[dict[str, Any]]:
        client = FakeClient()
        cache = ClusterCache(Discovery(client, (*WELL_KNOWN, PODS)), Metrics())
        validator = PolicyValidator(cache, client, user="us")
        return [
            orjson.loads(await validator.policy("", body(one), 30.0))["response"] for one in objects
        ]

    return asyncio.run(go())


@pytest.mark.parametrize("rules", [many_rules, deep_expression, chained_context])
def test_a_policy_that_takes_long_to_read_is_refused_in_time(
    rules: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = policy(rules())
    began = time.process_time()

    [response] = answers(hostile, monkeypatch=monkeypatch)

    assert time.process_time() - began < CALM
    assert response["allowed"] is False
    assert "it takes more than 0.5 s to read and compile" in response["status"]["message"]


def test_who_wrote_too_many_of_them_waits_and_others_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hostile = [policy(many_rules())] * 8

    *_, own, foreign = answers(*hostile, small("shop"), small("bank"), monkeypatch=monkeypatch)

    assert "have taken more time to read than they have" in own["status"]["message"]
    assert foreign["allowed"] is True
