"""Policies that delete by a schedule, of either language, as one thing to run: a document in, a compiled policy out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.model import CleanupPolicy, Object, Policy, Review
from engine.model.kinds import CEL_GROUP
from engine.parse import parse_cleanup_policy

from .plan import Cleanup, compile_cleanup
from .schedule import parse_schedule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.evaluate.cel.exceptions import CompiledCelException


def read_timed(document: Object, exceptions: Sequence[CompiledCelException] = ()) -> Cleanup:
    """Return the policy that a document of a server is, with the exceptions of its group; raises PolicyError."""
    if not is_deleting(document):
        return compile_cleanup(parse_cleanup_policy(document, strict=False))
    from engine.parse.celpolicies import parse_cel_policy

    return compile_deletion(parse_cel_policy(document, strict=False), exceptions)


def is_deleting(document: Object) -> bool:
    """Tell whether a policy is written in CEL."""
    return str(document.get("apiVersion")).startswith(f"{CEL_GROUP}/")


def compile_deletion(policy: Policy, exceptions: Sequence[CompiledCelException] = ()) -> Cleanup:
    """Compile a DeletingPolicy (rows DP-01 to DP-03); raises PolicyError for a schedule or expression that cannot work."""
    from engine.evaluate.cel.deleting import prepare_deletion

    deletion = prepare_deletion(policy, exceptions)
    spec, status = policy.raw["spec"], policy.raw.get("status") or {}
    schedule = str(spec.get("schedule") or "")
    parse_schedule(schedule)

    def selects(review: Review) -> bool | None:
        return deletion.constraints.applies(review) or None

    timed = CleanupPolicy(
        kind=policy.kind,
        name=policy.name,
        namespace=policy.namespace,
        schedule=schedule,
        conditions=spec.get("conditions"),
        propagation=str(spec.get("deletionPropagationPolicy") or ""),
        labels=policy.labels,
        created_at=str(policy.raw["metadata"].get("creationTimestamp") or ""),
        last_execution_at=str(status.get("lastExecutionTime") or ""),
        raw=policy.raw,
    )
    return Cleanup(timed, selects, deletion.kept_by)
