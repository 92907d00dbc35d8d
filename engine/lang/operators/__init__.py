"""Condition operators of preconditions, deny rules and cleanup policies (rows A-95 to A-99)."""

from __future__ import annotations

from .compiled import OPERATORS, compile_condition

__all__ = ["OPERATORS", "compile_condition"]
