"""Evaluation within bounds and with answers from outside, for webhook and loops alike.

Nearly all evaluations end in place within a millisecond and pay nothing. One that does not is cut off and begun again in a child
that can be killed; what it takes is taken from its tenant's allowance. A tenant without allowance gets a short slice in place and
no child, and one deep in debt is not evaluated at all, so that others do not wait for it.

The engine may not fetch anything; it names questions. All questions of one round are looked up at once and it is asked again, so the
cost is that of the longest chain of answers that depend on each other.
"""

from __future__ import annotations

import asyncio
import os
import time
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar
from weakref import WeakKeyDictionary

from engine.errors import LimitError
from engine.evaluate import Evaluation, Inputs, PolicySet, evaluate
from engine.evaluate.asking import Rounds
from engine.evaluate.policy_set import IN_ORDER
from engine.lang.work import metered
from engine.record import replace

from . import children
from .children import PROCESSOR_SECONDS, in_child
from .slices import TICK, Slice, SliceOver
from .tracing import traced

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from engine.evaluate import Answer, Lookup
    from engine.model import Review, RuleType
    from engine.model.result import ImageFinding

_T = TypeVar("_T")

LONG_SLICE: Final = 5
"""Ticks in place while nobody has been heavy lately."""
SHORT_SLICE: Final = 2
"""Ticks in place while somebody has: an ordinary evaluation takes a fiftieth of one."""
READING_SLICE: Final = 50
"""Ticks in which a policy has to be read, checked and compiled: every process compiles it once more when it is in force. So many,
too, has a loop to judge one object."""
MOST_WAITING: Final = 8
WAIT_SECONDS: Final = 1.0
"""How long an evaluation waits for a child."""
_TOO_LARGE: Final = (
    f"it takes more than {READING_SLICE * TICK:.1f} s to read and compile; "
    "write several policies with fewer or simpler rules"
)
_TOO_OFTEN: Final = (
    "policies of `{tenant}` have taken more time to read than they have; try again later"
)
_TOO_LONG: Final = f"it takes more than {READING_SLICE * TICK:.1f} s to judge one object"
_TOO_LONG_FOR: Final = "the policies of `{tenant}` have taken more time to judge objects than they have; the next run tries again"
_TOO_MANY: Final = "too many evaluations take long at this moment; try again later"


class BoundedEvaluator:
    """The bounds of one process; `now` is a monotonic clock, `most` is how many children there may be at once."""

    def __init__(self, now: Callable[[], float] = time.monotonic, most: int = 0) -> None:
        self._allowances = Allowances(now)
        self._now = now
        self._most = most or max(1, (os.cpu_count() or 1) - 1)
        self._rooms: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
            WeakKeyDictionary()
        )
        self._waiting = 0

    def attempt(
        self,
        policies: PolicySet,
        review: Review,
        inputs: Inputs,
        types: Collection[RuleType] = IN_ORDER,
    ) -> Evaluation | None:
        """Return the evaluation if it ends in place, None where it has to be finished in a child.

        Raises LimitError for a tenant without allowance.
        """
        allowances = self._allowances
        if allowances.are_untouched:
            piece, left = Slice(LONG_SLICE), CAPACITY
        else:
            piece, left = Slice(SHORT_SLICE), allowances.left(tenant_of(review))
            if left <= FLOOR:
                raise over(review)
        if policies.is_large:
            # worked out for all reviews of its sort and not on the account of one, and remembered
            policies.plan(review)
        try:
            found = piece.run(evaluate, policies, review, inputs, types=types)
        except SliceOver:
            allowances.take(tenant_of(review), piece.seconds)
            if left <= 0:
                raise over(review) from None
            return None
        if piece.ticks > 1:
            allowances.take(tenant_of(review), piece.seconds)
        return found

    async def finish(
        self,
        policies: PolicySet,
        review: Review,
        inputs: Inputs,
        types: Collection[RuleType] = IN_ORDER,
    ) -> Evaluation:
        """Return the evaluation, from a child; raises LimitError where it takes too long or too many wait."""
        tenant, allowances = tenant_of(review), self._allowances
        if self._waiting >= MOST_WAITING:
            raise LimitError(_TOO_MANY)
        # reserved at once, so that those who come meanwhile see what this one may use
        allowances.take(tenant, PROCESSOR_SECONDS)
        used = 0.0
        self._waiting += 1
        try:
            await self._turn()
            try:
                began = self._now()
                text = await in_child(partial(_evaluated, policies, review, inputs, types))
            finally:
                used = min(self._now() - began, float(PROCESSOR_SECONDS))
                self._room().release()
        finally:
            self._waiting -= 1
            allowances.take(tenant, used - PROCESSOR_SECONDS)
        return children.read_back(text, review)

    def read(self, tenant: str, work: Callable[[], _T]) -> _T:
        """Return what `work`, which reads a policy and is pure, gives; it goes on the account of who writes the policy.

        Raises LimitError where it does not end in time, or for a tenant without allowance.
        """
        return self._within(tenant, work, _TOO_LARGE, _TOO_OFTEN.format(tenant=tenant))

    def judge(self, tenant: str, work: Callable[[], _T]) -> _T:
        """Return what `work`, which judges one object by a policy that nobody waits for and is pure, gives; it goes on a tenant's account.

        Raises LimitError where it does not end in time, or for a tenant without allowance.
        """
        return self._within(tenant, work, _TOO_LONG, _TOO_LONG_FOR.format(tenant=tenant))

    def _within(self, tenant: str, work: Callable[[], _T], too_long: str, too_often: str) -> _T:
        allowances, piece = self._allowances, Slice(READING_SLICE)
        if not allowances.are_untouched and allowances.left(tenant) <= 0:
            raise LimitError(too_often)
        try:
            return piece.run(work)
        except SliceOver:
            raise LimitError(too_long) from None
        finally:
            if piece.ticks > 1:
                allowances.take(tenant, piece.seconds)

    async def _turn(self) -> None:
        """Wait for room; raises LimitError where there is none in time."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._room().acquire()
        except TimeoutError:
            raise LimitError(_TOO_MANY) from None

    def _room(self) -> asyncio.Semaphore:
        """Return the room for children; a semaphore belongs to one event loop."""
        return self._rooms.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._most))

    async def evaluate(
        self,
        policies: PolicySet,
        review: Review,
        inputs: Inputs,
        types: Collection[RuleType] = IN_ORDER,
    ) -> Evaluation:
        """Return the evaluation, in place or from a child; raises LimitError as these do."""
        found = self.attempt(policies, review, inputs, types)
        return found if found is not None else await self.finish(policies, review, inputs, types)


def _evaluated(
    policies: PolicySet, review: Review, inputs: Inputs, types: Collection[RuleType]
) -> bytes:
    found = metered(partial(evaluate, policies, review, inputs, types=types))
    return children.written(found, review)


def tenant_of(review: Review) -> str:
    """Return on whose account an evaluation goes: the object's namespace, else who asks."""
    return review.namespace or f"user {review.user.username}"


def over(review: Review) -> LimitError:
    """Return the refusal of a tenant without allowance."""
    who = (
        f"namespace `{review.namespace}`" if review.namespace else f"user `{review.user.username}`"
    )
    return LimitError(
        f"the objects of {who} have taken more time to evaluate than they have; try again later"
    )


# How much time for heavy evaluations each tenant has: a leaky bucket for every namespace, for cluster-scoped objects every user.
#
# Without it one tenant's heavy objects would take the time of all others; with it they take that of their own namespace.

CAPACITY: Final = 3.0
"""Seconds that a tenant may use at once."""
REFILL: Final = 0.25
"""Seconds that it gets back each second: a quarter of a core."""
FLOOR: Final = -1.0
"""Debt from which on nothing of a tenant's is evaluated at all."""
_MOST: Final = 4096


class Allowances:
    """What is left to whom. `now` is a monotonic clock. Tenants that have used nothing lately are not remembered."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._left: dict[str, tuple[float, float]] = {}

    @property
    def are_untouched(self) -> bool:
        """Whether nobody has used anything lately."""
        return not self._left

    def left(self, tenant: str) -> float:
        """Return the seconds that a tenant has, less than zero where it owes some."""
        found = self._left.get(tenant)
        if found is None:
            return CAPACITY
        seconds, at = found
        seconds += (self._now() - at) * REFILL
        if seconds < CAPACITY:
            return seconds
        del self._left[tenant]
        return CAPACITY

    def take(self, tenant: str, seconds: float) -> None:
        """Take seconds from a tenant; less than zero gives some back."""
        if len(self._left) >= _MOST and tenant not in self._left:
            self._forget()
        self._left[tenant] = (self.left(tenant) - seconds, self._now())

    def _forget(self) -> None:
        """Make room: by those that have all again, else by the one that has most."""
        for tenant in list(self._left):
            self.left(tenant)
        if len(self._left) >= _MOST:
            del self._left[max(self._left, key=self.left)]


PROCESS: Final = BoundedEvaluator()
"""The bounds of this process: it has one main thread, and one set of cores."""


class Resolver(Protocol):
    """Where answers come from."""

    async def resolve(
        self, lookups: Collection[Lookup], tenant: str = ""
    ) -> Mapping[Lookup, Answer]:
        """Return an answer to each of `lookups`; what cannot be had is a failed answer, not an exception.

        `tenant` is on whose account they go, who gets no more than a part of what can be asked at once.
        """

    def confirm(self, findings: Iterable[ImageFinding]) -> None:
        """Take note of images that were verified with the answers given."""


async def evaluate_with(
    resolver: Resolver,
    policies: PolicySet,
    review: Review,
    inputs: Inputs,
    *,
    types: Collection[RuleType] = IN_ORDER,
    first: Evaluation | None = None,
    heavy: BoundedEvaluator = PROCESS,
) -> Evaluation:
    """Return the evaluation in which nothing is missing; raises LimitError when questions never end or evaluation takes too long.

    `first` is what the engine said before anything was looked up, where the caller has asked already; `heavy` are the bounds.

    INVARIANT: no result is given while a rule still waits for an answer, so that a look-up which fails to come cannot
    pass for a rule that had nothing to say.
    """
    rounds = Rounds(dict(inputs.answers))
    found = first or await heavy.evaluate(policies, review, inputs, types)
    while wanted := rounds.lacks(found):
        rounds.learn(await _looked_up(resolver, wanted, tenant_of(review)))
        inputs = replace(inputs, answers=rounds.known)
        found = await heavy.evaluate(policies, review, inputs, types)
    if images := [image for one in found.results for image in one.images]:
        resolver.confirm(images)
    return found


@traced("look up")
async def _looked_up(
    resolver: Resolver, wanted: Collection[Lookup], tenant: str
) -> Mapping[Lookup, Answer]:
    return await resolver.resolve(wanted, tenant)
