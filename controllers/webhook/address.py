"""Where the API server calls us: part of every webhook."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from controllers.manifests.deploy import SERVICE

if TYPE_CHECKING:
    from .secret_path import Shared


@dataclass(frozen=True, slots=True)
class Address:
    """Where the API server reaches us: a service, or (with `url`) a place outside the cluster; and whom it is to trust.

    `shared` says by which secret each path begins; without it they are plain. `callers` tells readers of a configuration how
    whoever asks is known.
    """

    bundle: bytes
    namespace: str = "kyverno"
    service: str = SERVICE
    url: str = ""
    shared: Shared | None = field(default=None, repr=False)
    callers: str = ""

    def client_config(self, path: str) -> dict[str, Any]:
        """Return how a webhook at `path` is called."""
        bundle = base64.b64encode(self.bundle).decode()
        if self.shared is not None:
            path = f"/{self.shared.prefix(path[1:].partition('/')[0])}{path}"
        if self.url:
            return {"url": f"{self.url.rstrip('/')}{path}", "caBundle": bundle}
        service = {"name": self.service, "namespace": self.namespace, "path": path, "port": 443}
        return {"service": service, "caBundle": bundle}
