"""Records and segments of the audit trail: how one follows from the other.

Each record holds the hash of its own content and of the record before. A segment holds records that follow each other and a
MAC of its head by a key that only the controllers have, so that a chain cannot be recomputed by whoever may edit objects.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Any, Final

from engine.errors import PolicyError
from engine.lang.gotext import compact_json
from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.model import Block, Object

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
        return Checkpoint(_whole(last.get("seq")), str(last.get("hash", "")))


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


def _whole(value: Any) -> int:
    return value if type(value) is int else 0
