"""What header and footer say: who looks at which cluster, whether it can be believed, what ends next, which keys there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubectl_kpolicy.cluster import pulse
from kubectl_kpolicy.cluster.cache import Trouble
from kubectl_kpolicy.cluster.grants import waiting_for
from kubectl_kpolicy.cluster.recording import ReplaySource
from kubectl_kpolicy.output import time_format

from .widgets.frame import Part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubectl_kpolicy.cluster.cache import ClusterCache

    from .app import Console

_SCRUBBER = 9
_SKEW = 5.0
"""Seconds between two clocks that nobody has to know of."""
_WATCHED = ("reports", "clusterpolicies", "exceptions")


def header_parts(app: Console) -> list[Part]:
    """Return the parts of the header, in their order."""
    return list(_parts(app))


def _parts(app: Console) -> Iterator[Part]:
    settings, world, now = app.settings, app.source.world, app.source.now()
    yield Part("kpolicy", "bold", 5)
    yield Part(("PROD " if settings.is_production else "") + (settings.context or app.source.name), "bold", door="context")  # fmt: skip
    yield Part(f"ns:{_namespace(app)}", "", 2, "namespaces")
    yield Part(settings.user, "", 4)
    if isinstance(app.source, ReplaySource):
        yield Part(_scrubber(app.source), "bold")
    else:
        yield Part("RO" if app.read_only else "RW", "" if app.read_only else "bold", 0, "read-only")
        yield _health(world)
    yield Part(_skew(getattr(app.source, "skew", 0.0)), "bold", 2)
    ends = pulse.next_ending(world, now)
    yield Part(f"next expiry {time_format.left(ends, now)}" if ends else "", "", 3, "grants")
    waiting = waiting_for(world, now)
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


def _namespace(app: Console) -> str:
    view = app.view
    return (view.state.namespace if view is not None else app.settings.namespace) or "all"


def _health(world: ClusterCache) -> Part:
    """Return whether what is shown is live, in one or two words."""
    problems = [found for name in _WATCHED if (found := world.problem(name))]
    if any(one.trouble in (Trouble.UNREACHABLE, Trouble.UNAUTHORIZED) for one in problems):
        return Part("offline", "bold reverse")
    if problems:
        return Part(f"watch partly {problems[0].trouble}", "bold")
    if not all(world.is_synced(name) for name in _WATCHED):
        return Part("loading", "bold")
    return Part("watch ok")


def _applies(app: Console, name: str) -> bool:
    """Tell whether an action of every screen means something on this one."""
    if name in ("filter", "failures") and app.view is None:
        return False
    return name != "failures" or app.view is None or app.view.state.listing.failures is not None


def footer_keys(app: Console) -> list[tuple[str, str]]:
    """Return the keys that are worth showing for the row under the cursor."""
    found = []
    for action in app.registry.footer(app.current):
        keys = app.registry.keys(action)
        if keys and not app.refusal(action) and _applies(app, action.id):
            found.append((keys[0], action.title))
    return found
