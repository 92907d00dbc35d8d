"""Digests as words: names of objects and values of labels for texts that are none, or that must not be found from them."""

from __future__ import annotations

import hashlib
from typing import Final

LENGTH: Final = 26
"""Characters of a word: 130 bits."""
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz234567"
_MOST_BYTES: Final = 20
_BITS: Final = 8 * _MOST_BYTES
_MOST: Final = 32


def word_of(text: str, length: int = LENGTH) -> str:
    """Return up to 32 lower-case letters and digits that stand for a text; half a character counts as it is."""
    return spelled(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest(), length)


def spelled(digest: bytes, length: int) -> str:
    """Return how a digest begins, in base 32 (RFC 4648) and lower case; raises ValueError beyond 32 characters."""
    if length > _MOST:
        raise ValueError(f"a digest is spelled in at most {_MOST} characters")
    number = int.from_bytes(digest[:_MOST_BYTES], "big")
    # character by character, because `base64` takes as long to begin as this takes in all
    return "".join(
        [_ALPHABET[number >> at & 31] for at in range(_BITS - 5, _BITS - 5 - 5 * length, -5)]
    )
