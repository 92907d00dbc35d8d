"""Which columns somebody wants to see, by screen and by saved view, kept between sittings on this computer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


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
