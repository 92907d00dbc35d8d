"""Sends notices to the address that an administrator named, through the same gate as everything else that goes outside.

A refused address, a redirection or an answer that is no success is an error; nothing of an answer is ever shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .egress import DEFAULT_RULES, Gate, Request
from .errors import StatusError
from .services import status_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .egress import EgressRules

SECONDS = 10.0
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
        received = await self._gate.send(request, limit=_MOST_BYTES, seconds=SECONDS)
        if not 200 <= received.status < 300:
            raise StatusError(f"HTTP {status_text(received.status)}", received.status)

    async def close(self) -> None:
        """Close all connections."""
        await self._gate.close()
