"""Admission of Grants, GrantPolicies and OneTimeCodes: what the engine's limits refuse is refused when it is asked for, in the same words.

Who asks and who decides is pinned here, too, beside the API server's own admission policies (`controllers.manifests.guards`):
those hold while we are down, this holds on servers that do not evaluate them.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from controllers.kube import Client, Clock, Discovery, Forbidden, Kind, NotFound
from controllers.kube.accounts import Job
from controllers.kube.kinds import GRANT_POLICIES, GRANTS, ONE_TIME_CODES, SUBJECT_ACCESS_REVIEWS
from controllers.lookups.grant_names import missing_object, missing_rules, refused_emergency
from controllers.manifests.crds.native import REQUEST_FIELDS
from engine import vocabulary
from engine.codes.requests import request_key
from engine.errors import EngineError
from engine.fields import part
from engine.grants import chosen_policy, exception_of, parse_grant, parse_grant_policy
from engine.grants.approvals import may_approve
from engine.grants.blocks import block_key, is_signed, read_block_id
from engine.grants.cause import group_of, says_same
from engine.grants.circumstances import circumstances_of, readable_policies, state_of
from engine.grants.requests import is_wide
from engine.lang import regex, rfc3339, wildcard
from engine.match.kinds import parse_kind
from engine.match.selectors import compile_selector
from engine.reach import is_granted

from . import envelope
from .author_rights import subject_of
from .caller import is_proven
from .issued import check_issued

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
    from datetime import datetime

    from engine.grants import Grant, GrantPolicy
    from engine.model import Json, Object

_log = logging.getLogger(__name__)


class Refused(EngineError):  # noqa: N818 - it names the verdict
    """The object is not accepted."""


class GrantValidator:
    """Decides on Grants, GrantPolicies and OneTimeCodes; `review` answers the path of both."""

    def __init__(
        self, client: Client, clock: Clock, key: bytes, discovery: Discovery | None = None
    ) -> None:
        self._client, self._clock = client, clock
        self._discovery = discovery or Discovery(client)
        self._block_key, self._request_key = block_key(key), request_key(key)

    def __repr__(self) -> str:
        return "<GrantValidator>"

    async def review(self, _rest: str, body: bytes, budget: float) -> bytes:
        """Answer the review of one of them."""
        request = envelope.read_request(body)
        uid, obj = str(request["uid"]), request.get("object")
        if obj is None or _is_going_as_it_was(obj, request.get("oldObject")):
            return envelope.allowed(uid)
        check = self._check_of(obj)
        try:
            async with asyncio.timeout(budget):
                warnings = await check(request)
        except TimeoutError:
            return envelope.denied(uid, f"the grant could not be checked within {budget:.1f} s")
        except EngineError as error:
            return envelope.denied(uid, error.message)
        except Exception:
            _log.exception("the check of a grant failed")
            return envelope.denied(uid, "the grant could not be checked")
        return envelope.allowed(uid, warnings or ())

    def _check_of(self, obj: Object) -> Callable[[Mapping[str, Json]], Awaitable[list[str] | None]]:
        if obj.get("kind") == GRANT_POLICIES.kind:
            return self._check_policy
        if obj.get("kind") == ONE_TIME_CODES.kind:
            return self._check_code
        return self._check_grant

    async def _check_code(self, request: Mapping[str, Any]) -> None:
        await check_issued(self._client, request, self._clock.now(), self._request_key)

    async def _check_grant(self, request: Mapping[str, Any]) -> list[str]:
        """Refuse what may not be asked for or decided; return what a request names and nothing has."""
        obj, old = request["object"], request.get("oldObject")
        user = request.get("userInfo") or {}
        parse_grant(obj)
        for reason in _wrong_request(obj, user) if old is None else _wrong_change(obj, old, user):
            raise Refused(f"refused: {reason}")
        if old is not None:
            return await self._without_effect(obj, old)
        _check_block(obj, self._block_key)
        await self._check_limits(obj)
        return await self._lacking(parse_grant(obj), user)

    async def _without_effect(self, obj: Object, old: Object) -> list[str]:
        """Return a sentence where a decision is added that the grant policy, as far as it can be read, does not count."""
        grant, name = parse_grant(obj), str((obj.get("status") or {}).get("grantPolicy") or "")
        added = grant.decisions[len(parse_grant(old).decisions) :]
        judging = [one for one in added if one.verdict in ("approve", "deny")]
        if not judging or not name:
            return []
        try:
            policy = parse_grant_policy(await self._client.get(GRANT_POLICIES, name))
        except EngineError:
            return []
        if all(may_approve(one.by, one.groups, grant, policy) for one in judging):
            return []
        approvers = f"neither its `by` nor its `groups` are approvers of grantpolicy/{name}"
        return [f"the decision does not count: {approvers}; kubectl kpolicy grant approve and deny fill in the groups"]  # fmt: skip

    async def _lacking(self, grant: Grant, user: Mapping[str, Any]) -> list[str]:
        """Return a sentence for each name that nothing has; refuse an emergency for a rule that is not there."""
        rules = await missing_rules(self._client, self._discovery, grant)
        if refused := refused_emergency(grant, rules):
            raise Refused(refused)
        may_read = partial(self._may_read, grant, user)
        return [*rules, *await missing_object(self._client, self._discovery, grant, may_read)]

    async def _may_read(self, grant: Grant, user: Mapping[str, Any], kind: Kind) -> bool:
        """Tell whether who asks may read what the grant is for; raises KubeError."""
        about = {
            "verb": "get",
            "group": kind.group,
            "version": kind.version,
            "resource": kind.plural,
            "name": grant.target,
        }
        place = {"namespace": grant.namespace} if kind.namespaced else {}
        asked = {**subject_of(user), "resourceAttributes": {**about, **place}}
        status = await self._client.review(SUBJECT_ACCESS_REVIEWS, asked)
        return status.get("allowed") is True

    async def _check_policy(self, request: Mapping[str, Any]) -> None:
        policy = parse_grant_policy(request["object"])
        if policy.ticket:
            regex.compile(policy.ticket)
        for level in policy.levels:
            if not level.users and not level.groups:
                raise Refused(f"grantpolicy/{policy.name}: a level of approvers names nobody")
        if policy.codes != "off" and not policy.strict_codes and not is_proven():
            raise Refused(
                f"grantpolicy/{policy.name}: one-time codes need an API server that proves to be one by a certificate "
                "(--client-ca), or spec.codes.strict, with which people claim them; a path proves nothing unless "
                "--trust-path says that it does"
            )

    async def _check_limits(self, obj: Object) -> None:
        """Refuse what no grant policy allows; raises KubeError where they cannot be read."""
        grant = parse_grant(obj)
        policies, _ = readable_policies((await self._client.list_all(GRANT_POLICIES)).items)
        grants = (await self._client.list_all(GRANTS)).items
        circumstances = circumstances_of(grant, grants, self._clock.now())
        policy, refusals = chosen_policy(grant, policies, circumstances)
        if refusals:
            raise Refused("\n".join(map(str, refusals)))
        if policy is not None and policy.max_objects and is_wide(grant):
            await self._check_reach(grant, policy)

    async def _check_reach(self, grant: Grant, policy: GrantPolicy) -> None:
        """Refuse a request for more objects than may be let be at once; raises KubeError where they cannot be counted."""
        most = policy.max_objects
        try:
            found = await reach_of(self._client, self._discovery, grant, most)
        except Forbidden as error:
            raise Refused(f"refused: the objects that it reaches cannot be counted: {error.message}; name one object") from error  # fmt: skip
        if found > most:
            raise Refused(
                f"refused: it reaches more than {most} objects, the limit of grantpolicy/{policy.name}; name fewer"
            )


def _is_going_as_it_was(obj: Object, old: Object | None) -> bool:
    """Tell whether an object that is being deleted says what it said; what is going counts until it is gone."""
    is_going = bool((obj.get("metadata") or {}).get("deletionTimestamp"))
    return is_going and old is not None and old.get("spec") == obj.get("spec")


def _check_block(obj: Object, key: bytes) -> None:
    """Refuse a request by the id of a denial that was not ours, or that told of something else."""
    spec = obj["spec"]
    text = str(spec.get("block") or "")
    if not text:
        return
    block = read_block_id(text) if is_signed(text, key) else None
    if block is None:
        raise Refused(
            "refused: spec.block is no id of a denial in this cluster; name POLICY/RULE and KIND/NAME instead"
        )
    target = spec.get("target") or {}
    asked = (spec.get("policy"), target.get("kind"), target.get("name"), obj["metadata"].get("namespace"))  # fmt: skip
    told = (block.policy, block.kind, block.name, block.namespace)
    rules = set(spec.get("rules") or ())
    if asked != told or bool(rules) is not bool(block.rules) or not rules <= set(block.rules):
        raise Refused("refused: the denial of spec.block was about something else")


def _wrong_request(obj: Object, user: Mapping[str, Any]) -> Iterator[str]:
    spec = obj["spec"]
    if spec.get("requester") != user.get("username"):
        yield "spec.requester must be who creates the grant"
    if not set(spec.get("requesterGroups") or ()) <= set(user.get("groups") or ()):
        yield "spec.requesterGroups must be groups of who creates the grant"
    if spec.get("decisions"):
        yield "a new grant has no decisions"


def _wrong_change(obj: Object, old: Object, user: Mapping[str, Any]) -> Iterator[str]:
    before, after = old["spec"], obj["spec"]
    if any(before.get(name) != after.get(name) for name in REQUEST_FIELDS):
        yield "a request cannot be changed; withdraw it and make another one"
    earlier, decisions = before.get("decisions") or [], after.get("decisions") or []
    if decisions[: len(earlier)] != earlier:
        yield "decisions cannot be changed or taken back"
    added = decisions[len(earlier) :]
    if len(added) > 1:
        yield "one decision at a time"
    for one in added:
        yield from _wrong_decision(one, str(before.get("requester")), user)


def _wrong_decision(one: Mapping[str, Any], requester: str, user: Mapping[str, Any]) -> Iterator[str]:  # fmt: skip
    name = str(user.get("username") or "")
    if one.get("by") != name:
        yield "a decision is made in one's own name"
    if not set(one.get("groups") or ()) <= set(user.get("groups") or ()):
        yield "a decision names only groups of who makes it"
    if one.get("verdict") == "approve":
        if name == requester:
            yield "nobody approves an own request"
        if name.startswith(vocabulary.SERVICE_ACCOUNT):
            yield "a service account cannot approve"


# How many objects that are there now a grant would let be as they are: what a wide request is refused by.
#
# Kinds, names and labels are read as the exception of the grant reads them, wildcards in labels included; a server's own label
# selectors know none.

MOST_KINDS: Final = 20
"""Kinds that are counted for one request; more of them are too many to be granted at once."""


async def reach_of(client: Client, discovery: Discovery, grant: Grant, most: int) -> int:
    """Return how many objects fit a grant, or some number beyond `most`.

    Raises KubeError where they cannot be listed and PolicyError for a selector that cannot be read.
    """
    kinds = _kinds(discovery, grant.kind)
    if len(kinds) > MOST_KINDS:
        return most + 1
    fits = _test_of(grant)
    found = 0
    for kind in kinds:
        page = await client.list_all(kind, grant.namespace, metadata_only=True)
        found += sum(fits(one["metadata"]) for one in page.items)
        if found > most:
            break
    return found


def _kinds(discovery: Discovery, text: str) -> list[Kind]:
    wanted = parse_kind(text)
    return [
        one
        for one in discovery.matching(wanted.group, wanted.version, wanted.kind, preferred=True)
        if one.namespaced and "list" in (one.verbs or ("list",))
    ]


def _test_of(grant: Grant) -> Callable[[Object], bool]:
    named = wildcard.compiled(grant.target or "*")
    labelled = compile_selector(grant.selector or {})

    def fits(metadata: Any) -> bool:
        return named(str(metadata["name"])) and labelled(metadata.get("labels") or {})

    return fits


# Exceptions that name a grant, when somebody makes one: only what the grant says and only while it is active.
#
# GitOps tools bring back what they once saw. An exception whose end is past covers nothing, and its maker is told; one of a grant
# that was revoked before its end would cover something, and is refused.


class NotGranted(EngineError):  # noqa: N818 - it names the verdict
    """An exception that names a grant which does not stand behind it."""


def check_maker(obj: Object, old: Object | None, jobs: Collection[Job]) -> None:
    """Refuse that anybody but the account of grants makes an exception that carries a grant, or turns one into it.

    `jobs` are those of ours that the request is made for. The API server's own policies say the same, where it has them.
    """
    if is_granted(obj) and not (old is not None and is_granted(old)) and Job.GRANTS not in jobs:
        raise NotGranted("an exception by grant is made from its grant; ask for one")


async def check_granted(client: Client, obj: Object) -> None:
    """Refuse an exception that names a grant and is not the one that the grant causes now; raises KubeError, too."""
    named = str(_annotations(obj).get(vocabulary.GRANT) or "")
    if not named:
        return
    namespace, _, name = named.rpartition("/")
    try:
        grant = await client.get(GRANTS, name, namespace)
    except NotFound:
        raise NotGranted(f"there is no grant `{named}` for this exception") from None
    if grant["metadata"].get("deletionTimestamp"):
        raise NotGranted(f"grant {named} is being deleted; its exception is not made again")
    state = state_of(grant)
    if state != "active":
        raise NotGranted(f"grant {named} is {state}; its exception is not made again")
    ends = rfc3339.read(str((grant.get("status") or {}).get("expiresAt") or ""))
    if ends is None or not _is_caused(obj, grant, ends):
        raise NotGranted(f"this is not the exception of grant {named}")


def ended(ends: datetime | None, now: datetime) -> list[str]:
    """Return a warning about an exception whose end is past, by whichever way of saying so; it covers nothing."""
    if ends is None or now < ends:
        return []
    return [f"this exception ended at {rfc3339.write(ends)} and covers nothing"]


def _is_caused(obj: Object, grant: Object, ends: datetime) -> bool:
    """Tell whether an exception says what the grant's own says; an end that is nearer is fine."""
    parsed = parse_grant(grant)
    wanted = exception_of(parsed, ends)
    metadata, expected = obj.get("metadata") or {}, wanted["metadata"]
    given = rfc3339.read(str(_annotations(obj).get(vocabulary.EXPIRES_AT) or ""))
    shared = (vocabulary.GRANT, vocabulary.USES)
    return (
        str(obj.get("apiVersion") or "").startswith(f"{group_of(parsed)}/")
        and says_same(obj.get("spec") or {}, wanted["spec"])
        and (metadata.get("name"), metadata.get("namespace")) == (expected["name"], expected["namespace"])
        and all(_annotations(obj).get(key) == expected["annotations"].get(key) for key in shared)
        and given is not None
        and given <= ends
    )  # fmt: skip


def _annotations(obj: Object) -> dict[str, Any]:
    return part(obj, "metadata", "annotations")
