"""Reads a ClusterCache once, for commands that print and end: all resources at the same time, each problem kept beside the rest."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from controllers.kube.client import PAGE
from controllers.kube.discovery import Discovery
from controllers.kube.errors import Invalid, KubeError, NotFound
from controllers.kube.kinds import CONFIG_MAPS, Kind
from controllers.kube.paths import field_tests
from engine.record import record, replace
from engine.vocabulary import TTL_LABEL

from . import celkinds
from .cache import ClusterCache, Problem, Trouble
from .resources import JOURNAL, RESOURCES, TTL_OBJECTS, Resource, problem_of
from .violations import SOURCES, rows_of_report, weight

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from controllers.kube import Client
    from engine.model import Object

_AT_ONCE = 8
_ANY = Kind("", "v1", "kinds", "Kind")


@record
class Scope:
    """What is read: one namespace or all (empty), objects with labels, and the journal `namespace/name` if there is one.

    `chunk` is how many objects one answer of the server holds, 0 for all of them. `results` is a field selector of reports, for
    servers that can choose them by what they say, and `worst` how many of those are enough, the severest first (0: all of them),
    for servers that can sort them, too.
    """

    namespace: str = ""
    labels: str = ""
    journal: str = ""
    chunk: int = PAGE
    results: str = ""
    worst: int = 0


async def fetch(
    client: Client, resources: Iterable[str], now: datetime, scope: Scope | None = None
) -> ClusterCache:
    """Return a ClusterCache with these resources; what cannot be read is noted in it, nothing is raised."""
    world = ClusterCache()
    wanted = scope or Scope()
    await asyncio.gather(
        *(_fetch(client, world, name, now, wanted) for name in dict.fromkeys(resources))
    )
    return world


async def _fetch(
    client: Client, world: ClusterCache, name: str, now: datetime, scope: Scope
) -> None:
    if name == TTL_OBJECTS:
        await fetch_labelled(client, world, scope.namespace, now)
    elif name == JOURNAL:
        await fetch_journal(client, world, scope.journal, now)
    elif name in celkinds.NAMES:
        await _fetch_cel(client, world, name, now, scope)
    else:
        resource = RESOURCES[name]
        try:
            items = await _chosen(client, world, resource, scope)
        except KubeError as error:
            world.hindered(name, problem_of(error, resource.kind))
        else:
            world.replace(name, named(items, resource.kind), now)


async def _fetch_cel(
    client: Client, world: ClusterCache, name: str, now: datetime, scope: Scope
) -> None:
    """Read all kinds that the server has of these; one that cannot be read is noted, and the others count."""
    found: list[Object] = []
    try:
        for kind in await celkinds.kinds(client, name):
            found += named(await _listed(client, Resource(name, kind, ""), scope), kind)
    except KubeError as error:
        world.hindered(name, problem_of(error, Kind(celkinds.GROUP, "v1", "policies", "Policy")))
    else:
        world.replace(name, found, now)


async def _chosen(
    client: Client, world: ClusterCache, resource: Resource, scope: Scope
) -> Sequence[Object]:
    """Return the objects of a resource, of reports those that are asked for where the server can choose them; raises KubeError."""
    if scope.results and resource.name in SOURCES:
        chosen = replace(resource, fields=scope.results)
        try:
            worst = await _worst(client, world, chosen, scope) if scope.worst else None
            return await _listed(client, chosen, scope) if worst is None else worst
        except Invalid:
            pass  # custom resources are not chosen by what they say; all of them are read then
    return await _listed(client, resource, scope)


async def _worst(
    client: Client, world: ClusterCache, resource: Resource, scope: Scope
) -> Sequence[Object] | None:
    """Return the reports with the severest results, and note which others there may be; None where the server cannot sort."""
    place = scope.namespace if resource.kind.namespaced else ""
    page = await client.list(
        resource.kind,
        place,
        label_selector=scope.labels,
        field_selector=resource.fields,
        limit=scope.worst,
        sort_by="severity",
    )
    if not page.sorted_by:
        return None
    if len(page.items) == scope.worst:
        tests = [one for one in field_tests(resource.fields) if one.path.startswith("results.")]
        rows = rows_of_report(page.items[-1])
        chosen = (row for row in rows if all(one.holds({"results": row.cells}) for one in tests))
        world.left_out[resource.name] = max(map(weight, chosen), default=weight(None))
    return page.items


async def _listed(client: Client, resource: Resource, scope: Scope) -> Sequence[Object]:
    """Return all objects of a resource, so many at a time as was asked for; raises KubeError."""
    place = scope.namespace if resource.kind.namespaced else ""
    if scope.chunk == PAGE:
        page = await client.list_all(
            resource.kind, place, label_selector=scope.labels, field_selector=resource.fields
        )
        return page.items
    items: list[Object] = []
    resume = ""
    while True:
        page = await client.list(
            resource.kind, place, label_selector=scope.labels, field_selector=resource.fields, limit=scope.chunk, resume=resume
        )  # fmt: skip
        items += page.items
        resume = page.resume
        if not resume:
            return items


def named(objects: Iterable[Object], kind: Kind) -> list[Object]:
    """Return objects with the kind that items of a list leave out."""
    head = {"apiVersion": kind.api_version, "kind": kind.kind}
    return [obj if "kind" in obj else {**head, **obj} for obj in objects]


async def fetch_journal(client: Client, world: ClusterCache, place: str, now: datetime) -> None:
    """Read the ConfigMap that keeps codes, where one is named."""
    namespace, _, name = place.rpartition("/")
    if not name:
        return
    try:
        found = await client.get(CONFIG_MAPS, name, namespace or "default")
    except NotFound:
        world.hindered(JOURNAL, Problem(Trouble.MISSING, f"there is no journal `{place}`", "name the ConfigMap as NAMESPACE/NAME"))  # fmt: skip
    except KubeError as error:
        world.hindered(JOURNAL, problem_of(error, CONFIG_MAPS))
    else:
        world.replace(JOURNAL, [found], now)


async def fetch_labelled(
    client: Client, world: ClusterCache, namespace: str, now: datetime
) -> None:
    """Read the metadata of all objects with a TTL label, of every kind that can be deleted.

    Of kinds that may not be listed nobody knows whether an object has one; that is noted beside those that were found.
    """
    discovery = Discovery(client)
    try:
        await discovery.refresh()
    except KubeError as error:
        world.hindered(TTL_OBJECTS, problem_of(error, _ANY))
        return
    kinds = [
        kind
        for kind in discovery.matching("*", "*", "*", preferred=True)
        if {"list", "delete"} <= set(kind.verbs) and (kind.namespaced or not namespace)
    ]
    gate = asyncio.Semaphore(_AT_ONCE)
    lists = await asyncio.gather(*(_labelled(client, kind, namespace, gate) for kind in kinds))
    missed = [(kind, found) for kind, found in zip(kinds, lists, strict=True) if isinstance(found, KubeError)]  # fmt: skip
    world.replace(TTL_OBJECTS, [obj for found in lists if not isinstance(found, KubeError) for obj in found], None if missed else now)  # fmt: skip
    if missed:
        kind, refusal = missed[0]
        problem = problem_of(refusal, kind)
        more = f" and {len(missed) - 1} more kinds" if len(missed) > 1 else ""
        world.hindered(TTL_OBJECTS, replace(problem, message=f"{problem.message}{more}"))


async def _labelled(
    client: Client, kind: Kind, namespace: str, gate: asyncio.Semaphore
) -> list[Object] | KubeError:
    async with gate:
        try:
            page = await client.list_all(
                kind,
                namespace if kind.namespaced else "",
                label_selector=TTL_LABEL,
                metadata_only=True,
            )
        except NotFound:
            return []
        except KubeError as error:
            return error
    head = {"apiVersion": kind.api_version, "kind": kind.kind}
    return [{**obj, **head} for obj in page.items]
