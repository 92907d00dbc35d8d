"""What happens beside requests: generation, mutation of existing objects, reports, Events, clean-ups, status of policies.

`start` is the one way in (see `controllers.runtime`): every process gets the sink and the queues behind it, and whoever leads
runs the loops that act on the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from controllers.runtime.process import Loops, Runtime


def start(runtime: Runtime) -> Loops:
    """Return the loops of a process; nothing runs before its `run` and `lead` do."""
    from .process import ProcessLoops

    return ProcessLoops(runtime)
