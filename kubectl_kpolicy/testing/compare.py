"""Expected objects of a test (`patchedResources`, `generatedResource`) against those that rules left or made.

Labels that generation puts on its objects do not count, empty parts equal absent ones, and a number is equal to the same
number written otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubectl_kpolicy.apply.names import identity, labels_of, metadata_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.model import Object

_MANAGED_BY = "app.kubernetes.io/managed-by"
_GENERATED = "generate.kyverno.io/"


def difference(
    expected: Sequence[Object], found: Iterable[Object], what: str, *, may_miss: bool = False
) -> str:
    """Return in what `found` differs from the expected objects of the same identity, or an empty text.

    An object that has no counterpart among the expected ones is not compared; none at all with one is a difference, unless it
    `may_miss`.
    """
    by_identity = {identity(obj): obj for obj in expected}
    compared = False
    for obj in found:
        wanted = by_identity.get(identity(obj))
        if wanted is None:
            continue
        compared = True
        path = first_difference(_tidy(wanted), _tidy(obj))
        if path is not None:
            return f"{what} differs at {path or '/'}"
    return "" if compared or may_miss else f"{what} not found in manifest"


def _tidy(obj: Object) -> Any:
    """Return an object without the labels of generation and without null, empty maps and empty lists (as Kyverno's CLI)."""
    labels = labels_of(obj)
    if labels:
        kept = {
            key: value
            for key, value in labels.items()
            if not key.startswith(_GENERATED) and (key, value) != (_MANAGED_BY, "kyverno")
        }
        obj = {**obj, "metadata": {**metadata_of(obj), "labels": kept}}
    return _filled(obj)


def _filled(value: Any) -> Any:
    """Return `value` without its empty parts, None when nothing is left."""
    if isinstance(value, dict):
        pairs = ((key, _filled(below)) for key, below in value.items())
        return {key: below for key, below in pairs if below is not None} or None
    if isinstance(value, list):
        return [below for item in value if (below := _filled(item)) is not None] or None
    return value


def first_difference(wanted: Any, found: Any) -> str | None:
    """Return the slash path of the first difference of two decoded values, or None; `true` is not `1`."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted(wanted.keys() | found.keys()):
            if key not in wanted or key not in found:
                return f"/{key}"
            below = first_difference(wanted[key], found[key])
            if below is not None:
                return f"/{key}{below}"
        return None
    if isinstance(wanted, list) and isinstance(found, list):
        for index, (one, other) in enumerate(zip(wanted, found, strict=False)):
            below = first_difference(one, other)
            if below is not None:
                return f"/{index}{below}"
        return None if len(wanted) == len(found) else f"/{min(len(wanted), len(found))}"
    same = wanted == found and isinstance(wanted, bool) == isinstance(found, bool)
    return None if same else ""
