"""Everything a running sandbox is made of, in one place that is handed around: store, kinds, clock, rights, webhooks, keys."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from .clock import Clock
from .kinds import Registry, Resource
from .privacy import DATABASE
from .store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from .expressions import Expressions

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


class Admission(Protocol):
    """What admits an object beside the built-in checks: native policies and webhooks. A call and its subject are theirs to know."""

    async def mutate(self, call: Any, subject: Any) -> Any:
        """Return the object as it is admitted. ApiError for a denial."""

    async def validate(self, call: Any, subject: Any) -> None:
        """Judge the object. ApiError for a denial."""

    async def close(self) -> None:
        """Close open connections."""


@dataclass(slots=True)
class Cluster:
    """A running sandbox."""

    store: Store
    registry: Registry
    clock: Clock
    admission: Admission
    token_key: bytes
    services: dict[str, str] = field(default_factory=dict)
    authority: str = ""
    expressions: Expressions | None = None

    def resource(self, group: str, plural: str) -> Resource:
        """Return a resource that is always there."""
        found = self.registry.any_version(group, plural)
        assert found is not None, f"{plural}.{group} is a built-in kind"
        return found


def open_cluster(
    folder: Path | None, admission: Admission, expressions: Expressions | None = None
) -> Cluster:
    """Open the store in a folder (None: in memory) and everything above it, with an implementation of CEL or none."""
    store = Store(folder / DATABASE if folder else None)
    offset = timedelta(seconds=float(store.fact("clock-offset") or 0))
    key = store.fact("token-key")
    if key is None:
        key = secrets.token_hex(32)
        store.set_fact("token-key", key)
    return Cluster(
        store, Registry(), Clock(offset), admission, bytes.fromhex(key), expressions=expressions
    )


def suffix(size: int = 5) -> str:
    """Return random letters as generated names end with."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(size))
