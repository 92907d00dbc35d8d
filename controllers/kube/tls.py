"""TLS contexts and bounded reading for the HTTP client.

Apart from `http` so that each is read alone: what is trusted here, what is said there.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from typing import TYPE_CHECKING, Protocol

from engine.lang.limits import LIMITS, Limits

from .errors import AccessError, Invalid

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .access import Tls
    from .credentials import Presented


class Content(Protocol):
    """A body that arrives in pieces."""

    def iter_any(self) -> AsyncIterator[bytes]:
        """Yield the pieces as they arrive."""


async def read_at_most(content: Content, limit: int) -> bytes:
    """Return a whole body; raise Invalid as soon as it is longer than `limit` (0: no bound)."""
    parts: list[bytes] = []
    size = 0
    async for part in content.iter_any():
        size += len(part)
        if limit and size > limit:
            raise Invalid(f"the answer is longer than the {limit} bytes allowed")
        parts.append(part)
    return b"".join(parts)


def limits_of(size: int) -> Limits:
    """Return the bounds of a JSON answer of at most `size` bytes (0: no bound on the size)."""
    return Limits(size=size or 1 << 62, depth=LIMITS.depth)


def client_context(trust: Tls, presented: Presented) -> ssl.SSLContext:
    """Return the TLS context of a client; raises AccessError for certificates that cannot be used.

    Not `create_default_context`: from Python 3.13 on that one refuses the authorities of many clusters for missing
    extensions that Kubernetes does not ask for.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        if not trust.verifies:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif trust.authorities:
            context.load_verify_locations(cadata=trust.authorities.decode("ascii"))
        else:
            context.load_default_certs()
        if presented.certificate:
            _load_pair(context, presented)
    except (ssl.SSLError, ValueError) as error:
        raise AccessError("a certificate or key of the kubeconfig cannot be used") from error
    return context


def _load_pair(context: ssl.SSLContext, presented: Presented) -> None:
    """Load certificate and key, which the standard library takes from a file only; ours is unreadable to others."""
    handle, path = tempfile.mkstemp(prefix="kpolicy-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(presented.certificate + b"\n" + presented.key)
        context.load_cert_chain(path)
    finally:
        os.unlink(path)  # noqa: PTH108 - a descriptor and a name, not a path that somebody gave
