"""Codes in mode `approve`: the id that a denial shows, and the code that it shows once somebody else has agreed.

Nothing is written here. An approval is looked up by what was denied, trusted only where it carries our own signature over exactly
that and comes from somebody who may approve, and is good for one use; a use whose object was not stored gives another code.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from controllers.kube import Client, find
from controllers.kube.kinds import ONE_TIME_CODES
from engine.codes import Key, canonical, mint, requests
from engine.errors import PolicyError
from engine.grants import GrantPolicy, issuing_policy, parse_issued
from engine.lang import rfc3339

from .code_bindings import CodeBinding, target_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from controllers.store.uses import Uses
    from engine.model import Object, Review


NOT_PERSISTED: Final = "NotPersisted"
_FIRST: Final = "000000000000000000"
"""Compared with where somebody brings no code, so that timing tells nothing."""


@dataclass(frozen=True, slots=True)
class Approval:
    """Somebody's agreement: its object's name, what its codes are made with, how many were lost, when it ends."""

    name: str
    serial: int
    lost: int
    ends: datetime


class Approvals:
    """Looks up approvals; `key` is the one that all replicas share."""

    def __init__(self, client: Client, namespace: str, key: bytes, uses: Uses) -> None:
        self._client, self._namespace, self._uses = client, namespace, uses
        self._key = requests.request_key(key)

    def __repr__(self) -> str:
        return f"<Approvals in {self._namespace}>"

    def request(self, review: Review, request: Mapping[str, Any], claim: CodeBinding) -> str:
        """Return the id by which somebody else agrees to a claim."""
        target = target_of(review, request)
        asked = requests.CodeRequest(
            user=claim.binding.username,
            policy=claim.policy,
            rules=claim.rules,
            kind=target["kind"],
            namespace=target["namespace"],
            name=claim.binding.object_name,
            digest=requests.digest_of(claim.binding),
        )
        return requests.request_id(asked, self._key)

    async def of(self, claim: CodeBinding, policy: GrantPolicy, now: datetime) -> Approval | None:
        """Return the approval of a claim that is good now, whether used or not; raises KubeError."""
        digest = requests.digest_of(claim.binding)
        name = requests.approval_name(digest)
        obj = await find(self._client, ONE_TIME_CODES, name, self._namespace)
        if obj is None:
            return None
        ends = rfc3339.read(str(obj["spec"].get("expiresAt") or ""))
        created = rfc3339.read(str(obj["metadata"].get("creationTimestamp") or ""))
        if ends is None or created is None or now >= ends:
            return None
        if not (self._is_genuine(obj, claim, digest) and _is_let(obj, policy, now)):
            return None
        records = await self._uses.records(claim.binding.username, claim.policy)
        lost = sum(one.source == name and one.state == NOT_PERSISTED for one in records.values())
        return Approval(name, int(created.timestamp()), lost, ends)

    def code(self, approval: Approval, claim: CodeBinding, key: Key) -> str:
        """Return the code that an approval is good for."""
        return mint(key, claim.binding, approval.serial, approval.lost)

    def codes(self, approval: Approval, claim: CodeBinding, keys: Sequence[Key]) -> list[str]:
        """Return the codes that an approval is or was good for; those that were used are on record."""
        return [
            mint(key, claim.binding, approval.serial, number)
            for key in keys
            for number in range(approval.lost + 1)
        ]

    def among(
        self, approval: Approval, claim: CodeBinding, carried: Sequence[str], keys: Sequence[Key]
    ) -> str:
        """Return the code of an approval that is among some texts, nothing where none is."""
        good = self.codes(approval, claim, keys)
        brought = [canonical(text) or _FIRST for text in carried]
        found = [one for one in brought if sum(hmac.compare_digest(one, code) for code in good)]
        return found[0] if found else ""

    def _is_genuine(self, obj: Object, claim: CodeBinding, digest: str) -> bool:
        spec, status = obj["spec"], obj.get("status") or {}
        text = str(spec.get("request") or "")
        asked = requests.read_request_id(text) if requests.is_signed(text, self._key) else None
        return (
            asked is not None
            and asked.digest == digest
            and spec.get("user") == asked.user == claim.binding.username
            and spec.get("verifier") == requests.APPROVED
            and status.get("state") != "void"
            and not obj["metadata"].get("deletionTimestamp")
        )


def _is_let(obj: Object, policy: GrantPolicy, now: datetime) -> bool:
    """Tell whether the grant policy lets this person agree to this, for so long."""
    try:
        return not issuing_policy(parse_issued(obj, now), (policy,))[1]
    except PolicyError:
        return False
