"""Anchors of a strategic merge patch: tested against the object and taken out, so that a plain patch remains (P-06, P-08).

`(k)` asks for a key and its value: unmet, nothing of the patch applies; inside a list it selects the elements that are patched.
`<(k)` asks the same of the object as a whole: inside a list one element that meets it is enough. `+(k)` stays only where the
object lacks the key. The other anchors mean nothing here and stay as literal keys. Apart from `merge` because the merge knows
no anchors and this knows no merge keys except `name`, by which a selected list element is named.

Observed and kept: `+(k)` in a list element is decided by the first element of the object's list that it meets, for all of them.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from engine.errors import EvaluationError, LimitError
from engine.lang.pattern import Anchor, CompiledPattern, compile_pattern, parse_key

from .values import ABSENT, thawed, wrong_kind

if TYPE_CHECKING:
    from engine.model import Json

_GLOBAL: Final = frozenset({Anchor.GLOBAL})
_MOST_STEPS: Final = 200_000


class _Verdict(Enum):
    MET = "met"
    UNMET = "unmet"
    UNMET_GLOBALLY = "unmet for the object as a whole"


class _Selected(dict[str, Any]):
    """A patch element made for one element of the object's list; marked so that a later pass can take it out again."""


def resolve_anchors(patch: Json, resource: Json) -> Json:
    """Return the patch without anchors, an empty one where a condition is not met.

    The patch is copied, never changed. Raises EvaluationError for a patch of lists where the object has something else
    (Kyverno's text) and LimitError for one that is too deep or costs too much.
    """
    working = thawed(patch)
    try:
        verdict = _Resolver().resolve(working, resource)
    except LimitError:
        raise
    except EvaluationError as error:
        raise EvaluationError(f"failed to preProcess rule: {error.message}") from error
    if verdict is not _Verdict.MET:
        return {}
    strip_anchors(working)
    return working


class _Resolver:
    """One pass over one private copy of a patch; counts its steps, because lists in lists multiply."""

    __slots__ = ("_steps",)

    def __init__(self) -> None:
        self._steps = 0

    def resolve(self, patch: Json, resource: Json) -> _Verdict:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise LimitError(
                f"patch takes more than {_MOST_STEPS} steps to compare with the object"
            )
        if isinstance(patch, dict):
            return self._map(patch, resource)
        if isinstance(patch, list):
            return self._list(patch, resource)
        return _Verdict.MET

    def _map(self, patch: dict[str, Json], resource: Json) -> _Verdict:
        _settle_additions(patch, resource)
        if not _conditions_met(patch, resource, Anchor.GLOBAL):
            return _Verdict.UNMET_GLOBALLY
        if not _conditions_met(patch, resource, Anchor.CONDITION):
            return _Verdict.UNMET
        for key in sorted(patch):
            if parse_key(key)[0] not in CONDITIONS:
                verdict = self.resolve(patch[key], _field(resource, key))
                if verdict is not _Verdict.MET:
                    return verdict
        return _Verdict.MET

    def _list(self, patch: list[Json], resource: Json) -> _Verdict:
        patch[:] = [item for item in patch if not isinstance(item, _Selected)]
        if not patch or not isinstance(patch[0], dict):
            return _Verdict.MET
        targets = _elements(resource)
        for element in [item for item in patch if has_anchors(item)]:
            if not self._element(patch, element, targets):
                return _Verdict.UNMET_GLOBALLY
        return _Verdict.MET

    def _element(self, patch: list[Json], element: Json, targets: list[Json]) -> bool:
        """Compare one patch element with every element of the object's list; False: a global anchor is met by none."""
        asks_globally = has_anchors(element, _GLOBAL)
        # INVARIANT: shared by all targets, which is what makes `+(k)` a decision of the first.
        working = thawed(element)
        met = False
        missed = asks_globally and not targets
        for target in targets:
            verdict = self.resolve(working, target)
            missed = missed or verdict is _Verdict.UNMET_GLOBALLY
            if verdict is _Verdict.MET and asks_globally:
                met = True
            elif verdict is _Verdict.MET:
                _select(patch, working, target)
        return met or not missed


def _select(patch: list[Json], element: Json, target: Json) -> None:
    """Add to the patch what the element means for one target: itself without anchors, under the target's name."""
    if not isinstance(element, dict):
        raise wrong_kind("MappingNode", element)
    chosen = _Selected(thawed(element))
    if not strip_anchors(chosen):
        return
    name = target.get("name") if isinstance(target, dict) else None
    if name is not None:
        # INVARIANT: what is chosen is stripped in place, so a name that is no text is not the object's own.
        chosen["name"] = thawed(name)
    patch.append(chosen)


def _settle_additions(patch: dict[str, Json], resource: Json) -> int:
    """Turn each `+(k)` of a map into `k`, or drop it where the object has the key; return how many there were."""
    anchored = [key for key in patch if parse_key(key)[0] is Anchor.ADDITION]
    for key in anchored:
        value, bare = patch.pop(key), parse_key(key)[1]
        if _field(resource, bare) is ABSENT:
            patch[bare] = value
    return len(anchored)


def _conditions_met(patch: dict[str, Json], resource: Json, kind: Anchor) -> bool:
    for key, wanted in patch.items():
        anchor, bare = parse_key(key)
        if anchor is kind and not _condition_met(wanted, _field(resource, bare)):
            return False
    return True


def _condition_met(wanted: Json, found: Json) -> bool:
    if found is ABSENT:
        return False
    if isinstance(wanted, dict) and _settle_additions(wanted, found):
        return True
    return _compiled(wanted).check(found) is None


def _compiled(pattern: Json) -> CompiledPattern:
    return _compiled_text(pattern) if isinstance(pattern, str) else compile_pattern(pattern)


@lru_cache(maxsize=1024)
def _compiled_text(pattern: str) -> CompiledPattern:
    return compile_pattern(pattern)


def _field(resource: Json, key: str) -> Json:
    return resource.get(key, ABSENT) if isinstance(resource, dict) else ABSENT


def _elements(resource: Json) -> list[Json]:
    if resource is ABSENT or resource is None:
        return []
    if isinstance(resource, list):
        return resource
    raise wrong_kind("SequenceNode", resource)


# What a patch still holds once its conditions have been tested: the conditions themselves, and maps that they leave empty.
#
# This looks at the patch alone. Observed and kept: a map that is empty, or becomes so, leaves the patch with its key
# (`emptyDir: {}` does nothing), and so does a list that only held elements with anchors; an empty list stays.
# A condition whose value still holds something (`(hostPath): {path: "*"}`) becomes part of the patch under its bare key.

CONDITIONS: Final = frozenset({Anchor.CONDITION, Anchor.GLOBAL})
"""The anchors that ask for something; `+(k)` does not."""

_RESOLVED: Final = CONDITIONS | {Anchor.ADDITION}


def has_anchors(value: Json, kinds: frozenset[Anchor] = _RESOLVED) -> bool:
    """Tell whether a patch holds, anywhere, an anchor of these kinds; by default those that mean something in mutation."""
    if isinstance(value, dict):
        return any(
            parse_key(key)[0] in kinds or has_anchors(child, kinds) for key, child in value.items()
        )
    return isinstance(value, list) and any(has_anchors(item, kinds) for item in value)


def strip_anchors(patch: Json) -> bool:
    """Take anchors and what they leave empty out of a patch, in place; tell whether anything remains.

    INVARIANT: the caller owns the patch and has bounded its depth.
    """
    return not _strip(patch, scalars_go=False)


def _strip(node: Json, *, scalars_go: bool) -> bool:
    """Strip one value in place; True means that it should go altogether."""
    if isinstance(node, dict):
        return _strip_map(node)
    if isinstance(node, list):
        return _strip_list(node)
    return scalars_go


def _strip_map(node: dict[str, Json]) -> bool:
    kept = [key for key in _conditions(node) if not _drop(node, key, scalars_go=True)]
    if kept:
        _rename_anchors(node)
    for key in list(node):
        _drop(node, key, scalars_go=False)
    return not node


def _strip_list(node: list[Json]) -> bool:
    if not node:
        return False
    node[:] = [
        item for item in node if not has_anchors(item) and not _strip(item, scalars_go=False)
    ]
    return not node


def _conditions(node: dict[str, Json]) -> list[str]:
    return [key for key in node if parse_key(key)[0] in CONDITIONS]


def _drop(node: dict[str, Json], key: str, *, scalars_go: bool) -> bool:
    goes = _strip(node[key], scalars_go=scalars_go)
    if goes:
        del node[key]
    return goes


def _rename_anchors(node: dict[str, Json]) -> None:
    for key in list(node):
        anchor, bare = parse_key(key)
        if anchor in _RESOLVED:
            node[bare] = node.pop(key)
