"""Reports as values: rows from results, one report for each resource, new rows merged into old.

For the loops that write reports and for whoever reads them. Nothing here asks a server or a clock; a report is named by the UID
of its resource and owned by it, so that it goes when the resource goes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from controllers.kube.kinds import object_reference
from engine import vocabulary
from engine.model import Json, Object, Policy, RuleResult, RuleType, Status
from engine.model.kinds import BY_NAME, CEL_KINDS, NATIVE, identity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from controllers.kube.kinds import ReportKinds

MOST_ROWS: Final = 500
"""Rows of one report; beyond it the report says that it is not whole."""

TRUNCATED: Final = "kpolicy.io/truncated"
LONGEST_MESSAGE: Final = 4096
UNREPORTED_KINDS: Final = frozenset(
    {"Event", "PolicyReport", "ClusterPolicyReport", "EphemeralReport", "ClusterEphemeralReport",
     "UpdateRequest", "Lease"}
)  # fmt: skip
NOTHING_TO_CHANGE: Final = "no patches applied"

Row = dict[str, Any]


def is_reported(policy: Policy) -> bool:
    """Tell whether a policy's results go into reports at all (row R-09)."""
    return vocabulary.UNREPORTED not in policy.labels


def rows_of(
    results: Iterable[RuleResult], policies: Mapping[str, Policy], at: datetime
) -> list[Row]:
    """Return a row for each result of policies (by key) that are reported.

    A mutation that found nothing to change says nothing about the resource and has no row.
    """
    found = []
    for result in results:
        policy = policies.get(result.identity)
        if policy is None or not is_reported(policy):
            continue
        if result.type is RuleType.MUTATION and result.message == NOTHING_TO_CHANGE:
            continue
        found.append(row_of(result, policy, at))
    return found


def row_of(result: RuleResult, policy: Policy, at: datetime) -> Row:
    """Return the row of one result (rows R-02 to R-05); a policy written in CEL has no rule to name."""
    is_scored = policy.annotations.get(vocabulary.SCORED) != "false"
    status = result.status
    if status is Status.FAIL and not is_scored:
        status = Status.WARN
    row: Row = {
        "source": source_of(policy),
        "policy": result.policy,
        **({"rule": result.rule} if result.rule else {}),
        "message": result.message[:LONGEST_MESSAGE],
        "result": str(status),
        "scored": is_scored,
        "timestamp": {"seconds": int(at.timestamp()), "nanos": 0},
    }
    if category := policy.annotations.get(vocabulary.CATEGORY):
        row["category"] = category
    if severity := vocabulary.severity_of(policy.annotations):
        row["severity"] = severity
    if properties := _properties(result, policy):
        row["properties"] = properties
    return row


def source_of(policy: Policy) -> str:
    """Return what names the policies of a kind; native ones go by the kind itself."""
    kind = BY_NAME.get(policy.kind)
    return policy.kind if kind is None else kind.family.source


def _properties(result: RuleResult, policy: Policy) -> dict[str, str]:
    """Return the properties of a row; `process` tells how the policy is meant to be applied, as upstream has it."""
    process = "background scan" if policy.background else "admission review"
    made = {**result.properties, "process": process}
    if result.exceptions:
        made["exceptions"] = ",".join(key.rpartition("/")[2] for key in result.exceptions)
    if result.targets and not result.is_of_cel:
        made["patched-target"] = _shown(result.targets[0].after)
    if result.generated:
        made["generated-resources"] = "; ".join(map(_shown, result.generated))
    return made


def _shown(obj: Object) -> str:
    """Return how upstream writes an object in properties: group/version, kind, name and namespace."""
    group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
    metadata = obj.get("metadata") or {}
    text = f"{group}/{version}, Kind={obj.get('kind')} Name={metadata.get('name')}"
    namespace = metadata.get("namespace")
    return f"{text} Namespace={namespace}" if namespace else text


def merged(
    old: Sequence[Row], new: Sequence[Row], *, judged: Collection[tuple[str, str]] | None = None
) -> list[Row]:
    """Return old rows with new ones in their place, sorted by policy and rule.

    `judged` are (policy, rule) pairs that were judged: their old rows go even where nothing new was said; by default the pairs
    of `new`. A row that says the same as before keeps its time, so that nothing is written when nothing changed.
    """
    said = {pair_of(row) for row in new}
    pairs = [(pair_of(row), row) for row in old]
    kept = [row for pair, row in pairs if not (pair in said or (judged and pair in judged))]
    before = {_key(row): row for pair, row in pairs if pair in said}
    for row in new:
        known = before.get(_key(row))
        same = known is not None and _timeless(known) == _timeless(row)
        kept.append(known if known is not None and same else row)
    return sorted(kept, key=_order)


def _timeless(row: Row) -> Row:
    return {key: value for key, value in row.items() if key != "timestamp"}


_KINDS: Final = {(one.family.source, one.is_namespaced): one.kind for one in CEL_KINDS}


def pair_of(row: Mapping[str, Json]) -> tuple[str, str]:
    """Return the policy of a row (by identity) and the rule; a policy written in CEL gives one answer, whatever it names it."""
    return _pair(*_named(row))


@lru_cache(maxsize=4096)
def _pair(policy: str, rule: str, source: str) -> tuple[str, str]:
    if source in NATIVE:
        return identity(source, policy), rule
    kind = _KINDS.get((source, "/" in policy))
    return (identity(kind, policy), "") if kind else (policy, rule)


def _named(row: Mapping[str, Json]) -> tuple[str, str, str]:
    return str(row.get("policy", "")), str(row.get("rule", "")), str(row.get("source", ""))


def _target(row: Mapping[str, Json]) -> str:
    return str((row.get("properties") or {}).get("patched-target", ""))


def _key(row: Mapping[str, Json]) -> tuple[str, str, str]:
    return (*pair_of(row), _target(row))


def _order(row: Mapping[str, Json]) -> tuple[str, ...]:
    return (*_named(row), _target(row))


def report_of(
    obj: Object, rows: Sequence[Row], kinds: ReportKinds, before: Object | None = None
) -> Object:
    """Return the report of a resource with these rows, keeping the identity of the report before (row R-01)."""
    kind = kinds.of(obj)
    metadata = obj.get("metadata") or {}
    namespace = metadata.get("namespace")
    scope = object_reference(obj)
    old = (before or {}).get("metadata") or {}
    made: Object = {
        **{key: value for key, value in old.items() if key in ("resourceVersion", "uid")},
        "name": metadata.get("uid"),
        "labels": {**(old.get("labels") or {}), **vocabulary.BY_KYVERNO},
        "ownerReferences": [{key: scope.get(key) for key in ("apiVersion", "kind", "name", "uid")}],
    }
    if namespace:
        made["namespace"] = namespace
    if len(rows) > MOST_ROWS:
        made["annotations"] = {TRUNCATED: f"{len(rows) - MOST_ROWS} results are left out"}
    shown = list(rows[:MOST_ROWS])
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": made,
        **({"source": kinds.source} if kinds.source else {}),
        "scope": scope,
        "results": shown,
        "summary": summary(shown),
    }


def summary(rows: Iterable[Mapping[str, Json]]) -> dict[str, int]:
    """Count rows by result."""
    counts = dict.fromkeys(map(str, Status), 0)
    for row in rows:
        status = str(row.get("result"))
        if status in counts:
            counts[status] += 1
    return counts


def says_the_same(report: Object, other: Object) -> bool:
    """Tell whether two reports of a resource hold the same rows about the same object."""
    return all(report.get(part) == other.get(part) for part in ("results", "scope", "summary"))
