"""A client whose process dies at one of its calls to the API server: just before what it asked for happened, or just after."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

_CALLS = frozenset({"get", "list", "list_all", "create", "update", "patch", "delete", "review", "raw"})  # fmt: skip


class Died(BaseException):
    """The process is gone; nothing that handles errors may see it."""


class DyingClient:
    """See `controllers.kube.Client`. Dies at call number `at` (from 0), and at every later one.

    With `chance` others get their turn for a while before each call, so that calls of several interleave.
    """

    def __init__(
        self, client: Any, at: int, *, after: bool, chance: random.Random | None = None
    ) -> None:
        self._client, self._at, self._after, self._chance = client, at, after, chance
        self.calls = 0
        self.is_dead = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        return self._call(found) if name in _CALLS else found

    def _call(self, work: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            for _ in range(self._chance.randrange(4) if self._chance else 0):
                await asyncio.sleep(0)
            number = self.calls
            self.calls += 1
            if self.is_dead or (number == self._at and not self._after):
                self.is_dead = True
                raise Died
            try:
                return await work(*args, **kwargs)
            finally:
                # what the API server refuses happens, too
                if number == self._at:
                    self.is_dead = True
                    raise Died

        return call
