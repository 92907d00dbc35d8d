"""The distribution protocol, reading only: manifests, blobs and referrers of repositories.

Everything that comes back is bounded in size and checked against the digest that names it; what a registry says of itself
(`Docker-Content-Digest`) is not believed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from hashlib import sha256, sha512
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from controllers.kube.clock import Clock, SystemClock
from controllers.lookups.egress import Gate, Received, Request
from controllers.lookups.errors import EgressError, OutsideError, StatusError
from engine.errors import EngineError
from engine.fields import items, part
from engine.lang import json

from .keychain import NOTHING, Credential, Keychain

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from engine.model import Object

    from .places import Place

    Secrets = Callable[[tuple[str, ...]], Awaitable[Keychain]]

INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_ACCEPT = ", ".join((*INDEXES, *MANIFESTS))
MOST_MANIFEST = 4 * 1024 * 1024
MOST_BLOB = 16 * 1024 * 1024
_HOPS = 5
_HASHES = {"sha256": sha256, "sha512": sha512}


@dataclass(frozen=True, slots=True)
class Manifest:
    """One manifest or index: its media type, the digest of its bytes, its content."""

    media_type: str
    digest: str
    content: Object = field(repr=False)

    @property
    def is_index(self) -> bool:
        """Whether it lists images instead of being one."""
        return self.media_type in INDEXES or "manifests" in self.content


class Registry:
    """Reads from registries through the gate.

    `keychain` is asked first; `secrets` turns the names of pull secrets into a keychain.
    """

    def __init__(
        self,
        gate: Gate,
        *,
        keychain: Keychain = NOTHING,
        secrets: Secrets | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._gate = gate
        self._keychain = keychain
        self._secrets = secrets
        self._tokens = Tokens(gate, clock or SystemClock())

    async def manifest(self, place: Place) -> Manifest:
        """Return the manifest at a tag or digest; raises OutsideError, StatusError with 404 where there is none."""
        path = f"manifests/{quote(place.identifier, safe=':')}"
        received = await self._get(place, path, _ACCEPT, MOST_MANIFEST)
        digest = place.digest or f"sha256:{sha256(received.body).hexdigest()}"
        check_digest(received.body, digest)
        content = _object(received.body)
        kind = str(content.get("mediaType") or "") or _type_of(received)
        return Manifest(kind, digest, content)

    async def blob(self, place: Place, digest: str, *, limit: int = MOST_BLOB) -> bytes:
        """Return the blob of a digest; raises OutsideError."""
        received = await self._get(place, f"blobs/{quote(digest, safe=':')}", "*/*", limit)
        check_digest(received.body, digest)
        return received.body

    async def referrers(self, place: Place, digest: str) -> list[Object]:
        """Return the descriptors of what refers to a digest, by the API or by its fallback tag; raises OutsideError."""
        path = f"referrers/{quote(digest, safe=':')}"
        try:
            received = await self._get(place, path, INDEXES[0], MOST_MANIFEST)
            content = _object(received.body)
        except StatusError as error:
            if error.status not in (400, 404, 405):
                raise
            try:
                content = (await self.manifest(place.at(digest.replace(":", "-")))).content
            except StatusError as missing:
                if missing.status != 404:
                    raise
                content = {}
        return items(content, "manifests")

    async def _get(self, place: Place, path: str, accept: str, limit: int) -> Received:
        """Return a good answer, with credentials where the registry asks for them."""
        is_plain = self._gate.rules.is_plain(place.host)
        scheme = "http" if is_plain else "https"
        url = f"{scheme}://{place.host}/v2/{quote(place.repository)}/{path}"
        credential = await self._credential(place)
        scope = f"repository:{place.repository}:pull"
        header = self._tokens.known(place.host, scope, credential)
        received = await self._ask(url, accept, header, limit, place)
        # whom a registry sends us to does not say who is given the registry's credential
        if received.status == 401 and not received.is_elsewhere:
            challenge = received.headers.get("WWW-Authenticate", "")
            header = await self._tokens.answer(
                challenge, place.host, scope, credential, is_plain=is_plain
            )
            if header:
                received = await self._ask(url, accept, header, limit, place)
        if received.status != 200:
            raise StatusError(_refusal(place, received.status), received.status)
        return received

    async def _ask(self, url: str, accept: str, header: str, limit: int, place: Place) -> Received:
        headers = (("Accept", accept), *((("Authorization", header),) if header else ()))
        request = Request("GET", url, headers, verifies=not place.is_insecure)
        return await self._gate.send(request, limit=limit, hops=_HOPS)

    async def _credential(self, place: Place) -> Credential | None:
        keychain = self._keychain
        if self._secrets is not None:
            keychain = await self._secrets(place.secrets) + keychain
        return keychain.find(place)


def check_digest(data: bytes, digest: str) -> None:
    """Raise OutsideError where bytes are not those that a digest names."""
    algorithm, _, wanted = digest.partition(":")
    make = _HASHES.get(algorithm)
    if make is None:
        raise OutsideError("the registry names content by an unknown kind of digest")
    if make(data).hexdigest() != wanted:
        raise OutsideError("the registry sent other content than its digest names")


def _object(data: bytes) -> dict[str, Any]:
    try:
        found = json.load(data)
    except EngineError:
        found = None
    if not isinstance(found, dict):
        raise OutsideError("the registry's answer is not readable")
    return found


def _type_of(received: Received) -> str:
    return received.headers.get("Content-Type", "").partition(";")[0].strip()


def _refusal(place: Place, status: int) -> str:
    match status:
        case 401 | 403:
            return f"registry `{place.registry}` does not let us read `{place.repository}`"
        case 404:
            sign = "@" if place.digest else ":"
            return f"there is no `{place.name}{sign}{place.identifier}`"
        case 429:
            return f"registry `{place.registry}` asks us to come back later"
    return f"registry `{place.registry}` answered with HTTP status {status}"


# From a registry's challenge to an Authorization header: Basic, or a token from the server that the challenge names.
#
# The token server is the registry's choice. It is called through the gate like everything else, never without TLS where the
# registry itself has TLS, and sees only the credential of that registry.

_PARAMETER = re.compile(r'([A-Za-z]+)=(?:"([^"]*)"|([^\s",]+))')
_MOST_BYTES = 256 * 1024
_LEAST_SECONDS = 60.0
_EARLY = 10.0
_MOST_KEPT = 1024
_LONGEST_CHALLENGE = 4096
_CLIENT = "kpolicy"

Key = tuple[str, str, "Credential | None"]


class Tokens:
    """Authorization headers by registry, scope and credential, kept until shortly before they expire."""

    def __init__(self, gate: Gate, clock: Clock) -> None:
        self._gate = gate
        self._clock = clock
        self._kept: dict[Key, tuple[str, float]] = {}

    def known(self, host: str, scope: str, credential: Credential | None) -> str:
        """Return the header to try first, empty when there is none."""
        header, until = self._kept.get((host, scope, credential), ("", 0.0))
        return header if until > self._clock.monotonic() else ""

    async def answer(
        self,
        challenge: str,
        host: str,
        scope: str,
        credential: Credential | None,
        *,
        is_plain: bool,
    ) -> str:
        """Return the header that a challenge asks for, empty when there is nothing to show; raises OutsideError."""
        scheme, _, rest = challenge.partition(" ")
        header, lasts = "", _LEAST_SECONDS
        if scheme.lower() == "bearer":
            header, lasts = await self._token(_parameters(rest), scope, credential, is_plain)
        elif scheme.lower() == "basic" and credential is not None and credential.user:
            header = credential.basic
        if header:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            until = self._clock.monotonic() + lasts - _EARLY
            self._kept[host, scope, credential] = (header, until)
        return header

    async def _token(
        self,
        parameters: Mapping[str, str],
        scope: str,
        credential: Credential | None,
        is_plain: bool,
    ) -> tuple[str, float]:
        if credential is not None and credential.bearer:
            return f"Bearer {credential.bearer}", _LEAST_SECONDS
        realm = parameters.get("realm", "")
        if not realm.startswith("https://") and not (is_plain and realm.startswith("http://")):
            raise EgressError("the registry names a token server without TLS")
        received = await self._gate.send(
            _token_request(realm, parameters.get("service", ""), scope, credential),
            limit=_MOST_BYTES,
        )
        if received.status != 200:
            raise StatusError(
                f"the token server of the registry answered with HTTP {received.status}",
                received.status,
            )
        return _read_token(received.body)


def _token_request(realm: str, service: str, scope: str, credential: Credential | None) -> Request:
    if credential is not None and credential.refresh:
        form = {"grant_type": "refresh_token", "service": service, "scope": scope,
                "client_id": _CLIENT, "refresh_token": credential.refresh}  # fmt: skip
        kind = (("Content-Type", "application/x-www-form-urlencoded"),)
        return Request("POST", realm, kind, urlencode(form).encode())
    query = urlencode({"service": service, "scope": scope})
    joint = "&" if "?" in realm else "?"
    headers = (("Authorization", credential.basic),) if credential and credential.user else ()
    return Request("GET", f"{realm}{joint}{query}", headers)


def _read_token(body: bytes) -> tuple[str, float]:
    try:
        answer = json.load(body)
    except EngineError:
        answer = None
    answer = part(answer)
    token = str(answer.get("token") or answer.get("access_token") or "")
    if not token or not token.isascii() or not token.isprintable():
        raise StatusError("the token server of the registry gives no token", 200)
    lasts = answer.get("expires_in")
    seconds = float(lasts) if isinstance(lasts, int) and 0 < lasts < 86_400 else _LEAST_SECONDS
    return f"Bearer {token}", max(seconds, _LEAST_SECONDS)


def _parameters(text: str) -> dict[str, str]:
    return {
        name.lower(): quoted or bare
        for name, quoted, bare in _PARAMETER.findall(text[:_LONGEST_CHALLENGE])
    }
