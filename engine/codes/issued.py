"""Codes that a person issues to another one: drawn by chance, and known to the cluster only by what can be checked.

The object of such a code is named by the code, so that it is found without reading all others; neither its name nor its
verifier lets the code be found, because it carries 90 bits.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b32encode

from .text import BITS, SECRET, spelled

_HINT = "00"
_NAME = 26


def issued_code(chance: bytes) -> str:
    """Return a canonical code from at least 12 bytes of chance; raises ValueError for fewer."""
    if len(chance) * 8 < BITS:
        raise ValueError("too little chance for a code")
    return spelled(int.from_bytes(chance, "big") & ((1 << BITS) - 1), SECRET) + _HINT


def issued_name(code: str) -> str:
    """Return the object name of an issued code."""
    digest = hashlib.sha256(b"kpolicy issued code\0" + code.encode()).digest()
    return f"code-{b32encode(digest).decode().lower()[:_NAME]}"


def verifier_of(code: str) -> str:
    """Return what an issued code is recognised by."""
    return hashlib.sha256(b"kpolicy code verifier\0" + code.encode()).hexdigest()


def is_code(text: str, verifier: str) -> bool:
    """Tell, in constant time, whether a canonical code is the one of a verifier."""
    return hmac.compare_digest(verifier_of(text), verifier)
