"""`python -m tests.controllers.webhook.flooded`: a serving process with policies that look at everything in an object.

Prints its port, answers until its input ends. For tests that flood it from outside and read what it takes from /proc.
"""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from controllers.kube import Discovery, SystemClock
from controllers.kube.kinds import CLUSTER_POLICIES, NAMESPACES
from controllers.kube.reflector import Informers
from controllers.runtime.cluster_cache import WATCHED, ClusterCache
from controllers.runtime.metrics import Metrics
from controllers.runtime.options import Options
from controllers.runtime.process import Runtime
from controllers.runtime.queues import BackgroundQueue
from controllers.starting import settle_memory
from controllers.webhook.certificates import first_certificates
from controllers.webhook.serving import Serving
from engine.evaluate import Answer
from tests.controllers.kube.fake import FakeClient

_ANY = {"any": [{"resources": {"kinds": ["ConfigMap", "Pod", "Deployment"]}}]}


def policies() -> list[dict[str, Any]]:
    """Return policies that walk, compare and print what they are shown."""
    return [
        _policy("walks", "Enforce", deny({"key": "{{ length(to_string(request.object)) }}", "operator": "LessThan", "value": 2})),
        _policy("watches", "Audit", deny({"key": "{{ request.object.data.text || '' }}", "operator": "Equals", "value": "bad"})),
        _policy("labelled", "Enforce", {"pattern": {"metadata": {"=(labels)": {"*": "?*"}}}}),
        _policy("pairs", "Enforce", deny({"key": "{{ pattern_match(request.object.data.pattern || 'x', request.object.data.text || 'x') }}", "operator": "Equals", "value": "never"})),
    ]  # fmt: skip


def deny(condition: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a validate rule that denies on a condition."""
    return {"deny": {"conditions": {"all": [condition]}}}


def _policy(name: str, action: str, validate: dict[str, Any]) -> dict[str, Any]:
    rule = {"name": "r", "match": _ANY, "validate": {"message": "m", "failureAction": action, **validate}}  # fmt: skip
    return {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": name, "annotations": {"pod-policies.kyverno.io/autogen-controllers": "none"}}, "spec": {"background": False, "rules": [rule]}}  # fmt: skip


class _NobodyToAsk:
    def confirm(self, findings: Any) -> None:
        pass

    async def resolve(self, lookups: Any, tenant: str = "") -> dict[Any, Answer]:
        return {one: Answer.failed("nobody to ask") for one in lookups}


async def main() -> None:
    """Serve until standard input ends."""
    client, clock, metrics = FakeClient(), SystemClock(), Metrics()
    cache = ClusterCache(Discovery(client), metrics)
    for policy in policies():
        cache.put(CLUSTER_POLICIES, policy)
    for name in ("attacker", "other"):
        cache.put(NAMESPACES, {"metadata": {"name": name, "labels": {}}})
    for one in WATCHED:
        cache.listed(one)
    assert not cache.policies.snapshot.problems, cache.policies.snapshot.problems
    certificates = first_certificates(["127.0.0.1", "localhost"], datetime.now(UTC))
    Path(sys.argv[1]).write_bytes(certificates.bundle)
    runtime = Runtime(
        client, clock, cache, metrics, _NobodyToAsk(), Informers(client), BackgroundQueue(metrics),
        b"k" * 32, options=Options(host="127.0.0.1", port=0),
    )  # fmt: skip
    runtime.background_queue.start()
    serving = Serving(runtime, certificates.leaf, sink=None)
    await serving.start()
    settle_memory()
    print(serving.port, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
