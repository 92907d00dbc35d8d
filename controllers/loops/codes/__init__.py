"""Keeps one-time codes: what became of each use, the state of codes that people issued, and the audit trail of both."""

from __future__ import annotations

from .confirming import CodeLoop

__all__ = ["CodeLoop"]
