"""What many policies cost: one review of which one of them says something, what they hold, and a change of one of them.

Each shape of policies differs in what tells them apart; the yardstick is the same review with the fewest of the same shape.
"""

from __future__ import annotations

import asyncio
import statistics
import time
import tracemalloc
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from controllers.kube import Discovery, SystemClock
from controllers.kube.kinds import CEL_POLICIES, CLUSTER_POLICIES, NAMESPACES
from controllers.runtime.cluster_cache import WATCHED, ClusterCache
from controllers.runtime.metrics import Metrics
from controllers.runtime.queues import BackgroundQueue
from controllers.starting import settle_memory
from controllers.webhook.reviewing import Reviewer
from tests.controllers.kube.fake import FakeClient

from . import subjects
from .webhook_server import NobodyToAsk, enforced

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from controllers.runtime.sink import Stage

    Shape = Callable[[int], dict[str, Any]]

FEW, MANY, MOST = 10, 1_000, 10_000
ROUNDS, REVIEWS = 25, 40
_NEEDED = "app.kubernetes.io/name"


def _classic(number: int, **resources: Any) -> dict[str, Any]:
    """Return a policy that asks for a label; the first one concerns the Pod of the benchmarks, by whatever tells others apart."""
    rule = {
        "name": "r",
        "match": {"any": [{"resources": {"kinds": ["Pod"], **resources}}]},
        "validate": {"message": "m", "pattern": {"metadata": {"labels": {_NEEDED: "?*"}}}},
    }
    made = {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "spec": {"rules": [rule]}}
    return enforced({**made, "metadata": {"name": f"p-{number:05d}"}})


def _changing(number: int, **resources: Any) -> dict[str, Any]:
    """Return a policy that adds a label instead."""
    made = _classic(number, **resources)
    rule = made["spec"]["rules"][0]
    del rule["validate"]
    rule["mutate"] = {"patchStrategicMerge": {"metadata": {"labels": {f"+(of-{number})": "x"}}}}
    return made


def _in_cel(number: int, names: Sequence[str] = (), **constraints: Any) -> dict[str, Any]:
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    rules = [{**rule, "resourceNames": names}] if names else [rule]
    expression = f"object.metadata.?labels[?'{_NEEDED}'].orValue('') != ''"
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": f"p-{number:05d}"},
        "spec": {
            "matchConstraints": {"resourceRules": rules, **constraints},
            "validationActions": ["Deny"],
            "validations": [{"expression": expression, "message": "m"}],
        },
    }


SHAPES: dict[str, Shape] = {
    "kinds": lambda n: _classic(n, kinds=["Pod" if n == 0 else f"Kind{n}"]),
    "operations": lambda n: _classic(n, operations=["CREATE" if n == 0 else "DELETE"]),
    "namespaces": lambda n: _classic(n, namespaces=[f"team-{n}"]),
    "wildcards of namespaces": lambda n: _classic(
        n, namespaces=[f"team-{n}*" if n == 0 else f"other-{n}-*"]
    ),
    "labels of namespaces": lambda n: _classic(
        n, namespaceSelector={"matchLabels": {"team": f"{n}"}}
    ),
    "names": lambda n: _classic(n, names=[f"checkout-{n:04d}"]),
    "wildcards of names": lambda n: _classic(n, names=["checkout-*" if n == 0 else f"other-{n}-*"]),
    "annotations": lambda n: _classic(n, annotations={"shape": f"{n}"}),
    "labels": lambda n: _classic(
        n, selector={"matchLabels": {_NEEDED: "checkout" if n == 0 else f"app-{n}"}}
    ),
    "labels, of changes": lambda n: _changing(
        n, selector={"matchLabels": {_NEEDED: "checkout" if n == 0 else f"app-{n}"}}
    ),
    "CEL, names": lambda n: _in_cel(n, names=[f"checkout-{n:04d}"]),
    "CEL, labels of namespaces": lambda n: _in_cel(
        n, namespaceSelector={"matchLabels": {"team": f"{n}"}}
    ),
    "CEL, labels": lambda n: _in_cel(
        n, objectSelector={"matchLabels": {_NEEDED: "checkout" if n == 0 else f"app-{n}"}}
    ),
}
"""What policies are told apart by: the one of number 0 concerns the Pod, all others do not."""

_KINDS = {kind.kind: kind for kind in (CLUSTER_POLICIES, *CEL_POLICIES)}


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds of a review with few and with most policies, how many times as much that is, and those of the first with most."""

    few: float
    most: float
    ratio: float
    first: float


class Reviews:
    """A webhook without its server, with so many policies of a shape."""

    def __init__(self, shape: Shape, count: int) -> None:
        metrics, client = Metrics(), FakeClient()
        self.cache = ClusterCache(Discovery(client), metrics)
        for index in range(40):
            labels = {"team": str(index)}
            self.cache.put(NAMESPACES, {"metadata": {"name": f"team-{index}", "labels": labels}})
        for number in range(count):
            self.put(shape(number))
        began = time.process_time()
        for kind in WATCHED:
            self.cache.listed(kind)
        self.compiling = time.process_time() - began
        assert not self.cache.policies.snapshot.problems
        self._reviewer = Reviewer(
            self.cache,
            client,
            NobodyToAsk(),
            SystemClock(),
            metrics,
            BackgroundQueue(metrics),
            key=b"k" * 32,
        )
        first = shape(0)
        is_cel = first["kind"] != "ClusterPolicy"
        is_change = not is_cel and "mutate" in first["spec"]["rules"][0]
        self._stage: Stage = "mutate" if is_change else "validate"
        self._lane = "fail/vpol" if is_cel else "fail"
        self._loop = asyncio.new_event_loop()

    def put(self, policy: dict[str, Any]) -> None:
        """Take over a policy."""
        self.cache.put(_KINDS[policy["kind"]], policy)

    def ask(self, body: bytes, times: int = 1) -> float:
        """Return the seconds that one of some reviews takes; each is allowed."""
        return self._loop.run_until_complete(self._ask(body, times))

    async def _ask(self, body: bytes, times: int) -> float:
        # slices of evaluations set a timer on the process's time, which from then on goes by ticks of 4 ms
        began = time.thread_time()
        for _ in range(times):
            answer = await self._reviewer.review(self._stage, self._lane, body, 10.0)
        took = time.thread_time() - began
        assert b'"allowed":true' in answer, answer
        return took / times


def latency(shape: Shape, counts: tuple[int, int]) -> Latency:
    """Return what a review takes with the fewer and with the more policies; rounds take turns, and each is a pair."""
    body = subjects.review_bytes()
    few, most = (Reviews(shape, count) for count in counts)
    first = (few.ask(body), most.ask(body))[1]
    # as the process does: a collection of garbage would be on the account of the review that it falls into
    settle_memory()
    pairs = [(few.ask(body, REVIEWS), most.ask(body, REVIEWS)) for _ in range(ROUNDS)]
    return Latency(
        statistics.median(one for one, _ in pairs),
        statistics.median(other for _, other in pairs),
        statistics.median(other / one for one, other in pairs),
        first,
    )


def change(shape: Shape, count: int) -> tuple[float, float, float]:
    """Return the seconds of compiling so many policies, of taking over one that changed, and of the review after it."""
    asked, body = Reviews(shape, count), subjects.review_bytes()
    asked.ask(body)
    changed = orjson.loads(orjson.dumps(shape(count - 1)))
    changed["metadata"]["labels"] = {"changed": "yes"}
    began = time.process_time()
    asked.put(changed)
    _ = asked.cache.policies.snapshot
    took = time.process_time() - began
    return asked.compiling, took, asked.ask(body)


def held(shape: Shape, count: int) -> float:
    """Return the MiB that so many policies hold once they are compiled and were asked."""
    tracemalloc.start()
    asked = Reviews(shape, count)
    asked.ask(subjects.review_bytes())
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / 2**20
