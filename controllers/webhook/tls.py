"""The TLS side of the webhook server: one context that lives as long as the server and takes new certificates in place."""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .certificates import Pair


class ServerTls:
    """A server's TLS context; `load` changes what new handshakes see, connections that are open stay open.

    `callers` are authorities (PEM) of callers that may show who they are.
    """

    def __init__(self, pair: Pair, callers: bytes = b"") -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["http/1.1"])
        if callers:
            self.context.load_verify_locations(cadata=callers.decode("ascii"))
            self.context.verify_mode = ssl.CERT_OPTIONAL
        self._loaded: Pair | None = None
        self.load(pair)

    @property
    def loaded(self) -> Pair | None:
        """What new handshakes are answered with."""
        return self._loaded

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
