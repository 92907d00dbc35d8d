"""Granted exceptions at admission: what a request passes by is counted, and a grant with a number of uses gives no more.

A use is a request that would have been refused without the grant; one that only falls under it uses nothing. So the rules are
asked again without granted exceptions, for such requests only. Uses of limited grants are taken before the answer, of
others counted after it. Whatever fails here leaves the request without the exception.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from dataclasses import replace as changed
from typing import TYPE_CHECKING, Any, Final

from controllers.runtime.evaluating import Resolver, evaluate_with
from controllers.runtime.tracing import traced
from controllers.store import grants, used_grants
from controllers.store.uses import CodeUseRecord, use_key
from engine.errors import EngineError
from engine.evaluate import Inputs, PolicySet
from engine.model import RuleType
from engine.record import replace

from .caller import is_proven
from .code_bindings import body_of, rules_named, target_of, user_of
from .existing import ExistingViolations
from .live import Live
from .verdicts import Ruling, blocking, rule_on_validation

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from controllers.kube import Client, Clock
    from controllers.runtime.cluster_cache import ClusterCache
    from controllers.runtime.webhook_routes import WebhookRoute
    from engine.grants.cause import Granted
    from engine.model import Review, RuleResult

FLUSH_SECONDS: Final = 2.0
"""How late a count may be."""
_MOST_REMEMBERED: Final = 4096
"""Changes of objects that are known to be counted, so that the next webhook which they pass does not count them again."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UsageContext:
    """One request as the route was asked about it."""

    route: WebhookRoute
    review: Review
    request: Mapping[str, Any]
    inputs: Inputs


@dataclass(frozen=True, slots=True)
class UsedGrants:
    """The results of a request without exhausted grants, the limited grants that it needs, and the others that it used."""

    results: Sequence[RuleResult]
    needs: tuple[tuple[Granted, CodeUseRecord], ...] = ()
    used: tuple[Granted, ...] = ()
    spent: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Plan:
    """What is found out about a request: which grants let it pass, and which could not."""

    needs: dict[str, tuple[Granted, CodeUseRecord]] = field(default_factory=dict)
    used: dict[str, Granted] = field(default_factory=dict)
    spent: set[str] = field(default_factory=set)


class GrantUsage:
    """Counts what granted exceptions let through. `run` it as a task; `key` is the one that all replicas share.

    `counting` writes the status of Grants, where another account than `client` does.
    """

    def __init__(
        self,
        cache: ClusterCache,
        client: Client,
        resolver: Resolver,
        clock: Clock,
        namespace: str,
        key: bytes,
        *,
        counting: Client | None = None,
        existing: ExistingViolations | None = None,
    ) -> None:
        self._cache, self._resolver, self._clock = cache, resolver, clock
        self._existing = existing or ExistingViolations(client, clock)
        self._live = Live(client, cache.discovery)
        self._uses = grants.GrantUses(client, namespace, use_key(key))
        self._tally = used_grants.Tally(counting or client)
        self._counted = asyncio.Event()
        self._counted_changes: dict[tuple[str, ...], None] = {}

    async def run(self) -> None:
        """Write counts until cancelled."""
        while True:
            await self._counted.wait()
            self._counted.clear()
            await self._clock.sleep(FLUSH_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        """Write what was counted so far."""
        try:
            await self._tally.flush()
        except Exception as error:
            # The next count tries again; nothing that is counted may end the counting.
            _log.warning("uses of grants could not be counted: %s", type(error).__name__)
            self._counted.set()

    @traced("judge grants")
    async def judge(
        self, asked: UsageContext, results: Sequence[RuleResult], budget: float
    ) -> UsedGrants:
        """Return what the grants among the exceptions of some results make of them."""
        granted = self._cache.policies.snapshot.granted
        covered = used_grants.excused(granted, results)
        if not covered:
            return UsedGrants(results)
        async with asyncio.timeout(budget):
            without = await self._without(asked, results, granted.keys(), budget)
            refused = blocking(asked.route, asked.review, without)
            plan = _Plan()
            for result in refused:
                await self._choose(asked, result, covered.get(used_grants.rule_of(result)), plan)
            if plan.spent:
                results = await self._without(asked, results, plan.spent, budget)
        return UsedGrants(results, tuple(plan.needs.values()), tuple(plan.used.values()), frozenset(plan.spent))  # fmt: skip

    @traced("count uses of grants")
    async def settle(
        self, asked: UsageContext, waived: UsedGrants, ruling: Ruling, budget: float
    ) -> tuple[Ruling, Sequence[RuleResult]]:
        """Take and count what an allowed request used; it is refused after all where somebody else was quicker.

        Returns the ruling and the results that it stands on.
        """
        if ruling.denial or asked.review.dry_run:
            return ruling, waived.results
        told = []
        for granted, attempt in waived.needs:
            number = await self._take(asked, granted, attempt, budget)
            if not number:
                spent = {*waived.spent, granted.exception}
                results = await self._without(asked, waived.results, spent, budget)
                return rule_on_validation(asked.route, asked.review, results), results
            told.append(f"grant {granted.grant} was used: {number} of {granted.most}")
        now = self._clock.now()
        self._count(asked, waived.used, now)
        used = [one.grant for one in (*(need[0] for need in waived.needs), *waived.used)]
        if used:
            warnings, audit = (
                (*ruling.warnings, *told),
                {**ruling.audit, "grant-uses": ",".join(used)},
            )
            ruling = changed(ruling, warnings=warnings, audit=audit)
        return ruling, waived.results

    @traced("count uses of grants")
    async def settle_mutation(
        self, asked: UsageContext, results: Sequence[RuleResult], ruling: Ruling, budget: float
    ) -> Ruling:
        """Count what an allowed request was left as it is by, although a rule would have changed it; returns the ruling.

        What cannot be found out counts nothing: the request passes either way.
        """
        granted = self._cache.policies.snapshot.granted
        covered = used_grants.excused(
            granted, (one for one in results if one.type is RuleType.MUTATION)
        )
        if ruling.denial or asked.review.dry_run or not covered:
            return ruling
        concerned = {identity for identity, _ in covered}
        policies = (one for one in asked.route.mutate.policies if one.policy.identity in concerned)
        inputs = replace(asked.inputs, disregarded=frozenset(granted))
        try:
            async with asyncio.timeout(budget):
                found = await evaluate_with(
                    self._resolver, PolicySet(tuple(policies)), asked.review, inputs
                )
        except (TimeoutError, EngineError) as error:
            _log.warning("uses of grants could not be counted: %s", type(error).__name__)
            return ruling
        used = used_grants.kept_from_working(covered, found.results)
        self._count(asked, used, self._clock.now())
        if not used:
            return ruling
        told = ",".join(one.grant for one in used)
        return changed(ruling, audit={**ruling.audit, "grant-uses": told})

    def _count(self, asked: UsageContext, used: Sequence[Granted], now: datetime) -> None:
        """Count uses once for each change of an object, by how many webhooks it may pass, of callers who proved to be the API server."""
        for granted in used if is_proven() else ():
            if self._is_first(asked, granted):
                self._tally.add(granted, now)
                self._counted.set()

    def _is_first(self, asked: UsageContext, granted: Granted) -> bool:
        before = (asked.review.old_object or {}).get("metadata") or {}
        uid = str(asked.review.metadata.get("uid") or before.get("uid") or "")
        version = str(before.get("resourceVersion") or "")
        key = (granted.uid, asked.review.operation, uid, version)
        if not uid or (asked.review.operation != "CREATE" and not version):
            return True
        if key in self._counted_changes:
            return False
        self._counted_changes[key] = None
        if len(self._counted_changes) > _MOST_REMEMBERED:
            del self._counted_changes[next(iter(self._counted_changes))]
        return True

    async def _choose(
        self,
        asked: UsageContext,
        result: RuleResult,
        granted: Sequence[Granted] | None,
        plan: _Plan,
    ) -> None:
        """Find the grant by which a refused rule passes: one that is not limited, else the first that has a use left."""
        for one in sorted(granted or (), key=lambda each: (each.is_limited, each.exception)):
            if not one.is_limited:
                plan.used[one.exception] = one
                return
            if one.exception in plan.needs:
                return
            if one.exception not in plan.spent:
                attempt = self._attempt(asked, result)
                if await self._is_left(one, attempt):
                    plan.needs[one.exception] = (one, attempt)
                    return
                plan.spent.add(one.exception)

    async def _is_left(self, granted: Granted, attempt: CodeUseRecord) -> bool:
        try:
            return await self._uses.could_take(granted, attempt)
        except EngineError as error:
            _log.warning("uses of grant %s cannot be read: %s", granted.grant, error.message)
            return False

    async def _take(
        self, asked: UsageContext, granted: Granted, attempt: CodeUseRecord, budget: float
    ) -> int:
        try:
            async with asyncio.timeout(budget):
                if not is_proven():
                    seen = await self._live.before(asked.review, asked.request)
                    if not seen:
                        return 0
                    attempt = changed(attempt, seen=seen)
                return await self._uses.take(granted, attempt)
        except (TimeoutError, EngineError) as error:
            _log.warning("a use of grant %s cannot be taken: %s", granted.grant, type(error).__name__)  # fmt: skip
            return 0

    async def _without(
        self,
        asked: UsageContext,
        results: Sequence[RuleResult],
        spent: Collection[str],
        budget: float,
    ) -> Sequence[RuleResult]:
        """Return the results as they are when some exceptions (by identity) do not count."""
        concerned = {
            one.identity
            for one in results
            if any(key in spent for key in used_grants.exceptions_of(one))
        }
        policies = tuple(
            one for one in asked.route.blocking.policies if one.policy.identity in concerned
        )
        inputs = replace(asked.inputs, disregarded=frozenset(spent))
        found = await evaluate_with(self._resolver, PolicySet(policies), asked.review, inputs)
        others = (one for one in results if one.identity not in concerned)
        return await self._existing.judge(
            asked.route, asked.review, asked.request, [*others, *found.results], budget
        )

    def _attempt(self, asked: UsageContext, result: RuleResult) -> CodeUseRecord:
        review, request = asked.review, asked.request
        return CodeUseRecord(
            name="",
            user=user_of(request),
            policy=result.identity,
            rules=rules_named((result,)),
            operation=review.operation,
            target=target_of(review, request),
            fingerprint=body_of(review),
            source=grants.SOURCE,
            at=self._clock.now(),
        )
