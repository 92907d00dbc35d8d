"""The kinds whose policies are written in CEL: `policies.kyverno.io` (rows L-01, X-20) and Kubernetes' own.

Apart from `kinds` because most commands never meet them: the table is loaded with the first such document.
"""

from __future__ import annotations

from engine.vocabulary import PROPAGATIONS

from . import conditions
from .nodes import FLAG, TEXT, TEXT_MAP, TEXTS, Flag, ListOf, Node, Shape, Text, Whole, replaced

KYVERNO = "policies.kyverno.io"
KUBERNETES = "admissionregistration.k8s.io"

_FAILURE_POLICY = Text(enum=("Fail", "Ignore"), default="Fail")
_ACTIONS = ListOf(Text(enum=("Deny", "Audit", "Warn")), unique=True)
_EXPRESSIONS = ListOf(conditions.NAMED_EXPRESSION)
_NAMED = ListOf(conditions.NAMED_EXPRESSION, key="name")
_EXPRESSION = Shape({"expression": TEXT})
_ENABLED = Shape({"enabled": FLAG})
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
        "namespaceSelector": conditions.SELECTOR,
        "objectSelector": conditions.SELECTOR,
        "matchPolicy": Text(enum=("Equivalent", "Exact"), default="Equivalent"),
    }
)

_COMMON: dict[str, Node] = {
    "matchConstraints": _MATCH,
    "matchConditions": _NAMED,
    "variables": _NAMED,
    "failurePolicy": _FAILURE_POLICY,
}

_TIMEOUT = Shape({"timeoutSeconds": Whole()})
_EVALUATION: dict[str, Node] = {
    "mode": Text(enum=("Kubernetes", "JSON"), default="Kubernetes"),
    "admission": _ENABLED,
    "background": _ENABLED,
}
_POD_CONTROLLERS = Shape({"controllers": TEXTS})
VALIDATING = Shape(
    {
        **_COMMON,
        "validations": conditions.VALIDATIONS,
        "validationActions": _ACTIONS,
        "auditAnnotations": conditions.AUDIT_ANNOTATIONS,
        "autogen": Shape(
            {"podControllers": _POD_CONTROLLERS, "validatingAdmissionPolicy": _ENABLED}
        ),
        "evaluation": Shape(
            {
                **_EVALUATION,
                "mode": Text(enum=("Kubernetes", "JSON", "HTTP", "Envoy"), default="Kubernetes"),
            }
        ),
        "webhookConfiguration": _TIMEOUT,
    }
)

MUTATIONS = ListOf(
    Shape(
        {
            "patchType": Text(enum=("ApplyConfiguration", "JSONPatch")),
            "applyConfiguration": _EXPRESSION,
            "jsonPatch": _EXPRESSION,
        },
        ("patchType",),
    )
)

MUTATING = Shape(
    {
        **_COMMON,
        "mutations": MUTATIONS,
        "auditAnnotations": conditions.AUDIT_ANNOTATIONS,
        "reinvocationPolicy": Text(enum=("Never", "IfNeeded")),
        "targetMatchConstraints": replaced(_MATCH, expression=TEXT),
        "targetMatchConditions": _NAMED,
        "autogen": Shape({"podControllers": _POD_CONTROLLERS, "mutatingAdmissionPolicy": _ENABLED}),
        "evaluation": Shape(
            {
                **_EVALUATION,
                "mutateExisting": _ENABLED,
                "skipBackgroundRequests": FLAG,
                "useServerSideApply": FLAG,
            }
        ),
        "webhookConfiguration": _TIMEOUT,
    }
)

_CONSTRAINED: dict[str, Node] = {
    name: _COMMON[name] for name in ("matchConstraints", "matchConditions", "variables")
}

GENERATING = Shape(
    {
        **_CONSTRAINED,
        "generate": ListOf(
            Shape(
                {
                    "expression": TEXT,
                    "template": Shape(
                        {"value": TEXT, "interpolate": Text(enum=("none", "cel"), default="none")},
                        ("value",),
                    ),
                },
                one_of=("expression", "template"),
            )
        ),
        "auditAnnotations": conditions.AUDIT_ANNOTATIONS,
        "useServerSideApply": FLAG,
        "evaluation": Shape(
            {
                "admission": _ENABLED,
                "skipBackgroundRequests": FLAG,
                "generateExisting": _ENABLED,
                "synchronize": _ENABLED,
                "orphanDownstreamOnPolicyDelete": _ENABLED,
            }
        ),
        "webhookConfiguration": _TIMEOUT,
    },
    ("generate",),
)

DELETING = Shape(
    {
        "matchConstraints": _MATCH,
        "conditions": _NAMED,
        "variables": _NAMED,
        "schedule": TEXT,
        "deletionPropagationPolicy": Text(enum=PROPAGATIONS),
    },
    ("schedule",),
)

_VALUE = Shape({"value": TEXT, "expression": TEXT})
_COSIGN = Shape(
    {
        "key": Shape(
            {
                "data": TEXT,
                "kms": TEXT,
                "hashAlgorithm": Text(
                    enum=("sha224", "sha256", "sha384", "sha512"), default="sha256"
                ),
                "expression": TEXT,
            }
        ),
        "keyless": Shape(
            {
                "identities": ListOf(
                    Shape(
                        dict.fromkeys(
                            ("issuer", "subject", "issuerRegExp", "subjectRegExp", "subjectExpression"),
                            TEXT,
                        )
                    )
                ),
                "roots": TEXT,
                "additionalExtensions": TEXT_MAP,
            },
            ("identities",),
        ),
        "certificate": Shape({"cert": _VALUE, "certChain": _VALUE}),
        "source": Shape(
            {
                "repository": TEXT,
                "PullSecrets": ListOf(Shape({"name": TEXT}, open=True)),
                "tagPrefix": TEXT,
            }
        ),
        "ctlog": Shape(
            {
                **dict.fromkeys(("url", "rekorPubKey", "ctLogPubKey", "tsaCertChain"), TEXT),
                "insecureIgnoreTlog": FLAG,
                "insecureIgnoreSCT": FLAG,
            }
        ),
        "tuf": Shape({"root": Shape({"path": TEXT, "data": TEXT}), "mirror": TEXT}),
        "annotations": TEXT_MAP,
        "trustedRoot": _VALUE,
    }
)  # fmt: skip

IMAGE_VALIDATING = Shape(
    {
        **_COMMON,
        "matchConditions": _EXPRESSIONS,
        "variables": _EXPRESSIONS,
        "matchImageReferences": ListOf(
            Shape({"glob": TEXT, "expression": TEXT}, one_of=("glob", "expression"))
        ),
        "images": _EXPRESSIONS,
        "credentials": conditions.REGISTRY_CREDENTIALS,
        "validationConfigurations": Shape(
            dict.fromkeys(("mutateDigest", "verifyDigest", "required"), Flag(default=True)),
            filled_in=True,
        ),
        "attestors": ListOf(
            Shape(
                {
                    "name": TEXT,
                    "cosign": _COSIGN,
                    "notary": Shape({"certs": _VALUE, "tsaCerts": _VALUE}),
                },
                ("name",),
                one_of=("cosign", "notary"),
            )
        ),
        "attestations": ListOf(
            Shape(
                {
                    "name": TEXT,
                    **dict.fromkeys(("intoto", "referrer"), Shape({"type": TEXT}, ("type",))),
                },
                ("name",),
            )
        ),
        "validations": conditions.VALIDATIONS,
        "validationActions": _ACTIONS,
        "auditAnnotations": conditions.AUDIT_ANNOTATIONS,
        "autogen": Shape({"podControllers": _POD_CONTROLLERS}),
        "evaluation": Shape(_EVALUATION),
        "webhookConfiguration": _TIMEOUT,
    },
    ("attestors", "validations"),
)

EXCEPTION = Shape(
    {
        "policyRefs": ListOf(Shape({"name": TEXT, "kind": TEXT}, ("name", "kind"))),
        "matchConditions": _EXPRESSIONS,
        "images": TEXTS,
        "allowedValues": TEXTS,
        "reportResult": Text(enum=("skip", "pass"), default="skip"),
        "evaluationMode": TEXT,
        "expiresAt": TEXT,
        "properties": TEXT_MAP,
    },
    ("policyRefs",),
)

_BINDING: dict[str, Node] = {
    "policyName": TEXT,
    "matchResources": _MATCH,
    "paramRef": conditions.PARAM_REFERENCE,
}
_NATIVE: dict[str, Node] = {**_COMMON, "paramKind": conditions.PARAM_KIND}
ADMISSION = Shape(
    {
        **_NATIVE,
        "validations": conditions.VALIDATIONS,
        "auditAnnotations": conditions.AUDIT_ANNOTATIONS,
    }
)
ADMISSION_BINDING = Shape({**_BINDING, "validationActions": _ACTIONS}, ("policyName",))

MUTATING_ADMISSION = Shape(
    {**_NATIVE, "reinvocationPolicy": Text(enum=("Never", "IfNeeded")), "mutations": MUTATIONS}
)
MUTATING_BINDING = Shape(_BINDING, ("policyName",))

_KUBERNETES_VERSIONS = ("v1", "v1beta1", "v1alpha1")

CEL_SPECS = {
    KYVERNO: {"PolicyException": dict.fromkeys(("v1beta1", "v1", "v1alpha1"), EXCEPTION)},
    KUBERNETES: {
        "ValidatingAdmissionPolicy": dict.fromkeys(_KUBERNETES_VERSIONS, ADMISSION),
        "ValidatingAdmissionPolicyBinding": dict.fromkeys(_KUBERNETES_VERSIONS, ADMISSION_BINDING),
        "MutatingAdmissionPolicy": dict.fromkeys(_KUBERNETES_VERSIONS, MUTATING_ADMISSION),
        "MutatingAdmissionPolicyBinding": dict.fromkeys(_KUBERNETES_VERSIONS, MUTATING_BINDING),
    },
}
"""Spec shapes of what is no policy of the table of kinds by group, kind and version, the stored version first."""
