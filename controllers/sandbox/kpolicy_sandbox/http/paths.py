"""Takes a URL path apart the way Kubernetes does: group, version, namespace, resource, name, subresource."""

from __future__ import annotations

from dataclasses import dataclass

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_OF_NAMESPACES = {"status", "finalize"}


@dataclass(frozen=True, slots=True)
class Place:
    """What a path names."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""


def place_of(path: str) -> Place | None:
    """Return the resource that a path names; None for a path that names none."""
    parts = [part for part in path.split("/") if part]
    match parts:
        case ["api", "v1", *below] if below:
            return _below("", "v1", below)
        case ["apis", group, version, *below] if below:
            return _below(group, version, below)
    return None


def _below(group: str, version: str, parts: list[str]) -> Place | None:
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _OF_NAMESPACES:
            parts = parts[2:]
        else:
            # the namespace itself, which lies in no namespace
            namespace = ""
    plural, name, below, *rest = [*parts, "", "", ""]
    return Place(group, version, plural, namespace, name, below, "/".join(filter(None, rest)))


def verb_of(method: str, place: Place, *, watching: bool) -> str:
    """Return the verb of a request as RBAC names it; "" for a method that there is not."""
    if method in {"GET", "HEAD"}:
        if place.name:
            return "get"
        return "watch" if watching else "list"
    if method == "DELETE":
        return "delete" if place.name else "deletecollection"
    return _VERBS.get(method, "")
