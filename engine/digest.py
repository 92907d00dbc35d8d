"""Digests as words: names of objects and values of labels for texts that are none, or that must not be found from them."""

from __future__ import annotations

import hashlib
from base64 import b32encode
from typing import Final

LENGTH: Final = 26
"""Characters of a word: 130 bits."""
_MOST_BYTES: Final = 20
_MOST: Final = 32


def word_of(text: str, length: int = LENGTH) -> str:
    """Return up to 32 lower-case letters and digits that stand for a text; half a character counts as it is."""
    return spelled(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest(), length)


def spelled(digest: bytes, length: int) -> str:
    """Return how a digest begins, in base 32 (RFC 4648) and lower case; raises ValueError beyond 32 characters."""
    if length > _MOST:
        raise ValueError(f"a digest is spelled in at most {_MOST} characters")
    # what is left out is not encoded either: of 32 bytes that is nearly half of the work
    return b32encode(digest[:_MOST_BYTES]).decode().lower()[:length]
