"""Native admission policies: those that we have the API server judge by in place of ours, and what reports say of them."""

from .making import NativePolicies
from .reported import ReportedNatives
from .states import NativeStates

__all__ = ["NativePolicies", "NativeStates", "ReportedNatives"]
