"""What the handlers of one rule share while it is evaluated on one object."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.lang.variables import Scope
    from engine.model import Block, Object, Policy, Review, Rule

    from .inputs import Inputs
    from .trace import Trace

    Enforces = Callable[[Review], bool]


def _never(_: Review) -> bool:
    return False


@dataclass(slots=True, eq=False)
class State:
    """One rule on one object: who asks, where variables come from, and the object as the rule sees it.

    `resource` is what patterns are compared with: the object, or the element of a foreach that scopes to it. `nesting`
    counts the foreach levels around. `enforces` says whether a failure blocks. `exclusions` are pod security exclusions of the exceptions that cover (row X-05).
    """

    policy: Policy
    rule: Rule
    review: Review
    inputs: Inputs
    scope: Scope
    resource: Object
    trace: Trace | None = None
    nesting: int = 0
    enforces: Enforces = _never
    exclusions: tuple[Block, ...] = ()

    def inside(self, scope: Scope, resource: Object) -> State:
        """Return the state one foreach level further in."""
        return replace(self, scope=scope, resource=resource, nesting=self.nesting + 1)
