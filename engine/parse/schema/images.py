"""Fields of signers and of verifyImages (rows A-77, A-88 to A-90d)."""

from __future__ import annotations

from .conditions import ANY_ALL_CONDITIONS, CONDITIONS, REGISTRY_CREDENTIALS
from .nodes import FLAG, TEXT, TEXT_MAP, TEXTS, Flag, Later, ListOf, MapOf, Shape, Text, Whole

_REKOR = Shape({"url": TEXT, "pubkey": TEXT, "ignoreTlog": FLAG})
_CTLOG = Shape({"ignoreSCT": FLAG, "pubkey": TEXT, "tsaCertChain": TEXT})
_LOGS = {"rekor": _REKOR, "ctlog": _CTLOG}
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
                "issuer": TEXT,
                "issuerRegExp": TEXT,
                "subject": TEXT,
                "subjectRegExp": TEXT,
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
        "conditions": ListOf(ANY_ALL_CONDITIONS),
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
        "validate": Shape({"message": TEXT, "deny": Shape({"conditions": CONDITIONS})}),
        "failureAction": _ACTION,
        "imageRegistryCredentials": REGISTRY_CREDENTIALS,
        "image": TEXT,
        "key": TEXT,
        "roots": TEXT,
        "subject": TEXT,
        "issuer": TEXT,
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
