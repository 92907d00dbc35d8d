"""What the handlers of one rule share while it is evaluated on one object, and what they answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.model import Forgiven, Object, Outcome, Status, Target
from engine.record import field, record

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.lang.variables import Scope
    from engine.model import Block, Json, Object, Policy, Review, Rule

    from .inputs import Inputs

    Question = Callable[[Review], bool]
    from engine.errors import EngineError
    from engine.model.result import ImageFinding


class Asked:
    """One policy asked about one review: what every rule needs to know, and all that one without variables of YAML does."""

    __slots__ = ("inputs", "policy", "review", "trace")

    def __init__(
        self, policy: Policy, review: Review, inputs: Inputs, trace: Trace | None = None
    ) -> None:
        self.policy = policy
        self.review = review
        self.inputs = inputs
        self.trace = trace


class State(Asked):
    """One rule on one object: who asks, where variables come from, and the object as the rule sees it.

    `resource` is what patterns are compared with: the object, or the element of a foreach that scopes to it. `nesting`
    counts the foreach levels around. `applies` says whether the rule concerns a review, `enforces` whether a failure blocks. `exclusions` are pod security exclusions
    of the exceptions that cover (row X-05). The scope is made when first asked for: most rules that pass never do.
    """

    __slots__ = (
        "_make_scope",
        "_scope",
        "applies",
        "enforces",
        "exclusions",
        "nesting",
        "resource",
        "rule",
    )

    def __init__(
        self,
        policy: Policy,
        rule: Rule,
        review: Review,
        inputs: Inputs,
        make_scope: Callable[[], Scope],
        applies: Question,
        enforces: Question,
        trace: Trace | None = None,
    ) -> None:
        super().__init__(policy, review, inputs, trace)
        self.rule = rule
        self.resource: Object = review.target
        self.applies = applies
        self.enforces = enforces
        self.nesting = 0
        self.exclusions: tuple[Block, ...] = ()
        self._scope: Scope | None = None
        self._make_scope = make_scope

    @property
    def scope(self) -> Scope:
        """Where this rule's variables come from."""
        if self._scope is None:
            self._scope = self._make_scope()
        return self._scope

    def looking_at(self, resource: Object, scope: Scope | None = None) -> State:
        """Return a state for another resource, in another scope where one is given."""
        made = State.__new__(State)
        for name in (*Asked.__slots__, *State.__slots__):
            setattr(made, name, getattr(self, name))
        made.resource = resource
        if scope is not None:
            made._scope = scope  # noqa: SLF001 - a copy of this very object
        return made

    def inside(self, scope: Scope) -> State:
        """Return the state one foreach level further in."""
        made = self.looking_at(self.resource, scope)
        made.nesting = self.nesting + 1
        return made

    def excluding(self, exclusions: tuple[Block, ...]) -> State:
        """Return a state with the pod security exclusions of exceptions."""
        made = self.looking_at(self.resource)
        made.exclusions = exclusions
        return made

    def reviewing(self, review: Review, scope: Scope | None = None) -> State:
        """Return a state for another review of the same rule, in another scope where one is given."""
        made = self.looking_at(review.target, scope)
        made.review = review
        return made


# The steps behind a result, kept only when an explanation was asked for.


@record
class Step:
    """One step: what was looked at (`match`, `context`, `variable`, `condition`, `exception`, `pattern`, …).

    `holds` is None where there is nothing to hold; `value` is what was found.
    """

    kind: str
    text: str
    holds: bool | None = None
    value: Json = None


@record
class Trace:
    """The steps of one rule on one object, in order; `policy` is the identity of its policy."""

    policy: str = ""
    rule: str = ""
    steps: list[Step] = field(default_factory=list)

    def add(self, kind: str, text: str, holds: bool | None = None, value: Json = None) -> None:
        """Append a step."""
        self.steps.append(Step(kind, text, holds, value))


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


def answered(status: Status, message: str, *, rule: str = "") -> Answers:
    """Make one answer of a status and a message; `rule` names it where it is not the rule's own name that reports show."""
    return (RuleAnswer(Outcome(status, message), rule=rule),)


def errored(during: str, error: EngineError) -> Answers:
    """Make the error answer `during: text`, as Kyverno words it (row P-48)."""
    return answered(Status.ERROR, f"{during}: {error.message}")


def joined(*texts: str) -> str:
    """Return the texts that are not empty as one."""
    return "; ".join(text for text in texts if text)
