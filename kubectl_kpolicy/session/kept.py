"""What the console keeps on this computer between sittings: columns by screen, and what was there when it was closed."""

from __future__ import annotations

import hashlib
import os
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def columns_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the file they are kept in."""
    base = environment.get("XDG_STATE_HOME") or f"{environment.get('HOME', '.')}/.local/state"
    return Path(base) / "kpolicy" / "columns.json"


def load_columns(environment: Mapping[str, str] = os.environ) -> dict[str, tuple[str, ...]]:
    """Return ids of columns by screen, or by `view NAME`; nothing where nothing can be read."""
    try:
        found = orjson.loads(columns_path(environment).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {name: tuple(map(str, ids)) for name, ids in found.items() if isinstance(ids, list)}


def save_columns(
    columns: Mapping[str, Sequence[str]], environment: Mapping[str, str] = os.environ
) -> bool:
    """Keep them; tell whether that was possible."""
    path = columns_path(environment)
    kept = {name: list(ids) for name, ids in columns.items() if ids}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(orjson.dumps(kept, option=orjson.OPT_INDENT_2))
    except OSError:
        return False
    return True


# Lines that were given after `:`, for the next sitting. They hold names of objects and people, so nobody else may read them.


def lines_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the file they are kept in."""
    return columns_path(environment).with_name("lines.json")


def load_lines(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the lines; none where nothing can be read."""
    try:
        found = orjson.loads(lines_path(environment).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return []
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def save_lines(lines: Sequence[str], environment: Mapping[str, str] = os.environ) -> None:
    """Keep the lines; a place that cannot be written to is no reason to complain at the end."""
    path = lines_path(environment)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_bytes(orjson.dumps(list(lines)))
    except OSError:
        return


# What was there when the console was closed last, by context, so that it can say what is new. Only keys of rows are kept.

_MOST = 200_000


def seen_path(context: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the file for a context."""
    base = environment.get("XDG_STATE_HOME") or f"{environment.get('HOME', '.')}/.local/state"
    name = hashlib.sha256(context.encode()).hexdigest()[:16]
    return Path(base) / "kpolicy" / f"seen-{name}.json"


def load_seen(context: str, environment: Mapping[str, str] = os.environ) -> frozenset[str] | None:
    """Return the keys that were there; None at the first visit, or where the file cannot be read."""
    try:
        found = orjson.loads(seen_path(context, environment).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    return frozenset(map(str, found)) if isinstance(found, list) else None


def save_seen(
    context: str, keys: Iterable[str], environment: Mapping[str, str] = os.environ
) -> None:
    """Keep the keys of the rows that are there; a place that cannot be written to is no reason to complain at the end."""
    path = seen_path(context, environment)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(orjson.dumps(list(islice(keys, _MOST))))
        path.chmod(0o600)
    except OSError:
        return
