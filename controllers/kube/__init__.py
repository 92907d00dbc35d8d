"""The only code that calls an API server, and the kit of controllers on top of it.

`load_access` and `connect` make a Client from a kubeconfig or from inside a cluster. The HTTP part is imported when a
connection is made, so that knowing about kinds and errors costs nothing.
"""

from __future__ import annotations

from .access import Access, connect, load_access
from .client import APPLY, JSON_PATCH, MERGE, STRATEGIC, Client, Event, ListPage
from .clock import Clock, ManualClock, SystemClock
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
from .kinds import Discovery, Kind

__all__ = [
    "APPLY",
    "JSON_PATCH",
    "MERGE",
    "STRATEGIC",
    "Access",
    "AccessError",
    "AlreadyExists",
    "Client",
    "Clock",
    "Conflict",
    "Discovery",
    "Event",
    "Forbidden",
    "Gone",
    "Invalid",
    "Kind",
    "KubeError",
    "ListPage",
    "ManualClock",
    "NotFound",
    "SystemClock",
    "TooManyRequests",
    "Unauthorized",
    "Unreachable",
    "connect",
    "load_access",
]
