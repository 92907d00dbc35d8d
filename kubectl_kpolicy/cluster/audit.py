"""Audit: the records of who did what, from the hash-chained segments that the controllers write."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine import vocabulary
from engine.fields import items, part, word
from kubectl_kpolicy.output.rows import Cell, Column, Listing, Row, Shape
from kubectl_kpolicy.output.time_format import instant, minute

from .codes import journal_rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from engine.audit import Segment
    from engine.model import Block, Object

    from .cache import ClusterCache

KIND = "AuditRecord"
UNPROVEN = " (not proven)"
_MARKS = {"postpone": "until {at}", "skip": "the run of {at}", "run": "", "pause": ""}
_MARK = re.compile(r"(?P<value>\S+) (?P<user>\S+): (?P<why>.*)", re.DOTALL)


def audit_rows(world: ClusterCache, _now: datetime) -> list[Row]:
    """Return a row for each record of each segment, and for each use that a journal of codes keeps."""
    rows: list[Row] = []
    for journal in world.objects("journal"):
        rows += [_use(row) for row in journal_rows(journal) if row.cells["state"] == "used"]
    for segment in world.objects("auditsegments"):
        rows += world.cached("auditsegments", segment, rows_of_segment)
    return rows


def _use(entry: Row) -> Row:
    """Return what a journal says about a use; it is in no chain and has no number."""
    cells: dict[str, Cell] = {
        "seq": None, "time": entry.cells["usedat"], "actor": entry.cells["usedby"], "verb": "use",
        "object": entry.text("bound"), "result": "ok", "reason": f"code {entry.text('id')}",
        "namespace": entry.text("namespace"),
    }  # fmt: skip
    return Row(entry.key, cells, entry.object)


def extent(segments: Sequence[Segment], findings: int) -> str:
    """Return in words what was checked, and whether anything was found."""
    records = sum(len(one.records) for one in segments)
    parts = [f"{n} {what}{'s' * (n != 1)}" for n, what in ((records, "record"), (len(segments), "segment"), (findings, "finding"))]  # fmt: skip
    return f"{parts[0]} in {parts[1]}: {parts[2] if findings else 'whole'}"


def rows_of_segment(segment: Object) -> list[Row]:
    """Return the rows of one segment."""
    records = items(segment, "spec", "records") or items(segment, "records")
    name = word(segment, "metadata", "name")
    return [_row(record, name, number) for number, record in enumerate(records)]


def _row(record: Object, segment: str, number: int) -> Row:
    seq = record.get("seq")
    target = part(record, "object")
    place = "/".join(
        filter(None, (word(target, "kind"), word(target, "namespace"), word(target, "name")))
    )
    return Row(
        f"{segment}/{number}",
        {
            "seq": seq if isinstance(seq, int) else number,
            "time": instant(word(record, "time") or word(record, "at")),
            "actor": actor_of(record),
            "verb": word(record, "verb") or word(record, "action"),
            "object": place or word(record, "object"),
            "result": word(record, "result"),
            "reason": word(record, "reason"),
            "as": word(record, "as") or word(record, "impersonator"),
            "ip": word(record, "sourceIP"),
            "hash": word(record, "hash")[:12],
            "segment": segment,
            "namespace": word(target, "namespace"),
        },
        {"apiVersion": vocabulary.KPOLICY, "kind": KIND, "metadata": {"name": f"{segment}-{seq if isinstance(seq, int) else number}"}, **record},
    )  # fmt: skip


def actor_of(record: Object) -> str:
    """Return who did what a record tells; a name that was only claimed says so wherever it is shown."""
    named = word(record, "actor") or word(record, "user")
    return f"{named}{UNPROVEN}" if is_unproven(record) else named


def is_unproven(record: Block) -> bool:
    """Tell whether nobody proved that the API server named the actor of a record."""
    return bool(record.get("unproven"))


def brief_reason(row: Row, now: datetime) -> str:
    """Return the reason of a record; of an annotation that holds a clean-up back, its end and why, for ACTOR says who."""
    reason = row.text("reason")
    form, found = _MARKS.get(row.text("verb")), _MARK.fullmatch(reason)
    if form is None or found is None:
        return reason
    at = instant(found["value"])
    until = form.format(at=minute(at, now)) if at is not None else ""
    return ": ".join(filter(None, (until, found["why"])))


def stored(row: Row) -> Object:
    """Return a record as it stands in the trail, which is what its hash is of."""
    if row.object.get("kind") != KIND:
        return row.object
    return {name: value for name, value in row.object.items() if name not in ("apiVersion", "kind", "metadata")}  # fmt: skip


LISTING = Listing(
    noun="audit",
    title="Audit",
    aliases=("a", "log"),
    columns=(
        Column("seq", "SEQ", Shape.NUMBER),
        Column("time", "TIME", Shape.TIME),
        Column("actor", "ACTOR", most=22, aliases=("user",)),
        Column("verb", "VERB", most=14),
        Column("object", "OBJECT", most=40, grows=True),
        Column("result", "RESULT", Shape.STATE),
        Column("reason", "REASON", most=40, narrow=False, brief=brief_reason),
        Column("as", "AS", wide=True, most=20),
        Column("ip", "SOURCE-IP", wide=True),
        Column("hash", "HASH", wide=True),
        Column("segment", "SEGMENT", wide=True),
    ),
    rows=audit_rows,
    needs=("auditsegments",),
    wants=("journal",),
    sort=("-seq",),
    groups=("actor", "verb", "object"),
    empty="there is no audit record",
    next_step="records are written by kpolicy's controllers (`python -m controllers --roles grants,audit`)",
)
