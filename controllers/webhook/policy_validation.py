"""Admission of our own kinds: policies, exceptions, cleanup policies, and the TTL label on anything.

What the engine's lint refuses is refused on its first error, what it doubts is a warning. What needs the cluster is asked
here: kinds that exist, and rights that we have (rows A-93, A-94, C-03, C-07, X-09).
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from controllers.kube import Client, Clock, Invalid, KubeError
from controllers.kube.accounts import Job
from controllers.kube.clock import SystemClock
from controllers.kube.kinds import VALIDATING_WEBHOOKS
from controllers.kube.store import key_of
from controllers.runtime.evaluating import PROCESS
from controllers.store.policies import is_cel, match_conditions, read_cel_exception, read_policy
from engine import lint, vocabulary
from engine.cleanup import ttl
from engine.cleanup.plan import names_of
from engine.errors import EngineError
from engine.evaluate import compile_policy
from engine.exceptions import compile_exception
from engine.fields import part
from engine.model.kinds import BY_NAME, loaded
from engine.parse import parse_cleanup_policy, parse_exception, parse_policy
from engine.requestinfo import RequestInfo
from engine.vocabulary import DECIDING

from . import envelope, scopes
from .admission_rules import kinds_in
from .author_lookups import needs_of_entry, needs_of_exception
from .author_needs import needs_of_author, needs_of_cleanup_author
from .author_rights import AuthorRights, Written
from .configurations import condition_probe
from .grants import check_granted, check_maker, ended
from .schemas import cel_policy_warnings, type_warnings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
    from datetime import datetime

    from controllers.runtime.cluster_cache import ClusterCache
    from engine.model import CleanupPolicy, Json, Object, Policy

    Check = Callable[["ReviewContext"], Awaitable[list[str]]]

_T = TypeVar("_T")

_DOWNSTREAM_CHANGED = (
    "no synchronization will be performed to the old target resource upon policy updates"
)
_MADE: Final = ("apiVersion", "kind", "namespace", "name", "clone", "cloneList")
_LABELLING: Final = frozenset({Job.BACKGROUND, Job.GRANTS})
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReviewContext:
    """What is asked for: the object as it is to be and as it is, who asks, and the resource it is kept under."""

    obj: Object
    old: Object | None
    user: Mapping[str, Any]
    plural: str
    group: str = ""

    @property
    def is_as_it_was(self) -> bool:
        """Whether nothing changes of what decides what a policy does."""
        return self.old is not None and _meaning(self.old) == _meaning(self.obj)

    @property
    def written(self) -> Written:
        """The policy for its author's rights."""
        return Written(self.plural, *key_of(self.obj))


class Refused(EngineError):  # noqa: N818 - it names the verdict
    """The object is not accepted; `warnings` go with the answer."""

    warnings: tuple[str, ...] = ()


class PolicyValidator:
    """Decides on objects of our own kinds. Each method answers one path: rest of the path, body and seconds in, answer out."""

    def __init__(
        self,
        cache: ClusterCache,
        client: Client,
        *,
        background: Client | None = None,
        cleanup: Client | None = None,
        user: str = "",
        clock: Clock | None = None,
        jobs_of: Callable[[str], Collection[Job]] = lambda _: (),
    ) -> None:
        """Make a validator; `background` (whose name is `user`) and `cleanup` are who will carry out policies, else `client`.

        `jobs_of` tells our own accounts.
        """
        self._cache = cache
        self._now = (clock or SystemClock()).now
        self._client = client
        self._background, self._cleanup = background or client, cleanup or client
        self._user = user
        self._jobs_of = jobs_of
        self.authors = AuthorRights(client, lambda user: Job.BACKGROUND in jobs_of(user))

    async def policy(self, _rest: str, body: bytes, budget: float) -> bytes:
        """Answer the review of a policy of any kind."""
        return await self._answer(body, budget, self._check_policy)

    async def exception(self, _rest: str, body: bytes, budget: float) -> bytes:
        """Answer the review of a PolicyException of either group."""
        return await self._answer(body, budget, self._check_exception)

    async def cleanup(self, _rest: str, body: bytes, budget: float) -> bytes:
        """Answer the review of a CleanupPolicy or ClusterCleanupPolicy."""
        return await self._answer(body, budget, self._check_cleanup)

    async def entry(self, _rest: str, body: bytes, budget: float) -> bytes:
        """Answer the review of a GlobalContextEntry."""
        return await self._answer(body, budget, self._check_entry)

    async def label(self, _rest: str, body: bytes, budget: float) -> bytes:
        """Answer the review of an object with a TTL label: refused to who may not delete it, warned of when nobody can read it."""
        return await self._answer(body, budget, self._check_label)

    async def nothing(self, _rest: str, body: bytes, _budget: float) -> bytes:
        """Answer reviews at paths of upstream's that have nothing to decide here."""
        return envelope.allowed(envelope.read_request(body)["uid"])

    async def _answer(self, body: bytes, budget: float, check: Check) -> bytes:
        request = envelope.read_request(body)
        uid, obj = str(request["uid"]), request.get("object")
        if obj is None:
            return envelope.allowed(uid)
        resource = request.get("resource") or {}
        plural, group = (str(resource.get(name) or "") for name in ("resource", "group"))
        asked = ReviewContext(
            obj, request.get("oldObject"), request.get("userInfo") or {}, plural, group
        )
        # What is going counts until it is gone, so only what leaves it as it is may be passed over.
        if asked.is_as_it_was and (obj.get("metadata") or {}).get("deletionTimestamp"):
            return envelope.allowed(uid)
        try:
            async with asyncio.timeout(budget):
                return envelope.allowed(uid, await check(asked))
        except TimeoutError:
            return envelope.denied(uid, f"the object could not be checked within {budget:.1f} s")
        except Refused as error:
            return envelope.denied(uid, error.message, error.warnings)
        except EngineError as error:
            return envelope.denied(uid, error.message)
        except Exception:
            _log.exception("the check of an object failed")
            return envelope.denied(uid, "the object could not be checked")

    async def _check_policy(self, asked: ReviewContext) -> list[str]:
        obj, old = asked.obj, asked.old
        if is_cel(obj):
            return await self._check_cel_policy(asked)
        policy, warnings = _bounded(asked, _read_classic)
        if asked.is_as_it_was:
            return warnings
        await self._know_kinds(policy)
        warnings += _passed(scopes.cluster_findings(policy, self._cache.discovery))
        warnings += await type_warnings(self._client, self._cache.discovery, policy)
        await self._check_conditions(policy)
        await self._require(scopes.needs_of_policy(policy, self._cache.discovery))
        needs = needs_of_author(policy, self._cache.discovery)
        await self.authors.check(asked.user, asked.written, needs)
        if old is not None and _downstream_changed(old, obj):
            warnings.append(_DOWNSTREAM_CHANGED)
        return warnings

    async def _know_kinds(self, policy: Policy) -> None:
        """Ask the server for kinds that a policy makes or changes and that are not known: those of a new CRD are checked, too."""
        discovery = self._cache.discovery
        if any(discovery.find(*pair) is None for pair in scopes.target_kinds(policy)):
            with suppress(KubeError):
                await discovery.refresh()

    async def _check_cel_policy(self, asked: ReviewContext) -> list[str]:
        """Check a policy written in CEL; one that stays as it is is not refused for what is wrong with it."""
        policy, warnings = _bounded(asked, _read_cel)
        if asked.is_as_it_was:
            return warnings
        warnings += _passed(scopes.resource_findings(policy, self._cache.discovery))
        needs = needs_of_author(policy, self._cache.discovery)
        await self.authors.check(asked.user, asked.written, needs)
        return warnings + await cel_policy_warnings(self._client, self._cache.discovery, policy)

    async def _check_exception(self, asked: ReviewContext) -> list[str]:
        obj, old = asked.obj, asked.old
        ends, warnings = _bounded(asked, _read_exception)
        if doubt := self._cache.exception_rules.warning(asked.written.namespace):
            warnings.append(doubt)
        if is_cel(obj) and not asked.is_as_it_was:
            needs = list(needs_of_exception(obj.get("spec") or {}, self._cache.discovery))
            await self.authors.check(asked.user, asked.written, needs)
        check_maker(obj, old, self._jobs_of(str(asked.user.get("username") or "")))
        if old is None:
            await check_granted(self._client, obj)
            warnings += ended(ends, self._now())
        return warnings

    async def _check_cleanup(self, asked: ReviewContext) -> list[str]:
        policy, warnings = _bounded(asked, _read_cleanup)
        if asked.is_as_it_was:
            return warnings
        warnings += _passed(scopes.cleanup_findings(policy, self._cache.discovery))
        needs = scopes.needs_of_cleanup(
            kinds_in(policy.match), self._cache.discovery, policy.namespace
        )
        for need in needs:
            if missing := await self._missing_for(need, names_of(policy)):
                verbs = ", ".join(missing)
                raise Refused(f"cleanup controller has no permission to {verbs} kind {need.kind}")
        rights = needs_of_cleanup_author(policy, self._cache.discovery)
        await self.authors.check(asked.user, asked.written, rights)
        return warnings

    async def _missing_for(self, need: scopes.Need, names: Iterable[str]) -> tuple[str, ...]:
        """Return the verbs that clean-ups lack on a kind, or on one of the objects that are named."""
        missing = await scopes.missing_verbs(self._cleanup, need)
        of_each = [
            await scopes.missing_verbs(self._cleanup, replace(need, name=one))
            for one in names
            if missing
        ]
        return next(filter(None, of_each), ()) if of_each else missing

    async def _check_entry(self, asked: ReviewContext) -> list[str]:
        if not asked.is_as_it_was:
            spec = asked.obj.get("spec") or {}
            _passed(lint.lint_entry(spec))
            await self.authors.check(asked.user, asked.written, list(needs_of_entry(spec, "spec")))
        return []

    async def _check_label(self, asked: ReviewContext) -> list[str]:
        await self._may_delete(asked)
        doubt = ttl.warning(asked.obj)
        return [doubt] if doubt else []

    async def _may_delete(self, asked: ReviewContext) -> None:
        """Refuse a new or another TTL label to somebody who may not delete the object himself."""
        labels = (part(one, "metadata", "labels") for one in (asked.obj, asked.old))
        now, before = (one.get(vocabulary.TTL_LABEL) for one in labels)
        jobs = self._jobs_of(str(asked.user.get("username") or ""))
        # what these two label was asked for before: by the author of a policy, by a request for a grant
        if now in (None, before) or not _LABELLING.isdisjoint(jobs):
            return
        at = asked.written
        request = RequestInfo("delete", asked.group, at.plural, "", at.namespace, at.name)
        if not await self.authors.may(asked.user, request):
            raise Refused(
                f"metadata.labels: `{asked.user.get('username')}` may not delete this object, so may not set"
                f" the label {vocabulary.TTL_LABEL} by which it would be deleted; ask somebody who may"
            )

    async def _check_conditions(self, policy: Policy) -> None:
        """Have the API server itself judge match conditions, for one that it refuses would stop all webhooks."""
        conditions = match_conditions(policy)
        if not conditions:
            return
        try:
            await self._client.create(
                VALIDATING_WEBHOOKS, condition_probe(policy.key, conditions), dry_run=True
            )
        except Invalid as error:
            raise Refused(f"spec.webhookConfiguration.matchConditions: {error.message}") from error

    async def _require(self, needs: Iterable[scopes.Need]) -> None:
        """Refuse what we may not do, naming resource and verbs; raises KubeError when the server does not say."""
        for need in needs:
            try:
                missing = await scopes.missing_verbs(self._background, need)
            except KubeError as error:
                text = f"{need.at}: our rights could not be asked for: {error.message}"
                raise error.reworded(text) from error
            if missing and not (need.binding and await scopes.may_give(self._background, need)):
                raise Refused(f"{need.at}: {self._shown(need, missing)}")

    def _shown(self, need: scopes.Need, missing: tuple[str, ...]) -> str:
        who = self._user or "the policy engine"
        resource = f"{need.resource}.{need.group}" if need.group else need.resource
        named = f" `{need.name}`" if need.name else ""
        where = f" in namespace {need.namespace}" if need.namespace and not need.binding else ""
        return (
            f"{who} requires permissions {', '.join(missing)} for resource {resource}{named}{where}"
        )


def _bounded(
    asked: ReviewContext, read: Callable[[ReviewContext], tuple[_T, list[str]]]
) -> tuple[_T, list[str]]:
    """Return what is read of an object, with warnings, within the time that its tenant has for that; raises EngineError."""
    user = str(asked.user.get("username") or "")
    return PROCESS.read(asked.written.namespace or f"user {user}", partial(read, asked))


def _read_classic(asked: ReviewContext) -> tuple[Policy, list[str]]:
    policy = parse_policy(asked.obj, strict=False)
    warnings = _passed(lint.lint_policy(policy))
    if not asked.is_as_it_was:
        compile_policy(policy)
    return policy, warnings


def _read_cel(asked: ReviewContext) -> tuple[Policy, list[str]]:
    from engine.evaluate.cel.policies import compile_cel_policy

    policy = read_policy(asked.obj)
    findings: tuple[lint.Finding, ...] = loaded(BY_NAME[policy.kind].family.linter)(policy)
    if asked.is_as_it_was:
        return policy, [str(one) for one in findings if one.severity == "warning"]
    errors = list(dict.fromkeys(str(one) for one in findings if one.severity == "error"))
    if errors:
        # upstream's refusal names each error and warns of it, too (row CP-31)
        refused = Refused(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
        refused.warnings = tuple(errors)
        raise refused
    compile_cel_policy(policy)
    return policy, _passed(findings)


def _read_exception(asked: ReviewContext) -> tuple[datetime | None, list[str]]:
    """Return when an exception ends, with warnings."""
    if is_cel(asked.obj):
        from engine.evaluate.cel.exceptions import compile_cel_exception

        of_cel = read_cel_exception(asked.obj)
        warnings = _passed(lint.lint_cel_exception(of_cel))
        return compile_cel_exception(of_cel).ends, warnings
    exception = parse_exception(asked.obj, strict=False)
    warnings = _passed(lint.lint_exception(exception))
    return compile_exception(exception).expires_at, warnings


def _read_cleanup(asked: ReviewContext) -> tuple[CleanupPolicy, list[str]]:
    policy = parse_cleanup_policy(asked.obj, strict=False)
    return policy, _passed(lint.lint_cleanup(policy))


def _passed(findings: Iterable[lint.Finding]) -> list[str]:
    """Return the warnings among findings; raises Refused for the first error."""
    warnings = []
    for finding in findings:
        if finding.severity == "error":
            raise Refused(str(finding))
        warnings.append(str(finding))
    return warnings


def _downstream_changed(old: Object, new: Object) -> bool:
    """Tell whether a rule now makes other objects, or copies from somewhere else."""
    before, after = _made(old), _made(new)
    return any(name in before and before[name] != made for name, made in after.items())


def _made(obj: Object) -> dict[str, Json]:
    """Return what says which objects each rule makes and from what, but for their content."""
    rules = (obj.get("spec") or {}).get("rules") or ()
    return {
        str(rule.get("name")): [rule["generate"].get(name) for name in _MADE]
        for rule in rules
        if rule.get("generate")
    }


def _meaning(obj: Object) -> Json:
    """Return what decides what a policy does: its spec, and metadata as for which kinds autogen repeats it."""
    metadata = obj.get("metadata") or {}
    noted = [metadata.get(name) or {} for name in ("annotations", "labels")]
    return [obj.get("spec"), *(one.get(name) for one in noted for name in DECIDING)]
