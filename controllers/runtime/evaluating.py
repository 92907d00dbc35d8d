"""Evaluation with answers from outside: ask the engine, look up what it names, ask again.

For webhook and loops alike. The engine may not fetch anything; it names questions. All questions of one round are looked up
at once, so the cost is that of the longest chain of answers that depend on each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from engine.evaluate.asking import Rounds
from engine.evaluate.policy_set import IN_ORDER
from engine.record import replace

from .bounded_evaluation import PROCESS, BoundedEvaluator, tenant_of
from .tracing import traced

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from engine.evaluate import Answer, Evaluation, Inputs, Lookup, PolicySet
    from engine.model import Review, RuleType
    from engine.model.result import ImageFinding


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
