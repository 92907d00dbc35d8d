"""How far the questions of a namespaced policy reach: into its own namespace, and no further (row A-25).

For `Inputs.ask`, which every question passes after its variables were put in, whatever part of a rule asked it. Lint says the
same of what stands in a policy literally; only here is known what a variable made of it. Whoever may write a Policy in one
namespace must not read others with the rights of whoever evaluates it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lang.wildcard import has_wildcard
from engine.reach import Effect, Target, out_of_reach
from engine.record import replace
from engine.requestinfo import request_info

from .lookups import (
    ApiCallLookup,
    ConfigMapLookup,
    GlobalLookup,
    ImageLookup,
    ListLookup,
    ObjectLookup,
    ServiceLookup,
    SignatureLookup,
    TrustLookup,
)

if TYPE_CHECKING:
    from .lookups import Lookup

_MARKED = (
    ServiceLookup, GlobalLookup, ImageLookup, SignatureLookup, TrustLookup, ObjectLookup, ListLookup,
)  # fmt: skip


def refusal(lookup: Lookup, namespace: str) -> str:
    """Return why a policy of `namespace` may not ask, empty when it may.

    Whether a kind of object has a namespace at all is known to whoever answers, who asks again.
    """
    match lookup:
        case ConfigMapLookup():
            target = Target("", "ConfigMap", True, lookup.namespace, lookup.name)
        case ApiCallLookup():
            found = _called(lookup)
            if found is None:
                return _text(namespace, f"`{lookup.url_path}`")
            target = found
        case ObjectLookup() if (lookup.api_version, lookup.kind) == ("v1", "Namespace"):
            target = Target("", "Namespace", False, lookup.namespace, lookup.name)
        case ObjectLookup() | ListLookup():
            group = lookup.api_version.rpartition("/")[0]
            is_open = not lookup.api_version or has_wildcard(lookup.api_version)
            target = Target(
                None if is_open else group, lookup.kind, None, lookup.namespace, lookup.name
            )
        case ImageLookup() | SignatureLookup():
            foreign = [one for one in lookup.secrets if not one.startswith(f"{namespace}/")]
            return _text(namespace, f"secret `{foreign[0]}`") if foreign else ""
        case _:
            return ""
    return out_of_reach(Effect.LOOK_UP, target, namespace) or ""


def marked(lookup: Lookup, namespace: str) -> Lookup:
    """Return the question with the asker's namespace on it, where whoever answers has to decide by that."""
    return replace(lookup, within=namespace) if isinstance(lookup, _MARKED) else lookup


def _text(namespace: str, what: str) -> str:
    return f"a policy of namespace `{namespace}` may not read {what}"


def _called(lookup: ApiCallLookup) -> Target | None:
    """Return what a call is about; None for one that is about no object, or whose path could be read in another way."""
    info = request_info(lookup.method, lookup.url_path)
    if (
        info is None
        or not info.resource
        or info.verb == "watch"
        or lookup.url_path.partition("?")[0].endswith("/")
    ):
        return None
    if info.resource == "namespaces" and not info.group:
        return Target("", "Namespace", False, "", info.name)
    return Target(info.group, "", bool(info.namespace), info.namespace, info.name)
