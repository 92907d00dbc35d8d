"""The frame around the screens, and what it says: who looks at which cluster, whether it can be believed, what ends next, which keys there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.widgets import Static

from kubectl_kpolicy.actions.screens import LISTINGS
from kubectl_kpolicy.cluster import charts, pulse
from kubectl_kpolicy.cluster.beside import BesideCache, each
from kubectl_kpolicy.cluster.cache import ClusterCache, Trouble
from kubectl_kpolicy.cluster.details import sections
from kubectl_kpolicy.cluster.grants import waiting_for
from kubectl_kpolicy.cluster.knowledge import known
from kubectl_kpolicy.cluster.recording import ReplaySource
from kubectl_kpolicy.cluster.sources import LiveSource
from kubectl_kpolicy.output import time_format

from .widgets.detail import Detail
from .widgets.frame import Crumbs, Footer, Header, Part
from .widgets.gauges import Board

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from kubectl_kpolicy.output.rows import Row

    from .stage import Stage

WIDE = 140
"""Columns from which on details stand beside the list."""

_FRAME = 2
"""Cells of the border around a list."""
_SCRUBBER = 9
_SKEW = 5.0
"""Seconds between two clocks that nobody has to know of."""
_WATCHED = ("reports", "clusterpolicies", "exceptions")


def board(app: Stage, now: datetime) -> Board:
    """Return what Pulse shows; numbers of before are those of earlier sittings."""
    world = app.source.world
    return Board(
        pulse.gauges(world, now),
        charts.by_hour_and_severity(world, now),
        charts.heat_map(world),
        charts.compliance(world),
        known(world, LISTINGS["violations"]),
        app.past,
        now,
    )


def draw_header(app: Stage) -> None:
    """Draw the header."""
    settings = app.settings
    app.set_class(settings.is_production, "-production")
    app.query_one(Header).show([*header_parts(app)], color=settings.color)


def draw_line(app: Stage) -> None:
    """Draw what follows the cursor at once: crumbs, message and footer."""
    draw_crumbs(app)
    row = app.row
    pane = app.query_one(Detail)
    pane.set_class(row is not None, "-on")
    if app.table is not None:
        pane.give_way(app.size.width - _FRAME - app.table.whole)
    if row is not None:
        app.query_one("#message", Static).update(row.text("message") or row.text("detail") or row.text("reason"))  # fmt: skip
    marked = len(app.view.state.marks) if app.view is not None else 0
    app.query_one(Footer).show(footer_keys(app), marked)


def draw_detail(app: Stage, row: Row) -> None:
    """Draw the details of a row, where there is room for them."""
    if app.view is not None and app.size.width >= WIDE:
        found = sections(row, app.view.state.listing, app.here.source.world, app.source.now())
        app.query_one(Detail).show(found)


def draw_crumbs(app: Stage) -> None:
    """Draw the way here, and what was said last."""
    row = app.row
    way = [app.current]
    if row is not None:
        way += [row.text("policy"), row.text("resource") or row.text("name")]
    app.query_one(Crumbs).show([*dict.fromkeys(way)], *app.said)


def header_parts(app: Stage) -> Iterator[Part]:
    """Yield the parts of the header, in their order."""
    settings, world, now = app.settings, app.source.world, app.source.now()
    yield Part("kpolicy", "bold", 5)
    yield Part(("PROD " if settings.is_production else "") + (settings.context or app.source.name), "bold", door="context")  # fmt: skip
    yield Part(f"ns:{_namespace(app)}", "", 2, "namespaces")
    yield Part(settings.user or app.here.doer.user, "", 4)
    if isinstance(app.source, ReplaySource):
        yield Part(_scrubber(app.source), "bold")
    else:
        yield Part("RO" if app.read_only else "RW", "" if app.read_only else "bold", 0, "read-only")
        yield _health(world)
    yield Part(_skew(app.source.skew if isinstance(app.source, LiveSource) else 0.0), "bold", 2)
    ends = pulse.next_ending(world, now)
    yield Part(f"next expiry {time_format.left(ends, now)}" if ends else "", "", 3, "grants")
    waiting = sum(waiting_for(one, now) for one in each(world).values())
    yield Part(f"inbox {waiting}" if waiting else "", "bold", 1, "inbox")


def _scrubber(past: ReplaySource) -> str:
    """Return where in a recording one is: its clock, and a line with a mark on it."""
    made = past.recording
    length = (made.ended_at - made.began_at).total_seconds()
    share = (past.now() - made.began_at).total_seconds() / length if length else 1.0
    mark = round(max(0.0, min(share, 1.0)) * (_SCRUBBER - 1))
    clock = past.now().strftime("%H:%M:%S")
    return f"REPLAY {clock} {'─' * mark}●{'─' * (_SCRUBBER - 1 - mark)}"


def _skew(seconds: float) -> str:
    """Return how far the server's clock is from ours, where that is worth knowing."""
    if abs(seconds) <= _SKEW:
        return ""
    return f"clock {'+' if seconds > 0 else '-'}{time_format.span(abs(seconds))}"


def _namespace(app: Stage) -> str:
    view = app.view
    return (view.state.namespace if view is not None else app.settings.namespace) or "all"


def _health(world: ClusterCache) -> Part:
    """Return whether what is shown is live, in one or two words; of how many clusters where it is of several."""
    if isinstance(world, BesideCache):
        lost = sum(any(map(one.problem, _WATCHED)) for one in world.members.values())
        if lost:
            return Part(f"{lost} of {len(world.members)} unknown", "bold reverse")
    problems = [found for name in _WATCHED if (found := world.problem(name))]
    if any(one.trouble in (Trouble.UNREACHABLE, Trouble.UNAUTHORIZED) for one in problems):
        return Part("offline", "bold reverse")
    if problems:
        return Part(f"watch partly {problems[0].trouble}", "bold")
    if not all(world.is_synced(name) for name in _WATCHED):
        return Part("loading", "bold")
    return Part("watch ok")


def _applies(app: Stage, name: str) -> bool:
    """Tell whether an action of every screen means something on this one."""
    if name in ("filter", "failures") and app.view is None:
        return False
    return name != "failures" or app.view is None or app.view.state.listing.failures is not None


def footer_keys(app: Stage) -> list[tuple[str, str]]:
    """Return the keys that are worth showing for the row under the cursor."""
    found = []
    for action in app.registry.footer(app.current):
        keys = app.registry.keys(action)
        if keys and not app.refusal(action) and _applies(app, action.id):
            found.append((keys[0], action.title))
    return found
