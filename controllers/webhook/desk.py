"""Admission of our own kinds: policies, exceptions, cleanup policies, and the TTL label on anything.

What the engine's lint refuses is refused on its first error, what it doubts is a warning. What needs the cluster is asked
here: kinds that exist, and rights that we have (rows A-93, A-94, C-03, C-07, X-09).
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from controllers.kube import Invalid, KubeError
from controllers.kube.clock import SystemClock
from controllers.kube.kinds import VALIDATING_WEBHOOKS
from controllers.store.exceptions import read_cel_exception
from controllers.store.policies import is_cel, match_conditions, read_policy
from engine.cleanup import ttl
from engine.errors import EngineError
from engine.evaluate import compile_policy
from engine.exceptions import compile_exception
from engine.lint import (
    lint_cel_exception,
    lint_cel_policy,
    lint_cleanup,
    lint_exception,
    lint_policy,
)
from engine.parse import parse_cleanup_policy, parse_exception, parse_policy

from . import envelope
from .admission_rules import kinds_in
from .configurations import condition_probe
from .granted import check_granted, ended
from .rights import may_give, missing_verbs, needs_of_cleanup, needs_of_policy, target_kinds
from .schemas import cel_policy_warnings, type_warnings
from .scopes import cluster_findings, unknown_resources

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from controllers.kube import Client, Clock
    from controllers.runtime.world import World
    from engine.lint import Finding
    from engine.model import Json, Object, Policy

    from .rights import Need

    Check = Callable[[Object, Object | None], Awaitable[list[str]]]

_CLONE_CHANGED = (
    "no synchronization will be performed to the old target resource upon policy updates"
)
_log = logging.getLogger(__name__)


class Refused(EngineError):  # noqa: N818 - it names the verdict
    """The object is not accepted."""


class Desk:
    """Decides on objects of our own kinds. Each method answers one path: rest of the path, body and seconds in, answer out."""

    def __init__(
        self,
        world: World,
        client: Client,
        *,
        background: Client | None = None,
        cleanup: Client | None = None,
        user: str = "",
        clock: Clock | None = None,
    ) -> None:
        """Make a desk; `background` (whose name is `user`) and `cleanup` are who will carry out policies, else `client`."""
        self._world = world
        self._now = (clock or SystemClock()).now
        self._client = client
        self._background, self._cleanup = background or client, cleanup or client
        self._user = user

    async def policy(self, _rest: str, body: bytes, budget: float) -> bytes:
        """Answer the review of a policy of any kind."""
        return await self._answer(body, budget, self._check_policy)

    async def exception(self, _rest: str, body: bytes, budget: float) -> bytes:
        """Answer the review of a PolicyException of either group."""
        return await self._answer(body, budget, self._check_exception)

    async def cleanup(self, _rest: str, body: bytes, budget: float) -> bytes:
        """Answer the review of a CleanupPolicy or ClusterCleanupPolicy."""
        return await self._answer(body, budget, self._check_cleanup)

    async def label(self, _rest: str, body: bytes, budget: float) -> bytes:
        """Answer the review of an object with a TTL label: never refused, warned of when nobody can read it."""
        return await self._answer(body, budget, self._check_label)

    async def nothing(self, _rest: str, body: bytes, _budget: float) -> bytes:
        """Answer reviews at paths of upstream's that have nothing to decide here."""
        return envelope.allowed(envelope.read_request(body)["uid"])

    async def _answer(self, body: bytes, budget: float, check: Check) -> bytes:
        request = envelope.read_request(body)
        uid, obj = str(request["uid"]), request.get("object")
        if obj is None or (obj.get("metadata") or {}).get("deletionTimestamp"):
            return envelope.allowed(uid)
        try:
            async with asyncio.timeout(budget):
                return envelope.allowed(uid, await check(obj, request.get("oldObject")))
        except TimeoutError:
            return envelope.denied(uid, f"the object could not be checked within {budget:.1f} s")
        except EngineError as error:
            return envelope.denied(uid, error.message)
        except Exception:
            _log.exception("the check of an object failed")
            return envelope.denied(uid, "the object could not be checked")

    async def _check_policy(self, obj: Object, old: Object | None) -> list[str]:
        if is_cel(obj):
            return await self._check_cel_policy(obj, old)
        policy = parse_policy(obj, strict=False)
        warnings = _passed(lint_policy(policy))
        if old is not None and old.get("spec") == obj.get("spec"):
            return warnings
        compile_policy(policy)
        await self._know_kinds(policy)
        warnings += _passed(cluster_findings(policy, self._world.discovery))
        warnings += await type_warnings(self._client, self._world.discovery, policy)
        await self._check_conditions(policy)
        await self._require(needs_of_policy(policy, self._world.discovery))
        if old is not None and _clone_changed(old, obj):
            warnings.append(_CLONE_CHANGED)
        return warnings

    async def _know_kinds(self, policy: Policy) -> None:
        """Ask the server for kinds that a policy makes or changes and that are not known: those of a new CRD are checked, too."""
        discovery = self._world.discovery
        if any(discovery.find(*pair) is None for pair in target_kinds(policy)):
            with suppress(KubeError):
                await discovery.refresh()

    async def _check_cel_policy(self, obj: Object, old: Object | None) -> list[str]:
        """Check a policy written in CEL; one that stays as it is is not refused for what is wrong with it."""
        from engine.evaluate.cel.policies import compile_cel_policy

        policy = read_policy(obj)
        findings = lint_cel_policy(policy)
        if old is not None and old.get("spec") == obj.get("spec"):
            return [str(one) for one in findings if one.severity == "warning"]
        warnings = _passed(findings)
        compile_cel_policy(policy)
        warnings += _passed(unknown_resources(policy, self._world.discovery))
        return warnings + await cel_policy_warnings(self._client, self._world.discovery, policy)

    async def _check_exception(self, obj: Object, old: Object | None) -> list[str]:
        namespace = str((obj.get("metadata") or {}).get("namespace") or "")
        if is_cel(obj):
            from engine.evaluate.cel.exceptions import compile_cel_exception

            of_cel = read_cel_exception(obj)
            warnings = _passed(lint_cel_exception(of_cel))
            compile_cel_exception(of_cel)
        else:
            exception = parse_exception(obj, strict=False)
            warnings = _passed(lint_exception(exception))
            compile_exception(exception)
        if doubt := self._world.exception_rules.warning(namespace):
            warnings.append(doubt)
        if old is None:
            await check_granted(self._client, obj)
            warnings += ended(obj, self._now())
        return warnings

    async def _check_cleanup(self, obj: Object, old: Object | None) -> list[str]:
        policy = parse_cleanup_policy(obj, strict=False)
        warnings = _passed(lint_cleanup(policy))
        if old is not None and old.get("spec") == obj.get("spec"):
            return warnings
        needs = needs_of_cleanup(kinds_in(policy.match), self._world.discovery, policy.namespace)
        for need in needs:
            if missing := await missing_verbs(self._cleanup, need):
                verbs = ", ".join(missing)
                raise Refused(f"cleanup controller has no permission to {verbs} kind {need.kind}")
        return warnings

    async def _check_label(self, obj: Object, _old: Object | None) -> list[str]:
        doubt = ttl.warning(obj)
        return [doubt] if doubt else []

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

    async def _require(self, needs: Iterable[Need]) -> None:
        """Refuse what we may not do, naming resource and verbs; raises KubeError when the server does not say."""
        for need in needs:
            try:
                missing = await missing_verbs(self._background, need)
            except KubeError as error:
                text = f"{need.at}: our rights could not be asked for: {error.message}"
                raise error.reworded(text) from error
            if missing and not (need.binding and await may_give(self._background, need)):
                raise Refused(f"{need.at}: {self._shown(need, missing)}")

    def _shown(self, need: Need, missing: tuple[str, ...]) -> str:
        who = self._user or "the policy engine"
        resource = f"{need.resource}.{need.group}" if need.group else need.resource
        named = f" `{need.name}`" if need.name else ""
        where = f" in namespace {need.namespace}" if need.namespace and not need.binding else ""
        return (
            f"{who} requires permissions {', '.join(missing)} for resource {resource}{named}{where}"
        )


def _passed(findings: Iterable[Finding]) -> list[str]:
    """Return the warnings among findings; raises Refused for the first error."""
    warnings = []
    for finding in findings:
        if finding.severity == "error":
            raise Refused(str(finding))
        warnings.append(str(finding))
    return warnings


def _clone_changed(old: Object, new: Object) -> bool:
    """Tell whether a rule now copies from somewhere else."""
    before = _clones(old)
    return any(name in before and before[name] != source for name, source in _clones(new).items())


def _clones(obj: Object) -> dict[str, Json]:
    found = {}
    for rule in (obj.get("spec") or {}).get("rules") or ():
        generate = rule.get("generate") or {}
        source = generate.get("clone") or generate.get("cloneList")
        if source:
            found[str(rule.get("name"))] = source
    return found
