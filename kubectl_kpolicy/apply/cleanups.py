"""What clean-up policies among the input would delete of the objects, and when they run next (row C-04)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.cleanup import compile_cleanup, plan
from engine.errors import EngineError
from engine.evaluate import Inputs
from engine.evaluate.conditions import compile_conditions
from engine.evaluate.context import compile_context, load_context
from engine.evaluate.lookups import LookupNeeded
from engine.lang.jmes.env import Env
from engine.lang.variables import Scope

from .names import resource_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.evaluate import Answer, Lookup
    from engine.model import CleanupPolicy, Object

    from .inputs import ApplyInputs

MAX_LOOKUPS = 100


def deletions(inputs: ApplyInputs) -> Iterator[str]:
    """Yield a line for every object that a clean-up policy matches, and one for the policy's next run."""
    for policy in inputs.loaded.cleanups:
        try:
            found = plan(
                compile_cleanup(policy),
                inputs.objects,
                inputs.setting.now,
                check_conditions=_checker(policy, inputs),
                namespace_labels={
                    **inputs.setting.namespace_labels,
                    **inputs.setting.values.namespace_labels,
                },
            )
        except EngineError as error:
            yield f"cleanup policy {policy.key}: {error.message}"
            continue
        when = f"{found.run_at:%Y-%m-%dT%H:%M:%SZ}" if found.run_at else "never"
        yield f"cleanup policy {policy.key} would delete {len(found.deletions)} resource(s), next run {when}:"
        for decision in found.decisions:
            verb = "delete" if decision.goes else "keep"
            yield f"  {verb} {resource_path(decision.object)}: {decision.reason}"


def _checker(policy: CleanupPolicy, inputs: ApplyInputs) -> Callable[[Object], bool]:
    conditions = compile_conditions(policy.conditions)
    entries = compile_context(policy.context)
    answers: dict[Lookup, Answer] = {}

    def holds(obj: Object) -> bool:
        for _ in range(MAX_LOOKUPS):
            scope = Scope(
                {"target": obj},
                Env(now=inputs.setting.now),
                rereads=inputs.setting.resolve_values,
            )
            given = Inputs(now=inputs.setting.now, answers=answers, within=policy.namespace)
            load_context(entries, scope, given)
            try:
                return conditions(scope, None).holds
            except LookupNeeded as needed:
                answers.update(inputs.setting.world.answers((needed.lookup,)))
        return False

    return holds
