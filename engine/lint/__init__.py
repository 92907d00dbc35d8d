"""Policy, exception and cleanup policy checks that need no cluster: what admission refuses and what it warns of."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .findings import Finding
from .policies import lint_policy

if TYPE_CHECKING:
    from .celpolicies import lint_binding, lint_cel_exception, lint_cel_policy
    from .cleanup import lint_cleanup, lint_exception
    from .context import lint_entry

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
_LATER = {
    "lint_binding": "celpolicies",
    "lint_cel_exception": "celpolicies",
    "lint_cel_policy": "celpolicies",
    "lint_cleanup": "cleanup",
    "lint_entry": "context",
    "lint_exception": "cleanup",
}
"""Names and their modules, loaded when first asked for, to keep commands quick to start."""


def __getattr__(name: str) -> Any:
    """Load one of the names in `_LATER`."""
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{module}", __name__), name)
