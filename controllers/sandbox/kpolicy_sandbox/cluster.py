"""Everything a running sandbox is made of, in one place that is handed around: store, kinds, clock, rights, webhooks, keys."""

from __future__ import annotations

import os
import secrets
import stat
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from .clock import Clock
from .kinds import Registry, Resource
from .store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from .expressions import Expressions

DATABASE = "sandbox.db"
_OTHERS = 0o077
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


def make_private(folder: Path) -> list[str]:
    """Make a sandbox's folder and its database private, the database with what SQLite writes beside it.

    Return the names of those that others could open before. A folder that is everybody's by its sticky bit, as `/tmp`, is left as it is.
    Raises OSError where the files are not ours.
    """
    places = [place for place in folder.glob(f"{DATABASE}*") if place.is_file()]
    is_own = not folder.stat().st_mode & stat.S_ISVTX
    wide = [
        place for place in ([folder] if is_own else []) + places if place.stat().st_mode & _OTHERS
    ]
    for place in wide:
        place.chmod(place.stat().st_mode & ~_OTHERS & 0o777)
    database = folder / DATABASE
    # SQLite gives what it writes beside a database the rights of the database.
    os.close(os.open(database, os.O_RDWR | os.O_CREAT, 0o600))
    return [place.name for place in wide]


def write_private(place: Path, content: bytes) -> None:
    """Write a file that only its owner may read, never readable by others in between."""
    fresh = place.with_name(place.name + ".new")
    fresh.unlink(missing_ok=True)
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    fresh.replace(place)
