"""Kyverno's pattern language: a pattern is compiled once and then checked against many objects."""

from .anchors import Anchor, parse_key
from .compiled import CompiledPattern, compile_pattern, compile_rendered, resolve_references
from .mismatches import Miss
from .operand import range_ends

__all__ = [
    "Anchor",
    "CompiledPattern",
    "Miss",
    "compile_pattern",
    "compile_rendered",
    "parse_key",
    "range_ends",
    "resolve_references",
]
