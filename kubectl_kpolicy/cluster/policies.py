"""Policies: what is in force where, in which mode, and how its results and exceptions count."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from engine import vocabulary
from engine.fields import items, part, word
from kubectl_kpolicy.output.rows import Cell, Column, Listing, Row, Shape
from kubectl_kpolicy.output.time_format import instant

from . import celkinds
from .exception_audit import every_exception
from .exceptions import policies_of
from .knowledge import Sight, known
from .violations import FAILURES, all_rows
from .violations import LISTING as VIOLATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from engine.model import Object

    from .cache import ClusterCache


def policy_rows(world: ClusterCache, _now: datetime) -> list[Row]:
    """Return a row for each policy, cluster-wide ones first."""
    counts: Counter[tuple[str, str]] = Counter()
    scanned: dict[str, datetime] = {}
    for row in all_rows(world):
        policy = celkinds.identity_of(row)
        counts[policy, row.text("result")] += 1
        at = row.moment("age")
        if at is not None and (policy not in scanned or at > scanned[policy]):
            scanned[policy] = at
    excepted = Counter(one for exception in every_exception(world) for one in policies_of(exception))  # fmt: skip
    unknown = _uncounted(world)
    return [_row(policy, counts, excepted, scanned, unknown) for policy in every_policy(world)]


def _uncounted(world: ClusterCache) -> frozenset[str]:
    """Return the columns whose zero would be a guess: what is counted in them was not read, or not all of it."""
    reports = known(world, VIOLATIONS).sight in (Sight.WHOLE, Sight.STALE)
    return frozenset(
        (*(() if reports else ("fail", "pass")), *(() if world.is_synced("exceptions") else ("exceptions",)))
    )  # fmt: skip


def every_policy(world: ClusterCache) -> list[Object]:
    """Return the policies of all kinds, cluster-wide classic ones first."""
    names = ("clusterpolicies", "policies", celkinds.POLICIES)
    return [policy for name in names for policy in world.objects(name)]


def policy_key(policy: Object) -> str:
    """Return how reports and exceptions name a policy."""
    if celkinds.is_cel(policy):
        return celkinds.key_of_policy(policy)
    name = word(policy, "metadata", "name")
    namespace = word(policy, "metadata", "namespace")
    return f"{namespace}/{name}" if policy.get("kind") == "Policy" else name


def policy_identity(policy: Object) -> str:
    """Return what tells a policy from all others, of other kinds too."""
    return celkinds.identity_of_policy(policy) if celkinds.is_cel(policy) else policy_key(policy)


def mode(policy: Object) -> str:
    """Return `enforce`, `audit`, or `mixed` where rules differ; `-` for a policy that validates nothing."""
    if celkinds.is_cel(policy):
        return celkinds.mode(policy)
    spec = part(policy, "spec")
    usual = word(spec, "validationFailureAction") or "Audit"
    found = set()
    for rule in items(spec, "rules"):
        if "validate" in rule:
            found.add((word(rule, "validate", "failureAction") or usual).lower())
        found |= {
            (word(image, "failureAction") or usual).lower() for image in items(rule, "verifyImages")
        }
    return found.pop() if len(found) == 1 else "mixed" if found else "-"


def readiness(policy: Object) -> str:
    """Return whether the engine says that it took the policy over: `yes`, `no`, `unknown`."""
    if celkinds.is_cel(policy):
        return celkinds.readiness(policy)
    for condition in items(policy, "status", "conditions"):
        if condition.get("type") == "Ready":
            return "yes" if condition.get("status") == "True" else "no"
    ready = part(policy, "status").get("ready")
    return "unknown" if ready is None else "yes" if ready else "no"


def _row(
    policy: Object,
    counts: Mapping[tuple[str, str], int],
    excepted: Mapping[str, int],
    scanned: Mapping[str, datetime],
    unknown: frozenset[str],
) -> Row:
    key, one = policy_key(policy), policy_identity(policy)
    spec, annotations = part(policy, "spec"), part(policy, "metadata", "annotations")
    rules = items(spec, "rules") or items(spec, "validations")
    background = spec.get("background"), part(spec, "evaluation", "background").get("enabled")
    cells: dict[str, Cell] = {
        "name": word(policy, "metadata", "name"),
        "kind": word(policy, "kind"),
        "scope": word(policy, "metadata", "namespace") or "cluster",
        "mode": mode(policy),
        "ready": readiness(policy),
        "fail": sum(counts.get((one, result), 0) for result in FAILURES),
        "pass": counts.get((one, "pass"), 0),
        "exceptions": excepted.get(one, 0),
        "severity": vocabulary.severity_of(annotations),
        "category": str(annotations.get(vocabulary.CATEGORY) or ""),
        "background": "no" if False in background else "yes",
        "failurepolicy": word(spec, "failurePolicy") or "Fail",
        "rules": len(rules),
        "scan": scanned.get(one),
        "age": instant(word(policy, "metadata", "creationTimestamp")),
        "policy": key,
        "policykind": word(policy, "kind"),
        "namespace": word(policy, "metadata", "namespace"),
    }
    cells.update({name: None for name in unknown if not cells[name]})
    return Row(f"{policy.get('kind')}/{key}", cells, policy)


LISTING = Listing(
    noun="policies",
    title="Policies",
    aliases=("p", "pol", "policy", "cpol"),
    columns=(
        Column("name", "NAME", most=40, grows=True),
        Column("kind", "KIND", narrow=False),
        Column("scope", "SCOPE", most=18, aliases=("ns",)),
        Column("mode", "MODE", Shape.STATE),
        Column("ready", "READY", Shape.STATE),
        Column("fail", "FAIL", Shape.NUMBER),
        Column("pass", "PASS", Shape.NUMBER),
        Column("exceptions", "EXC", Shape.NUMBER, aliases=("exc",)),
        Column("age", "AGE", Shape.AGE, narrow=False),
        Column("severity", "SEV", Shape.SEVERITY, wide=True, aliases=("sev",)),
        Column("category", "CATEGORY", wide=True, most=24),
        Column("background", "BACKGROUND", wide=True),
        Column("failurepolicy", "FAILPOLICY", wide=True),
        Column("rules", "RULES", Shape.NUMBER, wide=True),
        Column("scan", "LAST-SCAN", Shape.AGE, wide=True),
    ),
    rows=policy_rows,
    needs=("clusterpolicies",),
    wants=("policies", *VIOLATIONS.needs, *VIOLATIONS.wants, "exceptions", *celkinds.NAMES),
    sort=("-fail", "name"),
    groups=("scope", "mode", "severity"),
    failures=lambda row: bool(row.cells["fail"]) or row.cells["ready"] == "no",
    empty="there is no policy in this cluster",
    next_step="apply one with `kubectl apply -f policy.yaml`; `kubectl kpolicy lint` checks it before",
)
