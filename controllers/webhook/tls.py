"""The TLS side of the webhook server: one context that lives as long as the server and takes new certificates in place."""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import EngineError

if TYPE_CHECKING:
    from .certificates import Pair


class ServerTls:
    """A server's TLS context; `load` changes what new handshakes see, connections that are open stay open.

    `callers` are authorities (PEM) of callers that may show who they are; `trust` adds to them later.
    """

    def __init__(self, pair: Pair, callers: bytes = b"") -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["http/1.1"])
        self._trusted = b""
        if callers:
            self.trust(callers)
        self._loaded: Pair | None = None
        self.load(pair)

    @property
    def loaded(self) -> Pair | None:
        """What new handshakes are answered with."""
        return self._loaded

    def trust(self, callers: bytes) -> None:
        """Ask new connections for a certificate, which these authorities (PEM) may have signed as well."""
        if callers != self._trusted:
            _load(self.context, callers)
            self.context.verify_mode = ssl.CERT_OPTIONAL
            self._trusted = callers

    def load(self, pair: Pair) -> bool:
        """Take a certificate and its key; return whether they are others than before.

        The ssl module reads files only, so both lie for a moment in a folder of ours that nobody else may open.
        """
        if pair == self._loaded:
            return False
        with tempfile.TemporaryDirectory(prefix="kpolicy-") as folder:
            path = Path(folder) / "pair.pem"
            path.touch(0o600)
            path.write_bytes(pair.key + os.linesep.encode() + pair.certificate)
            self.context.load_cert_chain(path)
        self._loaded = pair
        return True


def authorities_in(pem: bytes) -> bytes:
    """Return authorities as they came; raises EngineError for a text that holds no certificate."""
    try:
        _load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), pem)
    except (ssl.SSLError, ValueError) as error:
        raise EngineError("the authorities of callers are not certificates in PEM", help="name a file of the authority that signed the API server's client certificate") from error  # fmt: skip
    return pem


def _load(context: ssl.SSLContext, pem: bytes) -> None:
    context.load_verify_locations(cadata=pem.decode("ascii"))
