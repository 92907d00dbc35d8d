"""A webhook with its cache fed by hand: what the tests of this folder stand on."""

from __future__ import annotations

import asyncio
import base64
import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import aiohttp
import orjson

from controllers.kube import Discovery, Kind
from controllers.kube.kinds import (
    CLUSTER_POLICIES,
    CONFIG_MAPS,
    NAMESPACES,
    PODS,
    POLICIES,
    POLICY_EXCEPTIONS,
)
from controllers.runtime.cluster_cache import WATCHED_IF_SERVED, ClusterCache
from controllers.runtime.metrics import Metrics
from controllers.runtime.queues import BackgroundQueue
from controllers.webhook.certificates import Certificates, first_certificates
from controllers.webhook.reviewing import Limits, Reviewer
from controllers.webhook.server import Routes, WebhookServer
from controllers.webhook.tls import ServerTls
from engine.evaluate import Answer
from tests.clock import ManualClock
from tests.controllers.kube.fake import FakeClient

NOW = datetime(2026, 11, 21, 10, 18, tzinfo=UTC)
UID = "705ab4f5-6393-11e8-b7cc-42010a800002"
DEPLOYMENTS = Kind("apps", "v1", "deployments", "Deployment", subresources=("scale", "status"))


def policy(name: str = "team", **spec: Any) -> dict[str, Any]:
    """Return a ClusterPolicy that asks Pods for the label `team`; `spec` changes its fields."""
    rule = {
        "name": "needs-team",
        "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
        "validate": {"message": "a team is needed", "pattern": {"metadata": {"labels": {"team": "?*"}}}},
    }  # fmt: skip
    fields = {"validationFailureAction": "Enforce", "background": False, "rules": [rule], **spec}
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": name, "annotations": {"pod-policies.kyverno.io/autogen-controllers": "none"}},
        "spec": fields,
    }  # fmt: skip


def mutating(name: str = "add-team") -> dict[str, Any]:
    """Return a ClusterPolicy that adds a label to Pods."""
    made = policy(name)
    made["spec"]["rules"] = [
        {
            "name": "add",
            "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
            "mutate": {"patchStrategicMerge": {"metadata": {"labels": {"+(team)": "blue"}}}},
        }
    ]
    return made


def pod(
    name: str = "web", labels: dict[str, str] | None = None, namespace: str = "shop"
) -> dict[str, Any]:
    """Return a Pod."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}  # fmt: skip


def body(obj: dict[str, Any] | None, **fields: Any) -> bytes:
    """Return the AdmissionReview of creating an object; `fields` change the request."""
    shown = obj or fields.get("oldObject") or {}
    group, _, version = str(shown.get("apiVersion", "v1")).rpartition("/")
    kind = str(shown.get("kind", "Pod"))
    request = {
        "uid": UID,
        "kind": {"group": group, "version": version, "kind": kind},
        "resource": {"group": group, "version": version, "resource": f"{kind.lower()}s"},
        "name": (shown.get("metadata") or {}).get("name", ""),
        "namespace": (shown.get("metadata") or {}).get("namespace", ""),
        "operation": "CREATE",
        "userInfo": {"username": "chip", "groups": ["system:authenticated"]},
        "object": obj,
        "oldObject": None,
        "dryRun": False,
        **fields,
    }
    return orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})  # fmt: skip


class Answers:
    """A resolver with answers given beforehand; `hangs` lets it never come back."""

    def __init__(self) -> None:
        self.given: dict[Any, Answer] = {}
        self.asked: list[Any] = []
        self.hangs = False
        self.released = asyncio.Event()

    def confirm(self, findings: Any) -> None:
        pass

    async def resolve(self, lookups: Any, tenant: str = "") -> dict[Any, Answer]:
        self.asked += list(lookups)
        if self.hangs:
            await self.released.wait()
        return {one: self.given.get(one, Answer.failed("nobody knows")) for one in lookups}


@dataclass
class Noted:
    """A sink that remembers; from results whose status is `silent` nothing follows."""

    results_: list[Any] = field(default_factory=list)
    triggered_: list[Any] = field(default_factory=list)
    error: Exception | None = None
    silent: set[str] = field(default_factory=set)

    async def triggered(self, review: Any, verdict: Any) -> None:
        if self.error:
            raise self.error
        self.triggered_.append(verdict)

    def follows(self, results: Any) -> bool:
        return any(str(one.status) not in self.silent for one in results)

    async def results(self, review: Any, results: Any, verdict: Any) -> None:
        self.results_.append((review, results, verdict))


@dataclass
class Stage:
    """Everything of one webhook, and short ways to use it."""

    client: FakeClient
    cache: ClusterCache
    resolver: Answers
    sink: Noted
    metrics: Metrics
    background_queue: BackgroundQueue
    reviewer: Reviewer

    async def ask(
        self, stage: str, sent: bytes, route: str = "fail", budget: float = 5.0
    ) -> dict[str, Any]:
        """Return the response of a review."""
        answer = await self.reviewer.review(stage, route, sent, budget)  # type: ignore[arg-type] # - short names in tests
        return orjson.loads(answer)["response"]

    def listed(self) -> None:
        """Let everything count as listed."""
        for kind in self.cache.watched:
            self.cache.listed(kind)


@asynccontextmanager
async def staged(
    *objects: dict[str, Any], ready: bool = True, limits: Limits | None = None, queue: int = 100
):
    """Yield a Stage whose cache holds some objects."""
    client = FakeClient(kinds=[PODS, DEPLOYMENTS], clock=ManualClock(NOW))
    discovery = Discovery(client)
    await discovery.refresh()
    metrics, resolver, sink = Metrics(), Answers(), Noted()
    cache = ClusterCache(discovery, metrics)
    for obj in [
        {"kind": "Namespace", "metadata": {"name": "shop", "labels": {"env": "prod"}}},
        *objects,
    ]:
        cache.put(kind_of(obj), obj)
    background_queue = BackgroundQueue(metrics, size=queue, workers=1)
    reviewer = Reviewer(
        cache, client, resolver, client.clock, metrics, background_queue, key=b"k" * 32, sink=sink, limits=limits or Limits()
    )  # fmt: skip
    stage = Stage(client, cache, resolver, sink, metrics, background_queue, reviewer)
    if ready:
        stage.listed()
    background_queue.start()
    try:
        yield stage
    finally:
        await background_queue.stop()


def hesitating(client: Any) -> None:
    """Let others come in between before and after each call, as a network does."""

    def slow(real: Any) -> Any:
        async def call(*given: Any, **named: Any) -> Any:
            await asyncio.sleep(0)
            try:
                return await real(*given, **named)
            finally:
                await asyncio.sleep(0)

        return call

    for verb in ("get", "list_all", "create", "patch"):
        setattr(client, verb, slow(getattr(client, verb)))


def kind_of(obj: dict[str, Any]) -> Kind:
    """Return the kind under which the cache takes an object."""
    if obj.get("apiVersion", "").startswith("policies.kyverno.io/"):
        return next(one for one in WATCHED_IF_SERVED if one.kind == obj["kind"])
    kinds = {
        "ClusterPolicy": CLUSTER_POLICIES,
        "Policy": POLICIES,
        "PolicyException": POLICY_EXCEPTIONS,
        "Namespace": NAMESPACES,
        "ConfigMap": CONFIG_MAPS,
    }
    return kinds[obj["kind"]]


def patch_of(response: dict[str, Any]) -> Any:
    """Return the decoded patch of a response."""
    return orjson.loads(base64.b64decode(response["patch"]))


def made_certificates() -> Certificates:
    """Return certificates for the loopback address, valid today."""
    return first_certificates(["127.0.0.1", "localhost"], datetime.now(UTC))


@asynccontextmanager
async def serving(routes: Routes, certificates: Certificates):
    """Yield (server, its TLS, a session that trusts it)."""
    tls = ServerTls(certificates.leaf)
    server = WebhookServer(routes, host="127.0.0.1", tls=tls.context)
    await server.start()
    trusting = ssl.create_default_context(cadata=certificates.bundle.decode())
    async with aiohttp.ClientSession(
        f"https://127.0.0.1:{server.port}", connector=aiohttp.TCPConnector(ssl=trusting)
    ) as session:
        try:
            yield server, tls, session
        finally:
            await server.stop()
