"""Puts the console on a stage: a ClusterCache instead of a cluster, a clock that stands still, keys instead of hands."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from textual.events import Key
from textual.keys import _character_to_key

from kubectl_kpolicy.cluster.beside import BesideSource
from kubectl_kpolicy.tui.app import Console
from kubectl_kpolicy.tui.settings import Settings
from kubectl_kpolicy.tui.stage import OneCluster
from tests.plugin.scene import NOW, world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from kubectl_kpolicy.actions.executor import ActionExecutor
    from kubectl_kpolicy.cluster.cache import ClusterCache

_NAMED = {
    "slash": "/",
    "colon": ":",
    "space": " ",
    "greater_than_sign": ">",
    "less_than_sign": "<",
    "minus": "-",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "question_mark": "?",
    "tilde": "~",
}
SMALL, LARGE = (80, 24), (140, 40)


class Stage:
    """A source that holds a ClusterCache and stands still, by a clock that agrees with the server's."""

    skew = 0.0

    def __init__(self, there: ClusterCache | None = None, at=NOW) -> None:
        self.world = there if there is not None else world()
        self.name = "prod-eu"
        self.at = at
        self.refreshed = 0

    def now(self):
        return self.at

    async def start(self) -> None:
        pass

    async def refresh(self) -> None:
        self.refreshed += 1

    async def close(self) -> None:
        pass


def console(there: ClusterCache | None = None, *, source: Any = None, **words: Any) -> Console:
    more = {name: words.pop(name) for name in ("doer", "grant_form", "rights") if name in words}
    settings = Settings(**{"context": "prod-eu", "user": "alice", **words})
    return Console(source or Stage(there), settings, **more)


def beside(
    there: Mapping[str, ClusterCache],
    doers: Mapping[str, ActionExecutor] | None = None,
    **words: Any,
) -> Console:
    """Return a console on several clusters side by side."""
    made = {
        name: OneCluster(Stage(one), (doers or {}).get(name), user="alice", name=name)
        for name, one in there.items()
    }
    source = BesideSource({name: one.source for name, one in made.items()})
    return Console(source, Settings(**{"context": source.name, **words}), clusters=made)


@asynccontextmanager
async def shown(app: Console, keys: Sequence[str] = (), size=SMALL) -> AsyncIterator[Any]:
    async with app.run_test(size=size) as pilot:
        await settled(app)
        await press(pilot, *keys)
        yield pilot


async def press(pilot: Any, *keys: str) -> None:
    """Press keys one after the other, each when what the one before caused has settled."""
    for key in keys:
        event = key_event(pilot.app, key)
        pilot.app.post_message(event)
        await settled(pilot.app)


def key_event(app: Console, key: str) -> Key:
    """Return the event that a terminal would make of a key."""
    if len(key) == 1:
        return Key(_character_to_key(key), key)
    return Key(key, _NAMED.get(key))


async def leave(app: Console) -> None:
    """Press enter where that ends the app, and wait until it has."""
    app.post_message(key_event(app, "enter"))
    async with asyncio.timeout(30):
        while app.return_value is None:
            await asyncio.sleep(0.01)


async def settled(app: Console) -> None:
    """Wait until nobody has messages to work on, nothing is to be laid out and nothing waits for the next drawing."""
    async with asyncio.timeout(30):
        quiet = 0
        while quiet < 4:
            await asyncio.sleep(0)
            quiet = 0 if _is_busy(app) else quiet + 1


async def drawn(app: Console) -> None:
    """Wait until changes of the ClusterCache are on the screen."""
    async with asyncio.timeout(30):
        while app.is_outdated:
            await asyncio.sleep(0.01)
    await settled(app)


def _is_busy(app: Console) -> bool:
    screens = app.screen_stack
    if any(worker.is_running for worker in app.workers):
        return True
    if any(screen._callbacks or screen._layout_required for screen in screens):
        return True
    nodes = [app, *screens, *app.screen.walk_children()]
    return any(node._message_queue.qsize() or node._next_callbacks for node in nodes)


def on_stage(
    act: Callable[[Console, Any], Awaitable[None]],
    app: Console | None = None,
    *,
    keys: Sequence[str] = (),
    size=SMALL,
) -> Console:
    """Run the console, let `act` do and look, and return the console."""
    made = app or console()

    async def run() -> None:
        async with shown(made, keys, size) as pilot:
            await act(made, pilot)

    asyncio.run(run())
    return made


def lines_of(app: Console) -> list[str]:
    """Return the screen as lines of text."""
    strips = app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip).rstrip() for strip in strips]


def window_of(app: Console) -> str:
    """Return the window that is open as text, without what shines through around it; the whole screen where none is."""
    found = app.screen.query(".window")
    if not found:
        return text_of(app)
    region = found.first().region
    strips = app.screen._compositor.render_strips()[region.y : region.bottom]
    return "\n".join(strip.crop(region.x, region.right).text.rstrip() for strip in strips)


def text_of(app: Console) -> str:
    return "\n".join(lines_of(app))
