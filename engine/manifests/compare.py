"""How an object differs from what was signed: both flattened to leaves, compared, and the differences put into words.

For the manifests rule. Apart from the ignore lists because this part says what *is* different, not what may be. Three equalities of
upstream that hide real changes are none here: zero is not missing, empty collections are seen, list elements keep their places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.errors import LimitError
from engine.lang.gotext import compact_json
from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.model import Json, Object

Path = tuple[str, ...]

_MAX_DEPTH: Final = 200
_MAX_SHOWN: Final = 50
_MAX_VALUE: Final = 500
MISSING: Final = None
"""What stands for a leaf that one side does not have; null itself never is a leaf of a map."""

_FILLED_IN: Final = frozenset(
    {
        *("annotations", "binaryData", "creationTimestamp", "data", "labels", "limits"),
        *("loadBalancer", "matchLabels", "metadata", "nodeSelector", "podSelector", "requests"),
        *("resources", "securityContext", "spec", "status", "strategy", "updateStrategy"),
    }
)
"""Fields where the API server adds or drops an empty map without a change of meaning."""


@record
class Difference:
    """One leaf that differs: where, what was signed, what the object has."""

    path: Path
    signed: Json
    actual: Json

    @property
    def key(self) -> str:
        """Path as people and ignore lists write it."""
        return ".".join(self.path)


def differences(signed: Object, actual: Object) -> list[Difference]:
    """Return all leaves that differ, sorted by path; none when the object is what was signed.

    Raise LimitError for objects nested beyond any real one.
    """
    before, after = dict(_below((), signed, 0)), dict(_below((), actual, 0))
    found = [
        Difference(path, before.get(path, MISSING), after.get(path, MISSING))
        for path in before.keys() | after.keys()
        if not _is_equal(path, before.get(path, MISSING), after.get(path, MISSING))
    ]
    return sorted(found, key=lambda one: one.key)


def shown(found: Iterable[Difference]) -> str:
    """Return the differences in upstream's form, `{"items":[{"key":…,"values":{"after":…,"before":…}}]}`."""
    items = [{"key": one.key, "values": _values(one)} for one in found]
    return compact_json({"items": items[:_MAX_SHOWN]})


def _below(path: Path, value: Json, depth: int) -> Iterator[tuple[Path, Json]]:
    if depth > _MAX_DEPTH:
        raise LimitError(f"an object nested deeper than {_MAX_DEPTH} levels")
    if isinstance(value, dict):
        yield from _of_map(path, value, depth)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            place = (*path, str(index))
            # INVARIANT: every element of a list leaves a trace, or `ingress: []` would equal `ingress: [{}]`.
            yield from list(_below(place, inner, depth + 1)) or [(place, {"element": inner})]
    elif value is not None:
        yield path, value


def _of_map(path: Path, value: dict[str, Json], depth: int) -> Iterator[tuple[Path, Json]]:
    for key, inner in value.items():
        place = (*path, str(key))
        leaves = list(_below(place, inner, depth + 1))
        if leaves:
            yield from leaves
        elif isinstance(inner, dict) and key not in _FILLED_IN:
            # An empty selector chooses everything: it must not come or go unnoticed.
            yield place, {}


def _is_equal(path: Path, signed: Json, actual: Json) -> bool:
    is_image = path[-1:] == ("image",)
    return _same(signed, actual) or (is_image and _is_same_image(signed, actual))


def _same(signed: Json, actual: Json) -> bool:
    if isinstance(signed, bool) or isinstance(actual, bool):
        return signed is actual
    if isinstance(signed, int | float) and isinstance(actual, int | float):
        return signed == actual
    return type(signed) is type(actual) and bool(signed == actual)


def _is_same_image(signed: Json, actual: Json) -> bool:
    """Tell whether the object side only spells out the default registry or tag."""
    if not isinstance(signed, str) or not isinstance(actual, str):
        return False
    short = actual.removeprefix("docker.io/")
    return signed in {short, actual.removesuffix(":latest"), short.removesuffix(":latest")}


def _values(one: Difference) -> dict[str, Json]:
    signed, actual = one.signed, one.actual
    if MISSING not in (signed, actual) and _kind(signed) != _kind(actual):
        return {"after": _with_kind(actual), "before": _with_kind(signed)}
    return {"after": _cut(actual), "before": _cut(signed)}


def _with_kind(value: Json) -> str:
    return f"{_cut(compact_json(value))} ({_kind(value)})"


def _cut(value: Json) -> Json:
    if isinstance(value, str) and len(value) > _MAX_VALUE:
        return value[:_MAX_VALUE] + "…"
    if isinstance(value, dict):
        return compact_json(value.get("element", value))[:_MAX_VALUE]
    return value


def _kind(value: Json) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else "object"
