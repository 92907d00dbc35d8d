"""What a denial offers: a one-time code, an id by which somebody else agrees to one, and how to ask for an exception.

A code is told only to an API server that proved to be one, within the limits of how many there may be, and to somebody who may
redeem it. Nothing is stored of a code that is offered.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from controllers.kube.kinds import SUBJECT_ACCESS_REVIEWS
from controllers.store.throttles import MINTED
from engine.codes import Key, mint, shown, slot_of, use_name
from engine.codes.minting import MAX_NUMBER
from engine.grants.blocks import Block, block_id, target_of
from engine.model.kinds import named as policy_named

from .caller import is_proven
from .code_bindings import CodeBinding, user_of
from .throttle import Outstanding, Throttle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controllers.kube import Client, Clock
    from controllers.store.uses import Uses
    from engine.grants import GrantPolicy
    from engine.model import Review

    from .approvals import Approvals

TOO_MANY: Final = "there are too many that can still be used; use one or wait until one is over"
TOO_OFTEN: Final = "too many were offered within a minute; try again in a minute"


class CodeOffers:
    """Offers codes for what policies deny; `outstanding` are those that were handed out here and can still be used."""

    def __init__(
        self, client: Client, clock: Clock, uses: Uses, approvals: Approvals, throttle: Throttle
    ) -> None:
        self._client, self._clock = client, clock
        self._uses, self._approvals, self._throttle = uses, approvals, throttle
        self.outstanding = Outstanding()

    def __repr__(self) -> str:
        return f"<CodeOffers with {self.outstanding!r}>"

    async def lines(
        self,
        review: Review,
        request: Mapping[str, Any],
        claims: Sequence[CodeBinding],
        modes: Mapping[str, GrantPolicy],
        keys: Sequence[Key],
    ) -> str:
        """Return a line with a new code for each claim that may be acknowledged or was approved; raises KubeError."""
        if not keys:
            return ""
        lines = []
        for claim in claims:
            policy = modes[claim.policy]
            if policy.codes == "approve":
                lines.append(await self._offer_approved(review, request, claim, policy, keys[0]))
            elif await self.may_redeem(request, claim):
                lines.append(await self._offer(request, claim, policy, keys[0]))
        return "".join(lines)

    async def _offer(
        self, request: Mapping[str, Any], claim: CodeBinding, policy: GrantPolicy, key: Key
    ) -> str:
        if is_proven() and not await self._throttle.may_mint(user_of(request)):
            return f"no one-time code for {claim.policy}: {TOO_OFTEN}\n"
        code, ends = await self._fresh(claim, policy, key)
        if not code:
            return f"no one-time code for {claim.policy}: {TOO_MANY}\n"
        if is_proven():
            self._throttle.count(MINTED, user_of(request), writes=request.get("dryRun") is not True)
        return _offered(claim, code, ends, is_strict=policy.strict_codes)

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
        if use_name(code) in await self._uses.records(claim.binding.username, claim.policy):
            return f"no one-time code for {claim.policy}: the approved one was used\n"
        return _offered(claim, code, approval.ends, is_strict=policy.strict_codes)

    async def _fresh(
        self, claim: CodeBinding, policy: GrantPolicy, key: Key
    ) -> tuple[str, datetime]:
        """Return the first code of this slot that was not used, and when it ends; empty where there may be none."""
        now = self._clock.now()
        slot = slot_of(now, policy.code_for)
        ends = datetime.fromtimestamp((slot + 2) * policy.code_for.total_seconds(), UTC)
        used = await self._uses.records(claim.binding.username, claim.policy)
        lately = sum(one.at > now - 2 * policy.code_for for one in used.values())
        for number in range(MAX_NUMBER):
            code = mint(key, claim.binding, slot, number)
            name = use_name(code)
            if name not in used:
                if not self.outstanding.may_add(name, claim, now, lately):
                    break
                if is_proven():
                    self.outstanding.add(name, claim, ends)
                return code, ends
        return "", ends

    async def may_redeem(self, request: Mapping[str, Any], claim: CodeBinding) -> bool:
        """Ask whether somebody holds the verb `redeem` on a policy; raises KubeError."""
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
        asked = {"user": info.get("username"), "groups": info.get("groups") or [], "uid": info.get("uid") or "", "extra": info.get("extra") or {}}  # fmt: skip
        status = await self._client.review(
            SUBJECT_ACCESS_REVIEWS, {**asked, "resourceAttributes": about}
        )
        return status.get("allowed") is True


def _offered(claim: CodeBinding, code: str, ends: datetime, *, is_strict: bool) -> str:
    if not is_proven():
        # INVARIANT: no code is told to somebody who did not prove to be the API server
        return f"one-time code for {claim.policy}: kubectl kpolicy otp claim {use_name(code)} (until {ends:%H:%M:%S} UTC)\n"
    how = "by `kubectl kpolicy otp claim`" if is_strict else "in annotation kpolicy.io/code"
    return f"one-time code for {claim.policy}: {shown(code)} (until {ends:%H:%M:%S} UTC, {how})\n"


def ways_out(
    covering: Mapping[str, Sequence[GrantPolicy]],
    named: Mapping[str, Sequence[str]],
    review: Review,
    key: bytes,
) -> str:
    """Return the lines that say how to ask for an exception, where somebody may be asked."""
    name = target_of(review.metadata, is_new=review.operation == "CREATE")
    blocks = [
        Block(key, tuple(named[key]), review.kind, name, review.namespace)
        for key, policies in covering.items()
        if policies
    ]
    return "".join(f"\nto request an exception: kubectl kpolicy grant --block {block_id(one, key)}" for one in blocks)  # fmt: skip
