"""What the fields of our own kinds mean, one line each: the texts that `kubectl explain` shows for kpolicy.io.

Keyed by the field's name, as the texts of upstream's kinds are, but apart from them: the same name means something else there.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

NATIVE_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "actor": "Who did it, as the API server named them.",
        "approvalDeadline": "When the request is dropped if nobody has decided.",
        "approvalTimeout": "How long a request waits for decisions, as `24h`.",
        "approvers": "Who must agree. Of a GrantPolicy: levels, each of which must be complete; of a Grant: who was asked.",
        "at": "When it was seen.",
        "binding": "What the code is for: policy, rules and object.",
        "block": "The signed id of the denial that the request came from.",
        "by": "Who decided; always who wrote the decision.",
        "code": "Where the code came from: `minted`, `grant`, or the name of a OneTimeCode. Never the code.",
        "codes": "Whether denials offer one-time codes.",
        "comment": "Why it was decided so.",
        "confirmedAt": "When it was looked up what became of the use.",
        "coolDown": "How long after the end of a grant the same may not be asked for again.",
        "count": "How many people of this level must agree.",
        "decisions": "What people decided, in order; they are only added to.",
        "duration": "How long: of a Grant the exception, counted from its start; of codes a time slot, each code being good in two.",
        "emergency": "Of a GrantPolicy: that there is a path without approval, and its limits; of a Grant: that it was taken.",
        "endedAt": "When the grant ended.",
        "endedBy": "Who ended it.",
        "exception": "The PolicyException that the grant causes.",
        "expiresAt": "When it ends; it never ends later.",
        "extends": "The grant that this one follows.",
        "fingerprint": "A digest of the object's content.",
        "grant": "The grant that it belongs to, as `namespace/name`.",
        "grantPolicy": "The GrantPolicy that the request falls under; chosen once.",
        "grantUid": "The UID of the grant that was used.",
        "groups": "Groups; of a decision those of who decided.",
        "idle": "How long the grant may go without a use before it ends.",
        "issuedBy": "Who issued the code or agreed to it; never who uses it.",
        "issuedByGroups": "Groups of who issued it or agreed.",
        "lastUsedAt": "When a request last passed by the grant.",
        "limits": "How much one person may have: open grants, uses of one, live objects that a wide one reaches, pauses.",
        "mac": "A signature by a key that only the controllers have.",
        "maxDuration": "The longest exception that may be asked for, as `8h` or `2d`; of codes how long one by hand may be good.",
        "message": "Why it is so.",
        "minLength": "How many characters a reason must have.",
        "mode": "`off`, `acknowledge` (holders of the verb `redeem` get a code) or `approve` (somebody else must agree).",
        "namespaces": "Namespaces; wildcards are allowed.",
        "object": "The object that it is about.",
        "objects": "How many live objects a wide grant may reach; 0 is any number, 50 if nothing is said.",
        "openPerUser": "How many grants one person may have open.",
        "operation": "What was done to the object.",
        "pattern": "What the name of a ticket must look like (RE2).",
        "policies": "Names of policies; wildcards are allowed.",
        "policy": "The policy that is excepted.",
        "reach": "How many objects the grant reached when it was asked for.",
        "reason": "Why; people read it later.",
        "records": "Records of the audit trail, each with the hash of the one before.",
        "request": "The signed id of the denial that was agreed to.",
        "requester": "Who asks; always who creates the grant.",
        "requesterGroups": "Groups of who asks.",
        "requesters": "Who may ask; everybody if nobody is named.",
        "rules": "Names of rules.",
        "sealed": "Whether nothing is added any more.",
        "startAt": "When the exception begins, if later than its approval.",
        "startsAt": "When the exception began or begins.",
        "state": "Where it stands.",
        "strict": "Whether codes are brought by a CodeClaim only, whose maker the API server itself pins.",
        "target": "The objects that are excepted: kind, and a name or labels.",
        "ticket": "The ticket that tells more; of a GrantPolicy, what it must look like.",
        "tries": "How often somebody tried.",
        "usedAt": "When it was used.",
        "usedBy": "Who used it.",
        "user": "Who may use it, or did.",
        "users": "Names of users.",
        "uses": "How many requests may pass, or have passed; without a number, any.",
        "verb": "What was done.",
        "verdict": "`approve`, `deny`, `withdraw`, `drop` or `revoke`.",
        "verifier": "What the code is recognised by; the code is not stored.",
        "voidedBy": "Who made it void.",
        "warnedAt": "For which instant before the end people were told last.",
        "wildcards": "Whether requests may name kinds, objects and rules with wildcards.",
    }
)
