"""Kyverno's pattern language: a pattern is compiled once and then checked against many objects."""

from .anchors import Anchor, parse_key
from .compiled import (
    CompiledPattern,
    check_depth,
    compile_pattern,
    compile_rendered,
    resolve_references,
)
from .mismatches import Miss
from .operand import range_ends
from .scalar import compile_scalar

__all__ = [
    "Anchor",
    "CompiledPattern",
    "Miss",
    "check_depth",
    "compile_pattern",
    "compile_rendered",
    "compile_scalar",
    "parse_key",
    "range_ends",
    "resolve_references",
]
