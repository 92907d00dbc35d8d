"""What the audit trail says about codes: who issued one to whom for what, who used it, what came of that. Never a code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.codes.requests import APPROVED

if TYPE_CHECKING:
    from datetime import datetime

    from engine.model import Object

CONTROLLER = "kpolicy"


def issue_record(code: Object) -> dict[str, Any]:
    """Return the record of a code that somebody issued, or agreed to."""
    spec, at = code["spec"], str(code["metadata"].get("creationTimestamp") or "")
    verb = "approve-code" if spec.get("verifier") == APPROVED else "issue"
    return _record(code, verb, str(spec.get("issuedBy") or ""), at, "ok", _for(spec))


def void_record(code: Object, now: datetime) -> dict[str, Any]:
    """Return the record of a code that somebody made void."""
    status = code.get("status") or {}
    return _record(code, "void", str(status.get("voidedBy") or CONTROLLER), _text(now), "ok", "")


def use_record(use: Object) -> dict[str, Any]:
    """Return the record of a use."""
    spec = use["spec"]
    why = f"grant {spec['grant']}" if spec.get("grant") else ""
    made = _record(
        use, "use", str(spec.get("user") or ""), str(spec.get("usedAt") or ""), "ok", why
    )
    marks = {"unproven": True} if spec.get("unproven") else {}
    return {**made, "code": use["metadata"]["name"], **marks}


def outcome_record(use: Object, state: str, now: datetime) -> dict[str, Any]:
    """Return the record of what became of a use."""
    result = "ok" if state == "Confirmed" else "failed"
    return _record(use, "confirm", CONTROLLER, _text(now), result, state)


def _record(obj: Object, verb: str, actor: str, at: str, result: str, reason: str) -> dict[str, Any]:  # fmt: skip
    binding = obj["spec"].get("binding") or {}
    target = obj["spec"].get("object") or binding.get("object") or {}
    return {
        "id": f"{obj['metadata'].get('uid')}/{verb}",
        "time": at,
        "actor": actor,
        "verb": verb,
        "object": {key: target.get(key, "") for key in ("kind", "namespace", "name")},
        "policy": f"{binding.get('policy', '')}/{','.join(binding.get('rules') or ())}",
        "result": result,
        "reason": reason,
    }


def _for(spec: Object) -> str:
    reason = str(spec.get("reason") or "")
    return f"for {spec.get('user')}" + (f": {reason}" if reason else "")


def _text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
