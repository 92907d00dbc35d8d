"""Kyverno's pattern language: a pattern is compiled once and then checked against many objects."""

from __future__ import annotations

from .anchors import Anchor, holds_anchor, parse_key
from .compiled import CompiledPattern, compile_pattern, compile_rendered
from .fault import Miss
from .operand import range_ends
from .references import check_references, resolve_references
from .scalar import compile_scalar, match_scalar
from .shape import check_anchors, check_depth

__all__ = [
    "Anchor",
    "CompiledPattern",
    "Miss",
    "check_anchors",
    "check_depth",
    "check_references",
    "compile_pattern",
    "compile_rendered",
    "compile_scalar",
    "holds_anchor",
    "match_scalar",
    "parse_key",
    "range_ends",
    "resolve_references",
]
