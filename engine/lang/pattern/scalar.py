"""Scalar patterns against scalar values (rows P-20 to P-26), each compiled into one test.

The usual patterns (a few allowed words, `?*`, a boolean) come down to a set look-up or a comparison of identity; only
numbers, durations and operators take the general way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lang import gotext

from .operand import compile_part, is_plain_literal, plain_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.model import Json

    Test = Callable[[Json], bool]


def compile_scalar(pattern: Json) -> Test:
    """Compile a scalar pattern: text, number, boolean or null. A map pattern asks for a map, a list fits nothing."""
    if isinstance(pattern, str):
        return _text(pattern)
    if pattern is None:
        return _is_empty
    if isinstance(pattern, bool):
        return lambda value: value is pattern
    if isinstance(pattern, int | float):
        return _number(pattern)
    if isinstance(pattern, dict):
        return lambda value: isinstance(value, dict)
    return lambda _value: False


def _is_empty(value: Json) -> bool:
    return value is None or (not isinstance(value, dict | list) and not value)


def _number(pattern: float) -> Test:
    read = gotext.parse_integer if isinstance(pattern, int) else gotext.parse_float

    def test(value: Json) -> bool:
        if isinstance(value, bool):
            return False
        if isinstance(value, str):
            return read(value) == pattern
        return isinstance(value, int | float) and value == pattern

    return test


def _text(pattern: str) -> Test:
    alternatives = [_alternative(part) for part in pattern.split("|")]
    if all(len(parts) == 1 and is_plain_literal(parts[0]) for parts in alternatives):
        return _one_of(frozenset({pattern, *(parts[0] for parts in alternatives)}))
    if pattern == "?*":
        return _is_filled
    tests = tuple(_all_of(parts) for parts in alternatives)

    def test(value: Json) -> bool:
        if value.__class__ is str and value == pattern:
            return True
        for fits in tests:  # noqa: SIM110 - a generator here would double the time
            if fits(value):
                return True
        return False

    return test


def _alternative(text: str) -> list[str]:
    return [part.strip(" ") for part in text.strip(" ").split("&")]


def _one_of(words: frozenset[str]) -> Test:
    allows_true, allows_false = "true" in words, "false" in words

    def test(value: Json) -> bool:
        if value.__class__ is str:
            return value in words
        if value is False:
            return allows_false
        return allows_true if value is True else plain_text(value) in words

    return test


def _is_filled(value: Json) -> bool:
    return value != "" if value.__class__ is str else plain_text(value) is not None


def _all_of(parts: list[str]) -> Test:
    if len(parts) == 1:
        return compile_part(parts[0])
    tests = tuple(compile_part(part) for part in parts)
    return lambda value: all(fits(value) for fits in tests)
