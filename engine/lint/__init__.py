"""Policy, exception and cleanup policy checks that need no cluster: what admission refuses and what it warns of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .findings import Finding
from .policies import lint_policy

if TYPE_CHECKING:
    from .celpolicies import lint_binding, lint_cel_exception, lint_cel_policy
    from .cleanup import lint_cleanup
    from .context import lint_entry
    from .exceptions import lint_exception

__all__ = [
    "Finding",
    "lint_binding",
    "lint_cel_exception",
    "lint_cel_policy",
    "lint_cleanup",
    "lint_entry",
    "lint_exception",
    "lint_policy",
]
_OF_CEL = ("lint_binding", "lint_cel_exception", "lint_cel_policy")


def __getattr__(name: str) -> Any:
    """Load the checks of exceptions and cleanup policies when first asked for, to keep commands quick to start."""
    if name == "lint_cleanup":
        from .cleanup import lint_cleanup

        return lint_cleanup
    if name == "lint_entry":
        from .context import lint_entry

        return lint_entry
    if name == "lint_exception":
        from .exceptions import lint_exception

        return lint_exception
    if name in _OF_CEL:
        from . import celpolicies

        return getattr(celpolicies, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
