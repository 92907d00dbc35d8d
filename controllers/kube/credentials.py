"""Who we are to an API server: tokens, token files, passwords, and plugins that make either.

For `http.HttpClient`, which asks before every request, because tokens in files and those of plugins change while we run.
Plugins are run and providers asked by `login`.
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from engine.lang import rfc3339

from .errors import AccessError, capped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from .clock import Clock
    from .kubeconfig import Entry

_REREAD_SECONDS = 60.0
_EARLY = timedelta(seconds=30)
_PLUGIN_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Presented:
    """What is shown to the server: an Authorization header, a client certificate with its key (PEM), or nothing."""

    authorization: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)


class Credentials(Protocol):
    """Where credentials come from."""

    async def current(self, clock: Clock) -> Presented:
        """Return what to present now; raises AccessError when it cannot be had."""

    def spoil(self) -> bool:
        """Forget what was presented, for the server refused it; return whether asking again may give something else."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Credentials that never change: a certificate, a token from the kubeconfig, a password, or none at all."""

    presented: Presented = Presented()

    async def current(self, clock: Clock) -> Presented:  # noqa: ARG002 - the interface's
        """Return them."""
        return self.presented

    def spoil(self) -> bool:
        """Return False: there is nothing else to try."""
        return False


def bearer(token: str) -> Fixed:
    """Make credentials of a token."""
    return Fixed(Presented(f"Bearer {token}"))


def basic(user: str, password: str) -> Fixed:
    """Make credentials of a user name and a password."""
    encoded = base64.b64encode(f"{user}:{password}".encode()).decode()
    return Fixed(Presented(f"Basic {encoded}"))


class TokenFile:
    """A token in a file that somebody else renews, as the kubelet does for Pods; read again every minute."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._presented: Presented | None = None
        self._read_at = 0.0

    async def current(self, clock: Clock) -> Presented:
        """Return the token that the file holds; raises AccessError when it cannot be read."""
        is_old = clock.monotonic() - self._read_at >= _REREAD_SECONDS
        if self._presented is None or is_old:
            try:
                token = (await asyncio.to_thread(self._path.read_text)).strip()
            except OSError as error:
                raise AccessError(f"cannot read the token in `{self._path}`") from error
            self._presented, self._read_at = Presented(f"Bearer {token}"), clock.monotonic()
        return self._presented

    def spoil(self) -> bool:
        """Forget the token, so that the file is read again."""
        had = self._presented is not None
        self._presented = None
        return had


class Plugin:
    """Credentials that `make` fetches, kept until shortly before they expire.

    `make` runs in a thread and returns what to present and until when (None: until it is refused).
    """

    def __init__(self, name: str, make: Callable[[], tuple[Presented, datetime | None]]) -> None:
        self._name = name
        self._make = make
        self._kept: tuple[Presented, datetime | None] | None = None
        self._lock = asyncio.Lock()

    async def current(self, clock: Clock) -> Presented:
        """Return what the plugin gave; raises AccessError with its words when it fails."""
        async with self._lock:
            kept = self._kept
            if kept is None or (kept[1] is not None and kept[1] - _EARLY <= clock.now()):
                kept = self._kept = await self._made()
            return kept[0]

    def spoil(self) -> bool:
        """Forget what the plugin gave, so that it is run again."""
        had = self._kept is not None
        self._kept = None
        return had

    async def _made(self) -> tuple[Presented, datetime | None]:
        try:
            return await asyncio.wait_for(asyncio.to_thread(self._make), _PLUGIN_SECONDS)
        except AccessError:
            raise
        except Exception as error:
            # The package and the plugin below it raise whatever they like; nothing of it may pass this border.
            raise AccessError(
                f"the credential plugin `{self._name}` failed: {capped(str(error), 300)}",
                help="run it by hand to see why, or log in again",
            ) from error


def exec_plugin(block: Mapping[str, Any], folder: Path, cluster: Entry) -> Plugin:
    """Make credentials of a kubeconfig's `exec` block; `folder` is what relative commands start from."""

    def run() -> tuple[Presented, datetime | None]:
        from .login import log_in

        status = log_in(block, folder, cluster)
        token = str(status.get("token") or "")
        presented = Presented(
            f"Bearer {token}" if token else "",
            str(status.get("clientCertificateData") or "").encode(),
            str(status.get("clientKeyData") or "").encode(),
        )
        return presented, _expiry(status.get("expirationTimestamp"))

    return Plugin(str(block.get("command") or ""), run)


def auth_provider(block: Mapping[str, Any], folder: Path) -> Plugin:
    """Make credentials of a kubeconfig's older `auth-provider` block; `folder` is what relative paths start from."""

    def run() -> tuple[Presented, datetime | None]:
        from .login import ask_provider

        return Presented(ask_provider(block, folder)), None

    return Plugin(str(block.get("name") or ""), run)


def _expiry(text: Any) -> datetime | None:
    """Return when a credential ends, None where the plugin does not say; raises AccessError for what client-go refuses, too."""
    if text in (None, ""):
        return None
    ends = rfc3339.read(text)
    if ends is None:
        raise AccessError(
            "the credential plugin's `expirationTimestamp` is no instant",
            help="RFC 3339 with its zone is needed, such as 2026-01-31T17:00:00Z",
        )
    return ends
