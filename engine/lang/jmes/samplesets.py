"""Sets of characters that `random` draws from, as ranges of code points.

Classes that RE2 defines over all of Unicode draw from printable ASCII where that is enough: people who ask for a random
text want one they can type.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

from engine.errors import EvaluationError
from engine.lang import regex

Ranges = list[tuple[int, int]]

ANY: Final[Ranges] = [(0x20, 0x7E)]
_ALL: Final[Ranges] = [(0x09, 0x0A), (0x0D, 0x0D), (0x20, 0x7E), (0xA1, 0x17F)]
_DIGIT: Final[Ranges] = [(0x30, 0x39)]
_WORD: Final[Ranges] = [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]
_SPACE: Final[Ranges] = [(0x09, 0x0A), (0x0C, 0x0D), (0x20, 0x20)]
_PERL: Final = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_POSIX: Final[dict[str, Ranges]] = {
    "alnum": [(0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)],
    "alpha": [(0x41, 0x5A), (0x61, 0x7A)],
    "ascii": [(0x00, 0x7F)],
    "blank": [(0x09, 0x09), (0x20, 0x20)],
    "cntrl": [(0x00, 0x1F), (0x7F, 0x7F)],
    "digit": _DIGIT,
    "graph": [(0x21, 0x7E)],
    "lower": [(0x61, 0x7A)],
    "print": [(0x20, 0x7E)],
    "punct": [(0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)],
    "space": [(0x09, 0x0D), (0x20, 0x20)],
    "upper": [(0x41, 0x5A)],
    "word": _WORD,
    "xdigit": [(0x30, 0x39), (0x41, 0x46), (0x61, 0x66)],
}
_NAMED: Final = re.compile(r"\[:(\^?)(\w+):\]")
_PROPERTY: Final = re.compile(r"[pP](?:\{[^}]*\}|.)", re.DOTALL)
_LAST: Final = 0x10FFFF
_SEARCHED: Final = 0x3000
_SURROGATES: Final = range(0xD800, 0xE000)


def escaped_set(text: str, at: int) -> tuple[Ranges, int] | None:
    """Return the class that a backslash before `at` begins, and the position after it; None where it is no class."""
    letter = text[at : at + 1]
    if letter.lower() in _PERL and letter:
        ranges = _PERL[letter.lower()]
        return (negated(ranges) if letter.isupper() else ranges), at + 1
    found = _PROPERTY.match(text, at)
    return (_property(found.group()), found.end()) if found else None


def named_set(text: str, at: int) -> tuple[Ranges, int] | None:
    """Return the class `[:name:]` that stands at `at`, and the position after it; None where none does."""
    found = _NAMED.match(text, at)
    if found is None or found[2] not in _POSIX:
        return None
    ranges = _POSIX[found[2]]
    return (negated(ranges) if found[1] else ranges), found.end()


def negated(ranges: Ranges) -> Ranges:
    """Return what is not in `ranges`: printable ASCII if any is left, else the common characters, else all."""
    for universe in (ANY, _ALL, [(0, _SURROGATES[0] - 1), (_SURROGATES[-1] + 1, _LAST)]):
        rest = _without(universe, ranges)
        if rest:
            return rest
    return []


def folded(ranges: Ranges) -> Ranges:
    """Return `ranges` with the other case of every ASCII letter in them."""
    added: Ranges = []
    for low, high in ranges:
        for first, last, shift in ((0x41, 0x5A, 32), (0x61, 0x7A, -32)):
            start, end = max(low, first), min(high, last)
            if start <= end:
                added.append((start + shift, end + shift))
    return _merged([*ranges, *added])


def _without(universe: Ranges, ranges: Ranges) -> Ranges:
    rest: Ranges = []
    taken = _merged(ranges)
    for low, high in universe:
        for first, last in taken:
            if first > high:
                break
            if low < first:
                rest.append((low, first - 1))
            low = max(low, last + 1)
        if low <= high:
            rest.append((low, high))
    return rest


def _merged(ranges: Ranges) -> Ranges:
    merged: Ranges = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged


@lru_cache(maxsize=64)
def _searched(name: str) -> tuple[tuple[int, int], ...]:
    pattern = regex.compile(f"^\\{name}$")
    fitting = [
        code
        for code in range(_SEARCHED)
        if unicodedata.category(chr(code)) != "Cn" and pattern.search(chr(code))
    ]
    return tuple(_merged([(code, code) for code in fitting]))


def _property(name: str) -> Ranges:
    ranges = list(_searched(name))
    if not ranges:
        raise EvaluationError(f"`\\{name}` names no characters that random can make")
    ascii_part = [(low, min(high, 0x7E)) for low, high in ranges if low <= 0x7E]
    return ascii_part or ranges
