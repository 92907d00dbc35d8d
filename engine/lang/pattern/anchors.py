"""Anchors: the marks around a pattern's key that say when the key counts (rows P-01 to P-06)."""

from __future__ import annotations

import re
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


_KEY = re.compile(r"([+<=X^])?\((.+)\)")


def parse_key(key: str) -> tuple[Anchor, str]:
    """Split a pattern's key into its anchor and the bare key. Spaces inside the brackets belong to the key."""
    if key[-1:] != ")":
        return Anchor.NONE, key
    found = _KEY.fullmatch(key)
    if found is None:
        return Anchor.NONE, key
    return Anchor(found[1] or "()"), found[2]


def holds_anchor(pattern: Json) -> bool:
    """Tell whether an anchor stands anywhere inside a pattern; such parts are tested before their siblings (P-07)."""
    if isinstance(pattern, dict):
        return any(
            parse_key(key)[0] is not Anchor.NONE or holds_anchor(value)
            for key, value in pattern.items()
        )
    return isinstance(pattern, list) and any(holds_anchor(item) for item in pattern)
