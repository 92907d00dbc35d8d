"""Our own kinds, `kpolicy.io/v1alpha1`: grants of time-boxed exceptions, one-time codes and their uses, the audit trail.

The fields of GrantPolicy and Grant are those that `engine.grants` reads. Who may write which of them is not said here but in
`controllers.manifests.guards`, because a schema does not know who asks.
"""

from __future__ import annotations

from typing import Any, Final

from engine.parse.schema import Flag, Free, ListOf, Node, Shape, Text, Whole

from .kinds import Column, CustomKind
from .words import NATIVE_WORDS

GROUP: Final = "kpolicy.io"
VERSION: Final = "v1alpha1"
VERDICTS: Final = ("approve", "deny", "withdraw", "drop", "revoke", "comment")
CODE_MODES: Final = ("off", "acknowledge", "approve")

_TEXT, _FLAG, _FREE = Text(), Flag(), Free()
_COUNT: Final = Whole(least=0)
_TEXTS: Final = ListOf(_TEXT)


def _texts(*names: str) -> dict[str, Node]:
    return dict.fromkeys(names, _TEXT)


_PEOPLE: Final = Shape({"users": _TEXTS, "groups": _TEXTS})
_REASON: Final = Text(longest=1024)
_TARGET: Final = Shape({"kind": _TEXT, "name": _TEXT, "selector": Shape({}, open=True)}, ("kind",))
_OBJECT: Final = Shape(_texts("apiVersion", "kind", "namespace", "name", "uid"))

GRANT_POLICY: Final = Shape(
    {
        "policies": _TEXTS,
        "rules": _TEXTS,
        "namespaces": _TEXTS,
        "requesters": _PEOPLE,
        "approvers": ListOf(Shape({**_PEOPLE.fields, "count": Whole(least=1)})),
        **_texts("maxDuration", "approvalTimeout"),
        "reason": Shape({"minLength": _COUNT}),
        "ticket": Shape({"pattern": _TEXT}),
        "wildcards": _FLAG,
        "limits": Shape(
            {"openPerUser": _COUNT, "uses": _COUNT, "objects": _COUNT, "coolDown": _TEXT}
        ),
        "emergency": Shape({"maxDuration": _TEXT}),
        "codes": Shape(
            {"mode": Text(enum=CODE_MODES), "strict": _FLAG, **_texts("duration", "maxDuration")}
        ),
    }
)
REQUEST_FIELDS: Final = (
    "requester", "requesterGroups", "policy", "rules", "target", "duration", "reason", "ticket", "startAt", "uses", "idle",
    "emergency", "extends", "approvers", "block",
)  # fmt: skip
"""What a request says; nobody changes it afterwards."""

DECISION: Final = Shape(
    {"by": _TEXT, "verdict": Text(enum=VERDICTS), "comment": _REASON, "groups": _TEXTS},
    ("by", "verdict"),
)
GRANT: Final = Shape(
    {
        **_texts(
            "requester", "policy", "duration", "ticket", "startAt", "idle", "extends", "block"
        ),
        "requesterGroups": _TEXTS,
        "rules": _TEXTS,
        "target": _TARGET,
        "reason": _REASON,
        "uses": _COUNT,
        "emergency": _FLAG,
        "approvers": _TEXTS,
        "decisions": ListOf(DECISION),
    },
    ("requester", "policy", "target", "duration"),
)
GRANT_STATUS: Final = Shape(
    {
        **_texts("state", "grantPolicy", "approvalDeadline", "startsAt", "expiresAt", "endedAt", "endedBy", "message", "lastUsedAt", "warnedAt"),
        "uses": _COUNT,
        "exception": _OBJECT,
        "reach": _FREE,
    }
)  # fmt: skip
_BINDING: Final = Shape({"policy": _TEXT, "rules": _TEXTS, "object": _OBJECT})
CODE: Final = Shape(
    {
        **_texts("user", "issuedBy", "expiresAt", "verifier", "grant"),
        "binding": _BINDING,
        "request": Text(longest=8192),
        "issuedByGroups": _TEXTS,
        "reason": _REASON,
    },
    ("user", "expiresAt", "binding", "verifier"),
)
CODE_STATUS: Final = Shape({**_texts("state", "usedBy", "usedAt", "voidedBy"), "uses": _COUNT})
_USED_FOR: Final = Shape({**_OBJECT.fields, "resourceVersion": _TEXT})
USE: Final = Shape(
    {
        **_texts("user", "code", "operation", "fingerprint", "grant", "grantUid", "usedAt"),
        **_texts("unproven", "mac"),
        "binding": _BINDING,
        "object": _USED_FOR,
    },
    ("user", "usedAt"),
)
USE_STATUS: Final = Shape({**_texts("state", "confirmedAt", "message"), "broughtAgainBy": _TEXTS})
SEGMENT: Final = Shape(
    {"records": ListOf(Shape({}, open=True)), "mac": _TEXT, "sealed": _FLAG}, ("records",)
)

NOTE: Final = Shape(
    {
        **_texts("verb", "actor", "policy", "at", "mac"),
        "groups": _TEXTS,
        "object": _OBJECT,
        "reason": _REASON,
        "unproven": _FLAG,
        "shown": Shape(_texts("how", "content")),
    },
    ("verb", "actor", "at"),
)

CLAIM: Final = Shape({"user": _TEXT, "groups": _TEXTS, "uses": _TEXTS}, ("user", "uses"))

_AGE: Final = Column("Age", ".metadata.creationTimestamp", "date")


def _columns(**paths: str) -> tuple[Column, ...]:
    return (*(Column(name, path) for name, path in paths.items()), _AGE)


_OWN: Final[dict[str, Any]] = {"words": NATIVE_WORDS}


KINDS: Final[tuple[CustomKind, ...]] = (
    CustomKind(
        GROUP, "GrantPolicy", "grantpolicies", "grpol", {VERSION: {"spec": GRANT_POLICY}},
        _columns(Max=".spec.maxDuration", Codes=".spec.codes.mode"), is_namespaced=False, has_status=False, **_OWN,
        about="Who may ask for exceptions from which rules, for how long, and who must agree; whether denials offer codes.",
    ),
    CustomKind(
        GROUP, "Grant", "grants", "gr", {VERSION: {"spec": GRANT, "status": GRANT_STATUS}},
        (*_columns(State=".status.state", Policy=".spec.policy", Kind=".spec.target.kind", Target=".spec.target.name",
                   Requester=".spec.requester", Expires=".status.expiresAt"),
         Column("Uses", ".status.uses", "integer", 1), Column("Of", ".spec.uses", "integer", 1),
         Column("Last-Used", ".status.lastUsedAt", "string", 1), Column("Reason", ".spec.reason", "string", 1)),
        **_OWN,
        about="A request for an exception that ends by itself, what was decided about it, and its life.",
    ),
    CustomKind(
        GROUP, "OneTimeCode", "onetimecodes", "otc", {VERSION: {"spec": CODE, "status": CODE_STATUS}},
        (*_columns(State=".status.state", User=".spec.user", Policy=".spec.binding.policy", Expires=".spec.expiresAt"),
         Column("By", ".spec.issuedBy", "string", 1)),
        **_OWN,
        about="A one-time code that somebody issued to somebody else, or agreed to. The code itself is stored nowhere.",
    ),
    CustomKind(
        GROUP, "CodeUse", "codeuses", "cu", {VERSION: {"spec": USE, "status": USE_STATUS}},
        (*_columns(State=".status.state", User=".spec.user", Policy=".spec.binding.policy"),
         Column("Grant", ".spec.grant", "string", 1), Column("Object", ".spec.object.name", "string", 1)),
        **_OWN,
        about="One use of a one-time code or of a limited grant; created at most once, and never taken back.",
    ),
    CustomKind(
        GROUP, "AuditSegment", "auditsegments", "aseg", {VERSION: {"spec": SEGMENT}},
        (Column("Sealed", ".spec.sealed", "boolean"), _AGE), has_status=False, **_OWN,
        about="A part of the audit trail: records that are chained by their hashes.",
    ),
    CustomKind(
        GROUP, "AuditNote", "auditnotes", "anote", {VERSION: {"spec": NOTE}},
        _columns(Verb=".spec.verb", Actor=".spec.actor", Kind=".spec.object.kind", Name=".spec.object.name"),
        has_status=False, **_OWN,
        about="What a webhook saw somebody do, until the controllers have put it into the audit trail.",
    ),
    CustomKind(
        GROUP, "CodeClaim", "codeclaims", "ccl", {VERSION: {"spec": CLAIM}},
        _columns(User=".spec.user"), has_status=False, **_OWN,
        about="Codes that their owner brings in strict mode, named by their uses; good for an hour.",
    ),
)  # fmt: skip
