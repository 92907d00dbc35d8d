"""Grants and the inbox: who asked for which exception, in which state it is, and what waits for an approver.

Reads the native kind; everything is optional, so that a half-written object still shows.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.fields import items, part, word
from engine.grants import FINAL, GrantPolicy, cannot_decide, parse_grant, parse_grant_policy
from engine.grants.circumstances import state_of
from engine.grants.model import length_of
from engine.grants.subjects import names_of
from engine.model.kinds import is_of_cel
from kubectl_kpolicy.output.cells import short
from kubectl_kpolicy.output.rows import Cell, Column, Listing, Row, Shape
from kubectl_kpolicy.output.time_format import instant

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from engine.model import Object
    from kubectl_kpolicy.session.identity import Identity

    from .cache import ClusterCache


def grant_rows(world: ClusterCache, _now: datetime) -> list[Row]:
    """Return a row for each grant."""
    grants = world.objects("grants")
    return [
        row for grant in grants for row in world.cached("grants", grant, lambda one: [_row(one)])
    ]


def inbox_rows(world: ClusterCache, now: datetime, viewer: Identity | None = None) -> list[Row]:
    """Return the grants that wait for an approver, with what an approver has to weigh, and why who looks cannot decide."""
    waiting = [row for row in grant_rows(world, now) if row.cells["state"] == "pending"]
    who, policies = viewer or world.viewer, _policies(world)
    return [_inbox_row(row, waiting, world, _refused(row.object, who, policies)) for row in waiting]


def waiting_for(world: ClusterCache, now: datetime) -> int:
    """Return how many requests wait for who looks, or for anybody where that is not known."""
    name = f"inbox of {world.viewer.user if world.viewer else ''}"
    return world.derived(name, ("grants", "grantpolicies"), lambda: sum(not row.cells["refused"] for row in inbox_rows(world, now)))  # fmt: skip


def _policies(world: ClusterCache) -> dict[str, GrantPolicy]:
    """Return the grant policies by name; one that cannot be read is not known."""
    found = {}
    for obj in world.objects("grantpolicies"):
        with suppress(EngineError):
            found[word(obj, "metadata", "name")] = parse_grant_policy(obj)
    return found


def _refused(grant: Object, who: Identity | None, policies: Mapping[str, GrantPolicy]) -> str:
    """Return why somebody cannot approve a request, empty where he can or where it is not known."""
    if who is None:
        return ""
    try:
        asked = parse_grant(grant)
    except EngineError:
        return ""
    policy = policies.get(word(grant, "status", "grantPolicy"))
    return cannot_decide(who.user, frozenset(who.groups), asked, policy, "approve")


def approvers(grant: Object) -> str:
    """Return who agreed to a grant, or who refused it."""
    found = []
    for one in items(grant, "spec", "decisions"):
        verdict = word(one, "verdict")
        if verdict not in ("approve", "deny"):
            continue
        found.append(word(one, "by") + ("" if verdict == "approve" else f" ({verdict})"))
    return ", ".join(filter(None, found))


def rules_of(grant: Object) -> list[str]:
    """Return `policy/rule` for everything a grant is for."""
    policy, rules = word(grant, "spec", "policy"), part(grant, "spec").get("rules")
    if is_of_cel(policy):
        return [policy]
    names = [str(one) for one in rules] if isinstance(rules, list) and rules else ["*"]
    return [f"{policy}/{name}" for name in names] if policy else []


def target_of(grant: Object) -> str:
    """Return what a grant is for: `Kind/name`, or a selector."""
    target = part(grant, "spec", "target")
    kind, name = word(target, "kind"), word(target, "name")
    if not name:
        labels = part(target, "selector", "matchLabels") or part(target, "selector")
        name = ",".join(f"{key}={value}" for key, value in labels.items()) or "*"
    return f"{kind}/{name}" if kind else name


def _row(grant: Object) -> Row:
    namespace, name = word(grant, "metadata", "namespace"), word(grant, "metadata", "name")
    spec, status = part(grant, "spec"), part(grant, "status")
    ends = instant(word(status, "expiresAt"))
    timeout = instant(word(status, "approvalDeadline"))
    state = state_of(grant)
    cells: dict[str, Cell] = {
        "state": state,
        "left": None if state in FINAL else ends or timeout,
        "since": begins(grant) if ends else instant(word(grant, "metadata", "creationTimestamp")),
        "rules": short(rules_of(grant)),
        "namespace": namespace,
        "target": target_of(grant),
        "requester": word(spec, "requester"),
        "approver": approvers(grant),
        "reason": word(spec, "reason"),
        "name": name,
        "grant": name,
        "said": _said(grant),
        "age": instant(word(grant, "metadata", "creationTimestamp")),
        "start": instant(word(spec, "startAt") or word(status, "startsAt")),
        "ends": ends,
        "timeout": timeout,
        "for": word(spec, "duration"),
        "uses": _uses(spec, status),
        "idle": word(spec, "idle"),
        "ticket": word(spec, "ticket"),
        "emergency": "emergency" if spec.get("emergency") else "",
        "policy": names_of(word(spec, "policy"))[1],
    }
    return Row(f"Grant/{namespace}/{name}", cells, grant)


def begins(grant: Object) -> datetime | None:
    """Return when the time of a grant began or begins: as its controller wrote or its request says, else with the request."""
    written = word(grant, "status", "startsAt") or word(grant, "spec", "startAt")
    return instant(written or word(grant, "metadata", "creationTimestamp"))


def _said(grant: Object) -> str:
    """Return the last question or answer about a request, and whose it is."""
    said = [one for one in items(grant, "spec", "decisions") if word(one, "verdict") == "comment"]
    return f"{word(said[-1], 'by')}: {word(said[-1], 'comment')}" if said else ""


def _uses(spec: Object, status: Object) -> str:
    used, most = status.get("uses"), spec.get("uses")
    count = used if isinstance(used, int) else 0
    return f"{count}/{most}" if isinstance(most, int) and most else str(count)


def _inbox_row(row: Row, waiting: list[Row], world: ClusterCache, refused: str) -> Row:
    reach = part(row.object, "status", "reach")
    flips, later = reach.get("flips"), reach.get("matchesLater")
    earlier = sum(
        word(grant, "spec", "requester") == row.text("requester")
        for grant in world.objects("grants")
        if grant is not row.object
    )
    cells = {
        **row.cells,
        "reach": f"{flips} now" if isinstance(flips, int) else "",
        "risk": _risk(row, later=bool(later)),
        "prior": earlier,
        "waiting": len(waiting),
        "refused": refused,
    }
    return Row(row.key, cells, row.object)


def _risk(row: Row, *, later: bool) -> str:
    """Return what speaks for looking twice, shortest first."""
    length = length_of(row.text("for"))
    found = ["emergency"] if row.cells["emergency"] else []
    if "*" in row.text("target") or later:
        found.append("wildcard")
    if length is not None and length.total_seconds() > 86_400:
        found.append("over a day")
    if not row.cells["ticket"]:
        found.append("no ticket")
    return ", ".join(found)


GRANTS = Listing(
    noun="grants",
    title="Grants",
    aliases=("g", "grant"),
    columns=(
        Column("state", "STATE", Shape.STATE),
        Column("left", "LEFT", Shape.LEFT, since="since"),
        Column("namespace", "NS", most=16, aliases=("ns",)),
        Column("rules", "POLICY/RULE", most=40),
        Column("target", "TARGET", most=30),
        Column("requester", "REQUESTER", most=20, narrow=False, aliases=("by",)),
        Column("approver", "APPROVER", most=20, narrow=False),
        Column("reason", "REASON", grows=True, narrow=False),
        Column("name", "NAME", wide=True, most=30),
        Column("age", "CREATED", Shape.AGE, wide=True),
        Column("start", "START", Shape.TIME, wide=True),
        Column("uses", "USES", wide=True),
        Column("idle", "IDLE", wide=True),
        Column("ticket", "TICKET", wide=True),
        Column("emergency", "EMERGENCY", Shape.STATE, wide=True),
        Column("said", "SAID", wide=True, most=40),
    ),
    rows=grant_rows,
    needs=("grants",),
    sort=("left", "-age"),
    groups=("state", "namespace", "requester"),
    failures=lambda row: row.cells["state"] in ("pending", "active", "scheduled"),
    empty="nobody asked for an exception yet",
    next_step="press r on a violation or n here; grants need kpolicy's kinds (`kubectl kpolicy install --crds-only`)",
)
INBOX = Listing(
    noun="inbox",
    title="Inbox",
    aliases=("in",),
    columns=(
        Column("age", "AGE", Shape.AGE),
        Column("timeout", "TIMEOUT", Shape.LEFT, since="age"),
        Column("requester", "REQUESTER", most=20),
        Column("rules", "POLICY/RULE", most=36),
        Column("target", "TARGET", most=28),
        Column("for", "FOR"),
        Column("reach", "REACH", narrow=False, brief=lambda row, _now: row.text("reach") or "-"),
        Column("risk", "RISK", most=30, narrow=False),
        Column("reason", "REASON", grows=True, narrow=False),
        Column("namespace", "NS", wide=True, aliases=("ns",)),
        Column("ticket", "TICKET", wide=True),
        Column("prior", "PRIOR", Shape.NUMBER, wide=True),
        Column("said", "SAID", wide=True, most=40),
        Column("refused", "NOT YOURS", wide=True, most=40),
    ),
    rows=inbox_rows,
    needs=("grants",),
    wants=("grantpolicies",),
    sort=("timeout",),
    groups=("requester", "namespace"),
    failures=lambda row: not row.cells["refused"],
    narrowed="yours to decide",
    starts_narrowed=True,
    empty="nothing waits for an approver",
    next_step="requests show here as soon as they are made; your own never count as approved by you",
)
