"""How far the questions of a namespaced policy reach: into its own namespace, and no further (row A-25).

For `Inputs.ask`, which every question passes after its variables were put in, whatever part of a rule asked it. Lint says the
same of what stands in a policy literally; only here is known what a variable made of it. Whoever may write a Policy in one
namespace must not read others with the rights of whoever evaluates it (security.md, C01).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.record import replace

from .lookups import (
    ApiCallLookup,
    ConfigMapLookup,
    GlobalLookup,
    ImageLookup,
    ListLookup,
    ObjectLookup,
    ServiceLookup,
    SignatureLookup,
)

if TYPE_CHECKING:
    from .lookups import Lookup

_MARKED = (ServiceLookup, GlobalLookup, ImageLookup, SignatureLookup)


def refusal(lookup: Lookup, namespace: str) -> str:
    """Return why a policy of `namespace` may not ask, empty when it may."""
    match lookup:
        case ConfigMapLookup() if lookup.namespace != namespace:
            return _text(namespace, f"ConfigMaps of namespace `{lookup.namespace}`")
        case ApiCallLookup() if not _lies_in(lookup.url_path, namespace):
            return _text(namespace, f"`{lookup.url_path}`")
        case ObjectLookup() if not _is_own(lookup, namespace):
            return _text(namespace, f"objects of namespace `{lookup.namespace}`")
        case ListLookup() if lookup.namespace != namespace:
            return _text(namespace, f"objects of namespace `{lookup.namespace}`")
        case ImageLookup() | SignatureLookup():
            foreign = [one for one in lookup.secrets if not one.startswith(f"{namespace}/")]
            return _text(namespace, f"secret `{foreign[0]}`") if foreign else ""
    return ""


def marked(lookup: Lookup, namespace: str) -> Lookup:
    """Return the question with the asker's namespace on it, where whoever answers has to decide by that."""
    return replace(lookup, within=namespace) if isinstance(lookup, _MARKED) else lookup


def _text(namespace: str, what: str) -> str:
    return f"a policy of namespace `{namespace}` may not read {what}"


def _is_own(lookup: ObjectLookup, namespace: str) -> bool:
    """Tell whether an object lies in the namespace, or is that Namespace itself."""
    if (lookup.api_version, lookup.kind) == ("v1", "Namespace"):
        return lookup.name == namespace
    return lookup.namespace == namespace


def _lies_in(url_path: str, namespace: str) -> bool:
    """Tell whether a path is one below the namespace, in the one place where the API server reads it.

    Anything that somebody could read in another way is not: escapes, dots, empty segments, backslashes, fragments.
    """
    path = url_path.partition("?")[0]
    parts = path.split("/")
    if any(char in path for char in "%\\#;") or not path.isprintable() or " " in path:
        return False
    if any(part in ("", ".", "..") for part in parts[1:]):
        return False
    start = 3 if path.startswith("/api/") else 4 if path.startswith("/apis/") else 0
    return bool(start) and parts[start : start + 2] == ["namespaces", namespace]
