"""Figures of the loops' own work under upstream's names: how often something was looked at, and had to be again (row W-40)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

    from controllers.kube.workqueue import WorkQueue
    from controllers.runtime.metrics import Metrics

K = TypeVar("K", bound="Hashable")


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
