"""What the console keeps on this computer between sittings: columns by screen, and what was there when it was closed.

Files of JSON in the user's state. They hold names of objects and people, so nobody else may read them.
"""

from __future__ import annotations

import hashlib
import os
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_MOST = 200_000


def _path(name: str, environment: Mapping[str, str]) -> Path:
    base = environment.get("XDG_STATE_HOME") or f"{environment.get('HOME', '.')}/.local/state"
    return Path(base) / "kpolicy" / name


def path_of_context(what: str, context: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the file that keeps something about a context."""
    name = hashlib.sha256(context.encode()).hexdigest()[:16]
    return _path(f"{what}-{name}.json", environment)


def read_kept(path: Path) -> Any:
    """Return what a file holds, None where it cannot be read."""
    try:
        return orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None


def keep(path: Path, value: object) -> bool:
    """Write a file; tell whether that was possible: where it is not, that is no reason to complain at the end."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.chmod(0o600)
        path.write_bytes(orjson.dumps(value))
    except OSError:
        return False
    return True


def columns_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the file of the columns."""
    return _path("columns.json", environment)


def load_columns(environment: Mapping[str, str] = os.environ) -> dict[str, tuple[str, ...]]:
    """Return ids of columns by screen, or by `view NAME`; nothing where nothing can be read."""
    found = read_kept(columns_path(environment))
    if not isinstance(found, dict):
        return {}
    return {name: tuple(map(str, ids)) for name, ids in found.items() if isinstance(ids, list)}


def save_columns(
    columns: Mapping[str, Sequence[str]], environment: Mapping[str, str] = os.environ
) -> bool:
    """Keep columns; tell whether that was possible."""
    kept = {name: list(ids) for name, ids in columns.items() if ids}
    return keep(columns_path(environment), kept)


def lines_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the file of the lines that were given after `:`."""
    return _path("lines.json", environment)


def load_lines(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the lines of earlier sittings; none where nothing can be read."""
    found = read_kept(lines_path(environment))
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def save_lines(lines: Sequence[str], environment: Mapping[str, str] = os.environ) -> None:
    """Keep the lines for the next sitting."""
    keep(lines_path(environment), list(lines))


def load_seen(context: str) -> frozenset[str] | None:
    """Return the keys of rows that were there last; None at the first visit, or where the file cannot be read."""
    found = read_kept(path_of_context("seen", context))
    return frozenset(map(str, found)) if isinstance(found, list) else None


def save_seen(context: str, keys: Iterable[str]) -> None:
    """Keep the keys of the rows that are there, so that the next sitting can say what is new."""
    keep(path_of_context("seen", context), list(islice(keys, _MOST)))
