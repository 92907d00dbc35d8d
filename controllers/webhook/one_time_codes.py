"""One-time codes at admission: a denial that offers one, a request that uses one.

Asked in the validating stage only, after policies have denied; what goes wrong here leaves the denial as it was. OneTimeCodes are off
unless a GrantPolicy turns them on for the rules that block, and then for people only, through an API server that proved to be
one. Nothing is written but the use of a code, and on dry runs not even that.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from controllers.runtime.tracing import traced
from controllers.store.code_keys import CodeKeys
from controllers.store.grants import GrantPolicies
from controllers.store.throttles import WRONG
from controllers.store.uses import CodeUseRecord, Uses, use_key
from engine import codes
from engine.codes.minting import MAX_NUMBER
from engine.errors import EngineError
from engine.grants.blocks import block_key
from engine.vocabulary import SERVICE_ACCOUNT

from . import code_bindings
from .approvals import Approvals
from .audit_events import ReuseRecorder
from .caller import is_proven
from .code_offers import CodeOffers, ways_out
from .code_ways import Ways
from .issued import IssuedCodes
from .live import Live
from .throttle import Throttle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controllers.kube import Client, Clock
    from controllers.kube.reflector import Informers
    from controllers.runtime.cluster_cache import ClusterCache
    from engine.grants import GrantPolicy
    from engine.model import Review, RuleResult

    from .verdicts import Ruling

NOT_ACCEPTED: Final = "the code is not accepted"
LOCKED: Final = "there were too many codes that are none; try again in a minute"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Found:
    """A code that an object carries and that a claim accepts; `source` says where it comes from."""

    claim: code_bindings.CodeBinding
    code: str
    source: str


class OneTimeCodes:
    """Offers and takes codes for denied requests. `key` is the one that all replicas share; `informers` spare claims that are not there their lists."""

    def __init__(
        self,
        cache: ClusterCache,
        client: Client,
        clock: Clock,
        namespace: str,
        key: bytes,
        informers: Informers | None = None,
    ) -> None:
        self._clock, self._namespace = clock, namespace
        self._keys = CodeKeys(client, clock, namespace, key)
        self._uses = Uses(client, namespace, use_key(key))
        self._code_claims = code_bindings.CodeClaims(client, clock, namespace, informers)
        self._issued = IssuedCodes(client, namespace)
        self._approvals = Approvals(client, namespace, key, self._uses)
        self._block_key = block_key(key)
        self._bindings = code_bindings.CodeBindings(cache, client)
        self._policies, self._ways = GrantPolicies(client, clock), Ways()
        self.throttle = Throttle(client, clock, namespace)
        self._offers = CodeOffers(client, clock, self._uses, self._approvals, self.throttle)
        self._live = Live(client, cache.discovery)
        self._reuses = ReuseRecorder(client, clock, namespace, key)

    def __repr__(self) -> str:
        return f"<OneTimeCodes in {self._namespace}>"

    @traced("judge codes")
    async def judge(
        self, review: Review, request: Mapping[str, Any], ruling: Ruling, budget: float
    ) -> Ruling:
        """Return the ruling on a request with what codes make of it; a denial stays one when anything fails."""
        if not ruling.denial:
            return _unneeded(review, ruling)
        if self._policies.recent == () or not code_bindings.can_carry(review):
            return ruling
        try:
            async with asyncio.timeout(budget):
                return await self._judge(review, request, ruling)
        except (TimeoutError, KeyError, EngineError) as error:
            _log.warning("codes were left aside: %s", type(error).__name__)
            return ruling

    async def _judge(self, review: Review, request: Mapping[str, Any], ruling: Ruling) -> Ruling:
        by_policy = code_bindings.rules_by_policy(ruling.refusing)
        policies = await self._policies.current() if by_policy else ()
        if not policies or by_policy is None:
            return ruling
        user, groups = code_bindings.user_of(request), code_bindings.groups_of(request)
        named = {key: code_bindings.rules_named(results) for key, results in by_policy.items()}
        ways = {
            key: self._ways.of(policies, key, rules, review.namespace, user, groups)
            for key, rules in named.items()
        }
        asked = {key: rules for key, rules in named.items() if ways[key].may_ask}
        ruling = replace(ruling, tail=ways_out(asked, review, self._block_key))
        modes = {key: way.codes for key, way in ways.items() if way.codes is not None}
        if len(modes) < len(named) or not _may_have_codes(user, modes):
            return ruling
        if not is_proven() and not all(one.strict_codes for one in modes.values()):
            return ruling
        return await self._with_claims(review, request, by_policy, modes, ruling)

    async def _with_claims(
        self,
        review: Review,
        request: Mapping[str, Any],
        blocking: Mapping[str, Sequence[RuleResult]],
        modes: Mapping[str, GrantPolicy],
        ruling: Ruling,
    ) -> Ruling:
        carried = codes.carried_codes(review.object)
        user, keys = code_bindings.user_of(request), await self._keys.current()
        # INVARIANT: what is counted for a person is counted and looked up for proven callers only, else anybody could fill it
        if is_proven() and await self.throttle.is_locked(user):
            return replace(ruling, lead=f"{LOCKED}\n")
        claimed = await self._claimed(review, request, modes)
        # INVARIANT: what is brought is judged by what the API server says now, and only an offer by what it said lately
        is_brought = bool(carried or claimed)
        claims = await self._bindings.of(review, request, blocking, as_seen=not is_brought)
        if is_brought:
            found = await self._accepted(review, request, claims, modes, carried, keys, claimed)
            wanted = [one for one in found if one]
            if len(wanted) == len(found) and await self._may_redeem_all(request, wanted):
                passed = await self._take(review, request, wanted)
                if passed is not None:
                    audit = {"code-uses": ",".join(codes.use_name(one.code) for one in wanted)}
                    return replace(ruling, denial="", tail="", warnings=passed, audit=audit)
            elif carried and is_proven() and not wanted:
                self.throttle.count(WRONG, user, writes=not review.dry_run)
            if is_proven() and not review.dry_run:
                await self._note_reuses(review, request, carried, wanted)
            ruling = replace(ruling, lead=f"{NOT_ACCEPTED}\n" if carried else "")
        offers = await self._offers.lines(review, request, claims, modes, keys, afresh=is_brought)
        return replace(ruling, lead=ruling.lead + offers)

    async def _note_reuses(
        self,
        review: Review,
        request: Mapping[str, Any],
        carried: Sequence[str],
        accepted: Sequence[Found],
    ) -> None:
        """Have it noted where a code was used before that somebody brings, or claims; raises KubeError.

        What the object carried before is not brought by whoever changes it.
        """
        there = frozenset(map(codes.canonical, codes.carried_codes(review.old_object or {})))
        brought = {code for code in map(codes.canonical, carried) if code and code not in there}
        brought |= {one.code for one in accepted}
        target = code_bindings.target_of(review, request)
        await self._reuses.note(code_bindings.user_of(request), target, map(codes.use_name, sorted(brought)))  # fmt: skip

    async def _accepted(
        self,
        review: Review,
        request: Mapping[str, Any],
        claims: Sequence[code_bindings.CodeBinding],
        modes: Mapping[str, GrantPolicy],
        carried: Sequence[str],
        keys: Sequence[codes.Key],
        claimed: frozenset[str],
    ) -> list[Found | None]:
        """Return for every claim the code that is brought for it, or None; raises KubeError."""
        found = []
        policies = await self._policies.current()
        for claim in claims:
            if modes[claim.policy].strict_codes:
                found.append(await self._claimed_for(claim, modes[claim.policy], keys, claimed))
                continue
            one = await self._minted_among(claim, modes[claim.policy], carried, keys)
            found.append(one or await self._issued_among(review, request, claim, carried, policies))
        return found

    async def _claimed(
        self, review: Review, request: Mapping[str, Any], modes: Mapping[str, GrantPolicy]
    ) -> frozenset[str]:
        """Return the names of uses that whoever asks claims, where any policy asks for that; raises KubeError."""
        if not any(one.strict_codes for one in modes.values()):
            return frozenset()
        return await self._code_claims.of(
            code_bindings.user_of(request), code_bindings.groups_of(request), review.namespace
        )

    async def _claimed_for(
        self,
        claim: code_bindings.CodeBinding,
        policy: GrantPolicy,
        keys: Sequence[codes.Key],
        claimed: frozenset[str],
    ) -> Found | None:
        """Return the code for a claim whose use was claimed by its owner; raises KubeError."""
        now, source = self._clock.now(), "minted"
        if policy.codes == "approve":
            approval = await self._approvals.of(claim, policy, now)
            expected = self._approvals.codes(approval, claim, keys) if approval else []
            source = approval.name if approval else ""
        else:
            slot = codes.slot_of(now, policy.code_for)
            expected = [codes.mint(key, claim.binding, at, number) for key in keys for at in (slot, slot - 1) for number in range(MAX_NUMBER)]  # fmt: skip
        return next(
            (Found(claim, code, source) for code in expected if codes.use_name(code) in claimed),
            None,
        )

    async def _minted_among(
        self,
        claim: code_bindings.CodeBinding,
        policy: GrantPolicy,
        carried: Sequence[str],
        keys: Sequence[codes.Key],
    ) -> Found | None:
        now = self._clock.now()
        if policy.codes == "approve":
            approval = await self._approvals.of(claim, policy, now)
            code = self._approvals.among(approval, claim, carried, keys) if approval else ""
            return Found(claim, code, approval.name) if approval and code else None
        slot = codes.slot_of(now, policy.code_for)
        verified = [codes.verify(keys, claim.binding, text, slot) for text in carried]
        return next((Found(claim, code, "minted") for code in verified if code), None)

    async def _issued_among(
        self,
        review: Review,
        request: Mapping[str, Any],
        claim: code_bindings.CodeBinding,
        carried: Sequence[str],
        policies: Sequence[GrantPolicy],
    ) -> Found | None:
        for code in filter(None, map(codes.canonical, carried)):
            name = await self._issued.of(code, review, request, claim, policies, self._clock.now())
            if name:
                return Found(claim, code, name)
        return None

    async def _take(
        self, review: Review, request: Mapping[str, Any], found: Sequence[Found]
    ) -> tuple[str, ...] | None:
        """Use all codes and return what is said about it; None where one of them was used for something else."""
        attempts = [self._attempt(review, request, one) for one in found]
        if review.dry_run:
            free = [await self._uses.could_take(one) for one in attempts]
            return ("the one-time code would be used; nothing was written on this dry run",) if all(free) else None  # fmt: skip
        if not is_proven():
            seen = await self._live.before(review, request)
            if not seen:
                return None
            attempts = [replace(one, seen=seen) for one in attempts]
        for attempt in attempts:
            if not await self._uses.take(attempt):
                return None
            self._offers.taken(attempt)
        return tuple(
            f"a one-time code for {one.policy} was used; it is on record as {one.name} with the name of {one.user}"
            for one in attempts
        )

    def _attempt(self, review: Review, request: Mapping[str, Any], found: Found) -> CodeUseRecord:
        return CodeUseRecord(
            name=codes.use_name(found.code),
            user=code_bindings.user_of(request),
            policy=found.claim.policy,
            rules=found.claim.rules,
            operation=review.operation,
            target=code_bindings.target_of(review, request),
            fingerprint=code_bindings.body_of(review),
            source=found.source,
            at=self._clock.now(),
        )

    async def _may_redeem_all(self, request: Mapping[str, Any], found: Sequence[Found]) -> bool:
        """Ask whether somebody holds the verb `redeem` on every policy that codes are brought for; raises KubeError."""
        return all(
            [await self._offers.may_redeem(request, one.claim, afresh=True) for one in found]
        )


def _may_have_codes(user: str, modes: Mapping[str, GrantPolicy]) -> bool:
    """Tell whether somebody may have codes: people, and service accounts where somebody else has to agree.

    Components of Kubernetes have none at all, because what they are told is in their logs.
    """
    if not user.startswith("system:"):
        return True
    is_account = user.startswith(SERVICE_ACCOUNT) and not user.startswith(f"{SERVICE_ACCOUNT}{code_bindings.CLUSTER_NAMESPACE}:")  # fmt: skip
    return is_account and all(one.codes == "approve" for one in modes.values())


def _unneeded(review: Review, ruling: Ruling) -> Ruling:
    if not code_bindings.can_carry(review) or not codes.carried_codes(review.object):
        return ruling
    told = "no one-time code was needed for the policies that were asked here, and none was used by them"
    return replace(ruling, warnings=(*ruling.warnings, told))
