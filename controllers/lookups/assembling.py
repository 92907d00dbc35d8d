"""Puts the sources together: for a process in the cluster, and for a person's command line.

Apart from `answering` so that who only wants services or a registry does not need a cluster.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from controllers.kube.clock import SystemClock
from controllers.kube.errors import KubeError
from controllers.kube.informers import Informers
from controllers.kube.kinds import SECRETS
from engine.images import DOCKER_HUB

from .addresses import networks
from .answering import Lookups
from .cluster import MOST_BYTES, ClusterSource
from .egress import DEFAULT_RULES, EgressRules, Gate
from .entries import Entries
from .registry.client import Registry
from .registry.images import Images
from .registry.keychain import NOTHING, Keychain, docker_keychain, joined, keychain_of_secret
from .registry.verified import VerifiedImages
from .services import ServiceSource
from .trusted_roots import TrustedRoots

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from controllers.kube.client import Client
    from controllers.kube.clock import Clock
    from controllers.kube.kinds import Discovery
    from engine.images import RegistryDefaults

PERSON = EgressRules(networks=networks(("127.0.0.0/8", "::1/128")))
"""What a command line may call besides: one's own machine, on which the registry and the services of a try-out run."""

_KEPT_SECONDS = 30.0
_MOST_KEPT = 1024


def for_cluster(
    client: Client,
    discovery: Discovery,
    *,
    namespace: str,
    informers: Informers | None = None,
    rules: EgressRules = DEFAULT_RULES,
    defaults: RegistryDefaults = DOCKER_HUB,
    most_bytes: int = MOST_BYTES,
    pull_secrets: tuple[str, ...] = (),
    clock: Clock | None = None,
    secrets: Client | None = None,
) -> Lookups:
    """Return the answers of a process in the cluster.

    `namespace` is the engine's own, where bare names of pull secrets mean something; `pull_secrets` are used for every
    image, and `secrets` reads them where `client` may not. Close it when done; `informers` that are handed in stay open.
    """
    gate = Gate(rules)
    cluster = ClusterSource(client, discovery, most_bytes=most_bytes, clock=clock)
    services = ServiceSource(gate)
    read = secret_reader(secrets or client, namespace, always=pull_secrets, clock=clock)
    registry = Registry(gate, secrets=read, clock=clock)
    watching = informers or Informers(client, clock=clock)
    return Lookups(
        cluster=cluster,
        services=services,
        images=Images(registry, defaults=defaults, verified=VerifiedImages(clock)),
        entries=Entries(watching, discovery, cluster, services, clock=clock),
        gate=gate,
        trust=TrustedRoots(gate, clock=clock),
        also_close=() if informers else (watching.close,),
    )


def for_person(
    *,
    client: Client | None = None,
    discovery: Discovery | None = None,
    registry: bool = False,
    rules: EgressRules = PERSON,
    environment: Mapping[str, str] = os.environ,
    home: Path | None = None,
) -> Lookups:
    """Return the answers of a command line: of a cluster where one was named, of registries where they may be asked."""
    gate = Gate(rules)
    images = trust = None
    if registry:
        trust = TrustedRoots(gate)
        keychain = docker_keychain(environment, home or Path.home())
        read = secret_reader(client, "kyverno") if client else None
        images = Images(Registry(gate, keychain=keychain, secrets=read))
    if client is None or discovery is None:
        return Lookups(images=images, gate=gate, trust=trust)
    cluster = ClusterSource(client, discovery)
    services = ServiceSource(gate)
    watching = Informers(client)
    return Lookups(
        cluster=cluster,
        services=services,
        images=images,
        entries=Entries(watching, discovery, cluster, services),
        gate=gate,
        trust=trust,
        also_close=(watching.close,),
    )


def secret_reader(
    client: Client, namespace: str, *, always: tuple[str, ...] = (), clock: Clock | None = None
) -> Callable[[tuple[str, ...]], Awaitable[Keychain]]:
    """Return what reads pull secrets, `namespace/name` or bare names of `namespace`; those we may not read hold nothing.

    What was read counts for half a minute: an image is several requests, and each needs it.
    """
    clock = clock or SystemClock()
    kept: dict[tuple[str, ...], tuple[float, Keychain]] = {}

    async def read(names: tuple[str, ...]) -> Keychain:
        until, known = kept.get(names, (0.0, NOTHING))
        if until > clock.monotonic():
            return known
        if len(kept) >= _MOST_KEPT:
            kept.clear()
        found = await fetched(names)
        kept[names] = (clock.monotonic() + _KEPT_SECONDS, found)
        return found

    async def fetched(names: tuple[str, ...]) -> Keychain:
        found = []
        for text in dict.fromkeys((*names, *always)):
            place, slash, name = text.rpartition("/")
            try:
                secret = await client.get(SECRETS, name, place if slash else namespace)
            except KubeError:
                continue
            found.append(keychain_of_secret(secret))
        return joined(found)

    return read
