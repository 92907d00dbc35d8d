"""Trusted roots from TUF repositories that policies name: fetched through the gate, verified by the root that they bring.

The package that verifies is that of the TUF project, which comes with the extra `sigstore`; without it such a policy's
attestors vouch for nothing, and say why. What was fetched counts for an hour.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from controllers.kube.clock import SystemClock
from engine.errors import EngineError
from engine.lang import json

from .egress import Gate, Request
from .errors import OutsideError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controllers.kube.clock import Clock
    from engine.evaluate import TrustLookup
    from engine.model import Json

SECONDS: Final = 3600.0
MOST_KEPT: Final = 64
_MOST_BYTES: Final = 4 * 1024 * 1024
_TARGET: Final = "trusted_root.json"


class TrustedRoots:
    """Answers with trusted roots, from memory where they are fresh."""

    def __init__(self, gate: Gate, *, clock: Clock | None = None) -> None:
        self._gate = gate
        self._clock = clock or SystemClock()
        self._kept: dict[tuple[str, str], tuple[float, Json]] = {}

    async def root(self, lookup: TrustLookup) -> Json:
        """Return the trusted root of a repository; raises EngineError where it cannot be had or does not verify."""
        if lookup.within and not self._gate.rules.namespaced_services:
            raise EngineError("policies of namespaces may not name repositories of trust")
        if not lookup.mirror or not lookup.root:
            raise EngineError("a TUF repository needs both `mirror` and `root.data`")
        key = (lookup.mirror, lookup.root)
        until, known = self._kept.get(key, (0.0, None))
        if until > self._clock.monotonic():
            return known
        text = await asyncio.to_thread(_verified, *key, self._gate, asyncio.get_running_loop())
        found: Json = json.load(text)
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        self._kept[key] = (self._clock.monotonic() + SECONDS, found)
        return found


def _verified(mirror: str, root: str, gate: Gate, loop: asyncio.AbstractEventLoop) -> bytes:
    """Walk a repository from a root to its trusted root; to be called beside the loop, which fetches."""
    try:
        from tuf.api.exceptions import DownloadHTTPError
        from tuf.ngclient.fetcher import FetcherInterface
        from tuf.ngclient.updater import Updater
    except ImportError as error:
        raise EngineError("TUF repositories need the extra `sigstore`") from error

    class Fetcher(FetcherInterface):
        """Fetches through the gate."""

        def _fetch(self, url: str) -> Iterator[bytes]:
            asked = gate.send(Request("GET", url), limit=_MOST_BYTES)
            received = asyncio.run_coroutine_threadsafe(asked, loop).result()
            if received.status != 200:
                raise DownloadHTTPError("not there", received.status)
            return iter((received.body,))

    base = mirror.rstrip("/")
    with tempfile.TemporaryDirectory(prefix="kpolicy-tuf-") as folder:
        try:
            updater: Any = Updater(
                folder, base, folder, f"{base}/targets", Fetcher(), bootstrap=root.encode()
            )
            target = updater.get_targetinfo(_TARGET)
            if target is None:
                raise OutsideError(f"the TUF repository has no {_TARGET}")
            return Path(updater.download_target(target)).read_bytes()
        except EngineError:
            raise
        except Exception as error:  # the package raises many kinds for foreign data
            raise OutsideError(
                f"the TUF repository does not verify: {type(error).__name__}"
            ) from error
