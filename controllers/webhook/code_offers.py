"""What a denial offers: a one-time code, an id by which somebody else agrees to one, and how to ask for an exception.

A code is told only to an API server that proved to be one, within the limits of how many there may be, and to somebody who may
redeem it. Nothing is stored of a code that is offered.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import orjson

from controllers.kube.kinds import SUBJECT_ACCESS_REVIEWS
from controllers.store.throttles import MINTED
from engine.codes import Key, mint, shown, slot_of, use_name
from engine.codes.minting import MAX_NUMBER
from engine.errors import LimitError
from engine.grants.blocks import Block, block_id, target_of
from engine.model.kinds import named as policy_named

from .caller import is_proven
from .code_bindings import CodeBinding, user_of
from .recent import Recent
from .throttle import Outstanding, Throttle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controllers.kube import Client, Clock
    from controllers.store.uses import CodeUseRecord, Record, Uses
    from engine.grants import GrantPolicy
    from engine.model import Review

    from .approvals import Approvals

TOO_MANY: Final = "there are too many that can still be used; use one or wait until one is over"
TOO_OFTEN: Final = "too many were offered within a minute; try again in a minute"
MAY_FOR: Final = 5.0
"""Seconds for which somebody is shown offers who held the right to redeem; redeeming asks again."""
MAY_NOT_FOR: Final = 1.0
"""The same for who did not hold it: whoever is given a right tries next what it is for."""
USED_FOR: Final = 2.0
"""Seconds after which it is asked again what somebody used on other replicas."""


class CodeOffers:
    """Offers codes for what policies deny; `outstanding` are those that were handed out here and can still be used."""

    def __init__(
        self, client: Client, clock: Clock, uses: Uses, approvals: Approvals, throttle: Throttle
    ) -> None:
        self._client, self._clock = client, clock
        self._uses, self._approvals, self._throttle = uses, approvals, throttle
        self.outstanding = Outstanding()
        self._rights: Recent[bool] = Recent(clock, lambda may: MAY_FOR if may else MAY_NOT_FOR)
        self._used: Recent[Mapping[str, Record]] = Recent(clock, lambda _: USED_FOR)

    def __repr__(self) -> str:
        return f"<CodeOffers with {self.outstanding!r}>"

    async def lines(
        self,
        review: Review,
        request: Mapping[str, Any],
        claims: Sequence[CodeBinding],
        modes: Mapping[str, GrantPolicy],
        keys: Sequence[Key],
        *,
        afresh: bool,
    ) -> str:
        """Return a line with a new code for each claim that may be acknowledged or was approved; raises KubeError.

        Unless asked `afresh`, by what was known of rights and uses some seconds ago: a code that is offered too much is not accepted.
        """
        if not keys:
            return ""
        lines = []
        for claim in claims:
            policy = modes[claim.policy]
            if policy.codes == "approve":
                lines.append(await self._offer_approved(review, request, claim, policy, keys[0]))
            elif await self.may_redeem(request, claim, afresh=afresh):
                used = await self._uses_of(claim, afresh=afresh)
                lines.append(await self._offer(request, claim, policy, keys[0], used))
        return "".join(lines)

    def taken(self, attempt: CodeUseRecord) -> None:
        """Note that a code was used."""
        self.outstanding.take(attempt.name)
        self._used.forget(_owner(attempt.user, attempt.policy))

    async def _uses_of(self, claim: CodeBinding, *, afresh: bool) -> Mapping[str, Record]:
        user, policy = claim.binding.username, claim.policy
        if afresh:
            return await self._uses.records(user, policy)
        return await self._used.of(_owner(user, policy), lambda: self._uses.records(user, policy))

    async def _offer(
        self,
        request: Mapping[str, Any],
        claim: CodeBinding,
        policy: GrantPolicy,
        key: Key,
        used: Mapping[str, Record],
    ) -> str:
        if is_proven() and not await self._throttle.may_mint(user_of(request)):
            return f"no one-time code for {claim.policy}: {TOO_OFTEN}\n"
        code, name, ends = self._fresh(claim, policy, key, used)
        if not code:
            return f"no one-time code for {claim.policy}: {TOO_MANY}\n"
        if is_proven():
            self._throttle.count(MINTED, user_of(request), writes=request.get("dryRun") is not True)
        return _offered(claim, code, name, ends, is_strict=policy.strict_codes)

    async def _offer_approved(
        self,
        review: Review,
        request: Mapping[str, Any],
        claim: CodeBinding,
        policy: GrantPolicy,
        key: Key,
    ) -> str:
        """Return the line with an approved code that was not used, else the one that asks for approval; raises KubeError."""
        approval = await self._approvals.of(claim, policy, self._clock.now())
        if approval is None:
            asked = self._approvals.request(review, request, claim)
            return f"a one-time code for {claim.policy} needs somebody else's approval: kubectl kpolicy otp approve {asked}\n"
        code = self._approvals.code(approval, claim, key)
        name = use_name(code)
        if name in await self._uses.records(claim.binding.username, claim.policy):
            return f"no one-time code for {claim.policy}: the approved one was used\n"
        return _offered(claim, code, name, approval.ends, is_strict=policy.strict_codes)

    def _fresh(
        self, claim: CodeBinding, policy: GrantPolicy, key: Key, used: Mapping[str, Record]
    ) -> tuple[str, str, datetime]:
        """Return the first code of this slot that was not used, the name of its use, and when it ends; empty where there may be none."""
        now = self._clock.now()
        slot = slot_of(now, policy.code_for)
        ends = datetime.fromtimestamp((slot + 2) * policy.code_for.total_seconds(), UTC)
        lately = sum(one.at > now - 2 * policy.code_for for one in used.values())
        for number in range(MAX_NUMBER):
            code = mint(key, claim.binding, slot, number)
            name = use_name(code)
            if name not in used:
                if not self.outstanding.may_add(name, claim, now, lately):
                    break
                if is_proven():
                    self.outstanding.add(name, claim, ends)
                return code, name, ends
        return "", "", ends

    async def may_redeem(
        self, request: Mapping[str, Any], claim: CodeBinding, *, afresh: bool
    ) -> bool:
        """Tell whether somebody holds the verb `redeem` on a policy, or held it lately unless asked `afresh`; raises KubeError."""
        info = request.get("userInfo") or {}
        kind, key = policy_named(claim.policy)
        namespace, _, name = key.rpartition("/")
        about = {
            "verb": "redeem",
            "group": kind.group,
            "resource": kind.plural,
            "name": name,
            **({"namespace": namespace} if namespace else {}),
        }
        asked = {
            "user": info.get("username"),
            "groups": info.get("groups") or [],
            "uid": info.get("uid") or "",
            "extra": info.get("extra") or {},
            "resourceAttributes": about,
        }
        if afresh:
            return await self._is_allowed(asked)
        # the question as it is sent, so that whatever the API server goes by tells answers apart
        return await self._rights.of(_written(asked), lambda: self._is_allowed(asked))

    async def _is_allowed(self, asked: Mapping[str, Any]) -> bool:
        return (await self._client.review(SUBJECT_ACCESS_REVIEWS, asked)).get("allowed") is True


def _written(question: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(question)
    except TypeError as error:
        raise LimitError("what is told of who asks is nested too deep to be asked about") from error


def _owner(user: str, policy: str) -> str:
    return f"{policy}\n{user}"


def _offered(claim: CodeBinding, code: str, name: str, ends: datetime, *, is_strict: bool) -> str:
    if not is_proven():
        # INVARIANT: no code is told to somebody who did not prove to be the API server
        return f"one-time code for {claim.policy}: kubectl kpolicy otp claim {name} (until {ends:%H:%M:%S} UTC)\n"
    how = "by `kubectl kpolicy otp claim`" if is_strict else "in annotation kpolicy.io/code"
    return f"one-time code for {claim.policy}: {shown(code)} (until {ends:%H:%M:%S} UTC, {how})\n"


def ways_out(asked: Mapping[str, tuple[str, ...]], review: Review, key: bytes) -> str:
    """Return the lines that say how to ask for exceptions from rules by policy; `key` is the `block_key`."""
    name = target_of(review.metadata, is_new=review.operation == "CREATE")
    blocks = [
        Block(policy, rules, review.kind, name, review.namespace) for policy, rules in asked.items()
    ]
    return "".join([f"\nto request an exception: kubectl kpolicy grant --block {block_id(one, key)}" for one in blocks])  # fmt: skip
