"""Anchors: the marks around a pattern's key that say when the key counts (rows P-01 to P-06)."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.model import Json


class Anchor(Enum):
    """The mark of a key; `NONE` is an ordinary key."""

    NONE = ""
    CONDITION = "()"
    GLOBAL = "<"
    EQUALITY = "="
    NEGATION = "X"
    EXISTENCE = "^"
    ADDITION = "+"


_SIGNS = {"": Anchor.CONDITION, **{one.value: one for one in Anchor if len(one.value) == 1}}


def parse_key(key: str) -> tuple[Anchor, str]:
    """Split a pattern's key into its anchor and the bare key. Spaces inside the brackets belong to the key."""
    if key[-1:] != ")":
        return Anchor.NONE, key
    sign, bracket, rest = key[:-1].partition("(")
    if not bracket or not rest or sign not in _SIGNS or "\n" in rest:
        return Anchor.NONE, key
    return _SIGNS[sign], rest


def holds_anchor(pattern: Json) -> bool:
    """Tell whether an anchor stands anywhere inside a pattern; such parts are tested before their siblings (P-07)."""
    if isinstance(pattern, dict):
        return any(
            parse_key(key)[0] is not Anchor.NONE or holds_anchor(value)
            for key, value in pattern.items()
        )
    return isinstance(pattern, list) and any(holds_anchor(item) for item in pattern)
