"""Who calls the webhook: whether a connection proved to be the API server's, told along the request and nowhere stored.

Whoever can post a review can put anybody's name into it (security.md T0). Where the authority of the API server's certificate is
known, reviews from anybody else are not answered; where it is not, policies are answered to everybody who can reach us, as
upstream does, and codes to nobody.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from asyncio import BaseTransport

is_authenticated: Final[ContextVar[bool]] = ContextVar("is_authenticated", default=False)
"""Set by the server for each request; false for callers without a certificate of the authority that was named."""


@dataclass(frozen=True, slots=True)
class Callers:
    """Who may ask for reviews: whoever shows a certificate that TLS has checked and whose common name is among `names`.

    Without names each certificate of the authority is good enough, which is right only for one that signs nothing else: the
    authority of a cluster signs the certificates of its users, too.
    """

    names: frozenset[str] = frozenset()

    def include(self, transport: BaseTransport | None) -> bool:
        """Tell whether the other side of a connection is one of them."""
        shown: Any = transport.get_extra_info("peercert") if transport is not None else None
        return bool(shown) and (not self.names or not self.names.isdisjoint(_common_names(shown)))


def _common_names(certificate: dict[str, Any]) -> list[str]:
    parts = (part for group in certificate.get("subject", ()) for part in group)
    return [value for name, value in parts if name == "commonName"]
