"""Where decisions of the webhook go next: the one interface between serving requests and the loops.

The webhook knows no Events, reports or UpdateRequests. It hands every finished review to a `Sink`; the loops implement it.
Dry runs are never handed on, because nothing may come of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from engine.model import Json, Review, RuleResult, RuleType

Stage = Literal["validate", "mutate"]


@dataclass(frozen=True, slots=True)
class Trigger:
    """A generate or mutate-existing rule that matches the object of a review, before or after the change.

    `matches` says whether the rule matches the object as it will be; when it does not, it matched what was there before,
    which is how synchronized objects learn that their trigger is gone (row U-04).
    """

    policy: str
    rule: str
    type: RuleType
    matches: bool = True


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a review was answered with.

    `request` is the AdmissionRequest as it came, for what UpdateRequests must carry.
    `triggers` are rules whose work begins once the request is through. Without `is_proven`
    nobody knows that the API server asked: what the request says did not happen until it is seen in the cluster.
    """

    allowed: bool
    at: datetime
    request: Mapping[str, Json] = field(default_factory=dict)
    triggers: tuple[Trigger, ...] = ()
    is_proven: bool = False


class Sink(Protocol):
    """What the loops offer to the webhook."""

    async def triggered(self, review: Review, verdict: Verdict) -> None:
        """Write down the work of `verdict.triggers`, before the request is answered.

        Called for allowed requests with triggers only, within the deadline of the request. What it raises counts as an
        error of those rules: it blocks where the policies say Fail (nothing that was promised may be lost).
        """

    def follows(self, results: Sequence[RuleResult]) -> bool:
        """Tell whether anything follows from some results; those from which nothing does are not handed over.

        Asked while a request waits, so it must be quick.
        """

    async def results(
        self, review: Review, results: Sequence[RuleResult], verdict: Verdict
    ) -> None:
        """Take the results of all rules of one stage, those of audit policies included, after the answer is out.

        Denied requests come here too (for Events); audit policies are not asked about them.
        """


class NoSink:
    """A sink for processes without loops: everything is forgotten."""

    async def triggered(self, review: Review, verdict: Verdict) -> None:
        """Forget the triggers."""

    def follows(self, results: Sequence[RuleResult]) -> bool:  # noqa: ARG002 - the name is part of the interface
        """Say that nothing follows."""
        return False

    async def results(
        self, review: Review, results: Sequence[RuleResult], verdict: Verdict
    ) -> None:
        """Forget the results."""
