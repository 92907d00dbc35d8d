"""How many objects that are there now a grant would let be as they are: what a wide request is refused by.

Kinds, names and labels are read as the exception of the grant reads them, wildcards in labels included; a server's own label
selectors know none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.lang import wildcard
from engine.match.kinds import parse_kind
from engine.match.selectors import compile_selector

if TYPE_CHECKING:
    from collections.abc import Callable

    from controllers.kube import Client, Discovery, Kind
    from engine.grants import Grant
    from engine.model import Object

MOST_KINDS: Final = 20
"""Kinds that are counted for one request; more of them are too many to be granted at once."""


async def reach_of(client: Client, discovery: Discovery, grant: Grant, most: int) -> int:
    """Return how many objects fit a grant, or some number beyond `most`.

    Raises KubeError where they cannot be listed and PolicyError for a selector that cannot be read.
    """
    kinds = _kinds(discovery, grant.kind)
    if len(kinds) > MOST_KINDS:
        return most + 1
    fits = _test_of(grant)
    found = 0
    for kind in kinds:
        page = await client.list_all(kind, grant.namespace, metadata_only=True)
        found += sum(fits(one["metadata"]) for one in page.items)
        if found > most:
            break
    return found


def _kinds(discovery: Discovery, text: str) -> list[Kind]:
    wanted = parse_kind(text)
    return [
        one
        for one in discovery.matching(wanted.group, wanted.version, wanted.kind, preferred=True)
        if one.namespaced and "list" in (one.verbs or ("list",))
    ]


def _test_of(grant: Grant) -> Callable[[Object], bool]:
    named = wildcard.compiled(grant.target or "*")
    labelled = compile_selector(grant.selector or {})

    def fits(metadata: Any) -> bool:
        return named(str(metadata["name"])) and labelled(metadata.get("labels") or {})

    return fits
