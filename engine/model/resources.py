"""Resource names of kinds (`Pod` is `pods`), for policies that match resources while reviews name kinds.

A request of the API server says its resource. For objects from files it is worked out as clients do without discovery.
"""

from __future__ import annotations

from functools import lru_cache

_ALREADY_PLURAL = frozenset({"endpoints", "podmetrics", "nodemetrics"})


@lru_cache(maxsize=2048)
def resource_of(kind: str) -> str:
    """Return the resource name that a kind has by Kubernetes' rule for guessing it."""
    name = kind.lower()
    if name in _ALREADY_PLURAL:
        return name
    if name.endswith("s"):
        return name + "es"
    if name.endswith("y"):
        return "gateways" if name == "gateway" else name[:-1] + "ies"
    return name + "s"
