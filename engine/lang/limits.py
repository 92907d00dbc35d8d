"""Bounds on what is read at all; shared by the YAML and the JSON reader."""

from __future__ import annotations

from engine.record import record


@record
class Limits:
    """How large, how deep and how far expanded a text may be before it is refused."""

    size: int = 16 * 1024 * 1024
    """Characters (or bytes) of one text: more than the API server accepts, less than would hurt."""

    depth: int = 200
    """Levels of lists and mappings. Real objects stay below 60; everything behind the reader may recurse that far safely."""

    expansion: int = 200_000
    """Values that aliases may add to a text: generous for people, and read in a fraction of a second."""


LIMITS = Limits()
