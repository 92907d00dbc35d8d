"""The types that match blocks must have, asked for where a block is compiled.

Parsing has refused wrong types with line numbers already; this is the second lock, for blocks that reach a matcher by
another way. A filter of the wrong type must never count as an absent filter, because that would widen a match.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.model import Json


def mapping(value: Json, name: str) -> Mapping[str, Json]:
    """Return a map, empty for None; raises PolicyError for anything else."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise PolicyError(f"`{name}` must be a map")
    return value


def sequence(value: Json, name: str) -> list[Json]:
    """Return a list, empty for None; raises PolicyError for anything else."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise PolicyError(f"`{name}` must be a list")
    return value


def text(value: Json, name: str) -> str:
    """Return a string, empty for None; raises PolicyError for anything else."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise PolicyError(f"`{name}` must be a string")
    return value


def texts(value: Json, name: str) -> tuple[str, ...]:
    """Return a list of strings, empty for None; raises PolicyError for anything else."""
    return tuple(text(item, name) for item in sequence(value, name))
