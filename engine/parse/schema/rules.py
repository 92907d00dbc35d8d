"""Fields of a rule: validate, mutate, generate and verifyImages (rows A-70 to A-90)."""

from __future__ import annotations

from . import conditions
from .nodes import (
    FLAG,
    FREE,
    TEXT,
    TEXT_MAP,
    TEXTS,
    Flag,
    Later,
    ListOf,
    MapOf,
    Node,
    Shape,
    Text,
    Whole,
    replaced,
    without,
)

# Fields of signers and of verifyImages (rows to A-90d).

_LOGS = {
    "rekor": Shape({"url": TEXT, "pubkey": TEXT, "ignoreTlog": FLAG}),
    "ctlog": Shape({"ignoreSCT": FLAG, "pubkey": TEXT, "tsaCertChain": TEXT}),
}
_EXTENSIONS = {"additionalExtensions": TEXT_MAP}

_ENTRY = Shape(
    {
        "keys": Shape(
            {
                "publicKeys": TEXT,
                "signatureAlgorithm": TEXT,
                "kms": TEXT,
                "secret": Shape({"name": TEXT, "namespace": TEXT}, ("name", "namespace")),
                **_LOGS,
            }
        ),
        "certificates": Shape({"cert": TEXT, "certChain": TEXT, **_LOGS}),
        "keyless": Shape(
            {
                **dict.fromkeys(("issuer", "issuerRegExp", "subject", "subjectRegExp"), TEXT),
                "roots": TEXT,
                **_EXTENSIONS,
                **_LOGS,
            }
        ),
        "attestor": Later(lambda: ATTESTOR),
        "annotations": TEXT_MAP,
        "repository": TEXT,
        "signatureAlgorithm": TEXT,
    }
)

ATTESTOR: Shape = Shape({"count": Whole(least=1), "entries": ListOf(_ENTRY)})

ATTESTORS = ListOf(ATTESTOR)

_ACTION = Text(enum=("Audit", "Enforce"))

_ATTESTATION = Shape(
    {
        "name": TEXT,
        "type": TEXT,
        "predicateType": TEXT,
        "attestors": ATTESTORS,
        "conditions": ListOf(conditions.ANY_ALL_CONDITIONS),
    }
)

VERIFY_IMAGE = Shape(
    {
        "type": Text(enum=("Cosign", "SigstoreBundle", "Notary")),
        "imageReferences": TEXTS,
        "skipImageReferences": TEXTS,
        "attestors": ATTESTORS,
        "attestations": ListOf(_ATTESTATION),
        "annotations": TEXT_MAP,
        "repository": TEXT,
        "cosignOCI11": FLAG,
        "mutateDigest": Flag(default=True),
        "verifyDigest": Flag(default=True),
        "required": Flag(default=True),
        "useCache": Flag(default=True),
        "validate": Shape({"message": TEXT, "deny": Shape({"conditions": conditions.CONDITIONS})}),
        "failureAction": _ACTION,
        "imageRegistryCredentials": conditions.REGISTRY_CREDENTIALS,
        **dict.fromkeys(("image", "key", "roots", "subject", "issuer"), TEXT),
        **_EXTENSIONS,
    }
)

DEPRECATED = ("image", "key", "roots", "subject", "issuer", "additionalExtensions", "annotations")
"""Fields of verifyImages that v2beta1 does not have (row A-03)."""

EXTRACTORS = MapOf(
    ListOf(
        Shape({"path": TEXT, "value": TEXT, "name": TEXT, "key": TEXT, "jmesPath": TEXT}, ("path",))
    )
)


ACTION = Text(enum=("Audit", "Enforce", "audit", "enforce"))

ACTION_OVERRIDES = ListOf(
    Shape({"action": ACTION, "namespaces": TEXTS, "namespaceSelector": conditions.SELECTOR})
)

POD_SECURITY_EXCLUDE = Shape(
    {"controlName": TEXT, "images": TEXTS, "restrictedField": TEXT, "values": TEXTS},
    ("controlName",),
)

_DENY = Shape({"conditions": conditions.CONDITIONS})
_EACH: dict[str, Node] = {
    "list": TEXT,
    "context": conditions.CONTEXT,
    "preconditions": conditions.ANY_ALL_CONDITIONS,
}
VALIDATE_FOREACH: Shape = Shape(
    {
        **_EACH,
        "elementScope": FLAG,
        "pattern": FREE,
        "anyPattern": FREE,
        "deny": _DENY,
        "foreach": Later(lambda: ListOf(VALIDATE_FOREACH)),
    }
)

CEL = Shape(
    {
        "expressions": conditions.VALIDATIONS,
        "paramKind": conditions.PARAM_KIND,
        "paramRef": conditions.PARAM_REFERENCE,
        "auditAnnotations": conditions.AUDIT_ANNOTATIONS,
        "variables": ListOf(conditions.NAMED_EXPRESSION),
        "generate": FLAG,
    }
)
_OBJECT_REFERENCE = Shape(dict.fromkeys(("group", "version", "kind", "name", "namespace"), TEXT))

MANIFESTS = Shape(
    {
        "attestors": ATTESTORS,
        "annotationDomain": TEXT,
        "ignoreFields": ListOf(Shape({"objects": ListOf(_OBJECT_REFERENCE), "fields": TEXTS})),
        "dryRun": Shape({"enable": FLAG, "namespace": TEXT}),
        "repository": TEXT,
    }
)

VALIDATE = Shape(
    {
        "failureAction": ACTION,
        "failureActionOverrides": ACTION_OVERRIDES,
        "allowExistingViolations": Flag(default=True),
        "message": TEXT,
        "pattern": FREE,
        "anyPattern": FREE,
        "deny": _DENY,
        "foreach": ListOf(VALIDATE_FOREACH),
        "podSecurity": Shape(
            {
                "level": Text(enum=("privileged", "baseline", "restricted")),
                "version": TEXT,
                "exclude": ListOf(POD_SECURITY_EXCLUDE),
            }
        ),
        "manifests": MANIFESTS,
        "cel": CEL,
        "assert": FREE,
    }
)

MUTATE_FOREACH: Shape = Shape(
    {
        **_EACH,
        "order": Text(enum=("Ascending", "Descending")),
        "patchStrategicMerge": FREE,
        "patchesJson6902": TEXT,
        "foreach": Later(lambda: ListOf(MUTATE_FOREACH)),
    }
)

_IDENTITY = dict.fromkeys(("apiVersion", "kind", "namespace", "name", "uid"), TEXT)

MUTATE = Shape(
    {
        "mutateExistingOnPolicyUpdate": FLAG,
        "targets": ListOf(
            Shape(
                {
                    **_IDENTITY,
                    "selector": conditions.SELECTOR,
                    "context": conditions.CONTEXT,
                    "preconditions": conditions.CONDITIONS,
                }
            )
        ),
        "patchStrategicMerge": FREE,
        "patchesJson6902": TEXT,
        "foreach": ListOf(MUTATE_FOREACH),
    }
)

_GENERATED: dict[str, Node] = {
    **_IDENTITY,
    "data": FREE,
    "clone": Shape({"namespace": TEXT, "name": TEXT}),
    "cloneList": Shape({"namespace": TEXT, "kinds": TEXTS, "selector": conditions.SELECTOR}),
}

GENERATE = Shape(
    {
        **_GENERATED,
        "synchronize": Flag(default=False),
        "orphanDownstreamOnPolicyDelete": Flag(default=False),
        "generateExisting": Flag(default=False),
        "foreach": ListOf(Shape({**_EACH, **_GENERATED})),
    }
)

RULE_V1 = Shape(
    {
        "name": Text(longest=63),
        "context": conditions.CONTEXT,
        "match": conditions.MATCH,
        "exclude": conditions.MATCH,
        "imageExtractors": EXTRACTORS,
        "preconditions": conditions.CONDITIONS,
        "celPreconditions": ListOf(conditions.NAMED_EXPRESSION),
        "validate": VALIDATE,
        "mutate": MUTATE,
        "generate": GENERATE,
        "verifyImages": ListOf(VERIFY_IMAGE),
        "skipBackgroundRequests": Flag(default=True),
        "reportProperties": TEXT_MAP,
    },
    ("name", "match"),
)

RULE_V2BETA1 = replaced(
    RULE_V1,
    match=conditions.ANY_ALL,
    exclude=conditions.ANY_ALL,
    validate=without(VALIDATE, "allowExistingViolations"),
    verifyImages=ListOf(without(VERIFY_IMAGE, *DEPRECATED)),
)
"""Row A-03."""
