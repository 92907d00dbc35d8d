"""Several clusters side by side while somebody looks at them: their caches as one, their rows in one listing.

Rows are made of one cluster at a time and say which one they are of. A cluster of which nothing is known, or not enough, is
told by name and reason; it never merely has no rows.
"""

from __future__ import annotations

import asyncio
from collections import ChainMap
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from controllers.kube.errors import KubeError
from engine.record import replace
from kubectl_kpolicy.output.rows import CLUSTER, Row

from .cache import ClusterCache, Problem, Trouble
from .knowledge import Sight, known
from .resources import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from engine.errors import EngineError
    from engine.model import Object
    from kubectl_kpolicy.output.rows import Listing

    from .cache import Change
    from .sources import Source

T = TypeVar("T")


class BesideCache(ClusterCache):
    """The caches of several clusters as one, `members` by context.

    A resource is known where it is of all clusters that can be asked, and what stands in the way of one is told under its name.
    """

    def __init__(self, members: Mapping[str, ClusterCache]) -> None:
        super().__init__()
        self.members = members
        self.left_out = ChainMap(*(one.left_out for one in members.values()))
        self._told: dict[tuple[str, str], dict[str, tuple[Row, Row]]] = {}

    def objects(self, resource: str) -> list[Object]:
        """Return the objects of a resource, of one cluster after the other."""
        return [obj for one in self.members.values() for obj in one.objects(resource)]

    def version(self, *resources: str) -> int:
        """Return a number that changes whenever one of the resources does in one of the clusters."""
        return sum(one.version(*resources) for one in self.members.values())

    def is_synced(self, resource: str) -> bool:
        """Tell whether everything of a resource was read of all clusters that can be asked, and of one at least."""
        synced = [one.is_synced(resource) for one in self.members.values()]
        waits = [one.is_awaited(resource) for one in self.members.values()]
        return any(synced) and not any(waits)

    def problem(self, resource: str) -> Problem | None:
        """Return what keeps a resource from being read in the first cluster that has a problem with it."""
        for name, one in self.members.items():
            found = one.problem(resource)
            if found is not None:
                return replace(found, message=f"{name} is unknown: {found.message}")
        return None

    def seen_at(self, resource: str) -> datetime | None:
        """Return when a resource was last known to be whole in all clusters."""
        seen = [one.seen_at(resource) for one in self.members.values()]
        return min(filter(None, seen)) if all(seen) else None

    def on_change(self, listener: Callable[[Change], None]) -> None:
        """Tell a listener of every change in one of the clusters."""
        for one in self.members.values():
            one.on_change(listener)

    def rows(self, listing: Listing, now: datetime) -> list[Row]:
        """Return the rows of all clusters; of a row that is the same as before the same one."""
        return [
            row
            for name, one in self.members.items()
            for row in self._rows_of(name, listing, listing.rows(one, now))
        ]

    def _rows_of(self, name: str, listing: Listing, rows: Sequence[Row]) -> list[Row]:
        before, made = self._told.get((name, listing.noun), {}), {}
        for row in rows:
            found = before.get(row.key)
            if found is None or found[0] is not row:
                found = (row, of_cluster(name, row, partial(getattr, row, "object")))
            made[row.key] = found
        self._told[name, listing.noun] = made
        return [mine for _, mine in made.values()]


def of_cluster(name: str, row: Row, make: Callable[[], Object]) -> Row:
    """Return a row of one cluster as it stands among those of others."""
    return Row(f"{name} {row.key}", {**row.cells, CLUSTER.id: name}, make=make)


def with_cluster(listing: Listing) -> Listing:
    """Return a listing with a column for the cluster in front, by which it can be grouped."""
    return replace(
        listing, columns=(CLUSTER, *listing.columns), groups=(*listing.groups, CLUSTER.id)
    )


def beside(listing: Listing) -> Listing:
    """Return a listing whose rows are those of all clusters of a BesideCache."""

    def rows(world: ClusterCache, now: datetime) -> Sequence[Row]:
        assert isinstance(world, BesideCache)
        return world.rows(listing, now)

    return replace(with_cluster(listing), rows=rows)


def each(world: ClusterCache) -> Mapping[str, ClusterCache]:
    """Return the caches of single clusters, by context; the one of a single cluster has no name."""
    return world.members if isinstance(world, BesideCache) else {"": world}


def unknown(world: ClusterCache, listing: Listing, now: datetime) -> list[tuple[str, str]]:
    """Return the clusters of which not all of a listing is known, each with the reason; none where there is one cluster."""
    if not isinstance(world, BesideCache):
        return []
    found = {name: known(one, listing) for name, one in world.members.items()}
    return [
        (name, one.said(now) or one.brief(now))
        for name, one in found.items()
        if one.sight is not Sight.WHOLE
    ]


class BesideSource:
    """Several sources as one, by context; the time is that of the first."""

    def __init__(self, members: Mapping[str, Source]) -> None:
        self.members = members
        self.name = ",".join(members)
        self.world: ClusterCache = BesideCache({name: one.world for name, one in members.items()})

    def now(self) -> datetime:
        """Return the instant that the clusters are looked at."""
        return next(iter(self.members.values())).now()

    async def start(self) -> None:
        """Begin to fill all caches."""
        await asyncio.gather(*(one.start() for one in self.members.values()))

    async def refresh(self) -> None:
        """Read again what is not watched, of all clusters that answer; raises KubeError where none does."""
        found = await asyncio.gather(
            *(one.refresh() for one in self.members.values()), return_exceptions=True
        )
        failed = [one for one in found if isinstance(one, BaseException)]
        for one in failed:
            if not isinstance(one, KubeError) or len(failed) == len(self.members):
                raise one

    async def close(self) -> None:
        """Stop."""
        await asyncio.gather(*(one.close() for one in self.members.values()))


class AbsentSource:
    """Stands for a cluster that cannot even be asked, because of what the kubeconfig says about it."""

    def __init__(self, name: str, error: EngineError, now: Callable[[], datetime]) -> None:
        self.name, self.now = name, now
        self.world = ClusterCache()
        self._error = error
        for resource in RESOURCES:
            self.world.hindered(resource, Problem(Trouble.FAILED, error.message, error.help))

    async def start(self) -> None:
        """Do nothing."""

    async def refresh(self) -> None:
        """Raise what is in the way."""
        raise KubeError(self._error.message, help=self._error.help)

    async def close(self) -> None:
        """Do nothing."""
