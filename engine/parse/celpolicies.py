"""Policies written in CEL, their exceptions and bindings: from decoded documents to frozen values.

The counterpart of `policies` for the kinds of `policies.kyverno.io` and `admissionregistration.k8s.io`. What expressions
say is found out where they are compiled; here only fields are looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import NOWHERE, Location
from engine.model import Json, Policy
from engine.model.kinds import BY_NAME, CEL_KINDS, is_enabled
from engine.model.policy import Binding, CelException

from .documents import require_sound
from .policies import annotations_of, header
from .schema.celkinds import KUBERNETES, KYVERNO

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .documents import LineOf

    Parsed = Policy | CelException | Binding

ADMISSION_KINDS = ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")


def parse_cel_policy(
    doc: Json, *, at: Location = NOWHERE, line_of: LineOf | None = None, strict: bool = True
) -> Policy:
    """Make a Policy without rules of a policy of policies.kyverno.io of any kind (row L-01), or of a native policy.

    Its body stays in `raw`. Raises PolicyError.
    """
    kyverno = (
        str(doc.get("apiVersion")).startswith(f"{KYVERNO}/") if isinstance(doc, dict) else True
    )
    kinds, group = (_kinds_like(doc), KYVERNO) if kyverno else (ADMISSION_KINDS, KUBERNETES)
    require_sound(doc, kinds, at=at, line_of=line_of, strict=strict, group=group)
    spec = doc["spec"]
    actions = spec.get("validationActions") or ("Deny",)
    row = BY_NAME.get(doc["kind"])
    is_asked = row is None or not row.family.is_timed
    is_scanned = row is None or row.family.is_scanned
    usual = row.family.failure_policy if row is not None else "Fail"
    return Policy(
        kind=doc["kind"],
        **header(doc),
        api_version=doc["apiVersion"],
        annotations=annotations_of(doc),
        at=at,
        failure_policy=spec.get("failurePolicy") or usual,
        failure_action="Enforce" if "Deny" in actions else "Audit",
        emit_warning="Warn" in actions,
        admission=is_asked and is_enabled(spec, "admission"),
        background=is_scanned and is_enabled(spec, "background"),
    )


def _kinds_like(doc: Json) -> tuple[str, ...]:
    """Return the kind of a document with that of its other scope, all kinds for one that is none of them."""
    row = BY_NAME.get(str(doc.get("kind"))) if isinstance(doc, dict) else None
    if row is None or not row.is_cel:
        return tuple(one.kind for one in CEL_KINDS)
    return row.family.kind, row.family.twin


def parse_cel_exception(
    doc: Json, *, at: Location = NOWHERE, line_of: LineOf | None = None, strict: bool = True
) -> CelException:
    """Make a CelException of a PolicyException of policies.kyverno.io (row X-20); raises PolicyError."""
    kinds = ("PolicyException",)
    require_sound(doc, kinds, at=at, line_of=line_of, strict=strict, group=KYVERNO)
    spec = doc["spec"]
    return CelException(
        **header(doc),
        annotations=annotations_of(doc),
        references=tuple((entry["name"], entry["kind"]) for entry in spec["policyRefs"]),
        match_conditions=tuple(spec.get("matchConditions") or ()),
        images=tuple(spec.get("images") or ()),
        allowed_values=tuple(spec.get("allowedValues") or ()),
        report_result=spec.get("reportResult") or "skip",
        expires_at=spec.get("expiresAt") or "",
        created_at=str(doc["metadata"].get("creationTimestamp") or ""),
    )


def parse_binding(
    doc: Json, *, at: Location = NOWHERE, line_of: LineOf | None = None, strict: bool = True
) -> Binding:
    """Make a Binding of a binding of a native policy; raises PolicyError."""
    kinds = tuple(f"{kind}Binding" for kind in ADMISSION_KINDS)
    require_sound(doc, kinds, at=at, line_of=line_of, strict=strict, group=KUBERNETES)
    spec = doc["spec"]
    return Binding(
        kind=doc["kind"],
        name=doc["metadata"].get("name") or "",
        policy_name=spec["policyName"],
        actions=tuple(spec.get("validationActions") or ()),
        param_reference=spec.get("paramRef"),
        match_resources=spec.get("matchResources") or {},
    )


PARSERS: Mapping[str, Mapping[str, Callable[..., Parsed]]] = {
    KYVERNO: {"PolicyException": parse_cel_exception},
    KUBERNETES: {
        **dict.fromkeys(ADMISSION_KINDS, parse_cel_policy),
        **{f"{kind}Binding": parse_binding for kind in ADMISSION_KINDS},
    },
}
"""What makes a value of a document that is no policy of the table of kinds, by group and kind."""
