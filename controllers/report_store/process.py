"""One store put together: database, feed, rights, certificate and socket, started in order and ended in order."""

from __future__ import annotations

import asyncio
import base64
import logging
from contextlib import AsyncExitStack, suppress
from dataclasses import astuple
from typing import TYPE_CHECKING, Any, Final

import orjson

from controllers.kube import Client, Clock, Kind, KubeError, connect, load_access
from controllers.kube.clock import ServerClock
from controllers.manifests.deploy.report_store import NAME, api_service_names
from controllers.runtime.running import ended
from controllers.webhook import certificates
from controllers.webhook.tls import ServerTls, authorities_in
from engine.errors import EngineError

from .api import Api
from .feed import Feed
from .front import Front
from .requester import FrontProxy, front_proxy
from .rights import Rights
from .storage import Storage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from .database import Session
    from .settings import Settings

UPKEEP_SECONDS: Final = 60.0
_log = logging.getLogger(__name__)


class AuthoritiesChanged(EngineError):  # noqa: N818 - says what happened; whoever runs the store starts it anew
    """The API server is known by other authorities than at the start, and the old ones must not count any more."""


class Store:
    """A store; `run` it until `stop` is set. `ready` is set when requests are answered, `port` is then known."""

    def __init__(self, settings: Settings, client: Client, clock: Clock) -> None:
        self._settings, self._client, self._clock = settings, client, clock
        self._storage = Storage(settings.database, clock)
        self._tls: ServerTls | None = None
        self.ready = asyncio.Event()
        self.port = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Serve; raises EngineError when it cannot start, or has to start anew."""
        settings = self._settings
        proxy = await front_proxy(self._client)
        async with AsyncExitStack() as stack:
            await self._storage.start()
            stack.push_async_callback(self._storage.close)
            certificates = await self._certificates()
            self._tls = ServerTls(certificates.leaf, authorities_in(proxy.authorities))
            feed = Feed(self._storage, self._clock)
            rights = Rights(self._client, self._clock, settings.namespace, settings.writers)
            api = Api(self._storage, feed, rights, self._clock)
            front = Front(
                api,
                lambda certificate, request: proxy.requester(certificate, request.headers),
                host=settings.host,
                port=settings.port,
                tls=self._tls.context,
            )
            await front.start()
            stack.push_async_callback(front.stop)
            stack.callback(feed.end_all)
            self.port = front.port
            tasks = [asyncio.create_task(work) for work in (feed.run(), self._upkeep(proxy))]
            stack.push_async_callback(ended, tasks)
            _log.info("reports are served on port %d", self.port)
            self.ready.set()
            await _first([asyncio.create_task(stop.wait()), *tasks])

    async def _certificates(self) -> certificates.Certificates:
        """Return the certificates to show, and tell the API server to trust them as far as it can be told now."""
        trusted = b""
        with suppress(KubeError):
            trusted = await trusted_bundle(self._client)
        names, now = names_for(self._settings.namespace), self._clock.now()
        found = await self._storage.within(
            lambda session: kept_certificates(session, names, now, trusted)
        )
        try:
            await announce(self._client, found.bundle)
        except KubeError as error:
            _log.warning("the APIServices cannot be told whom to trust: %s", error.message)
        return found

    async def _upkeep(self, proxy: FrontProxy) -> None:
        """Keep database, certificate and trust in order until cancelled; raises AuthoritiesChanged."""
        assert self._tls is not None
        while True:
            await self._clock.sleep(UPKEEP_SECONDS)
            try:
                await self._storage.forget()
                self._tls.load((await self._certificates()).leaf)
                is_changed = await front_proxy(self._client) != proxy
            except KubeError as error:
                _log.warning("upkeep is put off: %s", error.message)
                continue
            if is_changed:
                raise AuthoritiesChanged(
                    "the API server is known by another authority now",
                    help="start the store again, as a Deployment does by itself",
                )


async def _first(tasks: list[asyncio.Task[Any]]) -> None:
    """Wait for the first task that ends; raises what it raises."""
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    tasks[0].cancel()
    for task in done:
        task.result()


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Run a store until `stop`; raises EngineError when it cannot start."""
    clock = ServerClock()
    client = connect(load_access(settings.kubeconfig, settings.context or None), clock=clock)
    try:
        await Store(settings, client, clock).run(stop)
    finally:
        with suppress(KubeError):
            await client.close()


# The certificate that the store shows to the API server, and the APIServices that tell the API server to trust it.
#
# Authority and leaf are kept in the database, so that all replicas show the same; the account of the store needs no right to any Secret.

API_SERVICES: Final = Kind("apiregistration.k8s.io", "v1", "apiservices", "APIService", False)
_READ: Final = "SELECT value FROM identity WHERE name = 'certificates'"
_log = logging.getLogger(__name__)


def names_for(namespace: str) -> Sequence[str]:
    """Return the host names by which the API server may call the store."""
    return [f"{NAME}.{namespace}.svc", NAME, f"{NAME}.{namespace}"]


def kept_certificates(
    session: Session, names: Sequence[str], now: datetime, trusted: bytes
) -> certificates.Certificates:
    """Return the certificates in the database, made or renewed where that is due; within a transaction that writes.

    `trusted` is the authority that every APIService names by now.
    """
    found = session.rows(_READ)
    current = _unpacked(bytes(found[0][0])) if found else None
    if current is None or not certificates.is_usable(current, now):
        made = certificates.first_certificates(names, now)
    else:
        made = certificates.renewed(current, names, now, trusted=trusted)
    if made != current:
        session.run_many("DELETE FROM identity WHERE name = ?", [("certificates",)])
        session.run_many("INSERT INTO identity VALUES (?, ?)", [("certificates", _packed(made))])
    return made


async def trusted_bundle(client: Client) -> bytes:
    """Return the authority that all APIServices of ours name, empty where they differ; raises KubeError."""
    found = set()
    for name in api_service_names():
        spec = (await client.get(API_SERVICES, name)).get("spec") or {}
        found.add(base64.b64decode(spec.get("caBundle") or ""))
    return found.pop() if len(found) == 1 else b""


async def announce(client: Client, bundle: bytes) -> None:
    """Have the API server trust an authority; raises KubeError."""
    if await trusted_bundle(client) == bundle:
        return
    change = {"spec": {"caBundle": base64.b64encode(bundle).decode()}}
    for name in api_service_names():
        await client.patch(API_SERVICES, name, "", change)
    _log.info("the API server was told whom to trust")


def _packed(shown: certificates.Certificates) -> bytes:
    pairs = [[part.decode() for part in astuple(pair)] for pair in (shown.authority, shown.leaf)]
    return orjson.dumps(pairs)


def _unpacked(value: bytes) -> certificates.Certificates:
    pairs: list[list[str]] = orjson.loads(value)
    authority, leaf = (certificates.Pair(*(part.encode() for part in pair)) for pair in pairs)
    return certificates.Certificates(authority, leaf)
