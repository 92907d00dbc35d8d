"""The garbage collector, kept off while much is loaded: modules at the start of a command, documents in it, long lists from a server.

A module of its own so that it can be imported before anything large is.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_settled: list[tuple[int, ...]] = []
"""With which thresholds this process was settled. To ask the collector whether it was takes it a look at everything that was."""


def settle(*thresholds: int) -> None:
    """Take everything that is there by now out of collection for good, and collect by `thresholds` from now on."""
    gc.freeze()
    gc.set_threshold(*thresholds)
    _settled.append(thresholds)


@contextmanager
def collector_off() -> Iterator[None]:
    """Keep the collector off within the block: nothing that is loaded is garbage, and a tenth of the time is saved.

    What the block made counts as old after it, so that the collector does not look through it at once, often when a command is done.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not _settled:
                gc.freeze()
                gc.unfreeze()
            gc.enable()
