"""Answers all questions of one round at once, each under its own limits; what cannot be had is a failed answer.

For webhook, loops and command line: `resolve` is what `controllers.runtime.evaluating` calls between two evaluations.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Protocol

from controllers.kube.errors import NotFound
from engine import evaluate
from engine.errors import EngineError

from .errors import MissingError
from .room import Overloaded, Room

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping

    from engine.images import ImageData
    from engine.model import Json
    from engine.model.result import ImageFinding

    from .cluster import ClusterSource, Entries
    from .egress import Gate
    from .services import ServiceSource

PARALLEL = 32
MOST_WAITING = 1024
"""Questions to the outside that wait."""
MOST_ASKED = 512
"""Questions to the outside in one round: an object can name thousands of images, each of a registry that never answers."""
SECONDS = 20.0

_log = logging.getLogger(__name__)
_SHARED = (
    evaluate.ServiceLookup,
    evaluate.ImageLookup,
    evaluate.SignatureLookup,
    evaluate.TrustLookup,
)
"""Questions that several requests may have answered by one call. INVARIANT: none about the cluster, so that a request never
sees the cluster as it was before that request."""
_SLOW = (*_SHARED, evaluate.HostLookup, evaluate.GlobalLookup)
"""Questions whose answers others are in no hurry to give; they wait for each other, and the cluster's for none of them."""

_TOO_MANY = evaluate.Answer.failed("too many questions to the outside wait for an answer; try again later")  # fmt: skip


class ImageSource(Protocol):
    """Answers from registries."""

    async def image(self, lookup: evaluate.ImageLookup) -> Json:
        """Return the map of an imageRegistry entry (row A-54)."""

    async def signatures(self, lookup: evaluate.SignatureLookup) -> ImageData:
        """Return digest, signatures and attestations (row A-88)."""

    def confirm(self, findings: Iterable[ImageFinding]) -> None:
        """Remember images that policies verified, where they say under what."""


class TrustSource(Protocol):
    """Answers from TUF repositories."""

    async def root(self, lookup: evaluate.TrustLookup) -> Json:
        """Return the trusted root of a repository."""


class Lookups:
    """Answers questions from the sources there are; where there is none for a question, nobody is there to ask."""

    def __init__(
        self,
        *,
        cluster: ClusterSource | None = None,
        services: ServiceSource | None = None,
        images: ImageSource | None = None,
        entries: Entries | None = None,
        gate: Gate | None = None,
        trust: TrustSource | None = None,
        parallel: int = PARALLEL,
        seconds: float = SECONDS,
        also_close: tuple[Callable[[], Coroutine[Any, Any, None]], ...] = (),
    ) -> None:
        self._cluster, self._services = cluster, services
        self._images, self._entries, self._gate = images, entries, gate
        self._trust = trust
        self._cluster_room = asyncio.Semaphore(parallel)
        self._outside = Room(parallel, MOST_WAITING)
        self._seconds = seconds
        self._also_close = also_close
        self._running: dict[tuple[str, evaluate.Lookup], asyncio.Task[evaluate.Answer]] = {}

    async def resolve(
        self, lookups: Collection[evaluate.Lookup], tenant: str = ""
    ) -> Mapping[evaluate.Lookup, evaluate.Answer]:
        """Return an answer to each of `lookups`; nothing is raised for what a server or a policy does.

        `tenant` is on whose account they go: others do not wait for those of one.
        """
        slow: list[evaluate.Lookup] = [one for one in lookups if isinstance(one, _SLOW)]
        refused = dict.fromkeys(slow[MOST_ASKED:], _TOO_MANY)
        wanted = [lookup for lookup in lookups if lookup not in refused]
        answers = await asyncio.gather(*(self._one(lookup, tenant) for lookup in wanted))
        return {**refused, **dict(zip(wanted, answers, strict=True))}

    def confirm(self, findings: Iterable[ImageFinding]) -> None:
        """Remember images that policies verified (row A-90b)."""
        if self._images:
            self._images.confirm(findings)

    async def close(self) -> None:
        """Stop what is under way, and release connections."""
        for task in list(self._running.values()):
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        for close in self._also_close:
            await close()
        if self._gate is not None:
            await self._gate.close()

    async def _one(self, lookup: evaluate.Lookup, tenant: str) -> evaluate.Answer:
        if not isinstance(lookup, _SHARED):
            return await self._answer(lookup, tenant)
        # INVARIANT: who shares an answer waits in the queue of one tenant, and in nobody else's
        key = (tenant, lookup)
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = asyncio.create_task(self._answer(lookup, tenant))
            task.add_done_callback(lambda _: self._running.pop(key, None))
        # Whoever asked first may be gone before the others have their answer.
        return await asyncio.shield(task)

    async def _answer(self, lookup: evaluate.Lookup, tenant: str) -> evaluate.Answer:
        source = self._source(lookup)
        if source is None:
            return evaluate.Answer.absent()
        is_slow = isinstance(lookup, _SLOW)
        try:
            async with asyncio.timeout(self._seconds):
                async with self._outside.place(tenant) if is_slow else self._cluster_room:
                    return evaluate.Answer.found(await source)
        except Overloaded:
            return _TOO_MANY
        except EngineError as error:
            is_missing = isinstance(error, (NotFound, MissingError))
            return evaluate.Answer.failed(error.message, is_missing=is_missing)
        except TimeoutError:
            return evaluate.Answer.failed("there was no answer in time")
        except Exception:
            # Foreign data is decoded behind this border; a mistake there must fail one rule, not the process.
            _log.exception("a look-up broke: %s", type(lookup).__name__)
            return evaluate.Answer.failed("the answer could not be read")
        finally:
            source.close()

    def _source(self, lookup: evaluate.Lookup) -> Coroutine[Any, Any, Any] | None:
        """Return the call that answers, None where there is nobody to ask."""
        match lookup:
            case evaluate.ConfigMapLookup() if self._cluster:
                return self._cluster.config_map(lookup)
            case evaluate.ApiCallLookup() if self._cluster:
                return self._cluster.call(lookup)
            case evaluate.ObjectLookup() if self._cluster:
                return self._cluster.object(lookup)
            case evaluate.ListLookup() if self._cluster:
                return self._cluster.objects(lookup)
            case evaluate.ServiceLookup() if self._services:
                return self._services.call(lookup)
            case evaluate.ImageLookup() if self._images:
                return self._images.image(lookup)
            case evaluate.SignatureLookup() if self._images:
                return self._images.signatures(lookup)
            case evaluate.TrustLookup() if self._trust:
                return self._trust.root(lookup)
            case evaluate.GlobalLookup() if self._entries:
                return self._entries.entry(lookup)
            case evaluate.HostLookup() if self._gate:
                return _is_external(self._gate, lookup.host)
        return None


async def _is_external(gate: Gate, host: str) -> bool:
    """Tell whether a host name leads outside (row F-08)."""
    from engine.lang.jmes.formats import is_external  # here: few policies ask so

    return is_external(await gate.addresses_of(host))
