"""The audit trail: records chained by their hashes, sealed in segments, checked for every kind of tampering.

A chain alone does not show a tail that was cut off or an older copy put back, so `verify` also takes checkpoints: heads of
the chain that were kept somewhere else.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Any, Final

from engine.errors import PolicyError
from engine.lang.gotext import compact_json
from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from engine.model import Block, Object


# Records and segments of the audit trail: how one follows from the other.
#
# Each record holds the hash of its own content and of the record before. A segment holds records that follow each other and a
# MAC of its head by a key that only the controllers have, so that a chain cannot be recomputed by whoever may edit objects.

GENESIS: Final = "0" * 64
"""What stands for the hash of the record before the first one."""

MAX_BYTES: Final = 64 << 10
"""A segment is closed before its records are more than this, because each record is written with all before it in its segment."""


@record
class Checkpoint:
    """A head of the chain kept elsewhere: the number of a record and its hash."""

    seq: int
    hash: str


@record
class Segment:
    """Records that follow each other, as stored in one AuditSegment object."""

    name: str
    records: tuple[Block, ...]
    mac: str = ""

    @property
    def head(self) -> Checkpoint | None:
        """The last record's number and hash; None of an empty segment."""
        if not self.records:
            return None
        last = self.records[-1]
        return Checkpoint(_seq(last, 0), str(last.get("hash", "")))


def digest_of(entry: Mapping[str, Any], previous: str) -> str:
    """Return the hash of a record that follows the record with hash `previous`; its own `hash` does not count."""
    content = {key: value for key, value in entry.items() if key != "hash"}
    text = f"{previous}\n{compact_json(content)}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def append(entry: Mapping[str, Any], head: Checkpoint | None) -> Object:
    """Return a record with the number and hash that follow `head`; None is the start of a trail."""
    numbered = {**entry, "seq": head.seq + 1 if head else 1}
    return {**numbered, "hash": digest_of(numbered, head.hash if head else GENESIS)}


def seal(name: str, records: Sequence[Block], key: bytes) -> str:
    """Return the MAC of a segment: over its name, its first number, and its head, which stands for all records before."""
    first, last = records[0], records[-1]
    text = f"{name}\n{first.get('seq')}\n{last.get('seq')}\n{last.get('hash')}"
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def segment_of(obj: Object) -> Segment:
    """Read an AuditSegment object; raises PolicyError where it holds no list of records."""
    name = str(obj.get("metadata", {}).get("name", ""))
    spec = obj.get("spec")
    records = spec.get("records") if isinstance(spec, dict) else None
    if not isinstance(records, list) or not all(isinstance(one, dict) for one in records):
        raise PolicyError(f"auditsegment/{name} holds no list of records")
    return Segment(name, tuple(records), str(spec.get("mac", "") if spec else ""))


# Whether an audit trail is whole, and if not, which record was edited, deleted, inserted, moved, cut off or rolled back.


@record
class Finding:
    """One thing that is wrong with a trail: which kind, at which record, in which segment."""

    kind: str
    seq: int
    segment: str
    message: str


def verify(
    segments: Sequence[Segment], checkpoints: Iterable[Checkpoint] = (), key: bytes | None = None
) -> list[Finding]:
    """Check a trail from its first record; nothing found means that it is whole.

    `segments` are all there are, in any order. With the key the seals are checked too; `checkpoints` show a tail that was
    cut off and an older copy that was put back.
    """
    ordered = sorted(segments, key=lambda one: (_first(one), one.name))
    found = [*_links(ordered), *_heads(ordered, checkpoints)]
    if key is not None:
        found += _seals(ordered, key)
    return found


def _first(segment: Segment) -> int:
    return _seq(segment.records[0]) if segment.records else 0


def _seq(entry: Block, unread: int = -1) -> int:
    value = entry.get("seq")
    return value if type(value) is int else unread


def _links(segments: Sequence[Segment]) -> Iterator[Finding]:
    """Walk the chain; after a break go on from what is written, so that one change gives one finding."""
    previous, expected = GENESIS, 1
    for segment in segments:
        for entry in segment.records:
            seq, written = _seq(entry), str(entry.get("hash", ""))
            finding = _broken(entry, seq, expected, previous, written, segment.name)
            if finding is not None:
                yield finding
            previous, expected = written, seq + 1


def _broken(
    entry: Block, seq: int, expected: int, previous: str, written: str, segment: str
) -> Finding | None:
    if seq > expected:
        lost = f"{expected}" if seq == expected + 1 else f"{expected} to {seq - 1}"
        return Finding("deleted", expected, segment, f"record {lost} is missing before {seq}")
    if seq < expected:
        return Finding("moved", seq, segment, f"record {seq} stands where {expected} belongs")
    if not hmac.compare_digest(digest_of(entry, previous), written):
        return Finding(
            "edited", seq, segment, f"record {seq} does not have the content that was hashed"
        )
    return None


def _heads(segments: Sequence[Segment], checkpoints: Iterable[Checkpoint]) -> Iterator[Finding]:
    hashes = {
        _seq(entry): (str(entry.get("hash", "")), segment.name)
        for segment in segments
        for entry in segment.records
    }
    last = max(hashes, default=0)
    for point in checkpoints:
        if point.seq > last:
            message = f"the trail ends at record {last}, a checkpoint knows record {point.seq}"
            yield Finding("cut", last, hashes.get(last, ("", ""))[1], message)
        elif point.seq in hashes and hashes[point.seq][0] != point.hash:
            message = f"record {point.seq} is another one than the checkpoint's"
            yield Finding("rewritten", point.seq, hashes[point.seq][1], message)


def _seals(segments: Sequence[Segment], key: bytes) -> Iterator[Finding]:
    for segment in segments:
        name, records = segment.name, segment.records
        if records and not hmac.compare_digest(seal(name, records, key), segment.mac):
            yield Finding("unsealed", _first(segment), name, f"the seal of {name} does not fit")
