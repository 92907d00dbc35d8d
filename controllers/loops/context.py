"""What every loop is given: the cluster as known, the client to change it, the clock, chance, and where figures go.

Made once at the start and handed to each loop, so that a test can make one of memory and a clock that stands still.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from controllers.kube import Client, Clock, Conflict, Kind, NotFound
from controllers.kube.kinds import CLASSIC_REPORTS, NAMESPACES, ReportKinds
from controllers.runtime.entropy import seed_of
from controllers.store.namespaces import labels_of
from engine.evaluate import Inputs
from engine.model import Object, Policy, Review, review_of
from engine.record import replace as replaced

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from controllers.kube.events import Recorder
    from controllers.kube.reflector import Informers
    from controllers.runtime.cluster_cache import ClusterCache
    from controllers.runtime.evaluating import Resolver
    from controllers.runtime.metrics import Metrics
    from controllers.runtime.policy_cache import Snapshot
    from controllers.runtime.process import Post
    from engine.manifests import Trust


@dataclass(frozen=True, slots=True)
class Options:
    """What operators may set. Durations are seconds; `omitted_events` are reasons of Events that are not written.

    `chooses_reports` says that whoever keeps reports finds them by what their results say.
    """

    background_scan: bool = True
    scan_interval: float = 3600.0
    scan_delay: float = 2.0
    scan_workers: int = 2
    report_delay: float = 1.0
    request_workers: int = 10
    report_kinds: ReportKinds = CLASSIC_REPORTS
    chooses_reports: bool = False
    ttl_interval: float = 60.0
    kinds_interval: float = 60.0
    omitted_events: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class LoopContext:
    """What loops are given: `key` is what chance follows from, `post` sends to addresses outside."""

    cache: ClusterCache
    client: Client
    clock: Clock
    resolver: Resolver
    metrics: Metrics
    informers: Informers
    recorder: Recorder
    key: bytes = field(repr=False)
    namespace: str = "kyverno"
    trust: Trust | None = None
    post: Post | None = None
    options: Options = field(default_factory=Options)

    @property
    def snapshot(self) -> Snapshot:
        """The policies in force now."""
        return self.cache.policies.snapshot

    @property
    def policies(self) -> Mapping[str, Policy]:
        """The policies in force now, by key."""
        return self.snapshot.by_key

    def inputs(self, seed: str, now: datetime | None = None) -> Inputs:
        """Return the inputs of an evaluation whose chance follows from `seed`."""
        return Inputs(
            now=now or self.clock.now(),
            seed=seed_of(self.key, seed),
            trust=self.trust,
            resolve_values=self.cache.resolve_values,
            is_stored=True,
            registry=self.cache.configuration.registry,
        )

    async def kind_of(self, api_version: str, kind: str) -> Kind:
        """Return where objects of a kind are kept, asking the server again for one that is new; raises NotFound."""
        discovery = self.cache.discovery
        if discovery.find(api_version, kind) is None:
            await discovery.refresh()
        found = discovery.find(api_version, kind)
        if found is None:
            raise NotFound(f"the server has no kind `{kind}` in `{api_version}`")
        return found

    async def kind_of_object(self, obj: Mapping[str, Any]) -> Kind:
        """Return where an object is kept; raises NotFound for a kind that the server does not have."""
        return await self.kind_of(str(obj.get("apiVersion") or ""), str(obj.get("kind") or ""))

    async def live(self, target: Mapping[str, Any]) -> Object | None:
        """Return the very object that a record names (by `apiVersion`, `kind`, `namespace`, `name`, `uid`) as it is now.

        None where it is gone or another one has its name; raises KubeError.
        """
        try:
            kind = await self.kind_of_object(target)
            name, namespace = str(target.get("name")), str(target.get("namespace") or "")
            found = await self.client.get(kind, name, namespace)
        except NotFound:
            return None
        return found if (found.get("metadata") or {}).get("uid") == target.get("uid") else None

    async def drop(self, kind: Kind, obj: Object, propagation: str = "") -> bool:
        """Delete this very object; return whether it was there still. Raises KubeError."""
        metadata = obj["metadata"]
        name, namespace, uid = (
            str(metadata.get(key) or "") for key in ("name", "namespace", "uid")
        )
        try:
            await self.client.delete(kind, name, namespace, uid=uid, propagation=propagation)
        except (NotFound, Conflict):
            return False
        return True

    async def write_status(
        self, kind: Kind, name: str, namespace: str, status: Object, **seen: str
    ) -> None:
        """Write fields of a status; nothing where the object is gone. Raises KubeError, Conflict where its `seen` metadata is other."""
        body = {**({"metadata": seen} if seen else {}), "status": status}
        with suppress(NotFound):
            await self.client.patch(kind, name, namespace, body, subresource="status")

    async def review(self, obj: Object, operation: str = "CREATE") -> Review:
        """Return what rules are asked about an object of the cluster without a request, as nobody's."""
        namespace = str((obj.get("metadata") or {}).get("namespace") or "")
        labels = await self.namespace_labels(namespace)
        found = review_of(obj, operation=operation, namespace_labels=labels)
        kind = self.cache.discovery.find(str(obj["apiVersion"]), found.kind)
        if kind is None or kind.plural == found.resource:
            return found
        # only the server knows the plural of this kind, by which match constraints name it
        named = {"group": kind.group, "version": kind.version, "resource": kind.plural}
        return replaced(found, request={"resource": named})

    async def namespace_labels(self, name: str) -> Mapping[str, str]:
        """Return the labels of a namespace, asked for when it is not known; of one that is gone, none."""
        labels = self.cache.namespaces.labels(name) if name else {}
        if labels is not None:
            return labels
        try:
            return labels_of(await self.client.get(NAMESPACES, name))
        except NotFound:
            return {}
