"""What in an admission request is worth a record in the audit trail: changes of who may do what, and of what keeps objects back.

Pure: the request in, the deed out. Requests for grants, decisions on them, codes and their uses are not here, because their
own objects tell who did them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from controllers.store.audit_notes import Deed
from engine.cleanup.ttl import instant_of
from engine.exceptions.cover import EXPIRES_AT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from engine.model import Object

MARKS: Final = {
    "kpolicy.io/cleanup-after": ("postpone", "resume"),
    "kpolicy.io/cleanup-skip": ("skip", "resume"),
    "kpolicy.io/cleanup-pause": ("pause", "resume"),
    "kpolicy.io/cleanup-run": ("run", "resume"),
}
"""Annotations that hold back clean-ups or tell of one by hand: what setting one is called, and taking it away."""
REASON: Final = "kpolicy.io/cleanup-reason"
"""Why an annotation was taken away, which itself can say nothing any more."""
SHOWN_CHANGES: Final = frozenset({"grantpolicies", "policyexceptions"})
"""Kinds of which every creation and change is told."""
SHOWN_DELETIONS: Final = SHOWN_CHANGES | {"grants", "onetimecodes", "codeuses", "auditsegments"}
_OURS: Final = frozenset({"kpolicy.io", "kyverno.io", "policies.kyverno.io"})


def deed_of(request: Mapping[str, Any], now: datetime, *, is_own: bool) -> Deed | None:
    """Return what a request does that the trail must know, None for everything else.

    `is_own` says that the controllers themselves ask: what they do is told by their own records, but for exceptions that
    they delete because they are over.
    """
    resource = request.get("resource") or {}
    plural = str(resource.get("resource") or "") if resource.get("group") in _OURS else ""
    new, old = request.get("object"), request.get("oldObject")
    if request.get("operation") == "DELETE":
        return _deletion(request, plural, old or {}, now, is_own=is_own)
    if is_own or not isinstance(new, dict):
        return None
    if plural in SHOWN_CHANGES:
        return _change(request, plural, new, old)
    return _mark(request, new, old or {})


def _deletion(
    request: Mapping[str, Any], plural: str, old: Object, now: datetime, *, is_own: bool
) -> Deed | None:
    if plural not in SHOWN_DELETIONS:
        return None
    if not is_own:
        state = str((old.get("status") or {}).get("state") or "")
        reason = f"it was {state}" if state else ""
        return Deed("delete", _about(request, old), reason, _policy(old))
    if plural != "policyexceptions":
        return None
    end = instant_of(str(_annotations(old).get(EXPIRES_AT) or ""))
    is_granted = "kpolicy.io/grant" in _annotations(old)
    if is_granted or (end is not None and now < end):
        return None
    return Deed("expired", _about(request, old), "", _policy(old))


def _change(
    request: Mapping[str, Any], plural: str, new: Object, old: Object | None
) -> Deed | None:
    if old is None:
        verb = "except" if plural == "policyexceptions" else "create"
        return Deed(verb, _about(request, new), _reason(new), _policy(new))
    if old.get("spec") == new.get("spec") and _annotations(old) == _annotations(new):
        return None
    return Deed("change", _about(request, new), _reason(new), _policy(new), _version(old))


def _mark(request: Mapping[str, Any], new: Object, old: Object) -> Deed | None:
    """Return the first of the annotations against clean-ups that a request sets, changes or takes away."""
    before, after = _annotations(old), _annotations(new)
    for name, (setting, taking) in MARKS.items():
        if after.get(name) != before.get(name):
            verb = setting if name in after else taking
            text = str(after.get(name) or after.get(REASON) or before.get(name) or "")
            return Deed(verb, _about(request, new), text, "", _version(old) or text)
    return None


def _about(request: Mapping[str, Any], obj: Object) -> Object:
    metadata, kind = obj.get("metadata") or {}, request.get("kind") or {}
    return {
        "apiVersion": "/".join(filter(None, (kind.get("group"), kind.get("version")))),
        "kind": str(kind.get("kind") or ""),
        "namespace": str(request.get("namespace") or ""),
        "name": str(metadata.get("name") or request.get("name") or ""),
        "uid": str(metadata.get("uid") or ""),
    }


def _policy(obj: Object) -> str:
    """Return the policy and rules that an object of ours is about, as the trail writes them."""
    spec = obj.get("spec") or {}
    for one in spec.get("exceptions") or ():
        if isinstance(one, dict):
            return f"{one.get('policyName')}/{','.join(map(str, one.get('ruleNames') or ()))}"
    if isinstance(spec.get("policy"), str):
        return f"{spec['policy']}/{','.join(map(str, spec.get('rules') or ())) or '*'}"
    return ""


def _reason(obj: Object) -> str:
    return str(_annotations(obj).get("kpolicy.io/reason") or "")


def _version(obj: Object) -> str:
    return str((obj.get("metadata") or {}).get("resourceVersion") or "")


def _annotations(obj: Object) -> Mapping[str, Any]:
    metadata = obj.get("metadata")
    found = metadata.get("annotations") if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}
