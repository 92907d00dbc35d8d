"""Blocks: requests that were denied at admission, read from the Events that the engine leaves on policies.

Both kpolicy and Kyverno write `Kind ns/name: [rule] fail (blocked); message`; policies written in CEL have no rule to name.
Who asked stands in an annotation that only kpolicy's engine writes, with the id by which an exception can be asked for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine import vocabulary
from engine.fields import word
from engine.model.kinds import NAMESPACED
from kubectl_kpolicy.output.rows import Column, Listing, Row, Shape
from kubectl_kpolicy.output.time_format import instant

from .violations import brief_message

if TYPE_CHECKING:
    from datetime import datetime

    from engine.model import Object

    from .cache import ClusterCache

_USER, _BLOCK, _REQUEST_UID = vocabulary.USER, vocabulary.BLOCK, vocabulary.REQUEST_UID
_TEXT = re.compile(
    r"(?P<kind>[A-Za-z][\w.]*) (?P<place>\S+): (?:\[(?P<rule>[^\]]*)\] )?(?P<status>\w+) \(blocked\)"
    r"(?:; (?P<message>.*))?",
    re.DOTALL,
)


def block_rows(world: ClusterCache, _now: datetime) -> list[Row]:
    """Return a row for each Event about a denied request."""
    rows: list[Row] = []
    for event in world.objects("events"):
        rows += world.cached("events", event, _rows_of)
    return rows


def _rows_of(event: Object) -> list[Row]:
    found = _TEXT.match(word(event, "message") or word(event, "note"))
    if found is None:
        return []
    namespace, _, name = found["place"].rpartition("/")
    about = event.get("involvedObject") or event.get("regarding") or {}
    policy = word(about, "name")
    if word(about, "kind") in NAMESPACED:
        policy = f"{word(about, 'namespace')}/{policy}"
    last = word(event, "lastTimestamp") or word(event, "eventTime")
    created = word(event, "metadata", "creationTimestamp")
    first = word(event, "firstTimestamp") or created
    count = event.get("count")
    row = Row(
        word(event, "metadata", "uid") or word(event, "metadata", "name"),
        {
            "time": instant(last) or instant(created),
            "user": word(event, "metadata", "annotations", _USER),
            "namespace": namespace,
            "resource": f"{found['kind']}/{name}",
            "policy": policy,
            "policykind": word(about, "kind"),
            "rule": found["rule"] or "",
            "count": count if isinstance(count, int) else 1,
            "message": found["message"] or "",
            "first": instant(first),
            "webhook": word(event, "source", "component") or word(event, "reportingComponent"),
            "kind": found["kind"],
            "name": name,
            "block": word(event, "metadata", "annotations", _BLOCK),
            "uid": word(event, "metadata", "annotations", _REQUEST_UID),
        },
        event,
    )
    return [row]


LISTING = Listing(
    noun="blocks",
    title="Blocks",
    aliases=("b", "block", "denials"),
    columns=(
        Column("time", "TIME", Shape.TIME),
        Column("user", "USER", most=20),
        Column("namespace", "NS", most=18, aliases=("ns",)),
        Column("resource", "RESOURCE", most=34, aliases=("object", "target")),
        Column("policy", "POLICY", most=30),
        Column("rule", "RULE", most=24, narrow=False),
        Column("count", "COUNT", Shape.NUMBER),
        Column(
            "message", "MESSAGE", grows=True, narrow=False, aliases=("msg",), brief=brief_message
        ),
        Column("first", "FIRST", Shape.TIME, wide=True),
        Column("webhook", "WEBHOOK", wide=True),
        Column("uid", "UID", wide=True),
    ),
    rows=block_rows,
    needs=("events",),
    sort=("-time",),
    groups=("policy", "namespace", "user", "kind"),
    empty="no Event tells of a denied request; Events are kept for an hour by most API servers",
    next_step="a denial shows here within seconds; deny one with `kubectl apply` of an object that fails an enforced rule",
)
