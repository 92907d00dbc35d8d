"""Starting a loop when the server has the kinds that it works on: people may install ours later, or never."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from controllers.kube.kinds import Kind
    from controllers.loops.context import LoopContext

PAUSE: Final = 5.0
"""Seconds between two looks at what the server has, which is known without asking it."""


def once_served(
    context: LoopContext,
    kinds: tuple[Kind, ...],
    run: Callable[[], Coroutine[None, None, None]],
) -> Callable[[], Coroutine[None, None, None]]:
    """Return `run`, put off until the server has all of `kinds`."""

    async def later() -> None:
        discovery = context.cache.discovery
        while not all(discovery.find(kind.api_version, kind.kind) for kind in kinds):
            await context.clock.sleep(PAUSE)
        await run()

    return later
