"""What the handlers of rules return, before the rule's own name and action are put on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.model import Forgiven, Object, Outcome, Status, Target
from engine.record import record

if TYPE_CHECKING:
    from engine.errors import EngineError
    from engine.model.result import ImageFinding


@record
class RuleAnswer:
    """An outcome with what the rule would change (`patched`, `targets`) or make (`generated`).

    `exceptions` are the keys of exceptions that the handler itself has asked; `forgiven` is what a skip stands for;
    `images` is what was found of images; `rule` names the answer where it is not the rule's own name that reports show.
    """

    outcome: Outcome
    patched: Object | None = None
    targets: tuple[Target, ...] = ()
    generated: tuple[Object, ...] = ()
    exceptions: tuple[str, ...] = ()
    forgiven: Forgiven | None = None
    images: tuple[ImageFinding, ...] = ()
    rule: str = ""


Answers = tuple[RuleAnswer, ...]
"""A rule gives no answer, one, or (mutate-existing) one for each target."""

NO_ANSWER: Answers = ()
LOST: Final[Object] = {}
"""`patched` of a mutation that failed: what upstream hands on of the object, which no further mutate rule of the policy concerns."""

ANSWER_NAMES = ("exception", "match", "evaluation")
"""Names under which policies written in CEL answer beside their own: exempted, and two ways to go wrong."""


def answered(status: Status, message: str) -> Answers:
    """Make one answer of a status and a message."""
    return (RuleAnswer(Outcome(status, message)),)


def errored(during: str, error: EngineError) -> Answers:
    """Make the error answer `during: text`, as Kyverno words it (row P-48)."""
    return answered(Status.ERROR, f"{during}: {error.message}")


def joined(*texts: str) -> str:
    """Return the texts that are not empty as one."""
    return "; ".join(text for text in texts if text)
