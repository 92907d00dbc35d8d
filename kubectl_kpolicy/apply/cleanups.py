"""What clean-up policies among the input would delete of the objects, and when they run next (row C-04)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.cleanup.plan import compile_cleanup, plan
from engine.errors import EngineError
from engine.evaluate import Inputs
from engine.evaluate.asking import conclude
from engine.lang import rfc3339

from .names import resource_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .inputs import ApplyInputs


def deletions(inputs: ApplyInputs) -> Iterator[str]:
    """Yield a line for every object that a clean-up policy matches, and one for the policy's next run."""
    setting = inputs.setting
    given = Inputs(now=setting.now, seed=setting.seed, resolve_values=setting.resolve_values)
    labels = {**setting.namespace_labels, **setting.values.namespace_labels}
    for policy in inputs.loaded.cleanups:
        try:
            asking = plan(compile_cleanup(policy), inputs.objects, given, namespace_labels=labels)
            found = conclude(asking, setting.world.answers)
        except EngineError as error:
            yield f"cleanup policy {policy.key}: {error.message}"
            continue
        when = rfc3339.write(found.run_at) if found.run_at else "never"
        yield f"cleanup policy {policy.key} would delete {len(found.deletions)} resource(s), next run {when}:"
        for decision in found.decisions:
            verb = "delete" if decision.goes else "keep"
            yield f"  {verb} {resource_path(decision.object)}: {decision.reason}"
