"""The kinds whose policies are written in CEL: `policies.kyverno.io` (rows L-01, X-20) and Kubernetes' own.

Apart from `kinds` because most commands never meet them: the table is loaded with the first such document.
"""

from __future__ import annotations

from .matching import SELECTOR
from .nodes import FLAG, TEXT, TEXT_MAP, TEXTS, ListOf, Node, Shape, Text, Whole

KYVERNO = "policies.kyverno.io"
KUBERNETES = "admissionregistration.k8s.io"

_FAILURE_POLICY = Text(enum=("Fail", "Ignore"), default="Fail")
_ACTIONS = ListOf(Text(enum=("Deny", "Audit", "Warn")))
_NAMED = ListOf(Shape({"name": TEXT, "expression": TEXT}, ("name", "expression")))
_EXPRESSION = Shape({"expression": TEXT})
_ENABLED = Shape({"enabled": FLAG})
_AUDIT = ListOf(Shape({"key": TEXT, "valueExpression": TEXT}, ("key", "valueExpression")))

_RESOURCE_RULE = Shape(
    {
        "apiGroups": TEXTS,
        "apiVersions": TEXTS,
        "operations": ListOf(Text(enum=("*", "CREATE", "UPDATE", "DELETE", "CONNECT"))),
        "resources": TEXTS,
        "resourceNames": TEXTS,
        "scope": Text(enum=("*", "Cluster", "Namespaced"), default="*"),
    }
)

_MATCH = Shape(
    {
        "resourceRules": ListOf(_RESOURCE_RULE),
        "excludeResourceRules": ListOf(_RESOURCE_RULE),
        "namespaceSelector": SELECTOR,
        "objectSelector": SELECTOR,
        "matchPolicy": Text(enum=("Equivalent", "Exact"), default="Equivalent"),
    }
)

_VALIDATIONS = ListOf(
    Shape(
        {"expression": TEXT, "message": TEXT, "messageExpression": TEXT, "reason": TEXT},
        ("expression",),
    )
)

_COMMON: dict[str, Node] = {
    "matchConstraints": _MATCH,
    "matchConditions": _NAMED,
    "variables": _NAMED,
    "failurePolicy": _FAILURE_POLICY,
}

VALIDATING = Shape(
    {
        **_COMMON,
        "validations": _VALIDATIONS,
        "validationActions": _ACTIONS,
        "auditAnnotations": _AUDIT,
        "autogen": Shape(
            {
                "podControllers": Shape({"controllers": TEXTS}),
                "validatingAdmissionPolicy": _ENABLED,
            }
        ),
        "evaluation": Shape(
            {
                "mode": Text(enum=("Kubernetes", "JSON", "HTTP", "Envoy"), default="Kubernetes"),
                "admission": _ENABLED,
                "background": _ENABLED,
            }
        ),
        "webhookConfiguration": Shape({"timeoutSeconds": Whole()}),
    }
)

EXCEPTION = Shape(
    {
        "policyRefs": ListOf(Shape({"name": TEXT, "kind": TEXT}, ("name", "kind"))),
        "matchConditions": _NAMED,
        "images": TEXTS,
        "allowedValues": TEXTS,
        "reportResult": Text(enum=("skip", "pass"), default="skip"),
        "evaluationMode": TEXT,
        "expiresAt": TEXT,
        "properties": TEXT_MAP,
    },
    ("policyRefs",),
)

_PARAM_KIND = Shape({"apiVersion": TEXT, "kind": TEXT})
_BINDING: dict[str, Node] = {
    "policyName": TEXT,
    "matchResources": _MATCH,
    "paramRef": Shape(
        {
            "name": TEXT,
            "namespace": TEXT,
            "selector": SELECTOR,
            "parameterNotFoundAction": Text(enum=("Allow", "Deny")),
        }
    ),
}

ADMISSION = Shape(
    {
        **_COMMON,
        "paramKind": _PARAM_KIND,
        "validations": _VALIDATIONS,
        "auditAnnotations": _AUDIT,
    }
)
ADMISSION_BINDING = Shape({**_BINDING, "validationActions": _ACTIONS}, ("policyName",))

MUTATING_ADMISSION = Shape(
    {
        **_COMMON,
        "paramKind": _PARAM_KIND,
        "reinvocationPolicy": Text(enum=("Never", "IfNeeded")),
        "mutations": ListOf(
            Shape(
                {
                    "patchType": Text(enum=("ApplyConfiguration", "JSONPatch")),
                    "applyConfiguration": _EXPRESSION,
                    "jsonPatch": _EXPRESSION,
                },
                ("patchType",),
            )
        ),
    }
)
MUTATING_BINDING = Shape(_BINDING, ("policyName",))

_KYVERNO_VERSIONS = ("v1beta1", "v1", "v1alpha1")
_KUBERNETES_VERSIONS = ("v1", "v1beta1", "v1alpha1")

CEL_SPECS = {
    KYVERNO: {
        "ValidatingPolicy": dict.fromkeys(_KYVERNO_VERSIONS, VALIDATING),
        "NamespacedValidatingPolicy": dict.fromkeys(_KYVERNO_VERSIONS, VALIDATING),
        "PolicyException": dict.fromkeys(_KYVERNO_VERSIONS, EXCEPTION),
    },
    KUBERNETES: {
        "ValidatingAdmissionPolicy": dict.fromkeys(_KUBERNETES_VERSIONS, ADMISSION),
        "ValidatingAdmissionPolicyBinding": dict.fromkeys(_KUBERNETES_VERSIONS, ADMISSION_BINDING),
        "MutatingAdmissionPolicy": dict.fromkeys(_KUBERNETES_VERSIONS, MUTATING_ADMISSION),
        "MutatingAdmissionPolicyBinding": dict.fromkeys(_KUBERNETES_VERSIONS, MUTATING_BINDING),
    },
}
"""Spec shapes by group, kind and version; the first version of each kind is the one that is stored."""
