"""What is known of the resources that rows and numbers are made of: nothing yet, all, a part, or what once was.

Nothing seen is only nothing there where everything was read. Screens, gauges and commands ask here before they say `none`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from engine.record import record
from kubectl_kpolicy.output import time_format

from .cache import ClusterCache, Problem, Trouble
from .resources import RESOURCES, called

if TYPE_CHECKING:
    from datetime import datetime

    from kubectl_kpolicy.output.rows import Listing


class Sight(StrEnum):
    """How much of what was asked for can be seen."""

    WHOLE = "whole"
    PARTLY = "partly"
    STALE = "stale"
    LOADING = "loading"
    HINDERED = "hindered"


@record
class Knowledge:
    """How much is known; `name` is the first resource that is not, `problem` why, `seen` when it last was."""

    sight: Sight
    name: str = ""
    problem: Problem | None = None
    seen: datetime | None = None

    def said(self, now: datetime) -> str:
        """Return what is wrong with what is seen, empty for the whole and for what still loads."""
        if self.problem is None:
            return ""
        reason = f"{TITLES[self.problem.trouble]}: {self.problem.message}"
        match self.sight:
            case Sight.STALE if self.seen is not None:
                return f"stale: as it was {time_format.span((now - self.seen).total_seconds())} ago; {reason}"
            case Sight.PARTLY if self.problem.trouble is Trouble.CUT:
                return self.problem.message
            case Sight.PARTLY:
                return f"without {called(self.name)}: {self.problem.message}"
        return reason

    def brief(self, now: datetime) -> str:
        """Return the same in two or three words, what still loads included."""
        match self.sight:
            case Sight.WHOLE:
                return ""
            case Sight.STALE if self.seen is not None:
                return f"stale {time_format.span((now - self.seen).total_seconds())}"
            case Sight.LOADING:
                return "loading"
        title = TITLES[self.problem.trouble] if self.problem is not None else "loading"
        return f"{self.name} {title}" if self.sight is Sight.PARTLY else title


TITLES = {
    Trouble.MISSING: "not installed",
    Trouble.FORBIDDEN: "forbidden",
    Trouble.UNAUTHORIZED: "not logged in",
    Trouble.UNREACHABLE: "cluster unreachable",
    Trouble.FAILED: "reading failed",
    Trouble.CUT: "not all read",
}


_CUT = Problem(
    Trouble.CUT,
    "there are more results than are read here; numbers with a + are at least so large",
    "`kubectl kpolicy violations -A --where FILTER` reads all",
)
UNJUDGED = Knowledge(
    Sight.HINDERED,
    problem=Problem(
        Trouble.MISSING, "no engine has taken up any policy; see `kubectl kpolicy doctor`"
    ),
)
"""Of results, where nobody can have looked for any."""


def known(world: ClusterCache, listing: Listing) -> Knowledge:
    """Return how much is known of what a listing is made of; a kind that it only wants may be missing."""
    problems = [(name, found) for name in listing.needs if (found := world.problem(name))]
    if not any(map(world.is_synced, listing.needs)):
        name, problem = problems[0] if problems else ("", None)
        return Knowledge(Sight.HINDERED if problems else Sight.LOADING, name, problem)
    wanted = [(name, found) for name in listing.wants if (found := world.problem(name))]
    problems += [one for one in wanted if one[1].trouble is not Trouble.MISSING]
    for name, problem in problems:
        seen = world.seen_at(name)
        return Knowledge(Sight.PARTLY if seen is None else Sight.STALE, name, problem, seen)
    cut = next((name for name in (*listing.needs, *listing.wants) if name in world.left_out), "")
    if cut:
        return Knowledge(Sight.PARTLY, cut, _CUT)
    pending = awaited(world, listing)
    return Knowledge(Sight.PARTLY, pending[0]) if pending else Knowledge(Sight.WHOLE)


def awaited(world: ClusterCache, listing: Listing) -> list[str]:
    """Return the resources of a listing that are being read, what it only wants after what it needs."""
    wants = [name for name in listing.wants if name in RESOURCES and world.is_awaited(name)]
    return [name for name in listing.needs if not world.is_synced(name)] or wants
