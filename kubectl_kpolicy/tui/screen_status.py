"""How things stand with what a screen shows: loading, hindered, stale, empty or fine, and in words why and what next."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from engine.record import record
from kubectl_kpolicy.cluster.cache import Trouble
from kubectl_kpolicy.cluster.resources import RESOURCES
from kubectl_kpolicy.output import time_format

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from kubectl_kpolicy.cluster.cache import ClusterCache, Problem
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


_TITLES = {
    Trouble.MISSING: "not installed",
    Trouble.FORBIDDEN: "forbidden",
    Trouble.UNAUTHORIZED: "not logged in",
    Trouble.UNREACHABLE: "cluster unreachable",
    Trouble.FAILED: "reading failed",
}


def standing(state: ListState, shown: Shown, world: ClusterCache, now: datetime) -> Standing:
    """Return how things stand with a list screen."""
    listing = state.listing
    whole = [name for name in listing.needs if world.is_synced(name)]
    problems = [(name, found) for name in listing.needs if (found := world.problem(name))]
    if shown.lines:
        return _stale(world, problems, now) if problems else _partial(listing, world)
    if not whole and problems:
        _name, problem = problems[0]
        return Standing(Condition.HINDERED, f"{_TITLES[problem.trouble]}: {problem.message}", problem.help)  # fmt: skip
    if not whole and listing.noun != "health":
        return Standing(Condition.LOADING, f"waiting for the API server: {_awaited(listing, world)}", "rows show as soon as they come")  # fmt: skip
    if shown.total:
        return Standing(Condition.EMPTY, f"none of {shown.total} rows fits {_limits(state)}", _way_out(state))  # fmt: skip
    return Standing(Condition.EMPTY, listing.empty, listing.next_step)


def _stale(world: ClusterCache, problems: list[tuple[str, Problem]], now: datetime) -> Standing:
    name, problem = problems[0]
    seen = world.seen_at(name)
    if seen is None:
        return Standing(Condition.FINE, f"without {name}: {problem.message}", problem.help)
    old = time_format.span((now - seen).total_seconds())
    return Standing(Condition.STALE, f"stale: as it was {old} ago; {_TITLES[problem.trouble]}: {problem.message}", problem.help)  # fmt: skip


def _partial(listing: Listing, world: ClusterCache) -> Standing:
    """Name what is missing beside the rows, where that is not simply not installed, and what is still being read."""
    for name in listing.wants:
        problem = world.problem(name)
        if problem is not None and problem.trouble is not Trouble.MISSING:
            return Standing(Condition.FINE, f"without {name}: {problem.message}", problem.help)
    if any(not world.is_synced(name) and not world.problem(name) for name in listing.needs):
        return Standing(Condition.FINE, f"more is on its way: {_awaited(listing, world)}")
    return Standing(Condition.FINE)


def _awaited(listing: Listing, world: ClusterCache) -> str:
    names = [name for name in listing.needs if not world.is_synced(name)]
    return ", ".join(_what(names))


def _what(names: Iterable[str]) -> list[str]:
    return [RESOURCES[name].what if name in RESOURCES else name for name in names]


def _limits(state: ListState) -> str:
    limits = [f"`{state.filter.text}`"] if state.filter.text else []
    if state.failures and state.listing.failures is not None:
        limits.append("failures only")
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
