"""Fields inside objects of an API server, whatever shape they came in: nothing raises for what is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.model import Object


def part(obj: object, *names: str) -> Object:
    """Return a map inside an object, without names the object itself; an empty one where there is no map."""
    found = obj
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def items(obj: Mapping[str, object], *names: str) -> list[Object]:
    """Return the maps in a list inside an object; an empty list where there is none."""
    found = part(obj, *names[:-1]).get(names[-1])
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def word(obj: Mapping[str, object], *names: str) -> str:
    """Return a text inside an object; empty where there is none."""
    found = part(obj, *names[:-1]).get(names[-1])
    return "" if found is None or isinstance(found, dict | list) else str(found)


def at_path(value: Any, path: str) -> Any:
    """Return what stands at a slash path, None where there is nothing."""
    for step in filter(None, path.split("/")):
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def members(obj: object) -> list[Any] | None:
    """Return what a `List` or a list of one kind (`PodList`) holds; None for what is no list.

    API servers say once, of the whole list, what its items are; those that do not say it themselves get it from there.
    """
    kind, found = word(part(obj), "kind"), part(obj).get("items")
    if not kind.endswith("List") or not isinstance(found, list):
        return None
    if kind == "List":
        return found
    version, said = word(part(obj), "apiVersion"), {"kind": kind.removesuffix("List")}
    if version:
        said = {"apiVersion": version, **said}
    return [
        {**said, **one} if isinstance(one, dict) and not said.keys() <= one.keys() else one
        for one in found
    ]
