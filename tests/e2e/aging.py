"""Time and processes as a test needs them: certificates whose end is near, clocks that step while programs run, signals."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from controllers.kube import connect, load_access
from controllers.kube.clock import SystemClock
from controllers.manifests.written import CERTIFICATES, secret_name
from controllers.webhook.certificates import (
    AUTHORITY_LIFE,
    RENEW_BEFORE,
    Certificates,
    expiry,
    new_authority,
    new_leaf,
)
from controllers.webhook.secrets import write_certificates
from controllers.webhook.serving import names_for

from .engine import NAMESPACE

if TYPE_CHECKING:
    from .tiers import Tier

_DUE_IN = timedelta(seconds=60)
_LIBRARIES = ("/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib/*/faketime/libfaketime.so.1")
_due = [0.0]


def keep_old_certificates(tier: Tier, address: str) -> None:
    """Have the replicas find an authority and a certificate that are to be replaced in a minute."""
    made_at = datetime.now(UTC) - AUTHORITY_LIFE + RENEW_BEFORE + _DUE_IN
    authority = new_authority(made_at)
    leaf = new_leaf(authority, names_for(NAMESPACE, address), datetime.now(UTC))
    asyncio.run(_write(tier, Certificates(authority, leaf)))
    _due[0] = time.monotonic() + _DUE_IN.total_seconds()
    assert expiry(leaf.certificate) == expiry(authority.certificate)


async def _write(tier: Tier, made: Certificates) -> None:
    client = connect(load_access(tier.kubeconfig, None), clock=SystemClock())
    try:
        assert await write_certificates(client, NAMESPACE, made)
    finally:
        await client.close()


def is_due() -> bool:
    """Tell whether those certificates are to be replaced by now."""
    return time.monotonic() > _due[0] + 1


def shown(tier: Tier) -> dict[str, bytes]:
    """Return the first certificate of each Secret: the authority's, and what servers show."""
    found = {}
    for part in CERTIFICATES:
        data = tier.read("secret", secret_name(part, NAMESPACE), "-n", NAMESPACE)["data"]
        found[part] = base64.b64decode(data["tls.crt"]).partition(b"-----END")[0]
    return found


def is_rotated(tier: Tier, before: dict[str, bytes]) -> bool:
    """Tell whether all certificates are others than before, and every configuration trusts the new authority."""
    now = shown(tier)
    listed = tier.read(
        "validatingwebhookconfigurations", "-l", "webhook.kyverno.io/managed-by=kyverno"
    )
    bundles = [base64.b64decode(one["clientConfig"]["caBundle"]) for item in listed["items"] for one in item.get("webhooks", ())]  # fmt: skip
    return all(now[part] != before[part] for part in CERTIFICATES) and all(now[CERTIFICATES[0]] in one for one in bundles)  # fmt: skip


def library() -> str:
    """Return the library by which a program's clock can be set, empty where it is not here."""
    found = [path for pattern in _LIBRARIES for path in Path("/").glob(pattern[1:])]
    return str(found[0]) if found else ""


def following(clocks: Path) -> dict[str, str]:
    """Return the environment of a program whose clock follows a file with an offset in seconds; what only counts seconds does not."""
    return {
        "LD_PRELOAD": library(),
        "FAKETIME_TIMESTAMP_FILE": str(clocks),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }


def kill(pid: int) -> None:
    """End a process at once."""
    _send(pid, signal.SIGKILL)


def suspend(pid: int) -> None:
    """Have a process do nothing until `resume`."""
    _send(pid, signal.SIGSTOP)


def resume(pid: int) -> None:
    """Have it go on."""
    _send(pid, signal.SIGCONT)


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
