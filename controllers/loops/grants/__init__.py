"""Keeps grants: their state, the exceptions that they cause and that end with them, and the audit trail of both."""

from .reconciler import GrantReconciler

__all__ = ["GrantReconciler"]
