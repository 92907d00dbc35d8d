"""What a parent and its workers start alike: the runtime, from options and a client, and the loops on it."""

from __future__ import annotations

import gc
import logging
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from controllers.kube import Discovery, Kind, KubeError, SystemClock
from controllers.runtime.afterwork import Afterwork
from controllers.runtime.entropy import fixed_key, shared_key
from controllers.runtime.metrics import Metrics
from controllers.runtime.process import NoLoops, Runtime
from controllers.runtime.world import World

if TYPE_CHECKING:
    from datetime import datetime

    from controllers.kube import Client, Clock
    from controllers.kube.informers import Informers
    from controllers.runtime.evaluating import Resolver
    from controllers.runtime.options import Options
    from controllers.runtime.process import Loops

SELF = Kind("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False)
_log = logging.getLogger(__name__)


class ClockAhead(SystemClock):
    """The machine's clock, moved forward."""

    def __init__(self, seconds: float) -> None:
        self._ahead = timedelta(seconds=seconds)

    def now(self) -> datetime:
        """Return the moved instant, aware, in UTC."""
        return super().now() + self._ahead


def clock_of(options: Options) -> Clock:
    """Return the clock that options ask for."""
    return ClockAhead(options.clock_ahead) if options.clock_ahead else SystemClock()


async def make_runtime(
    options: Options,
    client: Client,
    clock: Clock,
    informers: Informers,
    *,
    key: bytes = b"",
    user: str = "",
) -> Runtime:
    """Return the runtime of a process; raises KubeError when the API server cannot be asked.

    `key` and `user` are given where a parent knows them already.
    """
    discovery = Discovery(client)
    await discovery.refresh()
    metrics = Metrics()
    world = World(
        discovery, metrics, exceptions=options.exceptions, force_ignore=options.force_ignore
    )
    return Runtime(
        client=client,
        clock=clock,
        world=world,
        metrics=metrics,
        resolver=_resolver(client, discovery),
        informers=informers,
        afterwork=Afterwork(metrics),
        key=key or await _key(options, client),
        namespace=options.namespace,
        identity=options.identity or "kpolicy",
        user=user or await _user(client),
        options=options,
    )


def loops_of(runtime: Runtime) -> Loops:
    """Return the loops of a process."""
    from controllers import loops

    start: Any = getattr(loops, "start", None)
    if start is None:
        _log.warning("there are no loops; requests are answered and nothing else is done")
        return NoLoops()
    made: Loops = start(runtime)
    return made


def settle_memory() -> None:
    """Take everything that is loaded by now out of garbage collection, and let it run rarely (performance.md section 7).

    What a request makes is freed when it ends, by counting references; only cycles wait for a collection.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


async def _key(options: Options, client: Client) -> bytes:
    if options.seed:
        return fixed_key(options.seed)
    return await shared_key(client, options.namespace)


async def _user(client: Client) -> str:
    with suppress(KubeError):
        status = await client.review(SELF, {})
        return str((status.get("userInfo") or {}).get("username") or "")
    return ""


def _resolver(client: Client, discovery: Discovery) -> Resolver:
    from controllers.lookups.answering import Lookups
    from controllers.lookups.cluster import ClusterSource

    return Lookups(cluster=ClusterSource(client, discovery))
