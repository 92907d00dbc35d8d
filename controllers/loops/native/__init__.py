"""Native admission policies: those that we have the API server judge by in place of ours, and what reports say of them."""

from .making import NativePolicies, NativeStates
from .reported import ReportedNatives

__all__ = ["NativePolicies", "NativeStates", "ReportedNatives"]
