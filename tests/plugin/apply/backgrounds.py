"""Servers for commands that run in the foreground: each on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractAsyncContextManager


@contextmanager
def in_background(manager: AbstractAsyncContextManager[Any]) -> Iterator[Any]:
    """Enter an asynchronous context manager in a thread, give what it gives, and leave it at the end."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        given = asyncio.run_coroutine_threadsafe(manager.__aenter__(), loop).result(40)
        try:
            yield given
        finally:
            leaving = manager.__aexit__(None, None, None)
            asyncio.run_coroutine_threadsafe(leaving, loop).result(40)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(40)
        loop.close()
