"""What fields the classic kinds have, as tables: for parsing and for generating their CustomResourceDefinitions."""

from engine.vocabulary import PROPAGATIONS

from .conditions import ANY_ALL, ANY_ALL_CONDITIONS, CONTEXT, FAILURE_POLICY, NAMED_EXPRESSION
from .nodes import (
    FLAG,
    METADATA,
    TEXT,
    TEXTS,
    Flag,
    Free,
    Later,
    ListOf,
    MapOf,
    MapOrList,
    Node,
    Shape,
    Text,
    Whole,
    replaced,
)
from .rules import ACTION, ACTION_OVERRIDES, POD_SECURITY_EXCLUDE, RULE_V1, RULE_V2BETA1

__all__ = [
    "METADATA",
    "SPECS",
    "Flag",
    "Free",
    "Later",
    "ListOf",
    "MapOf",
    "MapOrList",
    "Node",
    "Shape",
    "Text",
    "Whole",
]


# The kinds this project serves under `kyverno.io`, each version with the shape of its spec (rows ).
#
# v2alpha1 of exceptions and cleanup policies is served although upstream removed it: older manifests use it.

POLICY_V1 = Shape(
    {
        "rules": ListOf(RULE_V1),
        "applyRules": Text(enum=("All", "One"), default="All"),
        "failurePolicy": FAILURE_POLICY,
        "validationFailureAction": ACTION,
        "validationFailureActionOverrides": ACTION_OVERRIDES,
        "emitWarning": Flag(default=False),
        "admission": Flag(default=True),
        "background": Flag(default=True),
        "schemaValidation": FLAG,
        "webhookTimeoutSeconds": Whole(),
        "mutateExistingOnPolicyUpdate": FLAG,
        "generateExistingOnPolicyUpdate": FLAG,
        "generateExisting": FLAG,
        "useServerSideApply": FLAG,
        "webhookConfiguration": Shape(
            {
                "failurePolicy": FAILURE_POLICY,
                "timeoutSeconds": Whole(),
                "matchConditions": ListOf(NAMED_EXPRESSION),
            }
        ),
    }
)

POLICY_V2BETA1 = replaced(POLICY_V1, rules=ListOf(RULE_V2BETA1))

EXCEPTION = Shape(
    {
        "background": Flag(default=True),
        "match": ANY_ALL,
        "conditions": ANY_ALL_CONDITIONS,
        "exceptions": ListOf(
            Shape({"policyName": TEXT, "ruleNames": TEXTS}, ("policyName", "ruleNames"))
        ),
        "podSecurity": ListOf(POD_SECURITY_EXCLUDE),
    },
    ("exceptions", "match"),
)

CLEANUP = Shape(
    {
        "schedule": TEXT,
        "match": ANY_ALL,
        "exclude": ANY_ALL,
        "context": CONTEXT,
        "conditions": ANY_ALL_CONDITIONS,
        "deletionPropagationPolicy": Text(enum=PROPAGATIONS),
    },
    ("match", "schedule"),
)

POLICY_SPECS = {"v1": POLICY_V1, "v2beta1": POLICY_V2BETA1}
CLEANUP_SPECS = dict.fromkeys(("v2", "v2beta1", "v2alpha1"), CLEANUP)

SPECS = {
    "ClusterPolicy": POLICY_SPECS,
    "Policy": POLICY_SPECS,
    "PolicyException": dict.fromkeys(("v2", "v2beta1", "v2alpha1"), EXCEPTION),
    "CleanupPolicy": CLEANUP_SPECS,
    "ClusterCleanupPolicy": CLEANUP_SPECS,
}
"""Spec shapes by kind and version; the first version of each kind is the one that is stored."""
