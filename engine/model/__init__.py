"""Frozen values that everything else in the engine speaks in."""

from .json import Block, Json, Object
from .policy import ActionOverride, CleanupPolicy, Policy, PolicyException, PolicyReference, Rule
from .result import Forgiven, Outcome, RuleResult, RuleType, Status, Target
from .review import NOBODY, Review, UserInfo, review_of

__all__ = [
    "NOBODY",
    "ActionOverride",
    "Block",
    "CleanupPolicy",
    "Forgiven",
    "Json",
    "Object",
    "Outcome",
    "Policy",
    "PolicyException",
    "PolicyReference",
    "Review",
    "Rule",
    "RuleResult",
    "RuleType",
    "Status",
    "Target",
    "UserInfo",
    "review_of",
]
