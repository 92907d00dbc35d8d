"""Making codes and recognising them: HMAC-SHA-256 over key, binding, time slot and number.

A code is good in the slot it was made in and in the next one, so it lives for one to two slots. `number` counts the earlier
uses of the same binding in the slot, so that a code that was burned without effect is followed by another one.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Final

from engine.digest import word_of
from engine.record import record

from .spelling import ALPHABET, BITS, LENGTH, SECRET, canonical, number_of, spelled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from .binding import Binding

_BYTES: Final = (BITS + 7) // 8
_LEFT_OVER: Final = 8 * _BYTES - BITS
MAX_NUMBER: Final = 8
"""Codes of one binding and slot that are recognised; more uses than that are not somebody's everyday work."""


@record
class Key:
    """A signing key: its number from 0 to 31 goes into the code, so that two can live during a rotation."""

    id: int
    secret: bytes

    def __repr__(self) -> str:
        return f"Key(id={self.id})"


def use_name(code: str) -> str:
    """Return the object name under which the use of a canonical code is recorded; the code cannot be got back from it."""
    return "use-" + word_of(f"kpolicy code use\0{code}")


def slot_of(at: datetime, slot_for: timedelta) -> int:
    """Return the number of the time slot in which an instant (aware) lies."""
    return int(at.timestamp() // slot_for.total_seconds())


def mint(key: Key, binding: Binding, slot: int, number: int = 0) -> str:
    """Return the canonical code of a binding in a slot."""
    return spelled(_secret(key, binding.bytes(), slot, number), SECRET) + _hint(key, slot)


def _secret(key: Key, bound: bytes, slot: int, number: int) -> int:
    """Return the bits that a code carries."""
    message = b"%b%b%c" % (bound, slot.to_bytes(8, "big", signed=True), number)
    return int.from_bytes(hmac.digest(key.secret, message, "sha256")[:_BYTES], "big") >> _LEFT_OVER


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
                secret = _secret(key, bound, made_in, number).to_bytes(_BYTES, "big")
                good |= hmac.compare_digest(secret, brought) and is_hinted
    return given if good else None


# Codes that a person issues to another one: drawn by chance, and known to the cluster only by what can be checked.
#
# The object of such a code is named by the code, so that it is found without reading all others; neither its name nor its
# verifier lets the code be found, because it carries 90 bits.

_HINT = "00"


def issued_code(chance: bytes) -> str:
    """Return a canonical code from at least 12 bytes of chance; raises ValueError for fewer."""
    if len(chance) * 8 < BITS:
        raise ValueError("too little chance for a code")
    return spelled(int.from_bytes(chance, "big") & ((1 << BITS) - 1), SECRET) + _HINT


def issued_name(code: str) -> str:
    """Return the object name of an issued code."""
    return "code-" + word_of(f"kpolicy issued code\0{code}")


def verifier_of(code: str) -> str:
    """Return what an issued code is recognised by."""
    return hashlib.sha256(b"kpolicy code verifier\0" + code.encode()).hexdigest()


def is_code(text: str, verifier: str) -> bool:
    """Tell, in constant time, whether a canonical code is the one of a verifier."""
    return hmac.compare_digest(verifier_of(text), verifier)
