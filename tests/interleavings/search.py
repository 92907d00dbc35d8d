"""Every interleaving of a model's steps up to a depth, with what it promises checked at each step.

A model is a start, the steps that anybody may take next, and promises about a step. States that are reached in several ways
are expanded once; how many ways lead to them is counted, so the count of interleavings is that of all sequences of steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

S = TypeVar("S", bound="Hashable")


class Model(Protocol[S]):
    """What can happen, and what must not."""

    name: str

    def start(self) -> S:
        """Return the state in which everything begins."""

    def steps(self, state: S) -> Iterable[tuple[str, S]]:
        """Yield every step that can be taken in a state, with the state after it."""

    def broken(self, step: str, before: S, after: S) -> str:
        """Return the promise that a step breaks, nothing where it breaks none."""


@dataclass(frozen=True, slots=True)
class Break:
    """A promise that does not hold, and the steps that show it."""

    promise: str
    trace: tuple[str, ...]

    def __str__(self) -> str:
        return "\n  ".join((self.promise, *self.trace))


@dataclass(frozen=True, slots=True)
class Found(Generic[S]):
    """How far a search came: how many states, steps between them and interleavings there are up to a depth."""

    name: str
    depth: int
    states: int
    steps: int
    interleavings: int
    break_: Break | None

    def __str__(self) -> str:
        return f"{self.name}: {self.states} states, {self.steps} steps, {self.interleavings:.3g} interleavings to depth {self.depth}"


def search(model: Model[S], depth: int) -> Found[S]:
    """Take every sequence of at most `depth` steps; stop at the first one that breaks a promise, which is a shortest one."""
    start = model.start()
    ways: dict[S, int] = {start: 1}
    came: dict[S, tuple[S, str] | None] = {start: None}
    following: dict[S, list[S]] = {}
    steps = interleavings = 0
    for _ in range(depth):
        coming: dict[S, int] = {}
        for state, count in ways.items():
            known = following.get(state)
            if known is None:
                known = following[state] = []
                for label, after in model.steps(state):
                    steps += 1
                    came.setdefault(after, (state, label))
                    known.append(after)
                    if promise := model.broken(label, state, after):
                        trace = (*_trace(came, state), label)
                        return Found(model.name, depth, len(came), steps, interleavings, Break(promise, trace))  # fmt: skip
            for after in known:
                coming[after] = coming.get(after, 0) + count
        ways = coming
        interleavings += sum(ways.values())
    return Found(model.name, depth, len(came), steps, interleavings, None)


def _trace(came: dict[S, tuple[S, str] | None], state: S) -> tuple[str, ...]:
    labels = []
    while (before := came[state]) is not None:
        state, label = before
        labels.append(label)
    return tuple(reversed(labels))
