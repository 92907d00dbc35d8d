"""Policy, exception and cleanup policy checks that need no cluster: what admission refuses and what it warns of."""

from __future__ import annotations

from .cleanup import lint_cleanup
from .exceptions import lint_exception
from .findings import Finding
from .policies import lint_policy

__all__ = ["Finding", "lint_cleanup", "lint_exception", "lint_policy"]
