"""Shell-like wildcards of names, labels and pattern texts: `*` is any run of characters, `?` exactly one.

Every part of the engine that compares names uses this one reading, so that a name cannot match in one place and slip
through in another. Patterns are compiled once; the work per text is bounded by its length times the pattern's, whatever
the number of stars, because each piece between two stars is taken at its leftmost place and never given up again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from engine.errors import LimitError
from engine.lang.work import charge

_CACHED_LENGTH: Final = 256
_COST: Final = 80
"""Of one comparison at one place."""
_MOST: Final = 50_000_000
"""Comparisons for one piece that nobody may ask for, counted or not; real names stay below a few thousand."""


def has_wildcard(text: str) -> bool:
    """Tell whether the text holds `*` or `?`."""
    return "*" in text or "?" in text


def match(pattern: str, text: str) -> bool:
    """Tell whether the whole text fits the pattern, letter case included.

    Raises LimitError when that is more work than the evaluation may do.
    """
    if "*" not in pattern and "?" not in pattern:
        return pattern == text
    return compiled(pattern)(text)


def compiled(pattern: str) -> Callable[[str], bool]:
    """Compile a pattern into a test of whole texts (see `match`)."""
    # INVARIANT: long patterns come from objects; keeping them would let a stranger fill the memory.
    return _kept(pattern) if len(pattern) <= _CACHED_LENGTH else _compile(pattern)


def _compile(pattern: str) -> Callable[[str], bool]:
    if not has_wildcard(pattern):
        return lambda text: text == pattern
    pieces = pattern.split("*")
    if len(pieces) == 1:
        length, runs = len(pattern), _runs(pattern)
        return lambda text: len(text) == length and _stands_at(runs, text, 0)
    if pattern.strip("*") == "?":
        return bool
    if len(pieces) == 2 and "?" not in pattern:
        return _around_one_star(pieces[0], pieces[1])
    return _pieces_in_order(pieces)


_kept = lru_cache(maxsize=4096)(_compile)


def _around_one_star(head: str, tail: str) -> Callable[[str], bool]:
    if not head and not tail:
        return lambda _text: True
    if not tail:
        return lambda text: text.startswith(head)
    if not head:
        return lambda text: text.endswith(tail)
    least = len(head) + len(tail)
    return lambda text: len(text) >= least and text.startswith(head) and text.endswith(tail)


def _pieces_in_order(pieces: list[str]) -> Callable[[str], bool]:
    head, tail = _runs(pieces[0]), _runs(pieces[-1])
    head_length, tail_length = len(pieces[0]), len(pieces[-1])
    middle = tuple(_finder(piece) for piece in pieces[1:-1] if piece)

    def fits(text: str) -> bool:
        end = len(text) - tail_length
        if end < head_length or not _stands_at(head, text, 0) or not _stands_at(tail, text, end):
            return False
        at = head_length
        for find in middle:
            at = find(text, at, end)
            if at < 0:
                return False
        return True

    return fits


def _runs(piece: str) -> tuple[tuple[int, str], ...]:
    """Return the literal runs of a piece without stars, each with its offset."""
    runs: list[tuple[int, str]] = []
    offset = 0
    for literal in piece.split("?"):
        if literal:
            runs.append((offset, literal))
        offset += len(literal) + 1
    return tuple(runs)


def _stands_at(runs: tuple[tuple[int, str], ...], text: str, at: int) -> bool:
    for offset, literal in runs:  # noqa: SIM110 - a generator here would double the time
        if not text.startswith(literal, at + offset):
            return False
    return True


def _finder(piece: str) -> Callable[[str, int, int], int]:
    """Return a search for the leftmost place of a piece between two bounds; it answers the piece's end, or -1."""
    length, runs = len(piece), _runs(piece)
    if not runs:
        return lambda _text, start, end: start + length if start + length <= end else -1
    (offset, literal), others = runs[0], runs[1:]

    def find(text: str, start: int, end: int) -> int:
        if others:
            if length * (end - start) > _MOST:
                raise LimitError("wildcard and text are too long to be compared")
            charge((end - start) * len(others) * _COST)
        last = end - length
        at = text.find(literal, start + offset, end) - offset
        while 0 <= at <= last:
            if not others or _stands_at(others, text, at):
                return at + length
            at = text.find(literal, at + offset + 1, end) - offset
        return -1

    return find
