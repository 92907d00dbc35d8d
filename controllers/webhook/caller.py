"""Who calls the webhook, as far as it was proven; told along the request and nowhere stored.

Whoever can post a review can put anybody's name into it. Where the API server shows a certificate, reviews from
anybody else are not answered. Where it shows none, it is called at a path that only it is told (`secret_path`): that keeps
strangers away, and proves nothing, because the API server itself prints the path when a call fails (A11).

INVARIANT: nothing is committed on the word of a caller for whom `is_proven` says no; whoever has an effect asks it.
"""

from __future__ import annotations

from contextvars import ContextVar
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from .secret_path import Paths, Shared

if TYPE_CHECKING:
    from asyncio import BaseTransport
    from collections.abc import Callable
    from datetime import datetime


class Caller(Enum):
    """What is known of who calls; the values are what operators are told."""

    CERTIFICATE = "certificate"
    TRUSTED_PATH = "trusted path"
    PATH = "path"
    NOBODY = "nobody"

    @property
    def is_proven(self) -> bool:
        """Whether effects may be committed on this caller's word: by a certificate, or by the path where operators chose to trust it."""
        return self in _PROVEN


_PROVEN: Final = (Caller.CERTIFICATE, Caller.TRUSTED_PATH)

current_caller: Final[ContextVar[Caller]] = ContextVar("current_caller", default=Caller.NOBODY)
"""Set by the server for each request."""


def is_proven() -> bool:
    """Tell whether the request that is being answered may have effects on its caller's word."""
    return current_caller.get() in _PROVEN


class Callers:
    """Who may ask for reviews, by what all replicas share of it; `take` over each change.

    A certificate counts that TLS has checked and whose common name is among `names`. Without names each certificate of the
    authority is good enough, which is right only for one that signs nothing else: the authority of a cluster signs the
    certificates of its users, too. With `trusts_path` operators have accepted that a path proves nothing.
    """

    def __init__(
        self,
        names: frozenset[str] = frozenset(),
        *,
        now: Callable[[], datetime],
        trusts_path: bool = False,
    ) -> None:
        self._names = names
        self._by_path = Caller.TRUSTED_PATH if trusts_path else Caller.PATH
        self._paths = Paths(now)
        self._needs_certificate = False

    def __repr__(self) -> str:
        return f"<Callers by {self.mode.value}>"

    @property
    def mode(self) -> Caller:
        """How the API server is told from others."""
        return Caller.CERTIFICATE if self._needs_certificate else self._by_path

    def take(self, shared: Shared) -> None:
        """Take over what replicas share; an authority that was known once is asked for from then on."""
        self._paths.take(shared)
        self._needs_certificate = self._needs_certificate or bool(shared.authority)
        if not self._names:
            self._names = frozenset(shared.names)

    def who(self, transport: BaseTransport | None, path: str) -> tuple[Caller | None, str]:
        """Return who calls at a path, None for somebody who is not to be answered, and the path behind the secret one."""
        inner = self._paths.inner(path)
        if self._needs_certificate and self._shows(transport):
            return Caller.CERTIFICATE, inner or path
        if self._needs_certificate and not self._paths.outlive_certificate():
            return None, inner or path
        if inner is not None:
            return self._by_path, inner
        return (None if self._paths.are_known else Caller.NOBODY), path

    def _shows(self, transport: BaseTransport | None) -> bool:
        shown: Any = transport.get_extra_info("peercert") if transport is not None else None
        return bool(shown) and (not self._names or not self._names.isdisjoint(_common_names(shown)))


def _common_names(certificate: dict[str, Any]) -> list[str]:
    parts = (part for group in certificate.get("subject", ()) for part in group)
    return [value for name, value in parts if name == "commonName"]
