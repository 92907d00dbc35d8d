"""Codes that somebody else must agree to: what a denial asks an approver, and the object by which they say yes.

A denial in mode `approve` shows a signed id of exactly what was denied. Whoever approves writes an object named by it; from
then on the same denial offers the code. An id that nobody signed, or one of another request, leads to nothing.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING, Final

from engine import vocabulary
from engine.digest import word_of
from engine.lang import rfc3339
from engine.record import record

from . import signed

if TYPE_CHECKING:
    from datetime import datetime

    from engine.model import Object

    from .binding import Binding

PREFIX: Final = "cr1."
APPROVED: Final = "approved"
"""What stands for a verifier in the object of an approval, which holds no code."""
APPROVAL: Final = "approval-"
"""How the names of approvals begin."""
_DIGEST = 18
_FIELDS: Final = 7
_LONGEST: Final = 8192


@record
class CodeRequest:
    """What is asked for: who wants past which rules of which policy with which object; `digest` stands for all of it."""

    user: str
    policy: str
    rules: tuple[str, ...]
    kind: str
    namespace: str
    name: str
    digest: str


def request_key(shared: bytes) -> bytes:
    """Return the key that requests are signed with, from the one that all replicas share."""
    return hmac.digest(shared, b"kpolicy code request", "sha256")


def digest_of(binding: Binding) -> str:
    """Return what stands for a binding in a request."""
    digest = hashlib.sha256(b"kpolicy code request\0" + binding.bytes()).digest()
    return base64.urlsafe_b64encode(digest[:_DIGEST]).decode()


def request_id(asked: CodeRequest, key: bytes) -> str:
    """Return the id of a request, `cr1.CONTENT.SIGNATURE`, signed with the `request_key`."""
    fields = [asked.user, asked.policy, list(asked.rules), asked.kind, asked.namespace, asked.name, asked.digest]  # fmt: skip
    return signed.signed(PREFIX, fields, key)


def is_signed(text: str, key: bytes) -> bool:
    """Tell, in constant time, whether a text is an id that was signed with the `request_key`."""
    return signed.is_signed(text, key)


def read_request_id(text: str) -> CodeRequest | None:
    """Return what an id says, whoever signed it; None for what is no id."""
    fields = signed.fields_of(text, PREFIX, _LONGEST)
    if fields is None or len(fields) != _FIELDS or not isinstance(fields[2], list):
        return None
    user, policy, rules, kind, namespace, name, digest = fields
    texts = (user, policy, kind, namespace, name, digest, *rules)
    if not all(isinstance(one, str) for one in texts) or not (user and policy and digest):
        return None
    return CodeRequest(user, policy, tuple(rules), kind, namespace, name, digest)


def approval_name(digest: str) -> str:
    """Return the object name of the approval of a request."""
    return APPROVAL + word_of(f"kpolicy approval\0{digest}")


def approval_of(
    text: str, asked: CodeRequest, by: str, groups: tuple[str, ...], ends: datetime, reason: str, namespace: str
) -> Object:  # fmt: skip
    """Return the OneTimeCode object by which `by` agrees to the request with id `text`, until `ends` (UTC)."""
    return {
        "apiVersion": vocabulary.KPOLICY,
        "kind": "OneTimeCode",
        "metadata": {"name": approval_name(asked.digest), "namespace": namespace},
        "spec": {
            "user": asked.user,
            "issuedBy": by,
            "issuedByGroups": list(groups),
            "expiresAt": rfc3339.write(ends),
            "binding": {
                "policy": asked.policy,
                "rules": list(asked.rules),
                "object": {"kind": asked.kind, "namespace": asked.namespace, "name": asked.name},
            },
            "verifier": APPROVED,
            "request": text,
            "reason": reason,
        },
    }
