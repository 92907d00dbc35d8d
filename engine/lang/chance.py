"""Randomness that can be replayed: a stream of numbers from a seed given by the caller.

The `random()` of policies must give the same text in the denial, the Event and the report of one review, so the engine
draws from a stream that the caller seeds per review (with a keyed hash of the request UID in production).
"""

from __future__ import annotations

from collections.abc import Callable


class Chance:
    """A deterministic stream of unbiased numbers: SHA-256 over seed and counter.

    A seed that takes work may be given as a function, which is called with the first number: few policies draw one.
    """

    __slots__ = ("_counter", "_pool", "_seed")

    def __init__(self, seed: bytes | Callable[[], bytes] = b"") -> None:
        self._seed = seed
        self._counter = 0
        self._pool = b""

    def below(self, bound: int) -> int:
        """Return a number from 0 to `bound` - 1, each equally likely. `bound` is from 1 to 2**32."""
        limit = (1 << 32) - (1 << 32) % bound
        while True:
            drawn = int.from_bytes(self._take(4), "big")
            if drawn < limit:
                return drawn % bound

    def _take(self, size: int) -> bytes:
        if len(self._pool) < size:
            # here, because loading OpenSSL takes longer than most policies
            from hashlib import sha256

            if not isinstance(self._seed, bytes):
                self._seed = self._seed()
            self._pool = sha256(self._seed + self._counter.to_bytes(8, "big")).digest()
            self._counter += 1
        taken, self._pool = self._pool[:size], self._pool[size:]
        return taken
