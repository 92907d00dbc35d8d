"""Policies written in CEL as compiled policies: what `PolicySet` holds for them beside the classic ones.

Each kind has its module; it is loaded with the first policy of the kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError, PolicyError
from engine.evaluate.rules import CompiledPolicy, CompiledRule
from engine.model.kinds import BY_NAME, loaded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.model import Policy
    from engine.model.policy import Binding

    from .exceptions import CompiledCelException


def compile_cel_policy(
    policy: Policy,
    exceptions: Sequence[CompiledCelException] = (),
    bindings: Iterable[Binding] = (),
) -> CompiledPolicy:
    """Compile one policy with the exceptions and bindings that name it; raises EngineError for what cannot work.

    A native policy that nothing binds is taken as bound everywhere: whoever must not do that leaves it out.
    """
    try:
        made = tuple(_rules(policy, exceptions, bindings))
        return CompiledPolicy(
            policy,
            tuple(rule for rule in made if not rule.is_for_requests),
            tuple(rule for rule in made if rule.is_for_requests),
        )
    except EngineError as error:
        if not error.at.file:
            error.at = policy.at
        raise


def _rules(
    policy: Policy, exceptions: Sequence[CompiledCelException], bindings: Iterable[Binding]
) -> Iterable[CompiledRule]:
    row = BY_NAME.get(policy.kind)
    if row is not None and row.is_evaluated:
        rules: Iterable[CompiledRule] = loaded(row.family.evaluator)(policy, exceptions)
        return rules
    own = tuple(
        binding
        for binding in bindings
        if binding.policy_name == policy.name and binding.policy_kind == policy.kind
    )
    if policy.kind == "ValidatingAdmissionPolicy":
        from .admission import compile_admission

        return compile_admission(policy, own)
    if policy.kind == "MutatingAdmissionPolicy":
        from .admission import compile_mutating

        return compile_mutating(policy, own)
    raise PolicyError(f"policies of kind {policy.kind} are not evaluated by this version")
