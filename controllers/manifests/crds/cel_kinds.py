"""The kinds of `policies.kyverno.io` that the engine evaluates: policies written in CEL, and their exceptions (rows L-01, X-20).

Apart from the classic kinds because their specs are those of Kubernetes' own admission policies and not the engine's tables:
what Kubernetes has defined is accepted as it stands, and checked when it is compiled.
"""

from __future__ import annotations

from typing import Final

from engine.parse.schema import Flag, Free, ListOf, MapOf, Shape, Text, Whole

from .kinds import Column, CustomKind
from .others import CONDITION

GROUP: Final = "policies.kyverno.io"
VERSIONS: Final = ("v1beta1", "v1", "v1alpha1")
"""The first is stored, as upstream."""

_TEXT, _FREE, _FLAG, _WHOLE = Text(), Free(), Flag(), Whole()
_MATCH = Shape({}, open=True)
_NAMED = ListOf(Shape({"name": _TEXT, "expression": _TEXT}, ("name", "expression")))

VALIDATING = Shape(
    {
        "matchConstraints": _MATCH,
        "matchConditions": _NAMED,
        "variables": _NAMED,
        "validations": ListOf(
            Shape(
                dict.fromkeys(("expression", "message", "messageExpression", "reason"), _TEXT),
                ("expression",),
            )
        ),
        "validationActions": ListOf(Text(enum=("Deny", "Audit", "Warn"))),
        "auditAnnotations": ListOf(
            Shape({"key": _TEXT, "valueExpression": _TEXT}, ("key", "valueExpression"))
        ),
        "failurePolicy": Text(enum=("Fail", "Ignore")),
        "webhookConfiguration": Shape({"timeoutSeconds": Whole(least=1, most=30)}),
        "evaluation": Shape(
            {
                "mode": _TEXT,
                "admission": Shape({"enabled": _FLAG}),
                "background": Shape({"enabled": _FLAG}),
            }
        ),
        "autogen": Shape(
            {
                "podControllers": Shape({"controllers": ListOf(_TEXT)}),
                "validatingAdmissionPolicy": Shape({"enabled": _FLAG}),
            }
        ),
    },
    ("validations",),
)
EXCEPTION = Shape(
    {
        "policyRefs": ListOf(Shape({"name": _TEXT, "kind": _TEXT}, ("name", "kind"))),
        "matchConditions": _NAMED,
        "images": ListOf(_TEXT),
        "allowedValues": ListOf(_TEXT),
        "reportResult": Text(enum=("skip", "pass")),
        "expiresAt": _TEXT,
        "properties": MapOf(_TEXT),
    },
    ("policyRefs",),
)
STATUS = Shape(
    {
        "conditionStatus": Shape(
            {"ready": _FLAG, "message": _TEXT, "conditions": ListOf(CONDITION)}
        ),
        "autogen": Shape({"configs": _FREE}),
        "generated": _FLAG,
        "rulecount": MapOf(_WHOLE),
    }
)

_READY: Final = (
    Column("READY", ".status.conditionStatus.ready", "string"),
    Column("AGE", ".metadata.creationTimestamp", "date"),
)


def _policy(kind: str, plural: str, short: str, spec: Shape) -> tuple[CustomKind, CustomKind]:
    """Return the kind for the whole cluster and the one for a namespace."""
    versions = {version: {"spec": spec, "status": STATUS} for version in VERSIONS}
    return (
        CustomKind(GROUP, kind, plural, short, versions, _READY, is_namespaced=False),
        CustomKind(
            GROUP, f"Namespaced{kind}", f"namespaced{plural}", f"n{short}", versions, _READY
        ),
    )


KINDS: Final[tuple[CustomKind, ...]] = (
    *_policy("ValidatingPolicy", "validatingpolicies", "vpol", VALIDATING),
    CustomKind(
        GROUP, "PolicyException", "policyexceptions", "celpolex",
        {version: {"spec": EXCEPTION} for version in VERSIONS},
        (Column("Age", ".metadata.creationTimestamp", "date"),), has_status=False,
    ),
)  # fmt: skip
