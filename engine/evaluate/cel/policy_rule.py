"""The one rule that a policy written in CEL comes to, and the specs that autogen makes of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from engine.evaluate.rules import CompiledRule, finished
from engine.evaluate.state import Answers, Asked
from engine.model import Block, Policy, Review, Rule, RuleResult, RuleType
from engine.model.kinds import KUBERNETES, mode_of

from .autogen import variants
from .constraints import Constraints, any_of, compile_constraints, compile_payload_constraints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from engine.evaluate.inputs import Inputs
    from engine.evaluate.quick import Quick
    from engine.evaluate.rules import Handler

    from .autogen import Variant

    Answering = Callable[[Asked], Answers]


class CompiledSpec(Protocol):
    """One compiled spec of a policy: its own, or one of autogen."""

    @property
    def constraints(self) -> Constraints:
        """Which reviews it concerns."""


_Spec = TypeVar("_Spec", bound=CompiledSpec)


def constraints_of(policy: Policy, spec: Block) -> Constraints:
    """Compile what one spec of a policy concerns: objects, or documents of the mode that it is asked of."""
    mode = mode_of(spec)
    if mode != KUBERNETES:
        return compile_payload_constraints(mode)
    return compile_constraints(spec.get("matchConstraints") or {}, namespace=policy.namespace)


def variants_of(spec: Block) -> Iterable[Variant]:
    """Return what autogen makes of a policy about objects; there is nothing for documents of another mode."""
    return variants(spec) if mode_of(spec) == KUBERNETES else ()


def with_variants(
    spec: Block, made: Iterable[Variant], compile_spec: Callable[[str, Block], _Spec]
) -> tuple[_Spec, dict[str, _Spec], Constraints]:
    """Compile a policy's own spec and what autogen `made` of it, each with its name.

    Return its own, the others by resource, and the constraints of all of them.
    """
    first = compile_spec("", spec)
    others: dict[str, _Spec] = {}
    for one in made:
        others.update(dict.fromkeys(one.resources, compile_spec(one.name, one.spec)))
    by_resource = {key: one.constraints for key, one in others.items()}
    return first, others, any_of(first.constraints, by_resource)


def cel_rule(
    policy: Policy,
    name: str,
    matcher: Constraints,
    handle: Handler,
    *,
    type: RuleType = RuleType.VALIDATION,  # noqa: A002 - the name of the field
    enforce: bool,
    usual: Answers | None = None,
    rule: Rule | None = None,
    at_once: Answering | None = None,
) -> CompiledRule:
    """Make the one rule that a policy, or a policy as bound by one binding, comes to.

    `usual` is the very answer of objects that meet the policy: its result is made here, once. `rule` stands in for one that has
    nothing but its name. `at_once` answers as `handle` does, and needs nothing of a rule's state.
    """
    own = rule or Rule(name)
    made = tuple(finished(policy, own.name, type, one, enforce) for one in usual or ())
    quick: Quick | None = None
    if at_once is not None and not policy.namespace:
        # what policies of a namespace ask is confined, by their rules
        def results(review: Review, inputs: Inputs) -> tuple[RuleResult, ...]:
            answers = at_once(Asked(policy, review, inputs))
            if answers is usual:
                return made
            return tuple([finished(policy, own.name, type, one, enforce) for one in answers])

        quick = results
    return CompiledRule(
        policy=policy,
        rule=own,
        type=type,
        matcher=matcher,
        enforces=lambda _: enforce,
        handle=handle,
        is_plain=True,
        usual=usual,
        usual_results=made,
        quick=quick,
    )
