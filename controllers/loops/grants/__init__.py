"""Keeps grants: their state, the exceptions that they cause and that end with them, and the audit trail of both."""

from __future__ import annotations

from .keeping import GrantLoop

__all__ = ["GrantLoop"]
