"""Puts the sources together: for a process in the cluster, and for a person's command line.

Apart from `answering` so that who only wants services or a registry does not need a cluster.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from controllers.kube.clock import Clock, SystemClock
from controllers.kube.errors import KubeError
from controllers.kube.kinds import SECRETS
from controllers.kube.reflector import Informers
from engine.errors import EngineError
from engine.lang import json

from .addresses import networks
from .answering import Lookups
from .cluster import ClusterSource, Entries
from .egress import DEFAULT_RULES, EgressRules, Gate, Request
from .errors import OutsideError
from .registry.client import Registry
from .registry.images import Images, VerifiedImages
from .registry.keychain import NOTHING, Keychain, docker_keychain, joined, keychain_of_secret
from .services import ServiceSource

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from controllers.kube.client import Client
    from controllers.kube.discovery import Discovery
    from engine.evaluate import TrustLookup
    from engine.model import Json

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
    pull_secrets: tuple[str, ...] = (),
    clock: Clock | None = None,
    secrets: Client | None = None,
) -> Lookups:
    """Return the answers of a process in the cluster.

    `namespace` is the engine's own, where bare names of pull secrets mean something; `pull_secrets` are used for every
    image, and `secrets` reads them where `client` may not. Close it when done; `informers` that are handed in stay open.
    """
    gate = Gate(rules)
    cluster = ClusterSource(client, discovery, clock=clock)
    services = ServiceSource(gate)
    read = secret_reader(secrets or client, namespace, always=pull_secrets, clock=clock)
    registry = Registry(gate, secrets=read, clock=clock)
    watching = informers or Informers(client, clock=clock)
    return Lookups(
        cluster=cluster,
        services=services,
        images=Images(registry, verified=VerifiedImages(clock)),
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
            with suppress(KubeError):
                secret = await client.get(SECRETS, name, place if slash else namespace)
                found.append(keychain_of_secret(secret))
        return joined(found)

    return read


# Trusted roots from TUF repositories that policies name: fetched through the gate, verified by the root that they bring.
#
# The package that verifies is that of the TUF project, which comes with the extra `sigstore`; without it such a policy's
# attestors vouch for nothing, and say why. What was fetched counts for an hour.

SECONDS: Final = 3600.0
MOST_KEPT: Final = 64
_MOST_BYTES: Final = 4 * 1024 * 1024
_TARGET: Final = "trusted_root.json"


class TrustedRoots:
    """Answers with trusted roots, from memory where they are fresh."""

    def __init__(self, gate: Gate, *, clock: Clock | None = None) -> None:
        self._gate = gate
        self._clock = clock or SystemClock()
        self._kept: dict[tuple[str, str], tuple[float, Json]] = {}

    async def root(self, lookup: TrustLookup) -> Json:
        """Return the trusted root of a repository; raises EngineError where it cannot be had or does not verify."""
        if lookup.within and not self._gate.rules.namespaced_services:
            raise EngineError("policies of namespaces may not name repositories of trust")
        if not lookup.mirror or not lookup.root:
            raise EngineError("a TUF repository needs both `mirror` and `root.data`")
        key = (lookup.mirror, lookup.root)
        until, known = self._kept.get(key, (0.0, None))
        if until > self._clock.monotonic():
            return known
        text = await asyncio.to_thread(_verified, *key, self._gate, asyncio.get_running_loop())
        found: Json = json.load(text)
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        self._kept[key] = (self._clock.monotonic() + SECONDS, found)
        return found


def _verified(mirror: str, root: str, gate: Gate, loop: asyncio.AbstractEventLoop) -> bytes:
    """Walk a repository from a root to its trusted root; to be called beside the loop, which fetches."""
    try:
        from tuf.api.exceptions import DownloadHTTPError
        from tuf.ngclient.fetcher import FetcherInterface
        from tuf.ngclient.updater import Updater
    except ImportError as error:
        raise EngineError("TUF repositories need the extra `sigstore`") from error

    class Fetcher(FetcherInterface):
        """Fetches through the gate."""

        def _fetch(self, url: str) -> Iterator[bytes]:
            asked = gate.send(Request("GET", url), limit=_MOST_BYTES)
            received = asyncio.run_coroutine_threadsafe(asked, loop).result()
            if received.status != 200:
                raise DownloadHTTPError("not there", received.status)
            return iter((received.body,))

    base = mirror.rstrip("/")
    with tempfile.TemporaryDirectory(prefix="kpolicy-tuf-") as folder:
        try:
            updater: Any = Updater(
                folder, base, folder, f"{base}/targets", Fetcher(), bootstrap=root.encode()
            )
            target = updater.get_targetinfo(_TARGET)
            if target is None:
                raise OutsideError(f"the TUF repository has no {_TARGET}")
            return Path(updater.download_target(target)).read_bytes()
        except EngineError:
            raise
        except Exception as error:  # the package raises many kinds for foreign data
            raise OutsideError(
                f"the TUF repository does not verify: {type(error).__name__}"
            ) from error
