"""The audit trail as objects: one AuditSegment after the other, each a list of chained records.

Only the leader writes, one record after the other. Before something is done it is written down here, so that nothing is done
that the trail does not know; whoever tries again after a crash finds the record by its `id` and does not write it twice.
"""

from __future__ import annotations

import asyncio
import hmac
from typing import TYPE_CHECKING, Any, Final

from controllers.kube import AlreadyExists, Conflict
from controllers.kube.kinds import AUDIT_SEGMENTS
from engine.audit import Checkpoint, append, seal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controllers.kube import Client
    from engine.model import Object

MOST_RECORDS: Final = 500
"""Records of one segment; with reasons of 1 KiB and names of 253 characters it stays below 512 KiB."""
_TRIES: Final = 5


def seal_key(key: bytes) -> bytes:
    """Return the key that segments are sealed with, from the one that all replicas share."""
    return hmac.digest(key, b"kpolicy audit seal", "sha256")


class AuditTrail:
    """Appends records to the trail. `key` seals; `head` is the last record written or read."""

    def __init__(self, client: Client, namespace: str, key: bytes) -> None:
        self._client, self._namespace, self._key = client, namespace, key
        self._segment: Object | None = None
        self._lock = asyncio.Lock()
        self.head: Checkpoint | None = None

    def __repr__(self) -> str:
        return f"<AuditTrail to {self.head.seq if self.head else 0}>"

    async def record(self, entry: Mapping[str, Any]) -> None:
        """Write a record with a unique `id`; nothing happens where the trail's last segments have it. Raises KubeError."""
        async with self._lock:
            for _ in range(_TRIES):
                try:
                    await self._record(entry)
                except (Conflict, AlreadyExists):
                    # Somebody else wrote, as a leader that does not know yet that it is none: read, and look again.
                    self._segment = None
                else:
                    return
            await self._record(entry)

    async def _record(self, entry: Mapping[str, Any]) -> None:
        segment = self._segment if self._segment is not None else await self._last()
        records = segment["spec"]["records"] if segment is not None else []
        if any(one.get("id") == entry.get("id") for one in records):
            return
        made = append(entry, self.head)
        if segment is None or len(records) >= MOST_RECORDS:
            stored = await self._client.create(AUDIT_SEGMENTS, self._begun(made))
        else:
            stored = await self._client.update(AUDIT_SEGMENTS, self._grown(segment, made))
        self._segment = stored
        self.head = Checkpoint(made["seq"], made["hash"])

    async def _last(self) -> Object | None:
        """Read the segment that the trail ends with."""
        page = await self._client.list_all(AUDIT_SEGMENTS, self._namespace)
        found = max(page.items, key=_last_seq, default=None)
        self._segment = found
        self.head = None
        if found is not None:
            last = found["spec"]["records"][-1]
            self.head = Checkpoint(last["seq"], last["hash"])
        return found

    def _begun(self, made: Object) -> Object:
        name = f"audit-{made['seq']:09d}"
        return {
            "apiVersion": AUDIT_SEGMENTS.api_version,
            "kind": AUDIT_SEGMENTS.kind,
            "metadata": {"name": name, "namespace": self._namespace},
            "spec": self._spec(name, [made]),
        }

    def _grown(self, segment: Object, made: Object) -> Object:
        records = [*segment["spec"]["records"], made]
        return {**segment, "spec": self._spec(segment["metadata"]["name"], records)}

    def _spec(self, name: str, records: list[Object]) -> Object:
        full = len(records) >= MOST_RECORDS
        return {"records": records, "mac": seal(name, records, self._key), "sealed": full}


def _last_seq(segment: Object) -> int:
    records = segment["spec"]["records"]
    return int(records[-1]["seq"]) if records else 0
