"""Reviews of resources: from the body of a request to the answer, with everything that decides between them.

The order is the one of security: no answer before all caches are synced, filters, a bounded queue, the deadline of the
caller, evaluation, verdict. Whatever goes wrong on the way is an answer too: a refusal where policies say `Fail`, a
warning where they say `Ignore`; never an exception and never a status that makes clients try again (A8).
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from controllers.kube import Client, Clock, KubeError, NotFound
from controllers.kube.kinds import NAMESPACES
from controllers.lookups.room import Overloaded, Room
from controllers.runtime.entropy import seed_of
from controllers.runtime.evaluating import (
    PROCESS,
    BoundedEvaluator,
    Resolver,
    evaluate_with,
    tenant_of,
)
from controllers.runtime.sink import NoSink, Sink, Stage, Trigger, Verdict
from controllers.runtime.tracing import traced
from controllers.runtime.webhook_routes import FAIL, WebhookRoute, failure_policy_of
from controllers.store.namespaces import labels_of
from engine.codes import carried_codes
from engine.errors import EngineError
from engine.evaluate import Evaluation, Inputs, PolicySet
from engine.images.data import with_outcomes
from engine.record import filled, replace

from . import envelope
from .bodies import size_of_current
from .caller import is_proven
from .counting import Counting
from .existing import ExistingViolations
from .grant_usage import GrantUsage, UsageContext, UsedGrants
from .sorts import NO_LABELS, Sorts
from .timing import Sample, Timing
from .triggers import triggers_of
from .verdicts import Ruling, reported, rule_on_mutation, rule_on_validation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from controllers.runtime.cluster_cache import ClusterCache
    from controllers.runtime.metrics import Metrics
    from controllers.runtime.queues import BackgroundQueue
    from engine.manifests import Trust
    from engine.model import Json, Review, RuleResult

    from .one_time_codes import OneTimeCodes
    from .sorts import Sort

    _Answer = tuple[bytes, bool]
    """An AdmissionReview as bytes, and whether it lets the request through."""

MARGIN = 0.5
"""Seconds kept back from the caller's time-out, so that our answer is there before it gives up."""

NOT_READY = "the policy engine is not ready: not all policies are known yet"
OVERLOADED = "the policy engine has more requests than it can decide; try again later"

_OUTAGES = frozenset({"deadline", "not ready"})
"""Why a review was not decided when callers of others will have waited in vain."""

_AFTER = 0.05
"""Seconds after an evaluation at which its policies are measured, when the answer is on its way."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """How many reviews that need answers or a child run and wait at once."""

    running: int = 64
    waiting: int = 256


class Reviewer:
    """Decides on requests for resources."""

    def __init__(
        self,
        cache: ClusterCache,
        client: Client,
        resolver: Resolver,
        clock: Clock,
        metrics: Metrics,
        background_queue: BackgroundQueue,
        *,
        key: bytes,
        sink: Sink | None = None,
        limits: Limits = Limits(),
        trust: Trust | None = None,
        background_users: frozenset[str] = frozenset(),
        codes: OneTimeCodes | None = None,
        grant_usage: GrantUsage | None = None,
        existing: ExistingViolations | None = None,
        heavy: BoundedEvaluator = PROCESS,
        on_outage: Callable[[], None] = lambda: None,
    ) -> None:
        self._cache = cache
        self._client = client
        self._resolver = resolver
        self._clock = clock
        self._metrics = metrics
        self._background_queue = background_queue
        self._key = key
        self._sink: Sink = sink or NoSink()
        self._gate = Room(limits.running, limits.waiting)
        self._trust = trust
        self._background_users = background_users
        self._codes = codes
        self._grant_usage = grant_usage
        self._existing = existing or ExistingViolations(client, clock)
        self._heavy = heavy
        self._on_outage = on_outage
        self._counting, self._timing = Counting(metrics), Timing(metrics)
        self._sorts = Sorts(cache, self._timing, background_users)

    async def review(self, stage: Stage, route_path: str, body: bytes, budget: float) -> bytes:
        """Return the answer to an AdmissionReview; raises DocumentError when the body is none.

        `route_path` is the end of the path, `budget` the seconds within which the caller wants the answer.
        """
        began = time.perf_counter()
        request = envelope.read_request(body)
        try:
            answer = await self._decide(stage, route_path, request, budget)
        except Overloaded:
            self._on_outage()
            answer = self._refused("overload", request, OVERLOADED)
        except TimeoutError:
            late = f"the policies could not be evaluated within {budget:.1f} s"
            answer = self._failed("deadline", self._failure_policy(route_path), request, late)
        except EngineError as error:
            answer = self._failed("error", self._failure_policy(route_path), request, error.message)
        except Exception:
            _log.exception("a review failed")
            answer = self._failed(
                "error", self._failure_policy(route_path), request, "the policy engine failed"
            )
        text, is_allowed = answer
        self._counting.request(stage, route_path, request, is_allowed, time.perf_counter() - began)
        return text

    def _failure_policy(self, route_path: str) -> str:
        """Return what becomes of a request that cannot be answered; for policies that are not known yet, that it fails."""
        route = self._cache.policies.snapshot.routes.find(route_path)
        return failure_policy_of(route_path) if route is None else route.failure_policy

    async def _decide(
        self, stage: Stage, route_path: str, request: Mapping[str, Json], budget: float
    ) -> _Answer:
        uid = request["uid"]
        if budget <= 0:
            raise Overloaded
        if not self._cache.is_ready:
            return self._failed("not ready", failure_policy_of(route_path), request, NOT_READY)
        sort = self._sorts.of(stage, route_path, request)
        if sort is None:
            return envelope.allowed(uid), True
        place = sort.place
        labels = self._cache.namespaces.labels(place) if place else NO_LABELS
        review = sort.review(request, labels or NO_LABELS)
        if sort.filter is not None and sort.filter(review, request):
            return envelope.allowed(uid), True
        if labels is None:
            review = await self._with_labels(review, place, budget)
        act = self._mutate if stage == "mutate" else self._validate
        return await act(sort, review, request, budget)

    @traced("evaluate")
    async def _evaluated(
        self, sort: Sort, review: Review, inputs: Inputs, budget: float
    ) -> Evaluation:
        """Return what policies say once outside questions are answered; only evaluations with such wait and are counted."""
        policies, heavy, waited = sort.policies, self._heavy, 0.0
        found = ended = heavy.attempt(policies, review, inputs)
        if found is None or found.missing:
            began = time.perf_counter()
            async with asyncio.timeout(budget), self._gate.place(tenant_of(review)):
                found = found or await heavy.finish(policies, review, inputs)
                found = await evaluate_with(
                    self._resolver, policies, review, inputs, first=found, heavy=heavy
                )
            waited = time.perf_counter() - began
        # what was too long in place is not done there again to be measured
        if ended is not None and (weight := sort.passed.due()):
            sample = Sample(policies, review, inputs, found.results, weight, waited)
            asyncio.get_running_loop().call_later(_AFTER, self._timing.measure, sample)
        return found

    async def _validate(
        self, sort: Sort, review: Review, request: Mapping[str, Json], budget: float
    ) -> _Answer:
        route, inputs = sort.route, self._inputs(request)
        found = await self._evaluated(sort, review, inputs, budget)
        ruling, results = await self._ruled(route, review, request, inputs, found.results, budget)
        if review.dry_run:
            return self._answer(request, ruling)
        triggers: tuple[Trigger, ...] = ()
        if not ruling.denial and sort.triggers is not None:
            triggers = triggers_of(sort.triggers, review, self._background_users)
        audit = None if ruling.denial else sort.audit
        follows = audit is not None or self._is_followed(sort, results)
        if not (triggers or follows):
            return self._answer(request, ruling)
        verdict = _verdict(request, inputs, ruling, triggers)
        if triggers:
            async with asyncio.timeout(budget):
                await self._sink.triggered(review, verdict)
        if follows:
            self._hand_over(sort, review, results, verdict, inputs, audit)
        return self._answer(request, ruling)

    async def _ruled(
        self,
        route: WebhookRoute,
        review: Review,
        request: Mapping[str, Json],
        inputs: Inputs,
        results: Sequence[RuleResult],
        budget: float,
    ) -> tuple[Ruling, Sequence[RuleResult]]:
        """Return the ruling, with what codes and the uses of grants make of it, and the results that it stands on."""
        grant_usage = self._grant_usage
        if review.operation == "UPDATE":
            results = await self._existing.judge(route, review, request, results, budget)
        waived: UsedGrants | None = None
        if grant_usage is not None and self._cache.policies.snapshot.granted:
            asked = UsageContext(route, review, request, inputs)
            waived = await grant_usage.judge(asked, results, budget)
            results = waived.results
        ruling = rule_on_validation(route, review, results)
        if self._codes is not None and (ruling.denial or carried_codes(review.object)):
            ruling = await self._codes.judge(review, request, ruling, budget)
        if grant_usage is None or waived is None:
            return ruling, results
        return await grant_usage.settle(asked, waived, ruling, budget)

    async def _mutate(
        self, sort: Sort, review: Review, request: Mapping[str, Json], budget: float
    ) -> _Answer:
        route, inputs = sort.route, self._inputs(request)
        found = await self._evaluated(sort, review, inputs, budget)
        patched, results = with_outcomes(found.patched, found.results), reported(found.results)
        ruling = rule_on_mutation(route, review, found.results, patched)
        if self._grant_usage is not None and self._cache.policies.snapshot.granted:
            asked = UsageContext(route, review, request, inputs)
            ruling = await self._grant_usage.settle_mutation(asked, results, ruling, budget)
        if not review.dry_run and self._is_followed(sort, results):
            verdict = _verdict(request, inputs, ruling)
            self._hand_over(sort, review, results, verdict, inputs)
        return self._answer(request, ruling)

    def _answer(self, request: Mapping[str, Json], ruling: Ruling) -> _Answer:
        uid = request["uid"]
        if ruling.denial:
            return envelope.denied(uid, f"{ruling.lead}{ruling.denial}{ruling.tail}"), False
        if ruling.operations:
            return envelope.patched(uid, ruling.operations, ruling.warnings, ruling.audit), True
        return envelope.allowed(uid, ruling.warnings, ruling.audit), True

    def _inputs(self, request: Mapping[str, Json]) -> Inputs:
        seed = partial(seed_of, self._key, request["uid"])
        fields = {
            "now": self._clock.now(),
            "seed": seed,
            "trust": self._trust,
            "resolve_values": self._cache.resolve_values,
            "is_stored": True,
            "registry": self._cache.configuration.registry,
        }
        return filled(Inputs, fields)

    async def _with_labels(self, review: Review, namespace: str, budget: float) -> Review:
        """Return the review with the labels of a namespace that is not known here; raises KubeError when nobody can say what they are."""
        async with asyncio.timeout(budget), self._gate.place(namespace):
            labels = await self._asked_labels(namespace)
        return replace(review, namespace_labels=labels) if labels else review

    async def _asked_labels(self, namespace: str) -> Mapping[str, str]:
        try:
            return labels_of(await self._client.get(NAMESPACES, namespace))
        except NotFound:
            return {}
        except KubeError as error:
            text = f"the labels of namespace `{namespace}` cannot be read: {error.message}"
            raise error.reworded(text) from error

    def _is_followed(self, sort: Sort, results: Sequence[RuleResult]) -> bool:
        """Count results that no others come to, and tell whether anything follows from them."""
        if not results:
            return False
        self._counting.results(sort.usual, sort.about, results)
        return self._sink.follows(results)

    def _hand_over(
        self,
        sort: Sort,
        review: Review,
        results: Sequence[RuleResult],
        verdict: Verdict,
        inputs: Inputs,
        audit: PolicySet | None = None,
    ) -> None:
        """Queue what comes after the answer: audit policies of an allowed request, with which results are counted, and the sink."""

        async def work() -> None:
            found = results
            if audit is not None:
                began = time.perf_counter()
                later = await evaluate_with(
                    self._resolver, audit, review, inputs, heavy=self._heavy
                )
                if weight := self._timing.passed(audit, review.kind).due():
                    waited = time.perf_counter() - began
                    sample = Sample(audit, review, inputs, later.results, weight, waited)
                    self._timing.measure(sample)
                found = [*results, *later.results]
                self._counting.results(sort.usual, sort.about, found)
            if audit is None or (found and self._sink.follows(found)):
                await self._sink.results(review, found, verdict)

        self._background_queue.add(work, size_of_current())

    def _failed(
        self, reason: str, failure_policy: str, request: Mapping[str, Json], text: str
    ) -> _Answer:
        """Answer a request that could not be decided as its policies' failure policy says."""
        if reason in _OUTAGES:
            self._on_outage()
        if failure_policy == FAIL:
            return self._refused(reason, request, text)
        return envelope.allowed(request["uid"], [f"policies were not evaluated: {text}"]), True

    def _refused(self, reason: str, request: Mapping[str, Json], text: str) -> _Answer:
        self._metrics.count("kpolicy_reviews_refused", (reason,))
        return envelope.denied(request["uid"], text), False


def budget_of(timeout: float) -> float:
    """Return the seconds there are for an answer when the caller waits `timeout` seconds."""
    return max(timeout - MARGIN, timeout / 2)


def _verdict(
    request: Mapping[str, Json], inputs: Inputs, ruling: Ruling, triggers: tuple[Trigger, ...] = ()
) -> Verdict:
    return Verdict(
        allowed=not ruling.denial,
        at=inputs.now,
        request=request,
        triggers=triggers,
        is_proven=is_proven(),
    )
