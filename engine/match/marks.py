"""Marks: names and labels that an object must bear for a match to hold, read from the match before any object is there.

Where many rules stand side by side, most are for other objects, and rules are found by marks as books by their shelf marks.
They only narrow a search; whether a rule applies, its matcher alone says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lang import wildcard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from engine.model import Block, Json, Review

    Mark = tuple[str, ...]
    Marks = frozenset[Mark] | None
    """Of these an object bears at least one; None where that is open."""


def marks_of_names(names: Iterable[str]) -> Marks:
    """Return the marks of objects that bear one of some names; wildcards leave it open, and so do no names at all."""
    listed = tuple(names)
    if not listed or any(map(wildcard.has_wildcard, listed)):
        return None
    return frozenset(("name", one) for one in listed)


def marks_of_selector(selector: Json) -> Marks:
    """Return the marks of objects with labels that a selector asks for; of several parts, the one that leaves fewest."""
    block = selector if isinstance(selector, dict) else {}
    found: Marks = None
    for key, value in (block.get("matchLabels") or {}).items():
        if not (wildcard.has_wildcard(key) or wildcard.has_wildcard(value)):
            return frozenset({("label", key, value)})
    for one in block.get("matchExpressions") or ():
        if one.get("operator") == "In" and one.get("values"):
            found = fewest(
                (found, frozenset(("label", one.get("key"), value) for value in one["values"]))
            )
        elif one.get("operator") == "Exists":
            found = fewest((found, frozenset({("label", one.get("key"))})))
    return found


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


def borne(review: Review) -> Iterator[Mark]:
    """Yield the marks that the object of a review bears, as it was before included."""
    yield ("name", review.name)
    yield from _labels(review.metadata)
    if review.old_object is not None and review.object is not None:
        metadata = review.old_object.get("metadata")
        yield from _labels(metadata if isinstance(metadata, dict) else {})


def _labels(metadata: Mapping[str, Json] | Block) -> Iterator[Mark]:
    labels = metadata.get("labels")
    if isinstance(labels, dict):
        for key, value in labels.items():
            yield ("label", key)
            if isinstance(value, str):
                yield ("label", key, value)
