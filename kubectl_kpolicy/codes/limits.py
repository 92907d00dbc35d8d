"""Who brought wrong codes how often, and who is therefore not listened to for a while: the counts that all replicas share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from controllers.kube.kinds import LEASES
from controllers.store import throttles
from engine import vocabulary

if TYPE_CHECKING:
    from datetime import datetime

    from controllers.kube import Client
    from engine.model import Object

HEADS: Final = ("USER", "STATE", "WRONG-1M", "WRONG-30D", "OFFERED-1M")


async def standings(client: Client, namespace: str, now: datetime) -> list[Object]:
    """Return how each user stands who brought wrong codes or was offered many, the worst first; raises KubeError."""
    selector = ",".join(f"{name}={value}" for name, value in throttles.LABELS.items())
    page = await client.list_all(LEASES, namespace, label_selector=selector)
    found = [_standing(lease, now) for lease in page.items]
    return sorted(found, key=lambda one: (-one["wrong"]["month"], one["user"]))


def _standing(lease: Object, now: datetime) -> Object:
    metadata = lease["metadata"]
    counts = throttles.counts_in(lease)
    minute, month = (
        counts.within_minute(throttles.WRONG, now),
        counts.within_month(throttles.WRONG, now),
    )
    state = "locked" if month >= throttles.MOST_WRONG_MONTHLY else "slowed" if minute >= throttles.MOST_WRONG else "open"  # fmt: skip
    return {
        "apiVersion": vocabulary.KPOLICY,
        "kind": "CodeStanding",
        "metadata": {"name": metadata["name"], "namespace": metadata.get("namespace", "")},
        "user": str((metadata.get("annotations") or {}).get(vocabulary.USER) or ""),
        "state": state,
        "wrong": {"minute": minute, "month": month},
        "offered": {"minute": counts.within_minute(throttles.MINTED, now)},
    }


def advice(one: Object) -> str:
    """Return what becomes of somebody whose codes are not looked at; nothing for others."""
    if one["state"] == "locked":
        return f"{one['user']}: no code is looked at until fewer than {throttles.MOST_WRONG_MONTHLY} wrong ones lie in the last 30 days, or lease/{one['metadata']['name']} is deleted"
    return f"{one['user']}: a minute from the last wrong code on codes are looked at again" if one["state"] == "slowed" else ""  # fmt: skip
