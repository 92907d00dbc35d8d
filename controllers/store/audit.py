"""The audit trail as objects: one AuditSegment after the other, each a list of chained records.

Only the leader writes, one record after the other. Before something is done it is written down here, so that nothing is done
that the trail does not know; whoever tries again after a crash finds the record by its `id` and does not write it twice.

Beside it the notes for the trail: only the webhook that is asked learns who does something, and keeps it as an object until the leader
has put it into the trail. A note is named by what it tells, so that a request that is put before several replicas, or run again, leaves
one; it is signed, so that nobody who may create objects can put words into the trail.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from controllers.kube import AlreadyExists, Client, Conflict, find
from controllers.kube.kinds import AUDIT_NOTES, AUDIT_SEGMENTS
from engine.audit import MAX_BYTES, Checkpoint, append, seal
from engine.digest import word_of
from engine.lang import rfc3339
from engine.lang.gotext import compact_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

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
        if segment is not None and self._size + size_of(made) > MAX_BYTES:
            await self._close(segment, records)
            segment = None
        if segment is None:
            name = f"audit-{made['seq']:09d}"
            begun = AUDIT_SEGMENTS.document(name, self._namespace, spec=self._spec(name, [made]))
            stored = await self._client.create(AUDIT_SEGMENTS, begun)
            self._size = 0
        else:
            spec = self._spec(segment["metadata"]["name"], [*records, made])
            stored = await self._client.update(AUDIT_SEGMENTS, {**segment, "spec": spec})
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
        name = segment["metadata"]["name"]
        found = await find(self._client, AUDIT_SEGMENTS, name, self._namespace)
        return found is not None and records_of([found]).get(seen.seq) == seen.hash

    async def _close(self, segment: Object, records: list[Object]) -> None:
        """Seal a segment that nothing is added to any more, and say where it ends to whoever keeps our output."""
        if not segment["spec"].get("sealed"):
            await self._client.update(AUDIT_SEGMENTS, {**segment, "spec": {**segment["spec"], "sealed": True}})  # fmt: skip
        head = records[-1]
        _log.info("the audit trail is sealed to record %s with hash %s", head["seq"], head["hash"])

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


DELETIONS: Final = frozenset({"delete", "expired"})
"""Verbs of what an object does not come back from."""
REUSE: Final = "reuse"
"""Verb of bringing a code again that was used; the object is the use."""
BROUGHT_BY: Final = "broughtAgainBy"
"""Field of a use's status with those of whom the trail tells that they brought its code again."""
MOST_REUSES: Final = 5
"""Records about one used code: whoever holds it is refused as often as they like, and cannot fill the trail with that."""
LONGEST_REASON: Final = 1024
CONTROLLER: Final = "kpolicy"
"""The actor of what the controllers do by themselves."""


@dataclass(frozen=True, slots=True)
class AuditedAction:
    """What somebody does: the verb, to which object (apiVersion, kind, namespace, name, uid), and why.

    `state` is what tells this action from the same one done before to the same object. `shown` is what the object must show once the
    action is done, where nobody proved that the API server told of it.
    """

    verb: str
    object: Object
    reason: str = ""
    policy: str = ""
    state: str = ""
    shown: Shown | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """What an object shows of an action: that it was `made`, that it was `changed`, or that it is `gone`, and its `content` then."""

    how: str
    content: str = ""


def content_of(obj: Object) -> str:
    """Return a digest of what people decide about an object: its spec, annotations and labels."""
    metadata = obj.get("metadata") or {}
    noted = [metadata.get(name) or {} for name in ("annotations", "labels")]
    told = compact_json([obj.get("spec"), *noted])
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


def note_key(key: bytes) -> bytes:
    """Return the key that notes are signed with, from the one that all replicas share."""
    return hmac.digest(key, b"kpolicy audit note", "sha256")


def note_of(
    action: AuditedAction, actor: str, at: datetime, *, namespace: str, key: bytes, groups: tuple[str, ...] = ()
) -> Object:  # fmt: skip
    """Return the object of a note in `namespace`, signed with the `note_key`.

    A deletion may be refused and tried again, so that each second has a note of its own.
    """
    instant = rfc3339.write(at)
    told = [action.verb, actor, action.state, compact_json(action.object)]
    if action.verb in DELETIONS:
        told.append(instant)
    if action.shown is not None:
        told += ["unproven", action.shown.how, action.shown.content]
    name = "note-" + word_of("\0".join(told))
    spec: dict[str, Any] = {
        "verb": action.verb,
        "actor": actor,
        "groups": list(groups),
        "object": dict(action.object),
        "policy": action.policy,
        "reason": action.reason[:LONGEST_REASON],
        "at": instant,
    }
    if action.shown is not None:
        spec |= {
            "unproven": True,
            "shown": {"how": action.shown.how, "content": action.shown.content},
        }
    spec["mac"] = mac_of(name, spec, key)
    return AUDIT_NOTES.document(name, namespace, spec=spec)


def is_ours(note: Object, key: bytes) -> bool:
    """Tell whether a note was signed with the `note_key`."""
    spec = note.get("spec") or {}
    name = str(note["metadata"]["name"])
    mac = str(spec.get("mac") or "").encode("utf-8", "surrogatepass")
    return hmac.compare_digest(mac_of(name, spec, key).encode(), mac)


def audit_entry(
    key: str,
    time: str,
    actor: str,
    verb: str,
    about: Mapping[str, Any],
    *,
    policy: str = "",
    result: str = "ok",
    reason: str = "",
) -> dict[str, Any]:
    """Return a record: who did what when to the object that `about` refers to; `key` is its `id`."""
    return {
        "id": key,
        "time": time,
        "actor": actor,
        "verb": verb,
        "object": {name: str(about.get(name) or "") for name in ("kind", "namespace", "name")},
        "policy": policy,
        "result": result,
        "reason": reason,
    }


def entry_of(note: Object, result: str) -> dict[str, Any]:
    """Return the record of a note; `result` says whether what was asked for took place."""
    spec, target = note["spec"], note["spec"].get("object") or {}
    time, actor, verb, policy, reason = (
        str(spec.get(name) or "") for name in ("at", "actor", "verb", "policy", "reason")
    )
    key = entry_id(verb, str(target.get("uid") or ""), note["metadata"]["name"], result)
    made = audit_entry(key, time, actor, verb, target, policy=policy, result=result, reason=reason)
    return {**made, **({"unproven": True} if is_unproven(note) else {})}


def to_tell_next(use: Object, actor: str) -> list[str] | None:
    """Return `BROUGHT_BY` with one more, None where the trail tells of this person or of enough others."""
    known = [str(one) for one in (use.get("status") or {}).get(BROUGHT_BY) or ()]
    return None if actor in known or len(known) >= MOST_REUSES else [*known, actor]


def is_unproven(note: Object) -> bool:
    """Tell whether nobody proved that the API server told of what a note says, so that its actor is only claimed."""
    return bool((note.get("spec") or {}).get("unproven"))


def shown_by(note: Object) -> Shown:
    """Return what the object of an unproven note must show."""
    told = (note.get("spec") or {}).get("shown") or {}
    return Shown(str(told.get("how") or ""), str(told.get("content") or ""))


def entry_id(verb: str, uid: str, note: str = "", result: str = "ok") -> str:
    """Return the id of a record: an object is deleted once, whoever tells of it, and may be refused to be any number of times."""
    return f"{uid}/delete" if verb == "delete" and uid and result == "ok" else note


def mac_of(name: str, spec: Object, key: bytes) -> str:
    """Return the MAC of an object that we sign: over its name and everything in its spec but the MAC itself."""
    content = {field: value for field, value in spec.items() if field != "mac"}
    return hmac.digest(key, f"{name}\n{compact_json(content)}".encode("utf-8", "surrogatepass"), "sha256").hex()  # fmt: skip
