"""How things stand with what a screen shows: loading, hindered, stale, empty or fine, and in words why and what next."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from engine.record import record
from kubectl_kpolicy.cluster.knowledge import Sight, known
from kubectl_kpolicy.cluster.resources import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from kubectl_kpolicy.cluster.cache import ClusterCache
    from kubectl_kpolicy.output.rows import Listing

    from .state import ListState, Shown


class Condition(StrEnum):
    """Whether rows can be shown, and whether they can be believed."""

    FINE = "fine"
    EMPTY = "empty"
    LOADING = "loading"
    HINDERED = "hindered"
    STALE = "stale"


@record
class Standing:
    """The condition, a sentence about it, and the next step."""

    condition: Condition
    text: str = ""
    help: str = ""

    @property
    def hides_rows(self) -> bool:
        """Whether there is nothing to show but the words."""
        return self.condition not in (Condition.FINE, Condition.STALE)


def standing(state: ListState, shown: Shown, world: ClusterCache, now: datetime) -> Standing:
    """Return how things stand with a list screen; only where all is known, no rows means that there is nothing."""
    listing = state.listing
    knowledge = known(world, listing)
    said = knowledge.said(now)
    advice = knowledge.problem.help if knowledge.problem is not None else ""
    waits = knowledge.sight is Sight.LOADING or (knowledge.sight is Sight.PARTLY and not said)
    if shown.lines:
        condition = Condition.STALE if knowledge.sight is Sight.STALE else Condition.FINE
        if waits:
            said = f"more is on its way: {_awaited(listing, world)}"
        return Standing(condition, said, advice)
    if not shown.total and listing.noun != "health":
        if waits:
            return Standing(Condition.LOADING, f"waiting for the API server: {_awaited(listing, world)}", "rows show as soon as they come")  # fmt: skip
        if said:
            return Standing(Condition.HINDERED, said, advice)
    if shown.total:
        text = f"none of {shown.total} rows fits {_limits(state)}"
        return Standing(Condition.EMPTY, f"{text}; {said}" if said else text, _way_out(state))
    return Standing(Condition.EMPTY, listing.empty, listing.next_step)


def _awaited(listing: Listing, world: ClusterCache) -> str:
    names = [name for name in listing.needs if not world.is_synced(name)]
    return ", ".join(_what(names))


def _what(names: Iterable[str]) -> list[str]:
    return [RESOURCES[name].what if name in RESOURCES else name for name in names]


def _limits(state: ListState) -> str:
    limits = [f"`{state.filter.text}`"] if state.filter.text else []
    if state.failures and state.listing.failures is not None:
        limits.append(f"{state.listing.narrowed} only")
    if state.namespace:
        limits.append(f"namespace {state.namespace}")
    if state.hidden:
        limits.append(f"{len(state.hidden)} ignored")
    return ", ".join(limits) or "the screen"


def _way_out(state: ListState) -> str:
    ways = ["esc clears the filter"] if state.filter.text else []
    if state.failures and state.listing.failures is not None:
        ways.append("! shows everything")
    if state.namespace:
        ways.append("0 shows all namespaces")
    return "; ".join(ways)
