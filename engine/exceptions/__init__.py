"""Whether an exception covers a rule for an object at an instant, and what is wrong with exceptions as a whole."""

from __future__ import annotations

from .audit import Concern, Remark, audit_exceptions
from .cover import (
    EXPIRES_AT,
    CheckConditions,
    CompiledException,
    compile_exception,
    covers,
    expires_at,
)

__all__ = [
    "EXPIRES_AT",
    "CheckConditions",
    "CompiledException",
    "Concern",
    "Remark",
    "audit_exceptions",
    "compile_exception",
    "covers",
    "expires_at",
]
