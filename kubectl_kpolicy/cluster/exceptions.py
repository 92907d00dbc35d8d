"""Exceptions: whom they let through, until when, how much they were used, and what is wrong with them.

Expiry is the engine's own decision (`engine.exceptions`), so that what stands here is what admission does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import vocabulary
from engine.errors import EngineError
from engine.fields import items, part, word
from engine.grants.subjects import names_of
from kubectl_kpolicy.output.cells import short
from kubectl_kpolicy.output.rows import Cell, Column, Listing, Row, Shape
from kubectl_kpolicy.output.time_format import instant

from . import celkinds
from .exception_audit import Usage, concerns, every_exception, known_rules, usage_of
from .violations import LISTING as VIOLATIONS

if TYPE_CHECKING:
    from datetime import datetime

    from engine.model import Object, PolicyException

    from .cache import ClusterCache

REASON, TICKET, OWNER, GRANT = vocabulary.REASON, vocabulary.TICKET, vocabulary.REQUESTER, vocabulary.GRANT  # fmt: skip


def exception_rows(world: ClusterCache, now: datetime) -> list[Row]:
    """Return a row for each exception."""
    usage = usage_of(world)
    rules = known_rules(world)
    return [_row(obj, usage, rules, now) for obj in every_exception(world)]


def read(obj: Object) -> PolicyException | None:
    """Return the exception in an object as the engine reads it, None when it cannot."""
    from engine.parse import parse_exception

    try:
        return parse_exception(obj, strict=False)
    except EngineError:
        return None


def ends_at(obj: Object) -> datetime | None:
    """Return when an exception ends, None when it does not."""
    if celkinds.is_cel(obj):
        try:
            return celkinds.ends_at(obj)
        except EngineError:
            return None
    from engine.exceptions import expires_at

    exception = read(obj)
    return None if exception is None else expires_at(exception)


def rule_texts(obj: Object) -> list[str]:
    """Return `policy/rule` for everything an exception names, and policies written in CEL by their identity."""
    found = celkinds.named_policies(obj)
    for named in items(obj, "spec", "exceptions"):
        names = named.get("ruleNames")
        rules = names if isinstance(names, list) else []
        found += [f"{word(named, 'policyName')}/{rule}" for rule in rules or ("*",)]
    return found


def policies_of(obj: Object) -> list[str]:
    """Return the policies that an exception is from, by their identities."""
    named = [word(one, "policyName") for one in items(obj, "spec", "exceptions")]
    return [*celkinds.named_policies(obj), *named]


def targets(obj: Object) -> list[str]:
    """Return `Kind/name` patterns of what an exception matches, with the namespace where it names one; or its conditions."""
    match = part(obj, "spec", "match")
    found: dict[str, None] = dict.fromkeys(celkinds.expressions(obj))
    for entry in (*items(match, "any"), *items(match, "all"), match):
        resources = part(entry, "resources")
        names = _texts(resources, "names") or _texts(resources, "name") or ["*"]
        places = _texts(resources, "namespaces")
        for kind in _texts(resources, "kinds"):
            for name in names:
                found[f"{kind}/{name}" + (f" in {','.join(places)}" if places else "")] = None
    return list(found)


def _texts(block: Object, name: str) -> list[str]:
    value = block.get(name)
    if isinstance(value, list):
        return [str(one) for one in value]
    return [str(value)] if value else []


def _row(obj: Object, usage: dict[str, Usage], rules: dict[str, set[str]], now: datetime) -> Row:
    namespace, name = word(obj, "metadata", "namespace"), word(obj, "metadata", "name")
    annotations = part(obj, "metadata", "annotations")
    until = ends_at(obj)
    used = usage.get(f"{namespace}/{name}", Usage())
    state = "expired" if until and now >= until else "unlimited" if until is None else "active"
    owner = next(iter(items(obj, "metadata", "ownerReferences")), {})
    cells: dict[str, Cell] = {
        "namespace": namespace,
        "name": name,
        "rules": short(rule_texts(obj)),
        "target": short(targets(obj)),
        "until": until,
        "left": until,
        "uses": used.count,
        "state": state,
        "api": word(obj, "apiVersion"),
        "owner": str(annotations.get(OWNER) or "") or _owner_text(owner),
        "reason": str(annotations.get(REASON) or ""),
        "ticket": str(annotations.get(TICKET) or ""),
        "used": used.last,
        "drift": ", ".join(concerns(obj, used, rules, now, until)),
        "age": instant(word(obj, "metadata", "creationTimestamp")),
        "grant": str(annotations.get(GRANT) or "").rpartition("/")[2],
        "policy": ",".join(dict.fromkeys(names_of(one)[1] for one in policies_of(obj))),
    }
    return Row(
        f"{'CelException' if celkinds.is_cel(obj) else 'PolicyException'}/{namespace}/{name}",
        cells,
        obj,
    )


def _owner_text(owner: Object) -> str:
    return f"{word(owner, 'kind')}/{word(owner, 'name')}" if owner else ""


LISTING = Listing(
    noun="exceptions",
    title="Exceptions",
    aliases=("x", "polex", "exception"),
    columns=(
        Column("namespace", "NS", most=16, aliases=("ns",)),
        Column("name", "NAME", most=30),
        Column("rules", "POLICY/RULE", most=40, grows=True),
        Column("target", "TARGET", most=30, narrow=False),
        Column("left", "LEFT", Shape.LEFT, aliases=("until",), since="age"),
        Column("uses", "USES", Shape.NUMBER),
        Column("state", "STATE", Shape.STATE),
        Column("drift", "DRIFT", most=28, narrow=False),
        Column("api", "API", wide=True),
        Column("owner", "OWNER", wide=True, most=24),
        Column("reason", "REASON", wide=True, most=40),
        Column("ticket", "TICKET", wide=True),
        Column("used", "LAST-USED", Shape.AGE, wide=True),
        Column("age", "AGE", Shape.AGE, wide=True),
    ),
    rows=exception_rows,
    needs=("exceptions",),
    wants=(
        "clusterpolicies",
        "policies",
        *VIOLATIONS.needs,
        *VIOLATIONS.wants,
        "uses",
        "grants",
        *celkinds.NAMES,
    ),
    sort=("left", "namespace", "name"),
    groups=("namespace", "state", "policy"),
    failures=lambda row: bool(row.cells["drift"]),
    empty="there is no exception: every policy holds for everybody",
    next_step="request one from a violation with r; Kyverno honours exceptions only when they are enabled (`kubectl kpolicy doctor`)",
)
