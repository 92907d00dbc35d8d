"""Instants as Kubernetes writes them: RFC 3339, in and out; the one reader and the one form.

A text without a zone names no instant, whoever wrote it: read as UTC it would end an exception at another hour than its
author meant, read as local time it would decide differently on each machine. Kyverno's functions on time read by layouts
of Go, where a zone may be missing (`golayout`), and TTL labels have forms of their own (`engine.cleanup.ttl`).
"""

from __future__ import annotations

from datetime import UTC, datetime


def read(text: object) -> datetime | None:
    """Return the instant that a text names, in UTC; None for what is no text, no instant, or has no zone."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else None
    except (ValueError, OverflowError):
        return None


def write(at: datetime) -> str:
    """Return an aware instant to the second, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
