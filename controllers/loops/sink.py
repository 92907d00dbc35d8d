"""The loops' side of the webhook: what becomes of every finished review (see `runtime.sink`).

Runs on every replica, because every replica answers requests. Work is written down as UpdateRequests before the answer;
Events and report rows follow after it. What the leader then does is elsewhere.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from controllers.store.denials import marks_of
from controllers.store.events import notes_of
from controllers.store.policies import key_of
from controllers.store.reports import UNREPORTED_KINDS, rows_of
from controllers.store.update_requests import RuleWork, UpdateRequest
from engine.grants.blocks import block_key
from engine.model import RuleType

from .announcing import announce
from .reports.pending import PendingReports
from .rules import find_rule, names_delete, synchronizes
from .work import request_type, trigger_of, write_down

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controllers.runtime.sink import Trigger, Verdict
    from engine.model import Review, RuleResult

    from .surroundings import Surroundings


class LoopSink:
    """Takes what the webhook hands over. `run` it as a task; `pending` are report rows that wait for their object."""

    def __init__(self, surroundings: Surroundings, pending: PendingReports | None = None) -> None:
        self._surroundings = surroundings
        self._block_key = block_key(surroundings.key)
        self.pending = pending or PendingReports(surroundings)

    async def run(self) -> None:
        """Write Events and report rows until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._surroundings.recorder.run())
            group.create_task(self.pending.run())

    async def triggered(self, review: Review, verdict: Verdict) -> None:
        """Write down the work of the verdict's rules, one request for each policy and type; raises KubeError."""
        found: dict[tuple[str, str], list[RuleWork]] = {}
        reference = trigger_of(review)
        for trigger in verdict.triggers:
            undo = self._undoes(trigger, review)
            if undo is not None:
                place = (trigger.policy, request_type(trigger.type))
                found.setdefault(place, []).append(RuleWork(trigger.rule, reference, undo=undo))
        for (policy, type_), work in found.items():
            update = UpdateRequest(type_, policy, tuple(work), verdict.request, review.user)
            await write_down(self._surroundings, update)

    def _undoes(self, trigger: Trigger, review: Review) -> bool | None:
        """Tell whether a rule's work is to be undone (row U-04), None when there is nothing to do.

        A deletion triggers only rules that name it; for all others it means that their trigger is gone.
        """
        rule = find_rule(self._surroundings.snapshot, trigger.policy, trigger.rule)
        if rule is None:
            return None
        is_gone = review.operation == "DELETE" and not names_delete(rule)
        if trigger.matches and not is_gone:
            return False
        if rule.type is RuleType.GENERATION and synchronizes(rule) and not review.subresource:
            return True
        return None

    async def results(
        self, review: Review, results: Sequence[RuleResult], verdict: Verdict
    ) -> None:
        """Write Events about the results and, of an allowed request, rows for the report of its object.

        Results about Events make no Events: those would be put before the same rules again.
        """
        surroundings = self._surroundings
        if review.kind != "Event":
            exceptions = surroundings.snapshot.exceptions_by_key
            notes = notes_of(
                review,
                results,
                surroundings.policies,
                exceptions,
                blocked=not verdict.allowed,
                successes=surroundings.world.configuration.success_events,
                marks=marks_of(review, self._block_key),
            )
            announce(surroundings, notes)
        if verdict.allowed and _is_reported(review):
            rows = rows_of(self._not_scanned(results), surroundings.policies, verdict.at)
            self.pending.add(trigger_of(review), rows, verdict.at)

    def _not_scanned(self, results: Sequence[RuleResult]) -> list[RuleResult]:
        """Return the results that the background scan does not come to as well."""
        scans = self._surroundings.options.background_scan
        policies = self._surroundings.policies
        return [
            one
            for one in results
            if not scans
            or one.type is RuleType.MUTATION
            or ((key := key_of(one)) in policies and not policies[key].background)
        ]


def _is_reported(review: Review) -> bool:
    """Tell whether an object has a report (row R-09)."""
    return (
        review.operation != "DELETE"
        and not review.dry_run
        and not review.subresource
        and review.kind not in UNREPORTED_KINDS
        and bool(review.metadata.get("name"))
    )
