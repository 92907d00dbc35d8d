"""What a parent and its workers start alike: the runtime, from options and a client, and the loops on it."""

from __future__ import annotations

import gc
from contextlib import suppress
from typing import TYPE_CHECKING

from controllers.kube import Discovery, Kind, KubeError
from controllers.kube.clock import ServerClock
from controllers.lookups.assembling import for_cluster
from controllers.lookups.egress import read_rules
from controllers.lookups.notifying import Poster
from controllers.runtime.afterwork import Afterwork
from controllers.runtime.entropy import fixed_key, shared_key
from controllers.runtime.metrics import Metrics
from controllers.runtime.process import Runtime
from controllers.runtime.world import World

if TYPE_CHECKING:
    from controllers.kube import Client, Clock
    from controllers.kube.informers import Informers
    from controllers.lookups.egress import EgressRules
    from controllers.runtime.options import Options
    from controllers.runtime.process import Loops
    from engine.manifests import Trust

SELF = Kind("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False)


def clock_of(options: Options) -> ServerClock:
    """Return the clock of a process: the machine's, or the API server's where that is later."""
    return ServerClock(options.clock_ahead or 0.0)


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
    lookups = for_cluster(
        client,
        discovery,
        namespace=options.namespace,
        informers=informers,
        rules=_rules(options),
        pull_secrets=options.outside.pull_secrets,
        clock=clock,
    )
    poster = Poster(_rules(options))
    return Runtime(
        client=client,
        clock=clock,
        world=world,
        metrics=metrics,
        resolver=lookups,
        informers=informers,
        afterwork=Afterwork(metrics),
        key=key or await _key(options, client),
        namespace=options.namespace,
        identity=options.identity or "kpolicy",
        user=user or await _user(client),
        trust=_trust(options),
        options=options,
        post=poster.post,
        also_close=(lookups.close, poster.close),
    )


def loops_of(runtime: Runtime) -> Loops:
    """Return the loops of a process."""
    from controllers.loops import start

    return start(runtime)


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


def _rules(options: Options) -> EgressRules:
    """Return what may be called beyond the API server; raises EngineError for a network that is none."""
    given = options.outside
    return read_rules(
        networks=given.networks,
        hosts=given.hosts,
        plain_registries=given.plain_registries,
        namespaced_services=given.namespaced_services,
    )


def _trust(options: Options) -> Trust | None:
    """Return the trust in keyless signatures that was asked for; raises EngineError for a file that holds none."""
    if options.trusted_root is None:
        return None
    from engine.lang import json
    from engine.manifests import Trust

    return Trust.from_json(json.load(options.trusted_root.read_text()))
