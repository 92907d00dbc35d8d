"""Foreach: lists to go over, and the scope of each element (rows A-75, A-83)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lang.jmes import GoInt

from .inputs import dotted_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.model import Json

    from .state import State


def elements_of(expression: str, state: State) -> list[Json]:
    """Return what a foreach goes over; a result that is not a list counts as one element."""
    found = state.scope.query(expression)
    return list(found) if isinstance(found, list) else [found]


def each(
    elements: list[Json], state: State, *, descending: bool = False
) -> Iterator[tuple[Json, State]]:
    """Yield each element that is not null with a state of its own; indexes stay those of the list."""
    order = range(len(elements) - 1, -1, -1) if descending else range(len(elements))
    for index in order:
        element = elements[index]
        if element is None:
            continue
        scope = state.scope.child()
        scope.set("element", element)
        scope.set("elementIndex", GoInt(index))
        scope.set(f"element{state.nesting}", element)
        scope.set(f"elementIndex{state.nesting}", GoInt(index))
        yield element, state.inside(scope)


def add_foreach_values(state: State, index: int) -> None:
    """Set the values that a values file gives for this element of the rule."""
    given = state.inputs.foreach_values.get((state.policy.name, state.rule.name))
    for key, values in (given or {}).items():
        if index < len(values):
            state.scope.set_path(dotted_path(key), values[index])
