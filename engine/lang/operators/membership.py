"""`AnyIn`, `AllIn`, `AnyNotIn`, `AllNotIn` and the older `In`, `NotIn` (row A-96).

Everything is compared as text, in which `*` and `?` of either side count. A value that is neither a list nor text makes
the condition false, negative operators included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import DocumentError, EvaluationError
from engine.lang import gotext, json, wildcard
from engine.lang.pattern import range_ends
from engine.lang.pattern.scalar import compile_scalar
from engine.lang.work import charge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from engine.model import Json

    Test = Callable[[Json], bool]
    Holds = Callable[[str], bool | None]


_COST = 300
"""Of one comparison of two short texts of which one is a wildcard."""


def any_in(value: Json) -> Test:
    """Prepare `AnyIn`: the key, or one element of it, is among the values."""
    return _wild(value, any, wanted=True, lone=True)


def all_in(value: Json) -> Test:
    """Prepare `AllIn`: the key, or each element of it, is among the values; an empty list is."""
    return _wild(value, all, wanted=True, lone=False)


def any_not_in(value: Json) -> Test:
    """Prepare `AnyNotIn`: the key, or one element of it, is not among the values."""
    return _wild(value, any, wanted=False, lone=True)


def all_not_in(value: Json) -> Test:
    """Prepare `AllNotIn`: neither the key nor any element of it is among the values."""
    return _wild(value, all, wanted=False, lone=False)


def _wild(
    value: Json, quantify: Callable[[Iterable[bool]], bool], *, wanted: bool, lone: bool
) -> Test:
    """Compile one of the four operators; with `lone` a number or boolean counts as a list of one for list keys."""
    one, each = _for_one(value), _for_each(value, lone=lone)
    breadth = _wildcards(value)

    def test(key: Json) -> bool:
        if isinstance(key, list):
            if each is None:
                return False
            charge(len(key) * (1 + breadth) * _COST)
            return quantify([each(gotext.plain(item)) is wanted for item in key])
        if one is None or not isinstance(key, str | int | float):
            return False
        return one(key if isinstance(key, str) else gotext.plain(key)) is wanted

    return test


def _wildcards(value: Json) -> int:
    """Return how many values each element is compared with one by one."""
    if not isinstance(value, list):
        return 1
    return sum(isinstance(item, str) and wildcard.has_wildcard(item) for item in value)


def _for_one(value: Json) -> Holds | None:
    """Compile the test of a single key; None when no key can be compared with the value.

    A text may be a wildcard, a range, or a JSON list of texts, whose elements have to be equal.
    """
    if isinstance(value, list):
        return _among([gotext.plain(item) for item in value])
    if not isinstance(value, str):
        return None
    fits = wildcard.compiled(value)
    if range_ends(value) is not None:
        within = compile_scalar(value)
        return lambda text: fits(text) or within(text)
    words = _json_words(value)
    if words is not None:
        exact = frozenset(words)
        return lambda text: fits(text) or text in exact
    if _is_json(value):
        return lambda text: fits(text) or None
    return fits


def _for_each(value: Json, *, lone: bool) -> Holds | None:
    """Compile the test of one element of a list key; None when no list can be compared with the value."""
    if isinstance(value, list):
        return _among([gotext.plain(item) for item in value])
    if isinstance(value, str):
        if range_ends(value) is not None:
            return compile_scalar(value)
        words = _json_words(value)
        if words is None:
            words = None if _is_json(value) else [value]
        return None if words is None else _among(words)
    return _among([gotext.plain(value)]) if lone and isinstance(value, int | float) else None


def _among(words: list[str]) -> Holds:
    """Compile the test whether a text fits one of the words or one of the words fits the text."""
    exact = frozenset(words)
    tests = tuple(wildcard.compiled(word) for word in words if wildcard.has_wildcard(word))

    def test(text: str) -> bool:
        if text in exact:
            return True
        for fits in tests:
            if fits(text):
                return True
        if not wildcard.has_wildcard(text):
            return False
        charge(len(words) * _COST)
        return any(map(wildcard.compiled(text), words))

    return test


def in_(value: Json) -> Test:
    """Prepare `In`: the key is among the values, or each element of it is, letter by letter."""
    return _exact(value, lambda keys, words: all(key in words for key in keys), wanted=True)


def not_in(value: Json) -> Test:
    """Prepare `NotIn`: the key is not among the values, or one element of it is not, letter by letter."""
    return _exact(value, lambda keys, words: any(key not in words for key in keys), wanted=False)


def _exact(
    value: Json, holds: Callable[[list[str], frozenset[str]], bool], *, wanted: bool
) -> Test:
    one, words = _for_old_one(value), _old_words(value)

    def test(key: Json) -> bool:
        if isinstance(key, list):
            texts = _texts(key)
            return words is not None and holds(texts, words)
        if one is None or not isinstance(key, str | int | float):
            return False
        return one(key if isinstance(key, str) else gotext.plain(key)) is wanted

    return test


def _texts(key: list[Json]) -> list[str]:
    if not all(isinstance(item, str) for item in key):
        raise EvaluationError("a list key of `In` and `NotIn` may hold nothing but text")
    return key


def _for_old_one(value: Json) -> Holds | None:
    if isinstance(value, list):
        return _among([gotext.plain(item) for item in value])
    if not isinstance(value, str):
        return None
    fits, words = wildcard.compiled(value), _json_words(value)
    if words is None:
        return lambda text: fits(text) or None
    exact = frozenset(words)
    return lambda text: fits(text) or text in exact


def _old_words(value: Json) -> frozenset[str] | None:
    words = (
        value if isinstance(value, list) else _json_words(value) if isinstance(value, str) else None
    )
    if words is None or not all(isinstance(word, str) for word in words):
        return None
    return frozenset(words)


def _json_words(text: str) -> list[str] | None:
    """Return the texts of a JSON list of nothing but texts (`null` is the empty list, a null in it an empty text)."""
    try:
        found = json.load(text)
    except DocumentError:
        return None
    if found is None:
        return []
    if not isinstance(found, list):
        return None
    words = ["" if item is None else item for item in found]
    return words if all(isinstance(word, str) for word in words) else None


def _is_json(text: str) -> bool:
    try:
        json.load(text)
    except DocumentError:
        return False
    return True
