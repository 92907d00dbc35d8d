"""What fields the classic kinds have, as tables: for parsing and for generating their CustomResourceDefinitions."""

from __future__ import annotations

from .kinds import SPECS
from .nodes import METADATA, Flag, Free, Later, ListOf, MapOf, MapOrList, Node, Shape, Text, Whole

__all__ = [
    "METADATA",
    "SPECS",
    "Flag",
    "Free",
    "Later",
    "ListOf",
    "MapOf",
    "MapOrList",
    "Node",
    "Shape",
    "Text",
    "Whole",
]
