"""The only code that calls an API server, and the kit of controllers on top of it.

Reaching a server: `load_access` reads a kubeconfig or a Pod's service account, `connect` makes a Client of it (`client`:
raw dicts in and out, by `http`), `kinds` has the kinds with their addresses, `discovery` those of a server, `errors` all that may be raised.
The HTTP part is imported when a connection is made, so that knowing about kinds and errors costs nothing.

The kit: `store.Store` holds objects of a kind with indexes, `reflector.Reflector` keeps it equal to the server,
`reflector.Informers` shares both among everybody who wants the same kind; `workqueue.WorkQueue` hands out keys, each to one
worker, with growing pauses after failures; `lease.Election` lets one replica lead; `events.Recorder` writes Events;
`clock.Clock` is where all of them have time from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .access import Access, load_access
from .client import APPLY, JSON_PATCH, Client, find, retried
from .clock import Clock, SystemClock
from .discovery import Discovery
from .errors import (
    AccessError,
    AlreadyExists,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from .kinds import Kind

if TYPE_CHECKING:
    from .http import HttpClient

__all__ = [
    "APPLY",
    "JSON_PATCH",
    "Access",
    "AccessError",
    "AlreadyExists",
    "Client",
    "Clock",
    "Conflict",
    "Discovery",
    "Forbidden",
    "Gone",
    "Invalid",
    "Kind",
    "KubeError",
    "NotFound",
    "SystemClock",
    "TooManyRequests",
    "Unauthorized",
    "Unreachable",
    "connect",
    "find",
    "load_access",
    "retried",
]


def connect(access: Access, *, clock: Clock | None = None) -> HttpClient:
    """Return a client; it connects with its first request, and belongs to the running event loop."""
    from .http import HttpClient

    return HttpClient(access, clock=clock)
