"""Answers from services: `apiCall.service` and the `http` library of expressions (row A-53).

Nothing of ours is sent along: upstream adds a service account token to every call; here a policy states its own headers.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.lang import json

from .egress import DEFAULT_RULES, SECONDS, EgressRules, Gate, Request
from .errors import EgressError, OutsideError, StatusError, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.evaluate import ServiceLookup
    from engine.model import Json


MOST_BYTES = 2 * 1024 * 1024


class ServiceSource:
    """Answers from whatever the gate lets through."""

    def __init__(
        self, gate: Gate, *, most_bytes: int = MOST_BYTES, seconds: float = SECONDS
    ) -> None:
        self._gate = gate
        self._most_bytes = most_bytes
        self._seconds = seconds

    async def call(self, lookup: ServiceLookup) -> Json:
        """Return the decoded answer of a service; raises OutsideError, whose text holds nothing of the answer."""
        if lookup.within and not self._gate.rules.namespaced_services:
            raise EgressError("policies of namespaces do not call services here")
        method = lookup.method.upper()
        if method not in ("GET", "POST"):
            raise OutsideError(f"method `{shown(method)}` is not allowed: a call is GET or POST")
        headers = lookup.headers
        if lookup.body and not any(key.lower() == "content-type" for key, _ in headers):
            headers = (*headers, ("Content-Type", "application/json"))
        request = Request(method, lookup.url, headers, lookup.body.encode(), lookup.ca_bundle)
        received = await self._gate.send(request, limit=self._most_bytes, seconds=self._seconds)
        if not 200 <= received.status < 300:
            raise StatusError(f"HTTP {status_text(received.status)}", received.status)
        try:
            return json.load(received.body)
        except EngineError:
            raise OutsideError("the answer is not readable as JSON") from None


def status_text(status: int) -> str:
    """Return a status with its usual words, and what we do about redirections."""
    words = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else ""
    text = f"{status} {words}".strip()
    return f"{text} (redirections are not followed)" if 300 <= status < 400 else text


# Sends notices to the address that an administrator named, through the same gate as everything else that goes outside.
#
# A refused address, a redirection or an answer that is no success is an error; nothing of an answer is ever shown.

NOTICE_SECONDS = 10.0
_MOST_BYTES = 64 * 1024


class Poster:
    """Posts JSON; close it when done."""

    def __init__(self, rules: EgressRules = DEFAULT_RULES) -> None:
        self._gate = Gate(rules)

    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes, authorities: str = ""
    ) -> None:
        """Post a body; `authorities` (PEM) are trusted instead of the usual ones. Raises OutsideError."""
        sent = (("Content-Type", "application/json"), *headers.items())
        request = Request("POST", url, sent, body, authorities)
        received = await self._gate.send(request, limit=_MOST_BYTES, seconds=NOTICE_SECONDS)
        if not 200 <= received.status < 300:
            raise StatusError(f"HTTP {status_text(received.status)}", received.status)

    async def close(self) -> None:
        """Close all connections."""
        await self._gate.close()
