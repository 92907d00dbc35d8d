"""What the leader keeps in step with the policies: webhook configurations, and the certificates they trust (rows W-01 to W-04).

One desired state, computed from the cache as it is, compared with what the cluster has, written where it differs: after a
change of a policy, a kind or a setting, and after somebody else changed what is ours.
"""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from controllers.kube import Client, Conflict, Invalid, KubeError, NotFound, find
from controllers.kube.accounts import SPOKEN_AS, Job
from controllers.kube.kinds import CONFIG_MAPS, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from controllers.kube.reflector import Selection
from controllers.store.policies import content_hash, is_policy
from engine import vocabulary

from .accepted_webhooks import AcceptedWebhooks, fitting, is_asked_by, kind_of
from .address import Address
from .caller import Callers
from .certificates import Certificates, renewed
from .configurations import MANAGED_BY, configurations
from .secrets import ensure_certificates, write_certificates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from controllers.kube.kinds import Kind
    from controllers.kube.store import Store
    from controllers.runtime.cluster_cache import Change
    from controllers.runtime.policy_cache import Snapshot
    from controllers.runtime.process import Runtime
    from engine.model import Object

    from .path_controller import PathController

SETTLE: Final = 0.1
"""Seconds in which changes gather, so that a hundred policies are one change of a configuration."""

CALM: Final = 1.0
"""Seconds without a change after which the next is written at once: a policy counts from when the configuration has it."""

RETRY: Final = 2.0
RENEWAL_CHECK: Final = 3600.0
OVERLAP: Final = 10.0
"""Seconds in which API servers take over a new authority before anything signed by it is shown to them."""

_SELECTOR: Final = ",".join(f"{key}={value}" for key, value in MANAGED_BY.items())
_log = logging.getLogger(__name__)


class WebhookController:
    """Keeps configurations and certificates; `lead` does it for as long as this replica leads.

    `names` are the host names that the certificate is for, `loaded` is called with certificates that were made anew, `paths` has
    the paths that the API server is told to call.
    """

    def __init__(
        self,
        runtime: Runtime,
        names: Sequence[str],
        url: str,
        loaded: Callable[[Certificates], None],
        paths: PathController | None = None,
    ) -> None:
        self._runtime = runtime
        self._names = names
        self._url = url
        self._loaded = loaded
        self._paths = paths
        self._accepted = AcceptedWebhooks(runtime.client)
        self._seen: dict[Kind, Store] = {}
        self._kept: Certificates | None = None
        self._stale = asyncio.Event()
        self._spreading = asyncio.Event()
        self._bundle, self._bundle_since = b"", 0.0
        runtime.cache.on_change.append(self._on_change)
        runtime.cache.on_listed.append(lambda _: self.mark())

    def mark(self) -> None:
        """Have everything compared again."""
        self._stale.set()

    def _on_change(self, change: Change) -> None:
        if change.kind == CONFIG_MAPS or is_policy(change.object):
            self.mark()

    async def lead(self) -> None:
        """Keep everything in step until cancelled."""
        kinds = (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS)
        selection = Selection(labels=_SELECTOR)
        informers = self._runtime.informers
        self._seen = {kind: informers.acquire(kind, selection) for kind in kinds}
        stops = [
            store.on_change(lambda _: self.mark(), replay=False) for store in self._seen.values()
        ]
        self.mark()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow())
                group.create_task(self._remember_renewal())
                group.create_task(self._follow_up())
                if self._paths is not None:
                    group.create_task(self._paths.lead())
        finally:
            self._seen, self._kept = {}, None
            for kind, stop in zip(kinds, stops, strict=True):
                stop()
                await informers.release(kind, selection)

    async def _follow(self) -> None:
        clock = self._runtime.clock
        worked_at = float("-inf")
        while True:
            await self._stale.wait()
            if clock.monotonic() - worked_at < CALM:
                await clock.sleep(SETTLE)
            worked_at = clock.monotonic()
            self._stale.clear()
            try:
                await self.bring_in_step()
            except KubeError as error:
                text = (
                    error.message if self._paths is None else self._paths.shared.hide(error.message)
                )
                _log.warning("the webhook configurations are not in step: %s", text)
                self._stale.set()
                await clock.sleep(RETRY)

    async def _remember_renewal(self) -> None:
        while True:
            await self._runtime.clock.sleep(RENEWAL_CHECK)
            self.mark()

    async def _follow_up(self) -> None:
        """Have everything compared again once API servers have taken over what was written."""
        while True:
            await self._spreading.wait()
            self._spreading.clear()
            await self._runtime.clock.sleep(OVERLAP)
            self.mark()

    async def bring_in_step(self) -> None:
        """Write what differs, configurations first; raises KubeError."""
        runtime = self._runtime
        if not runtime.cache.is_ready:
            return
        now, namespace = runtime.clock.now(), runtime.namespace
        # A policy counts from when it is in a configuration, which waits for no reading of what is known.
        known = self._kept
        written = await self._configure(known) if known is not None else b""
        kept = await ensure_certificates(runtime.client, namespace, self._names, now)
        bundle = written if kept == known else await self._configure(kept)
        self._kept = kept
        has_spread = self._has_spread(bundle)
        fresh = renewed(kept, self._names, now, trusted=bundle if has_spread else b"")
        if not has_spread and renewed(kept, self._names, now, trusted=bundle) is not kept:
            self._spreading.set()
        if fresh is not kept:
            # INVARIANT: what is not stored is shown to nobody; who was quicker has stored another one.
            if not await write_certificates(runtime.client, namespace, fresh):
                fresh = kept
            self.mark()
        self._loaded(fresh)

    def _has_spread(self, bundle: bytes) -> bool:
        """Tell whether API servers have had the time to take over a bundle that is in force.

        Counted from when this leader first wrote it or found it written: what others did before is not known here.
        """
        now = self._runtime.clock.monotonic()
        if bundle != self._bundle:
            self._bundle, self._bundle_since = bundle, now
        return now - self._bundle_since >= OVERLAP

    async def _configure(self, certificates: Certificates) -> bytes:
        """Write the configurations; return the bundle that all of them carry."""
        runtime = self._runtime
        snapshot = runtime.cache.policies.snapshot
        address = self._address(certificates)
        spoken_as = json.dumps({job.value: runtime.user_of(job) for job in Job})

        def made(*, forwards: bool) -> list[Object]:
            cache = runtime.cache
            documents = configurations(
                snapshot.routes, cache.discovery, cache.configuration, address, forwards=forwards
            )
            for document in documents:
                document["metadata"]["annotations"][SPOKEN_AS] = spoken_as
            return documents

        left_out: list[Object] = []
        for number, document in enumerate(made(forwards=True)):

            def plain(at: int = number) -> Object:
                return made(forwards=False)[at]

            left_out += await self._put(document, plain)
        runtime.configured.set(_digests(snapshot, left_out))
        if self._paths is not None and address.shared is not None:
            await self._paths.written(address.shared.current)
        return certificates.bundle

    def _address(self, certificates: Certificates) -> Address:
        """Return where the API server is to call us now."""
        runtime, paths = self._runtime, self._paths
        if paths is None:
            return Address(certificates.bundle, runtime.namespace, url=self._url)
        shared = paths.to_write()
        callers = Callers(now=runtime.clock.now, trusts_path=runtime.options.trusts_path)
        callers.take(shared)
        return Address(
            certificates.bundle,
            runtime.namespace,
            url=self._url,
            shared=None if shared.authority else shared,
            callers=callers.mode.value,
        )

    async def _put(self, document: Object, plain: Callable[[], Object]) -> list[Object]:
        """Write one configuration; return the webhooks that the server does not accept and that are left out.

        INVARIANT: what one policy says never keeps another one from being enforced. `plain` is the configuration without the
        conditions that we test as well.
        """
        document, large = fitting(document)
        if large:
            _log.warning("too large for a webhook configuration is %s", _shown(large))
        try:
            await self._write(document)
        except Invalid as error:
            taken, refused = await self._accepted.among(document, plain()["webhooks"])
            if taken == document["webhooks"]:
                raise
            _log.warning(
                "left out of a webhook configuration is %s: %s", _shown(refused), error.message
            )
            await self._write({**document, "webhooks": taken})
            return [*large, *refused]
        return large

    async def _write(self, document: Object) -> None:
        kind = kind_of(document)
        client, metadata = self._runtime.client, document["metadata"]
        store = self._seen.get(kind)
        seen = store.get(metadata["name"]) if store is not None else None
        if seen is not None:
            # What was not yet seen of it is told soon, and has everything compared again.
            with suppress(Conflict, NotFound):
                await self._bring(kind, seen, document)
                return
        # A conflict ends the round. INVARIANT: what a round ends with is what every configuration says.
        old = await find(client, kind, metadata["name"])
        if old is None:
            await client.create(kind, document)
        else:
            await self._bring(kind, old, document)

    async def _bring(self, kind: Kind, old: Object, document: Object) -> None:
        wanted = _merged(old, document)
        if wanted != old:
            await self._runtime.client.update(kind, wanted)


def _shown(webhooks: Sequence[Object]) -> str:
    return ", ".join(one["name"] for one in webhooks) or "nothing"


def _merged(old: Object, document: Object) -> Object:
    """Return the configuration as it is to be, with what others added to its metadata.

    A server leaves out an empty list.
    """
    metadata = dict(old.get("metadata") or {})
    for part in ("labels", "annotations"):
        metadata[part] = {**(metadata.get(part) or {}), **document["metadata"][part]}
    wanted = {**old, "metadata": metadata}
    if document["webhooks"] or old.get("webhooks"):
        wanted["webhooks"] = document["webhooks"]
    return wanted


def _digests(snapshot: Snapshot, left_out: Sequence[Object]) -> dict[str, str]:
    """Return the policies that are asked for by now, each with the digest of what it says."""
    return {
        key: content_hash(one.policy.raw)
        for key, one in snapshot.judged.items()
        if one.rules or not snapshot.is_native(key)
        if not any(is_asked_by(webhook, one.policy) for webhook in left_out)
    }


async def foreign_webhooks(client: Client) -> list[str]:
    """Return webhook configurations of Kyverno itself: of its label, without our annotation."""
    found = []
    for kind in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS):
        page = await client.list_all(kind, label_selector=_SELECTOR)
        found += [
            str(one["metadata"]["name"])
            for one in page.items
            if vocabulary.OWNER not in (one["metadata"].get("annotations") or {})
            and one.get("webhooks")
        ]
    return sorted(found)
