"""The audit trail as objects: one AuditSegment after the other, each a list of chained records.

Only the leader writes, one record after the other. Before something is done it is written down here, so that nothing is done
that the trail does not know; whoever tries again after a crash finds the record by its `id` and does not write it twice.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from controllers.kube import AlreadyExists, Client, Conflict, NotFound
from controllers.kube.kinds import AUDIT_SEGMENTS
from engine.audit import MAX_BYTES, Checkpoint, append, seal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from engine.model import Object

MOST_IDS: Final = 1000
"""How many of the last records are known by their ids, by which somebody who tries again finds that it was written."""
_TRIES: Final = 5
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Regression:
    """A trail that was put back: the record that was seen, and where it ends now (the same number: with another record)."""

    seen: int
    ends: int


def seal_key(key: bytes) -> bytes:
    """Return the key that segments are sealed with, from the one that all replicas share."""
    return hmac.digest(key, b"kpolicy audit seal", "sha256")


class AuditTrail:
    """Appends records to the trail. `key` seals; `head` is the last record written or read.

    `witness` is the furthest head that this process has seen. A trail that ends before it, or has another record in its place,
    was put back to an older state: `on_regression` are told, and must not wait.
    """

    def __init__(self, client: Client, namespace: str, key: bytes) -> None:
        self._client, self._namespace, self._key = client, namespace, key
        self._segment: Object | None = None
        self._size = 0
        self._ids: dict[Any, None] = {}
        self._lock = asyncio.Lock()
        self.head: Checkpoint | None = None
        self.witness: Checkpoint | None = None
        self.on_regression: list[Callable[[Regression], None]] = []

    def __repr__(self) -> str:
        return f"<AuditTrail to {self.head.seq if self.head else 0}>"

    async def record(self, entry: Mapping[str, Any]) -> bool:
        """Write a record with a unique `id`; nothing happens where the trail's last segments have it. Raises KubeError.

        Returns whether it is new.
        """
        async with self._lock:
            for _ in range(_TRIES):
                try:
                    return await self._record(entry)
                except (Conflict, AlreadyExists):
                    # Somebody else wrote, as a leader that does not know yet that it is none: read, and look again.
                    self._segment = None
            return await self._record(entry)

    async def _record(self, entry: Mapping[str, Any]) -> bool:
        segment = self._segment if self._segment is not None else await self._last()
        records = segment["spec"]["records"] if segment is not None else []
        if entry.get("id") in self._ids:
            return False
        made = append(entry, self.head)
        if segment is not None and self._is_full(made):
            await self._close(segment, records)
            segment = None
        if segment is None:
            stored = await self._client.create(AUDIT_SEGMENTS, self._begun(made))
            self._size = 0
        else:
            stored = await self._client.update(AUDIT_SEGMENTS, self._grown(segment, made))
        self._segment = stored
        self._size += size_of(made)
        self._remember(made)
        self.head = self.witness = Checkpoint(made["seq"], made["hash"])
        return True

    async def _last(self) -> Object | None:
        """Read the segment that the trail ends with."""
        page = await self._client.list_all(AUDIT_SEGMENTS, self._namespace)
        found = max(page.items, key=_last_seq, default=None)
        self._segment = found
        self.head = None
        if found is not None:
            records = found["spec"]["records"]
            self.head = Checkpoint(records[-1]["seq"], records[-1]["hash"])
            self._size = sum(map(size_of, records))
        self._ids = _ids_of(page.items)
        self._compare(records_of(page.items))
        return found

    async def look(self) -> None:
        """Read the trail's end again, as somebody else may have put it back; raises KubeError.

        Of a long trail only the segment is read in which the witness stands, as long as it does.
        """
        async with self._lock:
            if not await self._is_there():
                await self._last()

    async def _is_there(self) -> bool:
        """Tell whether the witness stands where it was seen."""
        seen, segment = self.witness, self._segment
        if seen is None or segment is None:
            return False
        try:
            found = await self._client.get(AUDIT_SEGMENTS, segment["metadata"]["name"], self._namespace)  # fmt: skip
        except NotFound:
            return False
        return records_of([found]).get(seen.seq) == seen.hash

    async def _close(self, segment: Object, records: list[Object]) -> None:
        """Seal a segment that nothing is added to any more, and say where it ends to whoever keeps our output."""
        if not segment["spec"].get("sealed"):
            await self._client.update(AUDIT_SEGMENTS, {**segment, "spec": {**segment["spec"], "sealed": True}})  # fmt: skip
        head = records[-1]
        _log.info("the audit trail is sealed to record %s with hash %s", head["seq"], head["hash"])

    def _is_full(self, made: Object) -> bool:
        return self._size + size_of(made) > MAX_BYTES

    def _remember(self, made: Object) -> None:
        self._ids[made.get("id")] = None
        while len(self._ids) > MOST_IDS:
            del self._ids[next(iter(self._ids))]

    def _compare(self, hashes: Mapping[int, str]) -> None:
        """Tell whether the trail went on from what was seen, or was put back."""
        seen, self.witness = self.witness, self.head
        if seen is None or hashes.get(seen.seq) == seen.hash:
            return
        found = Regression(seen.seq, self.head.seq if self.head else 0)
        for listener in self.on_regression:
            listener(found)

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
        return {"records": records, "mac": seal(name, records, self._key), "sealed": False}


def size_of(entry: Mapping[str, Any]) -> int:
    """Return how many bytes a record takes in its segment, at most."""
    return len(orjson.dumps(entry, default=str)) + 1


def records_of(segments: Iterable[Object]) -> dict[int, str]:
    """Return the hashes of all records by their numbers."""
    return {
        int(one.get("seq") or 0): str(one.get("hash") or "")
        for segment in segments
        for one in segment["spec"]["records"]
    }


def _ids_of(segments: Iterable[Object]) -> dict[Any, None]:
    """Return the ids of the last records, which may be told of again after a crash, oldest first."""
    found: list[Any] = []
    for segment in sorted(segments, key=_last_seq, reverse=True):
        if len(found) >= MOST_IDS:
            break
        found += (one.get("id") for one in reversed(segment["spec"]["records"]))
    return dict.fromkeys(reversed(found[:MOST_IDS]))


def _last_seq(segment: Object) -> int:
    records = segment["spec"]["records"]
    return int(records[-1]["seq"]) if records else 0
