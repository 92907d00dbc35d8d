"""The written form of codes: twenty characters of Crockford's alphabet in groups of four, fit for labels and for the phone.

Eighteen characters are the code's 90 bits; the last two say which key and which slot made it, and are not secret.
"""

from __future__ import annotations

from typing import Final

ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
SECRET: Final = 18
"""Characters that carry the code itself."""
LENGTH: Final = SECRET + 2
BITS: Final = 5 * SECRET
_LONGEST: Final = 64
_GROUP: Final = 4
_READ_AS: Final = str.maketrans({"O": "0", "I": "1", "L": "1", "-": None, " ": None})
_AS_DIGITS: Final = str.maketrans(ALPHABET, "0123456789abcdefghijklmnopqrstuv")


def spelled(number: int, length: int) -> str:
    """Return the lowest `length` times five bits of a number as characters."""
    return "".join([ALPHABET[number >> at & 31] for at in range(5 * length - 5, -1, -5)])


def number_of(text: str) -> int:
    """Return the number that canonical characters spell; raises ValueError for others."""
    return int(text.translate(_AS_DIGITS), 32)


def shown(code: str) -> str:
    """Return a canonical code in groups: `XXXX-XXXX-XXXX-XXXX-XXXX`."""
    return "-".join(code[at : at + _GROUP] for at in range(0, len(code), _GROUP))


def canonical(text: str) -> str | None:
    """Return the twenty characters that a text stands for, or None where it cannot be a code.

    Case, spaces and dashes do not count; O is read as 0, I and L as 1 (Crockford's rules).
    """
    if len(text) > _LONGEST or not text.isascii():
        return None
    code = text.strip().upper().translate(_READ_AS)
    return code if len(code) == LENGTH and all(char in ALPHABET for char in code) else None
