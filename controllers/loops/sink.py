"""The loops' side of the webhook: what becomes of every finished review (see `runtime.sink`).

Runs on every replica, because every replica answers requests. Work is written down as UpdateRequests before the answer;
Events and report rows follow after it. What the leader then does is elsewhere.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from controllers.kube.kinds import POLICY_EXCEPTIONS
from controllers.store.events import end_taken, marks_of, notes_of
from controllers.store.reports import NOTHING_TO_CHANGE, UNREPORTED_KINDS, rows_of
from controllers.store.update_requests import RuleWork, UpdateRequest
from engine.grants.blocks import block_key
from engine.model import Review, RuleResult, RuleType, Status

from .announcing import announce, wanted_by
from .following import Following
from .reports.pending import PendingReports
from .rules import find_rule, names_delete, synchronizes
from .work import request_type, trigger_of, unproven, write_down

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from controllers.runtime.cluster_cache import Change
    from controllers.runtime.policy_cache import Snapshot
    from controllers.runtime.sink import Trigger, Verdict

    from .context import LoopContext

_WELL = frozenset({Status.PASS, Status.SKIP})


class LoopSink:
    """Takes what the webhook hands over. `run` it as a task; `pending` are report rows that wait for their object."""

    def __init__(self, context: LoopContext, pending: PendingReports | None = None) -> None:
        self._context = context
        self._block_key = block_key(context.key)
        self.pending = pending or PendingReports(context)
        self._scanned_in: Snapshot | None = None
        self._scanned: frozenset[str] = frozenset()
        self._silent: Sequence[RuleResult] = ()

    async def run(self) -> None:
        """Write Events and report rows until cancelled."""
        async with Following(self._context.informers) as following, asyncio.TaskGroup() as group:
            following.listen(self._context.cache.on_change, self._changed)
            group.create_task(self._context.recorder.run())
            group.create_task(self.pending.run())

    def _changed(self, change: Change) -> None:
        """Say that this replica has heard of the end of a grant: whoever ends one wants to know since when nobody goes by it."""
        if change.type == "REMOVED" and change.kind.plural == POLICY_EXCEPTIONS.plural:
            note = end_taken(change.object)
            announce(self._context, [note] if note else [])

    async def triggered(self, review: Review, verdict: Verdict) -> None:
        """Write down the work of the verdict's rules, one request for each policy and type; raises KubeError."""
        found: dict[tuple[str, str], list[RuleWork]] = {}
        reference = trigger_of(review)
        for trigger in verdict.triggers:
            undo = self._undoes(trigger, review)
            if undo is not None:
                place = (trigger.policy, request_type(trigger.policy, trigger.type))
                found.setdefault(place, []).append(RuleWork(trigger.rule, reference, undo=undo))
        for (policy, type_), work in found.items():
            if verdict.is_proven:
                update = UpdateRequest(type_, policy, tuple(work), verdict.request, review.user)
            elif not reference.get("uid"):
                # what a request for a part of an object says is nowhere to be seen afterwards
                continue
            else:
                update = unproven(type_, policy, tuple(work), review)
            await write_down(self._context, update)

    def _undoes(self, trigger: Trigger, review: Review) -> bool | None:
        """Tell whether a rule's work is to be undone (row U-04), None when there is nothing to do.

        A deletion triggers only rules that name it; for all others it means that their trigger is gone.
        """
        rule = find_rule(self._context.snapshot, trigger.policy, trigger.rule)
        if rule is None:
            return None
        is_gone = review.operation == "DELETE" and not names_delete(rule)
        if trigger.matches and not is_gone:
            return False
        if rule.type is RuleType.GENERATION and synchronizes(rule) and not review.subresource:
            return True
        return None

    def follows(self, results: Sequence[RuleResult]) -> bool:
        """Tell whether results make an Event or a row: what passes says nothing, and the scan has the rows (rows E-03, R-08)."""
        self._context.recorder.rush.count()
        if self._context.cache.configuration.success_events:
            return True
        scanned = self._scanned_policies()
        # Most objects of a kind get the very same results, which are then the same in memory, too.
        if results == self._silent:
            return False
        if all(_is_silent(one, scanned) for one in results):
            self._silent = results
            return False
        return True

    def _scanned_policies(self) -> frozenset[str]:
        """Return the policies in force that the background scan comes to as well, by key."""
        snapshot = self._context.snapshot
        if self._scanned_in is not snapshot:
            scans = self._context.options.background_scan
            items = snapshot.judged.items() if scans else ()
            self._scanned = frozenset(key for key, one in items if one.policy.background)
            self._scanned_in, self._silent = snapshot, ()
        return self._scanned

    async def results(
        self, review: Review, results: Sequence[RuleResult], verdict: Verdict
    ) -> None:
        """Write Events about the results and, of an allowed request, rows for the report of its object.

        Of a request that nobody proved to be the API server's nothing is told: the background scan tells of what is there. Results about Events make no Events: those would be put before the same rules again.
        """
        if not verdict.is_proven:
            return
        context = self._context
        if review.kind != "Event":
            exceptions = context.snapshot.exceptions_by_key
            notes = notes_of(
                review,
                results,
                context.policies,
                exceptions,
                blocked=not verdict.allowed,
                successes=context.cache.configuration.success_events,
                marks=marks_of(review, self._block_key),
                is_wanted=wanted_by(context),
            )
            announce(context, notes)
        if verdict.allowed and _is_reported(review):
            rows = rows_of(self._not_scanned(results), context.policies, verdict.at)
            self.pending.add(trigger_of(review), rows, verdict.at)

    def _not_scanned(self, results: Sequence[RuleResult]) -> list[RuleResult]:
        """Return the results that the background scan does not come to as well."""
        scanned = self._scanned_policies()
        return [
            one for one in results if one.type is RuleType.MUTATION or one.identity not in scanned
        ]


def _is_silent(result: RuleResult, scanned: Collection[str]) -> bool:
    """Tell whether nothing follows from a result; a mutation is scanned too, but only admission sees it done."""
    if result.status not in _WELL or result.exceptions:
        return False
    if result.type is RuleType.MUTATION:
        return result.message == NOTHING_TO_CHANGE
    return result.identity in scanned


def _is_reported(review: Review) -> bool:
    """Tell whether an object has a report (row R-09)."""
    return (
        review.operation != "DELETE"
        and not review.dry_run
        and not review.subresource
        and review.kind not in UNREPORTED_KINDS
        and bool(review.metadata.get("name"))
    )
