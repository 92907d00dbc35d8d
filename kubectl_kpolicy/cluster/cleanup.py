"""Cleanup: what will be deleted when, by which policy or by which label.

Next runs are the engine's (`engine.cleanup`): counted from the last run or from creation, never from now, so that a run that is
late shows as due.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from engine.cleanup.holds import Hold, hold_on_object, hold_on_run, takes_place
from engine.cleanup.ttl import PROPAGATION_ANNOTATION
from engine.errors import EngineError
from engine.fields import items, part, word
from engine.vocabulary import TTL_LABEL
from kubectl_kpolicy.output.rows import Cell, Column, Listing, Row, Shape
from kubectl_kpolicy.output.time_format import instant

from . import celkinds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.model import Object

    from .cache import ClusterCache

POLICIES = ("clustercleanuppolicies", "cleanuppolicies")


def cleanup_rows(world: ClusterCache, now: datetime) -> list[Row]:
    """Return a row for each cleanup or deleting policy and for each object with a TTL label."""
    policies = [policy for name in POLICIES for policy in world.objects(name)]
    policies += [one for one in world.objects(celkinds.POLICIES) if celkinds.is_deleting(one)]
    rows = [_policy_row(policy, now) for policy in policies]
    return [*rows, *(_ttl_row(obj, now) for obj in world.objects("ttl"))]


def next_run(policy: Object, now: datetime) -> tuple[datetime | None, str]:
    """Return when a cleanup policy runs next and, where it cannot be told, why."""
    from engine.cleanup.plan import run_of
    from engine.cleanup.timed import read_timed

    try:
        found = run_of(read_timed(policy), now)
    except EngineError as error:
        return None, error.message
    return found.run_at, "spent" if found.spent else ""


def due(obj: Object) -> tuple[datetime | None, str]:
    """Return when an object's own label makes it due and, where the label cannot be read, why not."""
    from engine.cleanup.ttl import due_at

    try:
        return due_at(obj), ""
    except EngineError as error:
        return None, error.message


def hold_of(row: Row, now: datetime) -> Hold | None:
    """Return what keeps the clean-up of a row of this listing from happening."""
    if is_of_label(row):
        return hold_on_object(row.object, now)
    return hold_on_run(row.object, next_run(row.object, now)[0], now)


def is_of_label(row: Row) -> bool:
    """Tell whether a row is an object with a TTL label, and no policy."""
    return row.text("by").startswith("label ")


def _targets(policy: Object) -> tuple[str, str]:
    """Return the kinds and the names that a policy matches, the former as resources where it is written in CEL."""
    if celkinds.is_deleting(policy):
        blocks = items(policy, "spec", "matchConstraints", "resourceRules")
        return _joined(blocks, "resources"), _joined(blocks, "resourceNames")
    match = part(policy, "spec", "match")
    blocks = [part(one, "resources") for one in (*items(match, "any"), *items(match, "all"), match)]
    return _joined(blocks, "kinds"), _joined(blocks, "names")


def _joined(blocks: Iterable[Object], field: str) -> str:
    return ",".join(dict.fromkeys(str(one) for block in blocks for one in block.get(field) or ()))


def _policy_row(policy: Object, now: datetime) -> Row:
    run_at, trouble = next_run(policy, now)
    hold = hold_on_run(policy, run_at, now)
    run_at = run_at and takes_place(policy, run_at)
    namespace, name = word(policy, "metadata", "namespace"), word(policy, "metadata", "name")
    state = hold.state if hold else trouble or _state(run_at, now)
    kinds, names = _targets(policy)
    cells: dict[str, Cell] = {
        "due": run_at,
        "left": None if hold and hold.until is None else run_at,
        "kind": kinds,
        "namespace": namespace,
        "name": names or "(all that match)",
        # what is postponed, paused or run is the policy, which the names of what it deletes do not tell apart
        "resource": f"{word(policy, 'kind')}/{name}",
        "by": f"{word(policy, 'kind')}/{name}",
        "object": f"{word(policy, 'kind')}/{name}",
        "action": f"delete on `{word(policy, 'spec', 'schedule')}`",
        "state": state,
        "propagation": word(policy, "spec", "deletionPropagationPolicy"),
        "owner": "",
        "since": instant(
            word(policy, "status", "lastExecutionTime")
            or word(policy, "metadata", "creationTimestamp")
        ),
        "last": instant(word(policy, "status", "lastExecutionTime")),
    }
    return Row(f"{policy.get('kind')}/{namespace}/{name}", cells, policy)


def _ttl_row(obj: Object, now: datetime) -> Row:
    due_at, trouble = due(obj)
    hold = hold_on_object(obj, now)
    due_at = due_at and takes_place(obj, due_at)
    kind, name = word(obj, "kind"), word(obj, "metadata", "name")
    namespace = word(obj, "metadata", "namespace")
    owner = next(iter(items(obj, "metadata", "ownerReferences")), {})
    cells: dict[str, Cell] = {
        "due": due_at,
        "left": None if hold and hold.until is None else due_at,
        "since": instant(word(obj, "metadata", "creationTimestamp")),
        "kind": kind,
        "namespace": namespace,
        "name": name,
        "by": f"label ttl={word(obj, 'metadata', 'labels', TTL_LABEL)}",
        "object": f"{kind}/{name}",
        "action": "delete",
        "state": hold.state if hold else "unreadable label" if trouble else _state(due_at, now),
        "propagation": word(obj, "metadata", "annotations", PROPAGATION_ANNOTATION),
        "owner": "/".join(filter(None, (word(owner, "kind"), word(owner, "name")))),
        "last": None,
    }
    return Row(f"ttl/{kind}/{namespace}/{name}", cells, obj)


def _state(at: datetime | None, now: datetime) -> str:
    """Return `due` for what should be gone, allowing for the minute in which Kyverno looks again."""
    if at is None:
        return "never"
    return "scheduled" if now < at else "due" if now - at > timedelta(minutes=1) else "now"


LISTING = Listing(
    noun="cleanup",
    title="Cleanup",
    aliases=("c", "clean", "timers"),
    columns=(
        Column("due", "DUE", Shape.TIME, narrow=False),
        Column("left", "LEFT", Shape.LEFT, since="since", over="due"),
        Column("kind", "KIND", most=20),
        Column("namespace", "NS", most=18, aliases=("ns",)),
        Column("name", "NAME", most=34, grows=True),
        Column("by", "BY", most=36),
        Column("state", "STATE", Shape.STATE, narrow=False),
        Column("action", "ACTION", most=28, narrow=False),
        Column("propagation", "PROPAGATION", wide=True),
        Column("owner", "OWNER", wide=True, most=24),
        Column("last", "LAST-RUN", Shape.AGE, wide=True),
    ),
    rows=cleanup_rows,
    needs=POLICIES,
    wants=("ttl", celkinds.POLICIES),
    sort=("left",),
    groups=("by", "namespace", "kind"),
    failures=lambda row: row.cells["state"] == "due",
    empty="nothing will be deleted: there is no cleanup policy, and no object has a TTL label",
    next_step="give an object a label `cleanup.kyverno.io/ttl: 2h`, or apply a CleanupPolicy or DeletingPolicy",
)
