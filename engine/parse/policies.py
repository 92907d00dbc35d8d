"""ClusterPolicy, Policy, PolicyException and cleanup policies: from decoded documents to frozen values.

The one way into the engine for documents of every front end. Everything that can be wrong with a field is reported here,
with path, line and the nearest known name; what fields mean together is checked by `engine.lint`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import model
from engine.errors import NOWHERE, Location
from engine.model.kinds import NAMESPACED

from .documents import require_sound

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .documents import LineOf

_NAMESPACED = frozenset({*NAMESPACED, "PolicyException"})


def parse_policy(
    doc: model.Json, *, at: Location = NOWHERE, line_of: LineOf | None = None, strict: bool = True
) -> model.Policy:
    """Make a Policy of a ClusterPolicy or Policy document (rows A-01 to A-25).

    `line_of` gives the line of a path for messages; `strict` refuses unknown fields. A Policy without a namespace is in
    `default`. Raises PolicyError.
    """
    kinds = ("ClusterPolicy", "Policy")
    require_sound(doc, kinds, at=at, line_of=line_of, strict=strict)
    spec = doc["spec"]
    webhook = spec.get("webhookConfiguration") or {}
    return model.Policy(
        kind=doc["kind"],
        **header(doc),
        api_version=doc["apiVersion"],
        annotations=annotations_of(doc),
        at=at,
        rules=tuple(build_rule(rule or {}) for rule in spec.get("rules") or ()),
        apply_rules=spec.get("applyRules") or "All",
        failure_policy=webhook.get("failurePolicy") or spec.get("failurePolicy") or "Fail",
        failure_action=action(spec.get("validationFailureAction") or ""),
        failure_action_overrides=action_overrides(spec.get("validationFailureActionOverrides")),
        emit_warning=spec.get("emitWarning") is True,
        admission=spec.get("admission") is not False,
        background=spec.get("background") is not False,
    )


def parse_exception(
    doc: model.Json, *, at: Location = NOWHERE, line_of: LineOf | None = None, strict: bool = True
) -> model.PolicyException:
    """Make a PolicyException of a v2, v2beta1 or v2alpha1 document (rows A-02, X-01); raises PolicyError."""
    require_sound(doc, ("PolicyException",), at=at, line_of=line_of, strict=strict)
    spec = doc["spec"]
    return model.PolicyException(
        **header(doc),
        api_version=doc["apiVersion"],
        annotations=annotations_of(doc),
        references=tuple(_reference(entry) for entry in spec["exceptions"]),
        match=spec["match"],
        conditions=spec.get("conditions"),
        pod_security=tuple(spec.get("podSecurity") or ()),
        background=spec.get("background") is not False,
        created_at=_created_at(doc),
    )


def parse_cleanup_policy(
    doc: model.Json, *, at: Location = NOWHERE, line_of: LineOf | None = None, strict: bool = True
) -> model.CleanupPolicy:
    """Make a CleanupPolicy of a document of either kind and any served version (row C-01); raises PolicyError."""
    kinds = ("ClusterCleanupPolicy", "CleanupPolicy")
    require_sound(doc, kinds, at=at, line_of=line_of, strict=strict)
    spec, status = doc["spec"], doc.get("status")
    return model.CleanupPolicy(
        kind=doc["kind"],
        **header(doc),
        schedule=spec["schedule"],
        match=spec["match"],
        exclude=spec.get("exclude") or {},
        context=tuple(spec.get("context") or ()),
        conditions=spec.get("conditions"),
        propagation=spec.get("deletionPropagationPolicy") or "",
        created_at=_created_at(doc),
        last_execution_at=_text(status, "lastExecutionTime"),
    )


def header(doc: model.Object) -> dict[str, model.Json]:
    """Return the fields that all kinds have in common; what lives in namespaces is in `default` where it names none."""
    metadata = doc["metadata"]
    namespace = metadata.get("namespace") or "default"
    return {
        "name": metadata.get("name") or "",
        "namespace": namespace if doc["kind"] in _NAMESPACED else "",
        "labels": metadata.get("labels") or {},
        "raw": doc,
    }


def annotations_of(doc: model.Object) -> dict[str, str]:
    """Return the annotations of a document that is sound."""
    return doc["metadata"].get("annotations") or {}


def _reference(entry: model.Block) -> model.PolicyReference:
    return model.PolicyReference(entry["policyName"], tuple(entry["ruleNames"]))


def _created_at(doc: model.Object) -> str:
    return _text(doc["metadata"], "creationTimestamp")


def _text(block: model.Json, name: str) -> str:
    found = block.get(name) if isinstance(block, dict) else None
    return found if isinstance(found, str) else ""


# A rule as a value: the bodies stay as written, defaults and spellings are settled (rows ).
#
# Generated rules go through the same function, so that they differ from written ones in nothing but their text.


def action(text: str) -> str:
    """Return `Audit` or `Enforce` for any accepted spelling (row A-13); anything else audits."""
    return "Enforce" if text.lower() == "enforce" else "Audit"


def action_overrides(entries: Iterable[model.Block] | None) -> tuple[model.ActionOverride, ...]:
    """Read failure action overrides of a spec or a rule (rows A-14, A-70)."""
    return tuple(
        model.ActionOverride(
            action=action(entry.get("action") or ""),
            namespaces=tuple(entry.get("namespaces") or ()),
            namespace_selector=entry.get("namespaceSelector"),
        )
        for entry in entries or ()
    )


def build_rule(raw: model.Block) -> model.Rule:
    """Make a Rule of a sound rule document; an empty operation counts as absent."""
    return model.Rule(
        name=raw.get("name") or "",
        match=raw.get("match") or {},
        exclude=raw.get("exclude") or {},
        context=tuple(raw.get("context") or ()),
        preconditions=raw.get("preconditions"),
        cel_preconditions=tuple(raw.get("celPreconditions") or ()),
        image_extractors=raw.get("imageExtractors") or {},
        validate=_with_action(raw.get("validate")) or None,
        mutate=raw.get("mutate") or None,
        generate=raw.get("generate") or None,
        verify_images=tuple(raw.get("verifyImages") or ()),
        report_properties=raw.get("reportProperties") or {},
        skip_background_requests=raw.get("skipBackgroundRequests") is not False,
        raw=raw,
    )


def _with_action(block: model.Json) -> model.Json:
    """Return a validate block with its failure action in the usual spelling."""
    written = block.get("failureAction") if block else None
    if not written or written == action(written):
        return block
    return {**block, "failureAction": action(written)}
