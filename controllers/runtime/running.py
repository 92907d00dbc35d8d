"""The life of a program of the cluster's side: served until SIGTERM or SIGINT, with one line where it cannot start."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import TYPE_CHECKING, Any

from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine


def run_until_stopped(serve: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> int:
    """Run what serves until the event it is given is set, by a signal; return the exit code.

    That is 1, with one line on standard error and help where there is some, for EngineError and OSError.
    """
    try:
        asyncio.run(_told_to_stop(serve))
    except EngineError as error:
        print(f"error: {error.message}", file=sys.stderr)
        if error.help:
            print(f"help: {error.help}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


async def _told_to_stop(serve: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    await serve(stop)


async def ended(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended, whatever they raise."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
