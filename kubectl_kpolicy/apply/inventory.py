"""Objects that can be looked up by identity, by selector and by API path: the part of a cluster that mocks need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.lang import wildcard
from engine.match import compile_selector
from engine.model.resources import resource_of

from .names import identity, labels_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.evaluate import ListLookup
    from engine.model import Object


class Inventory:
    """A fixed collection of objects; a later one replaces an earlier one of the same identity."""

    def __init__(self, objects: Iterable[Object] = ()) -> None:
        self._by_key = {identity(obj): obj for obj in objects}

    def __bool__(self) -> bool:
        return bool(self._by_key)

    def __iter__(self) -> Iterator[Object]:
        return iter(self._by_key.values())

    def get(self, api_version: str, kind: str, namespace: str, name: str) -> Object | None:
        """Return one object; an empty or `*` API version fits any."""
        if api_version and "*" not in api_version:
            return self._by_key.get((api_version, kind, namespace, name))
        for key, obj in self._by_key.items():
            if key[1:] == (kind, namespace, name):
                return obj
        return None

    def select(self, lookup: ListLookup) -> list[Object]:
        """Return the objects that fit a ListLookup; name and namespace may hold wildcards, empty ones fit all."""
        import orjson  # here, because loading it takes a tenth of what small commands take

        selected = compile_selector(orjson.loads(lookup.selector)) if lookup.selector else None
        return [
            obj
            for (api_version, kind, namespace, name), obj in self._by_key.items()
            if (kind == lookup.kind or (lookup.resource and resource_of(kind) == lookup.resource))
            and _fits(lookup.api_version, api_version)
            and _fits(lookup.namespace, namespace)
            and _fits(lookup.name, name)
            and (selected is None or selected(labels_of(obj)))
        ]

    def at_path(self, url_path: str) -> Any:
        """Answer a GET of the API server's `url_path`: an object, a list, or None where there is no such object.

        Of the query only `labelSelector` counts; raises Invalid where it is none.
        """
        from urllib.parse import parse_qs

        from controllers.kube.paths import parse_labels

        path, _, query = url_path.partition("?")
        label_selector = parse_qs(query).get("labelSelector", [""])[0]
        parts = path.strip("/").split("/")
        api_version, rest = _version(parts)
        namespace = ""
        if len(rest) >= 3 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        if not rest:
            return None
        found = [
            obj
            for (version, kind, space, _), obj in self._by_key.items()
            if version == api_version and is_plural(rest[0], kind) and namespace in ("", space)
        ]
        if len(rest) > 1:
            return next((obj for obj in found if identity(obj)[3] == rest[1]), None)
        selected = parse_labels(label_selector)
        items = [obj for obj in found if selected(labels_of(obj))]
        return {"apiVersion": api_version, "kind": "List", "items": items}


def is_plural(resource: str, kind: str) -> bool:
    """Return whether `resource` is the plural of `kind` by Kubernetes' rules of naming."""
    lower = kind.lower()
    if lower.endswith(("s", "x", "z", "ch", "sh")):
        return resource in (f"{lower}es", lower)
    if lower.endswith("y") and lower[-2:-1] not in "aeiou":
        return resource == f"{lower[:-1]}ies"
    return resource == f"{lower}s"


def _version(parts: list[str]) -> tuple[str, list[str]]:
    if parts[0] == "api" and len(parts) > 1:
        return parts[1], parts[2:]
    if parts[0] == "apis" and len(parts) > 2:
        return f"{parts[1]}/{parts[2]}", parts[3:]
    return "", []


def _fits(pattern: str, text: str) -> bool:
    return not pattern or pattern == text or wildcard.match(pattern, text)
