"""Asking until everything is answered: the one driver of evaluations that need something from outside.

The engine fetches nothing. An evaluation says what it lacks, whoever runs it fetches that and evaluates again. How often
that may happen, and that nothing counts as decided while an answer is missing, is said here for everybody; how answers come
(at once, or awaited) is the caller's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from typing import Final, Generic, Protocol, TypeVar

from engine.errors import LimitError

from .lookups import Answer, Lookup, LookupNeeded

MOST_ROUNDS: Final = 100
"""How often one decision may ask for more."""

T = TypeVar("T")
Answers = Mapping[Lookup, Answer]
Asking = Generator[frozenset[Lookup], Answers, T]
"""A decision under way: yields what it lacks, is sent the answers, returns what was decided. Raises LimitError."""


class Lacking(Protocol):
    """Anything that says which answers it lacked; complete when it lacked none."""

    @property
    def missing(self) -> Iterable[Lookup]:
        """The questions to answer before evaluating again."""
        ...


L = TypeVar("L", bound=Lacking)


class Rounds:
    """The answers that one decision has been given so far, and how often it may still ask.

    `known` is added to in place, so that several decisions can share what they were told.
    """

    __slots__ = ("_left", "known")

    def __init__(self, known: dict[Lookup, Answer]) -> None:
        self.known = known
        self._left = MOST_ROUNDS

    def lacks(self, found: Lacking) -> frozenset[Lookup]:
        """Return what is to be answered before `found` counts; nothing when it does. Raises LimitError."""
        wanted = frozenset(found.missing)
        if wanted:
            if not self._left:
                raise LimitError(
                    "more answers from outside are asked for than one decision may have"
                )
            self._left -= 1
        return wanted

    def learn(self, answers: Answers) -> None:
        """Take answers."""
        self.known.update(answers)


def until_answered(ask: Callable[[Answers], L], known: dict[Lookup, Answer]) -> Asking[L]:
    """Evaluate with all answers there are, again and again until nothing is lacking."""
    rounds = Rounds(known)
    while True:
        found = ask(rounds.known)
        wanted = rounds.lacks(found)
        if not wanted:
            return found
        rounds.learn((yield wanted))


class Said(Generic[T]):
    """What an expression came to, or the questions it stopped at."""

    __slots__ = ("_value", "missing")

    def __init__(self, work: Callable[[], T]) -> None:
        self.missing: tuple[Lookup, ...] = ()
        try:
            self._value = work()
        except LookupNeeded as needed:
            self.missing = needed.lookups

    @property
    def value(self) -> T:
        """What it came to, once nothing is missing."""
        return self._value


def conclude(asking: Asking[T], resolve: Callable[[frozenset[Lookup]], Answers]) -> T:
    """Run a decision to its end where answers are at hand at once."""
    try:
        wanted = next(asking)
        while True:
            wanted = asking.send(resolve(wanted))
    except StopIteration as end:
        found: T = end.value
        return found


async def conclude_later(
    asking: Asking[T], resolve: Callable[[frozenset[Lookup]], Awaitable[Answers]]
) -> T:
    """Run a decision to its end where answers have to be waited for."""
    try:
        wanted = next(asking)
        while True:
            wanted = asking.send(await resolve(wanted))
    except StopIteration as end:
        found: T = end.value
        return found
