"""A cluster of memory with the loops around it and a clock moved by hand: what the tests of this folder stand on."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from controllers.kube import Discovery, Kind, KubeError, NotFound
from controllers.kube.events import Recorder
from controllers.kube.kinds import (
    CLUSTER_POLICIES,
    CONFIG_MAPS,
    EVENTS,
    NAMESPACES,
    PODS,
    POLICIES,
    POLICY_EXCEPTIONS,
    SECRETS,
    UPDATE_REQUESTS,
)
from controllers.kube.paths import text_of
from controllers.kube.reflector import Informers
from controllers.loops.announcing import awaited_in
from controllers.loops.context import LoopContext, Options
from controllers.loops.generate.memory import NAME as MEMORY
from controllers.loops.sink import LoopSink
from controllers.runtime.cluster_cache import WATCHED_IF_SERVED, ClusterCache
from controllers.runtime.metrics import Metrics
from controllers.runtime.sink import Verdict
from controllers.webhook.triggers import triggers_of
from engine.evaluate import Answer, ApiCallLookup, ConfigMapLookup, ListLookup, ObjectLookup
from engine.lang import wildcard
from engine.model import Review, UserInfo
from engine.requestinfo import request_info
from tests.clock import ManualClock, settle
from tests.controllers.kube.fake import FakeClient

if TYPE_CHECKING:
    import pytest

NOW = datetime(2026, 11, 21, 10, 18, tzinfo=UTC)
ROLE_BINDINGS = Kind("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
DEPLOYMENTS = Kind("apps", "v1", "deployments", "Deployment")
LISTED = ("list", "watch", "get", "create", "update", "patch", "delete")


class ClusterAnswers:
    """A resolver that reads the cluster of memory."""

    def __init__(self, client: FakeClient, discovery: Discovery) -> None:
        self._client, self._discovery = client, discovery

    def confirm(self, findings: Any) -> None:
        pass

    async def resolve(self, lookups: Any, tenant: str = "") -> dict[Any, Answer]:
        return {one: await self._answer(one) for one in lookups}

    async def _answer(self, one: Any) -> Answer:
        try:
            if isinstance(one, ConfigMapLookup):
                return Answer.found(await self._client.get(CONFIG_MAPS, one.name, one.namespace))
            if isinstance(one, ObjectLookup):
                kind = self._discovery.find(one.api_version, one.kind)
                return Answer.found(await self._client.get(kind, one.name, one.namespace))
            if isinstance(one, ApiCallLookup):
                return await self._called(one.url_path)
            if isinstance(one, ListLookup):
                group, _, version = one.api_version.rpartition("/")
                kind = (
                    self._discovery.of_resource(group, one.resource, version)
                    if one.resource
                    else self._discovery.find(one.api_version, one.kind)
                )
                selector = text_of(orjson.loads(one.selector)) if one.selector else ""
                page = await self._client.list_all(kind, label_selector=selector)
                return Answer.found([item for item in page.items if _fits(one, item)])
        except KubeError as error:
            return Answer.failed(error.message)
        return Answer.failed("nobody knows")

    async def _called(self, path: str) -> Answer:
        """Answer a GET as the API server does; what is not there is null for expressions."""
        info = request_info("GET", path)
        kind = self._discovery.of_resource(info.group, info.resource)
        if not info.name:
            page = await self._client.list_all(kind, info.namespace)
            head = {"apiVersion": kind.api_version, "kind": f"{kind.kind}List"}
            return Answer.found({**head, "items": list(page.items)})
        try:
            found = await self._client.get(kind, info.name, info.namespace)
        except NotFound as error:
            return Answer.failed(error.message, is_missing=True)
        return Answer.found({"apiVersion": kind.api_version, "kind": kind.kind, **found})


def _fits(one: ListLookup, item: dict[str, Any]) -> bool:
    metadata = item["metadata"]
    return wildcard.match(one.name or "*", metadata["name"]) and wildcard.match(
        one.namespace or "*", metadata.get("namespace", "")
    )


@dataclass
class Scene:
    """The cluster, the loops that run, and short ways to use them."""

    client: FakeClient
    context: LoopContext
    sink: LoopSink
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)

    @property
    def cache(self) -> ClusterCache:
        return self.context.cache

    @property
    def clock(self) -> ManualClock:
        return self.client.clock

    def start(self, work: Any) -> None:
        """Run a loop until the end of the scene."""
        self.tasks.append(asyncio.ensure_future(work))

    async def rest(self, seconds: float = 0) -> None:
        """Move the clock and let everything happen that follows from it."""
        await self.clock.advance(seconds)
        quiet = 0
        while quiet < 3:
            before = len(self.client.calls)
            await settle(40)
            quiet = quiet + 1 if len(self.client.calls) == before else 0
        for task in self.tasks:
            if task.done():
                task.result()

    def put(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Store an object; policies and the like are made known, too."""
        stored = self.client.put(obj)
        kind = self._known(obj)
        if kind is not None:
            self.cache.put(kind, stored)
        return stored

    def take(self, obj: dict[str, Any]) -> None:
        """Delete an object; policies and the like are forgotten, too."""
        metadata = obj["metadata"]
        self.client.take(self.client.kind_of(obj), metadata["name"], metadata.get("namespace", ""))
        kind = self._known(obj)
        if kind is not None:
            self.cache.remove(kind, obj)

    def _known(self, obj: dict[str, Any]) -> Kind | None:
        """Return the kind under which the cache takes an object, if it does."""
        found = self.client.kind_of(obj)
        return found if found in WATCHED_IF_SERVED else _KNOWN.get(obj["kind"])

    async def request(
        self, obj: dict[str, Any], operation: str = "CREATE", user: str = "chip", **fields: Any
    ) -> None:
        """Let a request through the sink and happen."""
        stored = self.store(obj, operation)
        await self.admit(stored, operation, user, **fields)

    def store(self, obj: dict[str, Any], operation: str = "CREATE") -> dict[str, Any]:
        """Let the change of a request happen and return the object."""
        if operation == "DELETE":
            kind = self.client.kind_of(obj)
            metadata = obj["metadata"]
            key = (metadata.get("namespace", ""), metadata["name"])
            [found] = [one for one in self.client.stored(kind) if _key(one) == key]
            self.take(found)
            return found
        return self.put(obj)

    async def admit(
        self,
        stored: dict[str, Any],
        operation: str = "CREATE",
        user: str = "chip",
        *,
        is_proven: bool = True,
        **fields: Any,
    ) -> None:
        """Hand the triggers of a request to the sink, as the webhook does before it answers."""
        request = request_of(stored, operation, user, **fields)
        labels = await self.context.namespace_labels(request["namespace"])
        review = review_of_request(request, labels)
        route = self.context.snapshot.routes["all"]
        triggers = triggers_of(route.triggers, review, frozenset())
        verdict = Verdict(True, self.clock.now(), request, triggers, is_proven=is_proven)
        await self.sink.triggered(review, verdict)

    def stored(self, kind: Kind, name: str = "", namespace: str = "") -> Any:
        """Return one object, or all of a kind but our own memory when no name is given; None where there is none."""
        found = self.client.stored(kind)
        if not name:
            return [one for one in found if one["metadata"]["name"] != MEMORY]
        return next((one for one in found if _key(one) == (namespace, name)), None)

    @property
    def events(self) -> list[dict[str, Any]]:
        return self.client.stored(EVENTS)

    @property
    def requests(self) -> list[dict[str, Any]]:
        return self.client.stored(UPDATE_REQUESTS)


def hold_lists_of(made: Scene, kind: Kind, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Have nobody see what there is of a kind until the event is set."""
    seen, listed = asyncio.Event(), made.client.list

    async def late(asked: Kind, *arguments: Any, **options: Any) -> Any:
        if asked == kind:
            await seen.wait()
        return await listed(asked, *arguments, **options)

    monkeypatch.setattr(made.client, "list", late)
    return seen


_KNOWN = {
    "ClusterPolicy": CLUSTER_POLICIES,
    "Policy": POLICIES,
    "PolicyException": POLICY_EXCEPTIONS,
    "Namespace": NAMESPACES,
}


def _key(obj: dict[str, Any]) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def request_of(
    obj: dict[str, Any], operation: str = "CREATE", user: str = "chip", **fields: Any
) -> dict[str, Any]:
    """Return the AdmissionRequest of an object."""
    group, _, version = str(obj["apiVersion"]).rpartition("/")
    metadata = obj["metadata"]
    namespace = metadata.get("namespace", "")
    if obj["kind"] == "Namespace":
        namespace = metadata["name"]
    is_gone = operation == "DELETE"
    return {
        "uid": f"{operation}-{metadata.get('uid')}-{metadata.get('resourceVersion')}",
        "kind": {"group": group, "version": version, "kind": obj["kind"]},
        "resource": {"group": group, "version": version, "resource": f"{obj['kind'].lower()}s"},
        "name": metadata["name"],
        "namespace": namespace,
        "operation": operation,
        "userInfo": {"username": user, "groups": ["system:authenticated"]},
        "object": None if is_gone else obj,
        "oldObject": obj if is_gone else None,
        **fields,
    }


def review_of_request(request: dict[str, Any], labels: Any) -> Review:
    """Return what rules are asked about for a request."""
    user = request["userInfo"]
    return Review(
        object=request["object"],
        old_object=request["oldObject"],
        operation=request["operation"],
        **request["kind"],
        user=UserInfo(username=user["username"], groups=tuple(user["groups"])),
        namespace_labels=labels,
        request=request,
    )


@asynccontextmanager
async def scene(*objects: dict[str, Any], kinds: tuple[Kind, ...] = (), **options: Any):
    """Yield a Scene whose cluster holds some objects; the sink runs, loops are started by the test."""
    known = (PODS, DEPLOYMENTS, SECRETS, CONFIG_MAPS, ROLE_BINDINGS, NAMESPACES)
    made = [replace(kind, verbs=LISTED) for kind in (*kinds, *known)]
    client = FakeClient(kinds=made, clock=ManualClock(NOW))
    discovery = Discovery(client)
    await discovery.refresh()
    metrics = Metrics()
    cache = ClusterCache(discovery, metrics)
    informers = Informers(client, clock=client.clock)
    recorder = Recorder(
        client, "kpolicy-0", clock=client.clock, must_keep=awaited_in(cache), counts_equal=False
    )
    context = LoopContext(
        cache, client, client.clock, ClusterAnswers(client, discovery), metrics, informers, recorder,
        key=b"k" * 32, options=Options(**options),
    )  # fmt: skip
    made_scene = Scene(client, context, LoopSink(context))
    for obj in objects:
        made_scene.put(obj)
    for kind in cache.watched:
        cache.listed(kind)
    made_scene.start(made_scene.sink.run())
    try:
        yield made_scene
    finally:
        for task in made_scene.tasks:
            task.cancel()
        await asyncio.gather(*made_scene.tasks, return_exceptions=True)
        await informers.close()


def namespace(name: str, **labels: str) -> dict[str, Any]:
    """Return a Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def config_map(name: str, ns: str = "shop", data: dict[str, str] | None = None, **labels: str) -> dict[str, Any]:  # fmt: skip
    """Return a ConfigMap."""
    metadata: dict[str, Any] = {"name": name, "namespace": ns}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {}}


def cluster_policy(name: str, *rules: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Return a ClusterPolicy."""
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": name},
        "spec": {"rules": list(rules), **spec},
    }


def matching(*kinds: str, **resources: Any) -> dict[str, Any]:
    """Return a match block of some kinds."""
    return {"any": [{"resources": {"kinds": list(kinds), **resources}}]}
