"""Making codes and recognising them: HMAC-SHA-256 over key, binding, time slot and number.

A code is good in the slot it was made in and in the next one, so it lives for one to two slots. `number` counts the earlier
uses of the same binding in the slot, so that a code that was burned without effect is followed by another one.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final

from engine.record import record

from .text import ALPHABET, BITS, LENGTH, SECRET, canonical, number_of, spelled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from .binding import Binding

_BYTES: Final = (BITS + 7) // 8
MAX_NUMBER: Final = 8
"""Codes of one binding and slot that are recognised; more uses than that are not somebody's everyday work."""


@record
class Key:
    """A signing key: its number from 0 to 31 goes into the code, so that two can live during a rotation."""

    id: int
    secret: bytes

    def __repr__(self) -> str:
        return f"Key(id={self.id})"


def slot_of(at: datetime, slot_for: timedelta) -> int:
    """Return the number of the time slot in which an instant (aware) lies."""
    return int(at.timestamp() // slot_for.total_seconds())


def mint(key: Key, binding: Binding, slot: int, number: int = 0) -> str:
    """Return the canonical code of a binding in a slot."""
    secret = _secret(key, binding.bytes(), slot, number)
    return spelled(int.from_bytes(secret, "big"), SECRET) + _hint(key, slot)


def _secret(key: Key, bound: bytes, slot: int, number: int) -> bytes:
    """Return the bits that a code carries."""
    message = bound + slot.to_bytes(8, "big", signed=True) + bytes([number])
    digest = hmac.digest(key.secret, message, "sha256")
    return (int.from_bytes(digest, "big") >> (256 - BITS)).to_bytes(_BYTES, "big")


def _hint(key: Key, slot: int) -> str:
    return ALPHABET[key.id & 31] + ALPHABET[slot & 31]


def verify(keys: Sequence[Key], binding: Binding, text: str, slot: int) -> str | None:
    """Return the canonical code when a text is a code of this binding made in this slot or the one before, else None.

    All candidates are computed and compared in constant time, so that timing tells nothing about how near a guess is.
    """
    given = canonical(text)
    code = given or ALPHABET[0] * LENGTH
    brought = number_of(code[:SECRET]).to_bytes(_BYTES, "big")
    good, bound = False, binding.bytes()
    for key in keys:
        for made_in in (slot, slot - 1):
            is_hinted = code[SECRET:] == _hint(key, made_in)
            for number in range(MAX_NUMBER):
                secret = _secret(key, bound, made_in, number)
                good |= hmac.compare_digest(secret, brought) and is_hinted
    return given if good else None
