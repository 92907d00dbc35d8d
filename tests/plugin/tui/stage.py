"""Puts the console on a stage: a World instead of a cluster, a clock that stands still, keys instead of hands."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from kubectl_kpolicy.tui.app import Console
from kubectl_kpolicy.tui.settings import Settings
from tests.plugin.scene import NOW, world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from kubectl_kpolicy.cluster.world import World

SMALL, LARGE = (80, 24), (140, 40)


class Stage:
    """A source that holds a World and stands still."""

    def __init__(self, there: World | None = None, at=NOW) -> None:
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


def console(there: World | None = None, *, source: Any = None, **words: Any) -> Console:
    more = {name: words.pop(name) for name in ("doer", "desk", "rights") if name in words}
    settings = Settings(**{"context": "prod-eu", "user": "alice", **words})
    return Console(source or Stage(there), settings, **more)


@asynccontextmanager
async def shown(app: Console, keys: Sequence[str] = (), size=SMALL) -> AsyncIterator[Any]:
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        await pilot.pause()
        await press(pilot, *keys)
        yield pilot


async def press(pilot: Any, *keys: str) -> None:
    """Press keys one after the other, each when what the one before caused has settled."""
    for key in keys:
        await pilot.press(key)
        await pilot.pause()
    await pilot.pause()


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


def text_of(app: Console) -> str:
    return "\n".join(lines_of(app))
