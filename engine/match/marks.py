"""Marks: names, labels and annotations that an object must bear for a match to hold, read from the match before any object is there.

Where many rules stand side by side, most are for other objects, and rules are found by marks as books by their shelf marks.
They only narrow a search; whether a rule applies, its matcher alone says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.lang import wildcard

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from engine.model import Json, Review

    Mark = tuple[str, ...]
    Marks = frozenset[Mark] | None
    """Of these an object bears at least one; None where that is open."""


UNPLACED: Mark = ("unplaced",)
"""What objects bear that are in no namespace, and Namespaces."""

STARTS: Final = "starts"
"""What marks begin with of which an object bears as many as its name has letters."""

WORDS = frozenset({"name", "namespace", "space", "label", "annotation", *UNPLACED})
"""What other marks begin with."""


def marks_of_names(names: Iterable[str], word: str = "name") -> Marks:
    """Return the marks of what bears one of some names; wildcards leave it open, and so do no names at all.

    `word` tells names of objects from those of their namespaces.
    """
    listed = tuple(names)
    if not listed or any(map(wildcard.has_wildcard, listed)):
        return None
    return frozenset((word, one) for one in listed)


def marks_of_patterns(names: Iterable[str]) -> Marks:
    """Return the marks of what bears one of some names with wildcards, by the letters that they begin with.

    A name that begins with a wildcard leaves it open, and so do no names at all.
    """
    found: set[Mark] = set()
    for name in names:
        start = name.partition("*")[0].partition("?")[0]
        if not start:
            return None
        found.add(("name", name) if start == name else (STARTS, start))
    return frozenset(found) or None


def marks_of_selector(selector: Json, word: str = "label") -> Marks:
    """Return the marks of what bears labels that a selector asks for; of several parts, the one that leaves fewest.

    `word` tells labels of objects from those of their namespaces.
    """
    block = selector if isinstance(selector, dict) else {}
    found: list[Marks] = [
        frozenset({(word, key, value)})
        for key, value in (block.get("matchLabels") or {}).items()
        if not (wildcard.has_wildcard(key) or wildcard.has_wildcard(value))
    ]
    for one in block.get("matchExpressions") or ():
        if one.get("operator") == "In" and one.get("values"):
            found.append(frozenset((word, one.get("key"), value) for value in one["values"]))
        elif one.get("operator") == "Exists":
            found.append(frozenset({(word, one.get("key"))}))
    return fewest(found)


def fewest(given: Iterable[Marks]) -> Marks:
    """Return what has the fewest marks of several that must all be met, None where all are open."""
    return min((one for one in given if one is not None), key=len, default=None)


def either(given: Iterable[Marks]) -> Marks:
    """Return the marks of what meets one of several, None where one of them is open."""
    found: frozenset[Mark] = frozenset()
    for one in given:
        if one is None:
            return None
        found |= one
    return found


def borne(
    review: Review, words: Collection[str] = WORDS, lengths: Iterable[int] = ()
) -> Iterator[Mark]:
    """Yield the marks that the object of a review bears, as it was before included, and its namespace.

    Of namespaces' labels, labels and annotations only those whose `words` are asked for, of the beginnings of its name those
    of such `lengths`.
    """
    yield ("name", review.name)
    for length in lengths:
        yield (STARTS, review.name[:length])
    yield ("namespace", review.namespace)
    if review.kind == "Namespace":
        yield ("namespace", review.name)
    if review.kind == "Namespace" or not review.namespace:
        yield UNPLACED
    if "space" in words:
        yield from _labels(review.namespace_labels, "space")
    if "annotation" in words:
        yield from _labels(review.metadata.get("annotations"), "annotation")
    if "label" not in words:
        return
    yield from _labels(review.metadata.get("labels"))
    if review.old_object is not None and review.object is not None:
        metadata = review.old_object.get("metadata")
        yield from _labels(metadata.get("labels") if isinstance(metadata, dict) else None)


def _labels(labels: Json, word: str = "label") -> Iterator[Mark]:
    if isinstance(labels, dict):
        for key, value in labels.items():
            yield (word, key)
            if isinstance(value, str):
                yield (word, key, value)
