"""Answers from the API server: ConfigMaps, calls, objects and lists, through a Client and with its rights.

Whether a rule may ask at all was decided by the engine (row A-25); here a question is kept from being more than a
question: only GET and POST, and no POST that could leave something behind.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from controllers.kube.client import PAGE, Client
from controllers.kube.clock import Clock, SystemClock
from controllers.kube.errors import Forbidden, NotFound
from controllers.kube.kinds import CONFIG_MAPS, Kind
from controllers.kube.paths import checked_path, segments, text_of
from engine.lang import json, wildcard
from engine.reach import Effect, Target, out_of_reach

from .errors import OutsideError, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from controllers.kube.discovery import Discovery
    from engine.evaluate import ApiCallLookup, ConfigMapLookup, ListLookup, ObjectLookup
    from engine.model import Json, Object

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
        try:
            return await self._client.get(kind, lookup.name, lookup.namespace)
        except NotFound:
            return None

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
    metadata: dict[str, Any] = obj.get("metadata") or {}
    fits_name = not lookup.name or wildcard.match(lookup.name, str(metadata.get("name") or ""))
    if not kind.namespaced or not lookup.namespace:
        return fits_name
    return fits_name and wildcard.match(lookup.namespace, str(metadata.get("namespace") or ""))


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
