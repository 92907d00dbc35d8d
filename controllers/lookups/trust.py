"""TLS contexts for calls to the outside: the system's authorities, or exactly those that a policy named."""

from __future__ import annotations

import ssl
from functools import lru_cache

from engine.errors import EngineError

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
