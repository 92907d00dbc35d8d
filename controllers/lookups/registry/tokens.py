"""From a registry's challenge to an Authorization header: Basic, or a token from the server that the challenge names.

The token server is the registry's choice. It is called through the gate like everything else, never without TLS where the
registry itself has TLS, and sees only the credential of that registry.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from controllers.lookups.egress import Gate, Request
from controllers.lookups.errors import EgressError, StatusError
from engine.errors import EngineError
from engine.lang import json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controllers.kube.clock import Clock

    from .keychain import Credential

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
    answer = answer if isinstance(answer, dict) else {}
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
