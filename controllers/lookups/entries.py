"""The global context: data that an administrator prepared for policies, kept fresh (rows A-55 and A-58).

An entry is either a collection of the cluster's objects, watched, or a call that is repeated when its interval has passed. It
is loaded when a policy first asks; entries that nobody asks for cost nothing.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from controllers.kube.clock import Clock, SystemClock
from controllers.kube.kinds import GLOBAL_CONTEXT_ENTRIES, Kind
from controllers.kube.reflector import Selection
from engine.errors import EngineError
from engine.evaluate import ApiCallLookup, GlobalLookup, ServiceLookup
from engine.lang import duration, jmes
from engine.lang.gotext import compact_json
from engine.lang.jmes.values import Env

from .cluster import ClusterSource, FreshKinds
from .errors import EgressError, MissingError, OutsideError, shown

if TYPE_CHECKING:
    from controllers.kube.discovery import Discovery
    from controllers.kube.informers import Informers
    from controllers.kube.store import Store
    from engine.model import Json, Object

    from .services import ServiceSource

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
        return sorted(known[2], key=_order)

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


def _order(obj: Object) -> tuple[str, str]:
    metadata = obj.get("metadata") or {}
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def _projected(spec: Object, name: str, data: Json) -> Json:
    for one in spec.get("projections") or ():
        if one.get("name") == name:
            return jmes.compile(str(one.get("jmesPath") or ""))(data, Env())
    raise OutsideError(f"the entry has no projection `{shown(name)}`")
