"""The mutations of a policy, compiled once and applied in their order, each to what the one before left.

A mutation's expression gives an apply configuration (`Object{…}`) or a list of JSON patches. Native policies and those of
Kyverno share this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.errors import PolicyError
from engine.lang.cel.functions.encodings import plain
from engine.record import record

from .configurations import apply_configuration
from .expressions import compile_expression
from .patches import apply_patches

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from engine.lang.cel import Program
    from engine.model import Block, Object

    from .bindings import Bindings

    Apply = Callable[[Any, Object], Object]

FIELDS: Final = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
"""Where a mutation of each type of patch says its expression."""

_APPLY: Final[dict[str, Apply]] = {
    "ApplyConfiguration": apply_configuration,
    "JSONPatch": apply_patches,
}


@record
class Mutation:
    """One compiled mutation."""

    program: Program
    apply: Apply

    def applied(self, bindings: Bindings, obj: Object) -> Object:
        """Return `obj` mutated, the very same one where nothing changes; raises EvaluationError."""
        return self.apply(plain(bindings.env, bindings.value_of(self.program)), obj)


def compile_mutations(blocks: Iterable[Block], names: Collection[str]) -> tuple[Mutation, ...]:
    """Compile mutations that may read `names`; raises PolicyError for one that cannot work."""
    return tuple(_compiled(index, block, names) for index, block in enumerate(blocks))


def _compiled(index: int, block: Block, names: Collection[str]) -> Mutation:
    kind = str(block.get("patchType"))
    source = (block.get(FIELDS[kind]) or {}).get("expression")
    place = f"mutations[{index}].{FIELDS[kind]}"
    if not source:
        raise PolicyError(f"`{place}.expression` is required")
    return Mutation(compile_expression(source, names, place=place), _APPLY[kind])


def mutated(
    mutations: Iterable[Mutation], bind: Callable[[Object], Bindings], obj: Object
) -> Object:
    """Return an object after all mutations; `bind` gives the variables as they are after earlier ones.

    Raises EvaluationError for the first that fails, and then nothing of it counts.
    """
    for mutation in mutations:
        obj = mutation.applied(bind(obj), obj)
    return obj
