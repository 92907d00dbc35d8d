"""What loops share: hearing of changes for as long as they run, working on keys, and logging what failed.

Each round is counted under upstream's names: how often something was looked at, and had to be again (row W-40).
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final, TypeVar

from controllers.kube.reflector import Selection
from engine.errors import EngineError

if TYPE_CHECKING:
    import logging
    from collections.abc import Awaitable, Callable, Hashable

    from controllers.kube import Kind
    from controllers.kube.reflector import Informers
    from controllers.kube.store import Change, Store
    from controllers.kube.workqueue import WorkQueue
    from controllers.runtime.metrics import Metrics
    from engine.model import Object

K = TypeVar("K", bound="Hashable")
L = TypeVar("L")
LONGEST_SLEEP: Final = 30.0
"""Seconds until a due instant is compared with the clock again, which may have been set."""
_EVERYTHING: Final = Selection()


class Following(AsyncExitStack):
    """What a loop hears of until it leaves the `async with` block."""

    def __init__(self, informers: Informers) -> None:
        super().__init__()
        self._informers = informers

    def kind(
        self,
        kind: Kind,
        listener: Callable[[Change], None],
        selection: Selection = _EVERYTHING,
        *,
        reduce: Callable[[Object], Object] | None = None,
        replay: bool = True,
    ) -> Store:
        """Return the store of a kind, of whose changes the listener is told, first (with `replay`) of what is there."""
        store = self._informers.acquire(kind, selection, reduce=reduce)
        self.push_async_callback(self._informers.release, kind, selection)
        self.callback(store.on_change(listener, replay=replay))
        return store

    def listen(self, listeners: list[L], listener: L) -> None:
        """Be one of the listeners of somebody else."""
        listeners.append(listener)
        self.callback(listeners.remove, listener)


def queued(queue: WorkQueue[tuple[Kind, str, str]], kind: Kind) -> Callable[[Change], None]:
    """Return the listener that queues what comes of a kind, and what changes."""

    def changed(change: Change) -> None:
        if change.new is not None:
            queue.add((kind, *change.key))

    return changed


def counted(
    metrics: Metrics, name: str, queue: WorkQueue[K], work: Callable[[K], Awaitable[None]]
) -> Callable[[K], Awaitable[None]]:
    """Return the work of a loop with each round, and each failure, counted under the loop's name."""

    async def run(key: K) -> None:
        metrics.count("kyverno_controller_reconcile", (name,))
        try:
            await work(key)
        except Exception:
            tries = str(min(queue.failures(key) + 1, 10))
            metrics.count("kyverno_controller_requeue", (name, tries))
            raise

    return run


def logged(log: logging.Logger, text_of: Callable[[Any], str]) -> Callable[[Any, Exception], None]:
    """Return what logs that work on a key failed: our own errors by their message, anything else with its traceback."""

    def failed(key: Any, error: Exception) -> None:
        if isinstance(error, EngineError):
            log.warning("%s: %s", text_of(key), error.message)
        else:
            log.error("%s", text_of(key), exc_info=error)

    return failed
