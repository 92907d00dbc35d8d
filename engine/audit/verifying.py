"""Whether an audit trail is whole, and if not, which record was edited, deleted, inserted, moved, cut off or rolled back."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from engine.record import record

from .chain import GENESIS, digest_of, seal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from engine.model import Block

    from .chain import Checkpoint, Segment


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


def _seq(entry: Block) -> int:
    value = entry.get("seq")
    return value if type(value) is int else -1


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
        if segment.records and not hmac.compare_digest(
            seal(segment.name, segment.records, key), segment.mac
        ):
            yield Finding(
                "unsealed",
                _first(segment),
                segment.name,
                f"the seal of {segment.name} does not fit",
            )
