"""Rules for pod controllers, computed from rules for Pods."""

from __future__ import annotations

from .controllers import ANNOTATION, reason_against
from .expand import expand, generated_rules

__all__ = ["ANNOTATION", "expand", "generated_rules", "reason_against"]
