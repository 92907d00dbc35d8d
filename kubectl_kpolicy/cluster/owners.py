"""Whose objects results are about: the outermost owner of each, for triage by workload instead of by Pod, and their labels.

Policy reports name objects and neither owners nor labels; they are read from the metadata of the kinds that results are about, and
only where somebody asks for them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from controllers.kube.discovery import Discovery
from controllers.kube.errors import KubeError
from engine.fields import items, part, word

from .violations import LISTING, all_rows

if TYPE_CHECKING:
    from datetime import datetime

    from controllers.kube import Client
    from engine.model import Object
    from kubectl_kpolicy.output.rows import Listing, Row

    from .cache import ClusterCache

_LONGEST_CHAIN = 8


class Owners:
    """The owners of the objects that a ClusterCache has results about. `learn` first."""

    def __init__(self) -> None:
        self._by_uid: dict[str, Object] = {}

    async def learn(self, client: Client, world: ClusterCache) -> None:
        """Read the metadata of objects with results, and of their owners; kinds that may not be listed stay unknown."""
        discovery = Discovery(client)
        try:
            await discovery.refresh()
        except KubeError:
            return
        wanted = {_kind(row.object.get("resource") or {}) for row in all_rows(world)}
        seen: set[tuple[str, str]] = set()
        for _ in range(_LONGEST_CHAIN):
            for api_version, kind in sorted(wanted - seen):
                await self._list(client, discovery, api_version, kind)
            seen |= wanted
            wanted = {_kind(ref) for obj in self._by_uid.values() for ref in items(obj, "metadata", "ownerReferences")}  # fmt: skip
            if wanted <= seen:
                return

    async def _list(self, client: Client, discovery: Discovery, api_version: str, kind: str) -> None:  # fmt: skip
        found = discovery.find(api_version, kind)
        if found is None:
            return
        try:
            page = await client.list_all(found, metadata_only=True)
        except KubeError:
            return
        for obj in page.items:
            self._by_uid[word(obj, "metadata", "uid")] = {**obj, "kind": kind}

    def of(self, resource: Object) -> str:
        """Return `Kind/name` of the outermost owner of an object, which is the object itself where nothing owns it."""
        uid, found = word(resource, "uid"), resource
        for _ in range(_LONGEST_CHAIN):
            obj = self._by_uid.get(uid)
            owner = _controller(obj or {})
            if owner is None:
                break
            uid, found = word(owner, "uid"), owner
        return f"{word(found, 'kind')}/{word(found, 'name')}"

    def labels(self, resource: Object) -> Object:
        """Return the labels of an object, which reports do not hold."""
        return part(self._by_uid.get(word(resource, "uid")) or {}, "metadata", "labels")

    def listing(self, *, shows_owners: bool = True) -> Listing:
        """Return the listing of violations with labels, and with a column for owners."""
        from engine.record import replace
        from kubectl_kpolicy.output.rows import Column

        owner = (Column("owner", "OWNER", most=30),) if shows_owners else ()
        columns = (*LISTING.columns[:4], *owner, *LISTING.columns[4:])
        return replace(LISTING, columns=columns, rows=self._rows)

    def _rows(self, world: ClusterCache, _now: datetime) -> list[Row]:
        from engine.record import replace

        made = []
        for row in all_rows(world):
            resource = row.object.get("resource") or {}
            owner, labels = self.of(resource), self.labels(resource)
            metadata = {**row.object["metadata"], **({"labels": labels} if labels else {})}
            obj = {**row.object, "metadata": metadata, "owner": owner}
            made.append(replace(row, cells={**row.cells, "owner": owner}, object=obj))
        return made


async def chain(client: Client, obj: Object) -> list[str]:
    """Return `Kind/name` of the owners of an object, from the outermost to itself; itself alone where kinds cannot be asked for."""
    own = f"{word(obj, 'kind')}/{word(obj, 'metadata', 'name')}"
    discovery = Discovery(client)
    try:
        await discovery.refresh()
    except KubeError:
        return [own]
    return [*reversed(await owners_of(client, discovery, obj)), own]


async def owners_of(client: Client, discovery: Discovery, obj: Object) -> list[str]:
    """Return `Kind/name` of the owners of an object, the nearest first; one that may not be read ends the way up."""
    names: list[str] = []
    found, place = obj, word(obj, "metadata", "namespace")
    with suppress(KubeError):
        while len(names) < _LONGEST_CHAIN and (owner := _controller(found)) is not None:
            names.append(f"{word(owner, 'kind')}/{word(owner, 'name')}")
            kind = discovery.find(*_kind(owner))
            if kind is None:
                break
            found = await client.get(kind, word(owner, "name"), place if kind.namespaced else "")
    return names


def _controller(obj: Object) -> Object | None:
    """Return the reference to the owner that controls an object, else to its first one."""
    owners = items(obj, "metadata", "ownerReferences")
    return next((one for one in owners if one.get("controller")), owners[0] if owners else None)


def _kind(reference: Object) -> tuple[str, str]:
    return word(reference, "apiVersion"), word(reference, "kind")
