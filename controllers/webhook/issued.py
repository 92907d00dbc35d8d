"""Codes that people issue by hand or agree to: judged when their object is made, and those by hand again when they are used.

The API server's own admission policies pin who issues and bound the end while we are down; what a grant policy lets is asked here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controllers.kube import Client, find
from controllers.kube.kinds import GRANT_POLICIES, NAMESPACES, ONE_TIME_CODES
from engine.codes import is_code, issued_name
from engine.codes.requests import APPROVED, CodeRequest, is_signed, read_request_id
from engine.errors import EngineError, PolicyError
from engine.grants import GrantPolicy, issuing_policy, parse_issued
from engine.grants.circumstances import readable_policies
from engine.lang import rfc3339
from engine.record import replace

from .code_bindings import CodeBinding, target_of, user_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from engine.model import Object, Review


class NotIssued(EngineError):  # noqa: N818 - it names the verdict
    """A code that may not be issued as it is written."""


async def check_issued(
    client: Client, request: Mapping[str, Any], now: datetime, key: bytes
) -> None:
    """Refuse a OneTimeCode that no grant policy lets, or that is changed; `key` is the `request_key`. Raises KubeError, too."""
    obj, old = request["object"], request.get("oldObject")
    if old is not None:
        if old.get("spec") != obj.get("spec"):
            raise NotIssued("refused: a code cannot be changed; issue another one")
        return
    for reason in (*_not_own(obj, request.get("userInfo") or {}), *_not_asked(obj, key)):
        raise NotIssued(f"refused: {reason}")
    policies, _ = readable_policies((await client.list_all(GRANT_POLICIES)).items)
    _, refusals = issuing_policy(parse_issued(obj, now), policies)
    if refusals:
        raise NotIssued("\n".join(map(str, refusals)))


def _not_own(obj: Object, user: Mapping[str, Any]) -> Iterator[str]:
    spec = obj["spec"]
    if spec.get("issuedBy") != user.get("username"):
        yield "spec.issuedBy must be who issues the code"
    if not set(spec.get("issuedByGroups") or ()) <= set(user.get("groups") or ()):
        yield "spec.issuedByGroups must be groups of who issues the code"


def _not_asked(obj: Object, key: bytes) -> Iterator[str]:
    """Yield what is wrong with an approval: it agrees to what a denial of ours asked for, word by word."""
    spec = obj["spec"]
    text = str(spec.get("request") or "")
    if spec.get("verifier") != APPROVED and not text:
        return
    asked = read_request_id(text) if is_signed(text, key) else None
    if asked is None:
        yield "spec.request is no id of a denial in this cluster"
    elif _told(spec) != replace(asked, digest="", rules=tuple(sorted(asked.rules))):
        yield "the denial of spec.request was about something else"


def _told(spec: Mapping[str, Any]) -> CodeRequest:
    binding = spec.get("binding") or {}
    target = binding.get("object") or {}
    return CodeRequest(
        user=str(spec.get("user") or ""),
        policy=str(binding.get("policy") or ""),
        rules=tuple(sorted(map(str, binding.get("rules") or ()))),
        kind=str(target.get("kind") or ""),
        namespace=str(target.get("namespace") or ""),
        name=str(target.get("name") or ""),
        digest="",
    )


class IssuedCodes:
    """The codes that were issued by hand; `of` returns what one is found by where it is good for a claim now."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client, self._namespace = client, namespace

    async def of(
        self, code: str, review: Review, request: Mapping[str, Any], claim: CodeBinding, policies: Sequence[GrantPolicy], now: datetime
    ) -> str:  # fmt: skip
        """Return the name of a canonical code's object, nothing where it is not good for this claim; raises KubeError."""
        name = issued_name(code)
        obj = await find(self._client, ONE_TIME_CODES, name, self._namespace)
        is_good = (
            obj is not None
            and _fits(obj, code, review, request, claim)
            and _is_let(obj, request, policies, now)
            and await self._is_same_place(obj, review)
        )
        return name if is_good else ""

    async def _is_same_place(self, obj: Object, review: Review) -> bool:
        """Tell whether namespace and object are those from when the code was issued; who makes them again gets another code."""
        issued_at = _created(obj)
        seen = [_created(review.old_object)] if review.operation == "UPDATE" else []
        if review.namespace:
            seen.append(_created(await self._client.get(NAMESPACES, review.namespace)))
        return issued_at is None or all(at is None or at <= issued_at for at in seen)


def _fits(
    obj: Object, code: str, review: Review, request: Mapping[str, Any], claim: CodeBinding
) -> bool:
    """Tell whether an issued code is for this user, policy, rules and object."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    binding = spec.get("binding") or {}
    rules, wanted = binding.get("rules") or [], binding.get("object") or {}
    target = target_of(review, request)
    return (
        is_code(code, str(spec.get("verifier") or ""))
        and spec.get("user") == user_of(request)
        and status.get("state") != "void"
        and not (obj.get("metadata") or {}).get("deletionTimestamp")
        and binding.get("policy") == claim.policy
        and (set(claim.rules) <= set(rules) if claim.rules else not rules)
        and all(wanted.get(key) == target[key] for key in ("kind", "namespace", "name"))
    )


def _is_let(
    obj: Object, request: Mapping[str, Any], policies: Sequence[GrantPolicy], now: datetime
) -> bool:
    """Tell whether a code has not ended and is within the grant policies as they are now."""
    groups = frozenset(map(str, (request.get("userInfo") or {}).get("groups") or ()))
    try:
        issued = replace(parse_issued(obj, now), groups=groups)
    except PolicyError:
        return False
    return now < issued.expires_at and not issuing_policy(issued, policies)[1]


def _created(obj: Mapping[str, Any] | None) -> datetime | None:
    metadata = (obj or {}).get("metadata") or {}
    return rfc3339.read(str(metadata.get("creationTimestamp") or ""))
