"""Which kinds a cleanup policy can delete anything of: for the loop that does and for previews of people (row C-02)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.loops.rules import kinds_in, served
from engine.reach import Effect, Target, out_of_reach

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controllers.kube import Discovery, Kind
    from engine.model import CleanupPolicy


def candidates(discovery: Discovery, policy: CleanupPolicy) -> Iterator[Kind]:
    """Yield the kinds of the server that a policy names, can be listed and deleted, and are within its reach."""
    within = policy.namespace
    for kind in served(discovery, kinds_in(policy.match), "list", "delete"):
        place = Target(kind.group, kind.kind, kind.namespaced, within or None)
        if not out_of_reach(Effect.CLEAN_UP, place, within):
            yield kind
