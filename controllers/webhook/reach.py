"""How many objects that are there now a grant would let be as they are: what a wide request is refused by (security.md 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from controllers.kube.selectors import text_of
from engine.lang import wildcard

if TYPE_CHECKING:
    from controllers.kube import Client, Discovery
    from engine.grants import Grant

MOST_KINDS: Final = 20
"""Kinds that are counted for one request; more of them are too many to be granted at once."""


def is_wide(grant: Grant) -> bool:
    """Tell whether a grant is about more than one object by name."""
    return not grant.target or any(map(wildcard.has_wildcard, (grant.target, grant.kind)))


async def reach_of(client: Client, discovery: Discovery, grant: Grant, most: int) -> int:
    """Return how many objects fit a grant, or some number beyond `most`; raises KubeError where they cannot be listed."""
    kinds = [
        one
        for one in discovery.matching("*", "*", grant.kind, preferred=True)
        if one.namespaced and "list" in (one.verbs or ("list",))
    ]
    if len(kinds) > MOST_KINDS:
        return most + 1
    selector = text_of(grant.selector) if grant.selector else ""
    found = 0
    for kind in kinds:
        page = await client.list_all(kind, grant.namespace, label_selector=selector)
        name = grant.target or "*"
        found += sum(wildcard.match(name, str(one["metadata"]["name"])) for one in page.items)
        if found > most:
            break
    return found
