"""Merging of lists element by element, as kustomize does it: the patch's elements come first, in its order, then the rest.

Apart from `merge` because it knows nothing of maps: merging two elements is a function it is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.errors import EvaluationError

from .values import ABSENT, scalar_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.model import Json

    MergeElement = Callable[[Json, Json], Json]
    """Old element (or ABSENT) and patch element in; the old one itself, a new one, or ABSENT out."""

    Identity = tuple[str, ...]

DIRECTIVE: Final = "$patch"
_DIRECTIVES: Final = frozenset({"delete", "merge", "replace"})


def directive_of(patch: dict[str, Json]) -> str:
    """Return what `$patch` in a map asks for, `merge` where there is none; EvaluationError for any other word."""
    if DIRECTIVE not in patch:
        return "merge"
    word = scalar_text(patch[DIRECTIVE])
    if word not in _DIRECTIVES:
        raise EvaluationError(f"unknown patch strategy '{word}'")
    return word


def split_directive(patch: list[Json]) -> tuple[str, list[Json]]:
    """Return what an element that is nothing but `$patch` asks for the whole list, and the other elements."""
    for index, element in enumerate(patch):
        if isinstance(element, dict) and DIRECTIVE in element:
            if len(element) > 1:
                break
            return directive_of(element), patch[:index] + patch[index + 1 :]
    return "merge", patch


def merge_set(old: list[Json], patch: list[Json]) -> list[Json]:
    """Merge two lists of scalars (finalizers): no value of the patch twice; the very same list when nothing changes."""
    first: list[Json] = []
    known: set[str] = set()
    for item in patch:
        text = scalar_text(item)
        if item is not None and text not in known:
            known.add(text)
            first.append(item)
    rest = [item for item in old if isinstance(item, dict | list) or scalar_text(item) not in known]
    return _unless_same(old, first + rest)


def merge_keyed(
    old: list[Json], patch: list[Json], keys: Sequence[str], merge: MergeElement
) -> list[Json]:
    """Merge two lists whose elements are told apart by keys; the very same list when nothing changes.

    An element of the patch that has none of the keys removes all elements that have them and is itself dropped (observed).
    Of several elements of the patch with equal keys the first counts.
    """
    pending = _Pending(old, keys)
    merged: list[Json] = []
    seen: set[Identity] = set()
    for element in patch:
        identity = _identity(element, keys)
        if not any(identity):
            pending.forget_keyed()
        elif identity not in seen:
            seen.add(identity)
            result = merge(pending.take(identity), element)
            if result is not ABSENT and result != {}:
                merged.append(result)
    return _unless_same(old, merged + pending.rest())


def new_keyed(elements: list[Json], keys: Sequence[str]) -> list[Json]:
    """Return a list that is new to the object: of elements with equal keys the first, those without any key at the end."""
    keyed: dict[Identity, Json] = {}
    keyless: list[Json] = []
    for element in elements:
        identity = _identity(element, keys)
        if any(identity):
            keyed.setdefault(identity, element)
        else:
            keyless.append(element)
    return [*keyed.values(), *keyless]


class _Pending:
    """The elements of the old list that no element of the patch has taken yet."""

    __slots__ = ("_by_first", "_identities", "_left", "_old")

    def __init__(self, old: list[Json], keys: Sequence[str]) -> None:
        self._old = old
        self._identities = [_identity(element, keys) for element in old]
        self._left = dict.fromkeys(range(len(old)))
        self._by_first: dict[str, list[int]] = {}
        for index, identity in enumerate(self._identities):
            self._by_first.setdefault(identity[0], []).append(index)

    def take(self, identity: Identity) -> Json:
        """Return and remove the element with these keys, else the first that only lacks some of them, else ABSENT."""
        candidates = [i for i in self._by_first.get(identity[0], ()) if i in self._left]
        exact = [i for i in candidates if self._identities[i] == identity]
        for index in exact or [i for i in candidates if self._fits(i, identity)]:
            del self._left[index]
            return self._old[index]
        return ABSENT

    def _fits(self, index: int, identity: Identity) -> bool:
        pairs = zip(self._identities[index], identity, strict=True)
        return all(mine == other or not mine or not other for mine, other in pairs)

    def forget_keyed(self) -> None:
        """Drop every element that has all the keys."""
        self._left = {index: None for index in self._left if not all(self._identities[index])}

    def rest(self) -> list[Json]:
        return [self._old[index] for index in self._left]


def _identity(element: Json, keys: Sequence[str]) -> Identity:
    if not isinstance(element, dict):
        return ("",) * len(keys)
    return tuple([scalar_text(element.get(key)) for key in keys])


def _unless_same(old: list[Json], new: list[Json]) -> list[Json]:
    if len(old) != len(new):
        return new
    return old if all(one is other for one, other in zip(old, new, strict=True)) else new
