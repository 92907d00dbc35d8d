"""Answers of the API server that are good enough for some seconds: for what a denial shows, never for what lets a request through.

A loop that is denied again and again asks the same each time. What is remembered is bounded, because questions come from requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from controllers.kube import Clock

T = TypeVar("T")
MOST: Final = 1024
"""Answers that are remembered at once; of more, the oldest is forgotten."""
LONGEST: Final = 2048
"""The length of a question from which on its answer is not remembered."""


class Recent(Generic[T]):
    """Answers by question; each counts for `seconds` from when it was asked, or not at all where those are none."""

    def __init__(self, clock: Clock, seconds: Callable[[T], float]) -> None:
        self._clock, self._seconds = clock, seconds
        self._known: dict[str | bytes, tuple[float, T]] = {}
        self._forgotten = 0

    def __repr__(self) -> str:
        return f"<Recent {len(self._known)}>"

    async def of(self, question: str | bytes, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the answer that is remembered, else what `ask` returns; raises what it raises, and then remembers nothing."""
        known, now = self._known.get(question), self._clock.monotonic()
        if known is not None and now < known[0]:
            return known[1]
        forgotten = self._forgotten
        answer = await ask()
        # what was forgotten while somebody asked may be missing in the answer
        if forgotten == self._forgotten and len(question) <= LONGEST:
            self._known.pop(question, None)
            self._known[question] = (now + self._seconds(answer), answer)
            if len(self._known) > MOST:
                del self._known[next(iter(self._known))]
        return answer

    def forget(self, question: str | bytes) -> None:
        """Have a question asked anew, because its answer has changed."""
        self._forgotten += 1
        self._known.pop(question, None)
