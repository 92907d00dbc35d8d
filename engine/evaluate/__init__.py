"""Policies against objects: compile once with `PolicySet.compile`, then `evaluate` each review.

This is the face of the engine for everybody above it.
"""

from .inputs import Inputs, dotted_path
from .lookups import (
    Answer,
    ApiCallLookup,
    ConfigMapLookup,
    GlobalLookup,
    HostLookup,
    ImageLookup,
    ListLookup,
    Lookup,
    ObjectLookup,
    ServiceLookup,
    SignatureLookup,
    TrustLookup,
)
from .policy_set import PolicySet, Problem, compile_policy
from .rules import CompiledPolicy
from .run import Evaluation, evaluate
from .state import Step, Trace

__all__ = [
    "Answer",
    "ApiCallLookup",
    "CompiledPolicy",
    "ConfigMapLookup",
    "Evaluation",
    "GlobalLookup",
    "HostLookup",
    "ImageLookup",
    "Inputs",
    "ListLookup",
    "Lookup",
    "ObjectLookup",
    "PolicySet",
    "Problem",
    "ServiceLookup",
    "SignatureLookup",
    "Step",
    "Trace",
    "TrustLookup",
    "compile_policy",
    "dotted_path",
    "evaluate",
]
