"""Marks for states: glyph, word and colour role always together, so that none of them has to be trusted alone."""

from __future__ import annotations

from engine.record import record


@record
class Mark:
    """How a state looks: glyph, plain-ASCII glyph, and the role that themes give a colour."""

    glyph: str
    ascii: str
    role: str


MARKS = {
    "fail": Mark("✗", "x", "error"),
    "warn": Mark("!", "!", "warning"),
    "error": Mark("‼", "E", "error"),
    "pass": Mark("✓", "+", "success"),
    "skip": Mark("→", ">", "accent"),
    "pending": Mark("◷", "~", "warning"),
    "active": Mark("●", "*", "success"),
    "scheduled": Mark("◌", "o", "accent"),
    "expired": Mark("■", "-", "muted"),
    "revoked": Mark("⊘", "#", "muted"),
    "emergency": Mark("⚡", "$", "alarm"),
}
_SAME = {
    "ok": "pass", "ready": "pass", "approved": "pass", "confirmed": "pass", "used": "pass", "enforce": "active",
    "audit": "scheduled", "failed": "fail", "denied": "revoked", "withdrawn": "revoked", "dropped": "revoked",
    "void": "revoked", "timed-out": "expired", "idle-expired": "expired", "exhausted": "expired", "draft": "scheduled",
    "unused": "scheduled", "issued": "active", "open": "active", "due": "warn", "paused": "skip", "unknown": "warn",
    "critical": "error", "high": "fail", "medium": "warn", "low": "skip", "info": "scheduled", "blocked": "fail",
    "orphaned": "warn", "unlimited": "warn", "not persisted": "warn", "no": "fail", "yes": "pass",
}  # fmt: skip
_PLAIN = Mark("·", ".", "plain")


def mark_of(word: str) -> Mark:
    """Return the mark of a state; a plain dot for words that are none."""
    name = word.lower()
    return MARKS.get(name) or MARKS.get(_SAME.get(name, "")) or _PLAIN
