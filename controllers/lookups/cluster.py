"""Answers from the API server: ConfigMaps, calls, objects and lists, through a Client and with its rights, and the global context.

Whether a rule may ask at all was decided by the engine (row A-25); here a question is kept from being more than a question: only GET and
POST, and no POST that could leave something behind.

The global context is data that an administrator prepared for policies, kept fresh (rows A-55 and A-58). An entry is either a collection of the cluster's objects, watched, or a call that is repeated when its interval has passed. It
is loaded when a policy first asks; entries that nobody asks for cost nothing.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from controllers.kube.client import PAGE, Client, find
from controllers.kube.clock import Clock, SystemClock
from controllers.kube.errors import Forbidden
from controllers.kube.kinds import CONFIG_MAPS, GLOBAL_CONTEXT_ENTRIES, Kind
from controllers.kube.paths import checked_path, segments, text_of
from controllers.kube.reflector import Selection
from controllers.kube.store import key_of
from engine.errors import EngineError
from engine.evaluate import ApiCallLookup, GlobalLookup, ServiceLookup
from engine.lang import duration, jmes, json, wildcard
from engine.lang.gotext import compact_json
from engine.lang.jmes.values import Env
from engine.reach import Effect, Target, out_of_reach

from .errors import EgressError, MissingError, OutsideError, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from controllers.kube.discovery import Discovery
    from controllers.kube.reflector import Informers
    from controllers.kube.store import Store
    from engine.evaluate import ConfigMapLookup, ListLookup, ObjectLookup
    from engine.model import Json, Object

    from .services import ServiceSource

MOST_BYTES = 10 * 1024 * 1024
"""How much a call may return (row A-52)."""
SECONDS = 10.0
MOST_OBJECTS = 20_000
_REVIEW_GROUPS = ("authorization.k8s.io", "authentication.k8s.io")


class ClusterSource:
    """Answers from one cluster."""

    def __init__(self, client: Client, discovery: Discovery, *, clock: Clock | None = None) -> None:
        self._client = client
        self._fresh = FreshKinds(discovery, clock)

    async def config_map(self, lookup: ConfigMapLookup) -> Object:
        """Return a ConfigMap; raises KubeError."""
        return await self._client.get(CONFIG_MAPS, lookup.name, lookup.namespace)

    async def call(self, lookup: ApiCallLookup) -> Json:
        """Return the decoded answer to a call; raises KubeError, OutsideError."""
        method = lookup.method.upper()
        if method not in ("GET", "POST"):
            raise OutsideError(f"method `{shown(method)}` is not allowed: a call is GET or POST")
        path = checked_path(lookup.url_path)
        body = None
        if method == "POST":
            path = _without_effect(path)
            body = json.load(lookup.body) if lookup.body else {}
        try:
            return await self._client.raw(method, path, body, limit=MOST_BYTES, timeout=SECONDS)
        except Forbidden as error:
            raise error.reworded(f"permission denied: {error.message}") from error

    async def object(self, lookup: ObjectLookup) -> Object | None:
        """Return an object, None where there is none; raises KubeError, and OutsideError for a kind that is not known."""
        kind = (await self._kinds(lookup))[0]
        return await find(self._client, kind, lookup.name, lookup.namespace)

    async def objects(self, lookup: ListLookup) -> list[Object]:
        """Return the objects that fit; raises KubeError, OutsideError."""
        kinds = await self._kinds(lookup)
        selector = text_of(json.load(lookup.selector)) if lookup.selector else ""
        found: list[Object] = []
        for kind in kinds:
            found += await self._listed(kind, lookup, selector)
        return found

    async def _listed(self, kind: Kind, lookup: ListLookup, selector: str) -> list[Object]:
        is_exact = bool(lookup.namespace) and not wildcard.has_wildcard(lookup.namespace)
        namespace = lookup.namespace if is_exact and kind.namespaced else ""
        exact_name = "" if wildcard.has_wildcard(lookup.name) else lookup.name
        fields = f"metadata.name={exact_name}" if exact_name else ""
        found: list[Object] = []
        resume = ""
        while True:
            page = await self._client.list(
                kind,
                namespace,
                label_selector=selector,
                field_selector=fields,
                limit=PAGE,
                resume=resume,
            )
            found += [obj for obj in page.items if _fits(obj, lookup, kind)]
            resume = page.resume
            if len(found) > MOST_OBJECTS:
                raise OutsideError(f"there are more than {MOST_OBJECTS} {kind}")
            if not resume:
                return found

    async def _kinds(self, lookup: ObjectLookup | ListLookup) -> list[Kind]:
        """Return the kinds meant, at least one, asking the server again where none is known yet.

        INVARIANT: for a policy of a namespace none without a namespace is among them: a Client drops the namespace for such.
        """
        api_version, name = lookup.api_version, lookup.kind
        resource: str = getattr(lookup, "resource", "")
        found = await self._fresh.find(
            lambda known: (
                _of_resource(known, api_version, resource)
                if resource
                else _matching(known, api_version, name)
            )
        )
        if not found:
            what = resource or name
            raise OutsideError(f"the server has no kind `{shown(api_version)}/{shown(what)}`")
        if not lookup.within:
            return found
        reasons = [
            out_of_reach(Effect.LOOK_UP, _target(kind, lookup), lookup.within) for kind in found
        ]
        within = [kind for kind, reason in zip(found, reasons, strict=True) if reason is None]
        if not within:
            raise OutsideError(next(filter(None, reasons)))
        return within


def _target(kind: Kind, lookup: ObjectLookup | ListLookup) -> Target:
    return Target(kind.group, kind.kind, kind.namespaced, lookup.namespace, lookup.name)


def _matching(known: Discovery, api_version: str, kind: str) -> list[Kind]:
    if api_version and not wildcard.has_wildcard(api_version):
        found = known.find(api_version, kind)
        return [found] if found else []
    group, _, version = api_version.rpartition("/")
    return known.matching(group or "*", version or "*", kind, preferred=True)


def _of_resource(known: Discovery, api_version: str, resource: str) -> list[Kind]:
    group, _, version = api_version.rpartition("/")
    found = known.of_resource(group, resource, version)
    return [found] if found else []


def _fits(obj: Object, lookup: ListLookup, kind: Kind) -> bool:
    namespace, name = key_of(obj)
    fits_name = not lookup.name or wildcard.match(lookup.name, name)
    if not kind.namespaced or not lookup.namespace:
        return fits_name
    return fits_name and wildcard.match(lookup.namespace, namespace)


def _without_effect(path: str) -> str:
    """Return the path of a POST that stores nothing: reviews never do, everything else is asked as a dry run.

    A look-up may be repeated, and is part of requests that are dry runs themselves; it must not leave anything behind.
    """
    parts = segments(path)
    if parts[-1].endswith("reviews") and len(parts) > 2 and parts[1] in _REVIEW_GROUPS:
        return path
    plain, _, query = path.partition("?")
    kept = [pair for pair in query.split("&") if pair and not pair.lower().startswith("dryrun")]
    return f"{plain}?{'&'.join([*kept, 'dryRun=All'])}"


# Discovery that asks again for kinds it does not know, but not for every question about a kind that nobody has.

T = TypeVar("T")
REFRESH_SECONDS = 30.0


class FreshKinds:
    """Finds kinds; a search that finds nothing refreshes the discovery, at most once in half a minute."""

    def __init__(self, discovery: Discovery, clock: Clock | None = None) -> None:
        self._discovery = discovery
        self._clock: Clock = clock or SystemClock()
        self._lock = asyncio.Lock()
        self._refreshed_at = float("-inf")

    async def find(self, search: Callable[[Discovery], T]) -> T:
        """Return what a search finds, now or after asking the server; raises KubeError when it cannot be asked."""
        found = search(self._discovery)
        if found:
            return found
        async with self._lock:
            now = self._clock.monotonic()
            if now - self._refreshed_at >= REFRESH_SECONDS:
                await self._discovery.refresh()
                self._refreshed_at = now
        return search(self._discovery)


_REFRESH_SECONDS = 600.0
_LEAST_REFRESH = 1.0
_PATIENCE = 5.0
_SECOND = 1_000_000_000


@dataclass(slots=True)
class _Called:
    """What a call gave, and when; the lock lets one asker call for all."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    spec: Json = None
    value: Json = None
    at: float = 0.0
    has_value: bool = False


class Entries:
    """Answers from the GlobalContextEntries of a cluster."""

    def __init__(
        self,
        informers: Informers,
        discovery: Discovery,
        cluster: ClusterSource,
        services: ServiceSource,
        *,
        clock: Clock | None = None,
    ) -> None:
        self._informers = informers
        self._fresh = FreshKinds(discovery, clock)
        self._cluster, self._services = cluster, services
        self._clock: Clock = clock or SystemClock()
        self._called: dict[str, _Called] = {}
        self._watched: dict[str, tuple[Kind, Selection, Store]] = {}
        self._store: Store | None = None

    async def entry(self, lookup: GlobalLookup) -> Json:
        """Return the data of an entry or its projection; raises EngineError when there is none (yet).

        A policy of a namespace gets only entries that hold objects of that namespace.
        """
        name, _, projection = lookup.name.partition(".")
        if self._store is None:
            self._store = self._informers.acquire(GLOBAL_CONTEXT_ENTRIES)
        await self._synced(GLOBAL_CONTEXT_ENTRIES, self._store)
        entry = self._store.get(name)
        if entry is None:
            await self._forget(name)
            raise MissingError(f"global context entry `{shown(name)}` not found")
        spec = entry.get("spec") or {}
        resource = spec.get("kubernetesResource") or {}
        if lookup.within and resource.get("namespace") != lookup.within:
            raise EgressError(f"global context entry `{shown(name)}` is not for this namespace")
        if resource:
            data: Json = await self._objects(name, resource, lookup.within)
        else:
            data = await self._result(name, spec)
        return _projected(spec, projection, data) if projection else data

    async def _objects(self, name: str, resource: Object, within: str) -> list[Object]:
        kind = await self._kind(resource)
        if within and not kind.namespaced:
            raise EgressError(f"global context entry `{shown(name)}` is not for this namespace")
        namespace = str(resource.get("namespace") or "")
        selection = Selection(namespace)
        known = self._watched.get(name)
        if known is None or known[:2] != (kind, selection):
            store = self._informers.acquire(kind, selection)
            await self._forget(name)
            known = self._watched[name] = (kind, selection, store)
        await self._synced(kind, known[2])
        return sorted(known[2], key=key_of)

    async def _synced(self, kind: Kind, store: Store) -> None:
        """Return when a store holds everything; raises OutsideError with what keeps it from that."""
        try:
            await asyncio.wait_for(store.wait_synced(), _PATIENCE)
        except TimeoutError:
            problem = self._informers.problems.get(kind) or "they were not listed in time"
            raise OutsideError(f"{kind} cannot be read: {problem}") from None

    async def _kind(self, resource: Object) -> Kind:
        place = tuple(str(resource.get(key) or "") for key in ("group", "resource", "version"))
        found = await self._fresh.find(lambda known: known.of_resource(*place))
        if found is None:
            raise OutsideError(f"the server has no resource `{shown('/'.join(place))}`")
        return found

    async def _result(self, name: str, spec: Object) -> Json:
        """Return what a call gave, calling again when the interval has passed; an old value outlives a failure."""
        call = spec.get("apiCall") or {}
        known = self._called.setdefault(name, _Called())
        async with known.lock:
            age = self._clock.monotonic() - known.at
            is_same = known.has_value and known.spec == call
            if is_same and age < _interval(call):
                return known.value
            try:
                known.value = await self._call(call)
            except EngineError:
                if not is_same:
                    raise
                return known.value
            known.spec, known.at, known.has_value = call, self._clock.monotonic(), True
            return known.value

    async def _call(self, call: Object) -> Json:
        method = str(call.get("method") or "GET")
        data = call.get("data") or ()
        body = compact_json({str(one.get("key")): one.get("value") for one in data}) if data else ""
        service: dict[str, Any] = call.get("service") or {}
        if not service:
            return await self._cluster.call(
                ApiCallLookup(method, str(call.get("urlPath") or ""), body)
            )
        headers = service.get("headers") or ()
        pairs = tuple((str(one.get("key")), str(one.get("value"))) for one in headers)
        bundle = str(service.get("caBundle") or "")
        return await self._services.call(
            ServiceLookup(method, str(service.get("url") or ""), pairs, body, bundle)
        )

    async def _forget(self, name: str) -> None:
        self._called.pop(name, None)
        watched = self._watched.pop(name, None)
        if watched is not None:
            await self._informers.release(*watched[:2])


def _interval(call: Object) -> float:
    found = duration.parse(str(call.get("refreshInterval") or ""))
    return max(found / _SECOND, _LEAST_REFRESH) if found else _REFRESH_SECONDS


def _projected(spec: Object, name: str, data: Json) -> Json:
    for one in spec.get("projections") or ():
        if one.get("name") == name:
            return jmes.compile(str(one.get("jmesPath") or ""))(data, Env())
    raise OutsideError(f"the entry has no projection `{shown(name)}`")
