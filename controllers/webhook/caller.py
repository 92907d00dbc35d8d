"""Who calls the webhook: whether a connection proved to be the API server's, told along the request and nowhere stored.

Policies are answered to everybody who can reach us, as upstream does. Codes are for the API server only, because whoever can
post a review can put anybody's name into it (security.md T0).
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from asyncio import BaseTransport

is_authenticated: Final[ContextVar[bool]] = ContextVar("is_authenticated", default=False)
"""Set by the server for each request; false for callers without a certificate of the authority that was named."""


def shows_certificate(transport: BaseTransport | None) -> bool:
    """Tell whether the other side of a connection showed a certificate, which TLS has checked if there is one."""
    found: Any = transport.get_extra_info("peercert") if transport is not None else None
    return bool(found)
