"""The one gate through which anything leaves for an address that a policy, a registry or a person's file named.

Everything outside of the API server goes through `Gate.send`: services, registries and their token servers, web sources.
The address is judged where the socket is made, after the name was looked up, so that a name which changes its mind between
two look-ups gains nothing. Nothing of ours is ever added to a request: no tokens, cookies or proxies.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from engine.errors import EngineError
from engine.lang import wildcard

from . import addresses
from .addresses import Network, address_refusal, is_numeric, literal, name_refusal
from .errors import EgressError, OutsideError, UnreachableError, shown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    Resolve = Callable[[str, int], Awaitable[list[str]]]

SECONDS = 10.0
MOST_BYTES = 10 * 1024 * 1024
_CONNECT_SECONDS = 5.0
_MOST_CONNECTIONS, _MOST_PER_HOST = 64, 8
_MOST_RESOLVERS = 8
_LONGEST_URL = 8192
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OURS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer",
     "expect", "accept-encoding", "keep-alive", "proxy-authorization", "proxy-connection"}
)  # fmt: skip
"""Headers that decide how a request is read; a policy may not set them."""


@dataclass(frozen=True, slots=True)
class EgressRules:
    """What may be called beyond, or short of, what is allowed by default.

    `networks` are allowed though the list of refused ones has them. `hosts` are wildcard patterns; where there are any, only
    hosts that fit may be called. `plain_registries` are `host[:port]` that are asked without TLS. `namespaced_services`
    lets policies of namespaces call services.
    """

    networks: tuple[Network, ...] = ()
    hosts: tuple[str, ...] = ()
    plain_registries: frozenset[str] = frozenset()
    namespaced_services: bool = False

    def is_plain(self, host: str) -> bool:
        """Tell whether a registry is asked without TLS: where it was said so, and on this machine, as docker does."""
        name = host.rpartition(":")[0] or host
        address = literal("127.0.0.1" if name == "localhost" else name)
        is_here = address is not None and address.is_loopback
        return host in self.plain_registries or is_here


DEFAULT_RULES = EgressRules()


def read_rules(
    *,
    networks: Iterable[str] = (),
    hosts: Iterable[str] = (),
    plain_registries: Iterable[str] = (),
    namespaced_services: bool = False,
) -> EgressRules:
    """Make rules of an operator's texts; raises EngineError for a network that is none."""
    try:
        allowed = addresses.networks(networks)
    except ValueError as error:
        raise EngineError(f"cannot read an egress network: {error}") from error
    return EgressRules(allowed, tuple(hosts), frozenset(plain_registries), namespaced_services)


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be sent.

    `authorities` are PEM certificates to trust instead of the system's; `verifies` is False only for registries that
    somebody expressly declared insecure.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)
    authorities: str = field(default="", repr=False)
    verifies: bool = True


@dataclass(frozen=True, slots=True)
class Received:
    """An answer of any status, with its whole body; `is_elsewhere` where a redirection to another origin led to it."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    is_elsewhere: bool


class Gate:
    """Sends requests that the rules allow. It belongs to the running event loop; close it when done."""

    def __init__(
        self, rules: EgressRules = DEFAULT_RULES, *, resolve: Resolve | None = None
    ) -> None:
        self.rules = rules
        self._resolve = resolve or _system_resolve
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def checked(self, text: str) -> URL:
        """Return an address that may be called; raises EgressError for any other.

        What stands in the text is judged here, what a name means when the connection is made.
        """
        url = _parsed(text)
        host = url.host or ""
        reason = name_refusal(host)
        address = literal(host)
        if address is not None:
            reason = address_refusal(address, self.rules.networks)
        elif is_numeric(host):
            reason = "a number, and not an address as it is usually written"
        if reason:
            raise EgressError(f"`{shown(host)}` is not called: it is {reason}")
        if self.rules.hosts and not any(wildcard.match(one, host) for one in self.rules.hosts):
            raise EgressError(f"`{shown(host)}` is not called: it is not among the allowed hosts")
        return url

    async def send(
        self, request: Request, *, limit: int = MOST_BYTES, seconds: float = SECONDS, hops: int = 0
    ) -> Received:
        """Send a request and return the answer, whatever its status.

        Of redirections at most `hops` are followed (GET only), each judged as if it were asked for, and without the
        headers once it leads to another host. Raises EgressError and UnreachableError.
        """
        try:
            async with asyncio.timeout(seconds):
                return await self._followed(request, limit, hops)
        except TimeoutError as error:
            host = _parsed(request.url).host or ""
            raise UnreachableError(f"`{shown(host)}` did not answer in time") from error

    async def addresses_of(self, host: str) -> list[str]:
        """Return the addresses of a name; raises UnreachableError when it has none."""
        try:
            return await self._resolve(host, 0)
        except OSError as error:
            raise UnreachableError(f"host `{shown(host)}` cannot be looked up") from error

    async def _followed(self, request: Request, limit: int, hops: int) -> Received:
        url, headers = self.checked(request.url), _headers(request.headers)
        while True:
            received = await self._once(request, url, headers, limit)
            place = received.headers.get("Location", "")
            if received.status not in _REDIRECTS or not place or hops <= 0:
                return received
            hops -= 1
            target = self.checked(_joined(url, place))
            if url.scheme == "https" and target.scheme != "https":
                raise EgressError(
                    f"`{shown(url.host or '')}` redirects to a connection without TLS"
                )
            if target.origin() != url.origin():
                headers = _headers([("Accept", headers["Accept"])])
            url = target

    async def _once(
        self, request: Request, url: URL, headers: CIMultiDict[str], limit: int
    ) -> Received:
        trust: Any = True
        if url.scheme == "https":
            trust = trust_of(request.authorities, verifies=request.verifies)
        try:
            async with self._connections().request(
                request.method,
                url,
                data=request.body or None,
                headers=headers,
                allow_redirects=False,
                ssl=trust,
            ) as response:
                body = await _read(response.content.iter_any(), limit)
                is_elsewhere = url.origin() != URL(request.url).origin()
                return Received(response.status, response.headers, body, is_elsewhere)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _translated(url.host or "", error) from error

    def _connections(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=_MOST_CONNECTIONS,
                limit_per_host=_MOST_PER_HOST,
                use_dns_cache=False,
                resolver=_Resolver(self._addresses),
                socket_factory=self._socket,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
            )
        return self._session

    async def _addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses of a name, every one of them fit to be called; raises EgressError otherwise.

        One refused address spoils the name: whoever mixes them in means them to be tried.
        """
        found = await self._resolve(host, port)
        for text in found:
            self._judge(host, text)
        return found

    def _socket(self, info: tuple[Any, ...]) -> socket.socket:
        """Make a socket for an address. INVARIANT: there is no other way to a connection, so this judgement is final."""
        family, kind, protocol, _, place = info
        self._judge(str(place[0]), str(place[0]))
        return socket.socket(family, kind, protocol)

    def _judge(self, host: str, text: str) -> None:
        address = literal(text)
        reason = "no address" if address is None else address_refusal(address, self.rules.networks)
        if reason:
            raise EgressError(f"`{shown(host)}` is not called: it is {reason}")


class _Resolver(aiohttp.abc.AbstractResolver):
    """Gives the HTTP library only addresses that were judged; it connects to exactly those."""

    def __init__(self, addresses: Resolve) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[aiohttp.abc.ResolveResult]:
        """Return the addresses of a name; raises OSError when there are none, EgressError when they are refused."""
        found = await self._addresses(host, port)
        return [
            aiohttp.abc.ResolveResult(
                hostname=host,
                host=text,
                port=port,
                family=socket.AF_INET6 if ":" in text else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for text in found
            if family in (socket.AF_UNSPEC, socket.AF_INET6 if ":" in text else socket.AF_INET)
        ]

    async def close(self) -> None:
        """Do nothing: nothing is held."""


async def _system_resolve(host: str, port: int) -> list[str]:
    """Look a name up in a thread of its own pool: name servers that hang must not hold up whoever else needs a thread."""
    loop = asyncio.get_running_loop()
    found = await loop.run_in_executor(_resolvers(), _addresses_of, host, port)
    return list(dict.fromkeys(found))


@cache
def _resolvers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MOST_RESOLVERS, thread_name_prefix="kpolicy-names")


def _addresses_of(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port or None, type=socket.SOCK_STREAM)
    return [str(info[4][0]) for info in found]


def _parsed(text: str) -> URL:
    """Return a web address; raises EgressError for what is none, or reads differently to different readers."""
    is_plain = text.isprintable() and not any(char in text for char in "\\ ") and len(text) <= _LONGEST_URL  # fmt: skip
    try:
        url = URL(text) if is_plain else None
    except ValueError:
        url = None
    if url is None or url.scheme not in ("http", "https") or not url.host:
        raise EgressError(f"`{shown(text)}` is not a web address")
    if url.user is not None or url.password is not None:
        raise EgressError(f"`{shown(url.host)}` is not called: its address holds credentials")
    return url


def _joined(url: URL, place: str) -> str:
    try:
        return str(url.join(URL(place)))
    except ValueError:
        raise EgressError(f"`{shown(url.host or '')}` redirects to what is no address") from None


def _headers(pairs: Iterable[tuple[str, str]]) -> CIMultiDict[str]:
    headers: CIMultiDict[str] = CIMultiDict()
    for key, value in pairs:
        if key.strip().lower() in _OURS:
            raise EgressError(f"header `{shown(key)}` cannot be set")
        headers.add(key, value)
    headers["Accept-Encoding"] = "identity"
    headers.setdefault("User-Agent", "kpolicy")
    headers.setdefault("Accept", "*/*")
    return headers


async def _read(parts: Any, limit: int) -> bytes:
    """Return a whole body; raises UnreachableError as soon as it is longer than `limit`."""
    found, size = [], 0
    async for part in parts:
        size += len(part)
        if size > limit:
            raise UnreachableError(f"the answer is longer than the {limit} bytes allowed")
        found.append(part)
    return b"".join(found)


def _translated(host: str, error: Exception) -> OutsideError:
    name = shown(host)
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return UnreachableError(f"host `{name}` cannot be looked up")
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return UnreachableError(f"the certificate of `{name}` is not trusted")
    if isinstance(error, ValueError) and not isinstance(error, aiohttp.ClientError):
        return EgressError(f"the request to `{name}` cannot be put into a valid HTTP message")
    return UnreachableError(f"`{name}` cannot be reached")


# TLS contexts for calls to the outside: the system's authorities, or exactly those that a policy named.

_LONGEST = 1024 * 1024


@lru_cache(maxsize=64)
def trust_of(authorities: str, *, verifies: bool = True) -> ssl.SSLContext:
    """Return the context that trusts `authorities` (PEM; empty: the system's); raises EngineError for unreadable ones."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not verifies:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif not authorities:
        context.load_default_certs()
    else:
        try:
            context.load_verify_locations(cadata=authorities[:_LONGEST])
        except (ssl.SSLError, ValueError) as error:
            raise EngineError("the CA bundle cannot be read") from error
    return context
