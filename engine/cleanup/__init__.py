"""When objects are due for deletion: by their own TTL label, and by cleanup policies with their schedules."""

from __future__ import annotations

from .plan import Cleanup, Decision, Plan, compile_cleanup, plan
from .schedule import moment_after, next_after, parse_schedule, previous
from .ttl import PROPAGATION_ANNOTATION, TTL_LABEL, due_at, propagation, warning

__all__ = [
    "PROPAGATION_ANNOTATION",
    "TTL_LABEL",
    "Cleanup",
    "Decision",
    "Plan",
    "compile_cleanup",
    "due_at",
    "moment_after",
    "next_after",
    "parse_schedule",
    "plan",
    "previous",
    "propagation",
    "warning",
]
