"""Updates of objects that broke a rule before: forgiven as Kyverno does, but not where exceptions from the rule are granted.

There, whoever once had an exception would have one for ever, for whatever the object becomes. So where a GrantPolicy speaks of
the rule, only an update that leaves the violation as it was is forgiven; any other needs an exception of its own. This holds for
every violation, because what admitted it can be unknown, and because no record then has to be found for a denial.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from controllers.store.grants import GrantPolicies
from engine import vocabulary
from engine.codes import is_left_as_it_was
from engine.errors import EngineError
from engine.grants.requests import covers
from engine.model import Forgiven, Review, Rule, RuleResult, Status
from engine.record import replace

from .code_bindings import user_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controllers.kube import Client, Clock
    from controllers.runtime.webhook_routes import WebhookRoute
    from engine.grants import GrantPolicy

NOT_FORGIVEN: Final = (
    "the object broke this rule before, which is forgiven only while the update leaves it as it is, "
    "because exceptions from this rule are granted on request"
)
_ACCOUNT: Final = f"{vocabulary.SERVICE_ACCOUNT}kube-system:"
_CONTROL_PLANE: Final = frozenset(
    {"system:apiserver", "system:kube-controller-manager", "system:kube-scheduler"}
)
_CONTROLLERS: Final = frozenset({
    "attachdetach-controller", "cronjob-controller", "daemon-set-controller", "deployment-controller",
    "disruption-controller", "endpoint-controller", "endpointslice-controller", "expand-controller",
    "generic-garbage-collector", "horizontal-pod-autoscaler", "job-controller", "namespace-controller",
    "node-controller", "persistent-volume-binder", "pod-garbage-collector", "pv-protection-controller",
    "pvc-protection-controller", "replicaset-controller", "replication-controller", "route-controller",
    "service-controller", "statefulset-controller", "ttl-after-finished-controller", "ttl-controller",
})  # fmt: skip
"""Accounts of the controllers of Kubernetes itself: what they change follows from objects that were judged already."""
_log = logging.getLogger(__name__)


class ExistingViolations:
    """Decides which forgiven results stay forgiven. `policies` are the grant policies in force."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._policies = GrantPolicies(client, clock)

    async def judge(
        self,
        route: WebhookRoute,
        review: Review,
        request: Mapping[str, Any],
        results: Sequence[RuleResult],
        budget: float,
    ) -> Sequence[RuleResult]:
        """Return the results with those as failures that may not be forgiven; where that cannot be known, none may."""
        changing = [one for one in results if self._is_changing(route, review, one)]
        if not changing or is_component(user_of(request)):
            return results
        policies = await self._current(budget)
        refused = {
            id(one): _failed(one, one.forgiven)
            for one in changing
            if one.forgiven is not None
            and (policies is None or _speaks_of(policies, one, review.namespace))
        }
        return [refused.get(id(one), one) for one in results] if refused else results

    def _is_changing(self, route: WebhookRoute, review: Review, result: RuleResult) -> bool:
        if result.forgiven is None or review.object is None or review.old_object is None:
            return False
        rule = _rule_of(route, result)
        return not is_left_as_it_was(review.old_object, review.object, result.forgiven, rule)

    async def _current(self, budget: float) -> Sequence[GrantPolicy] | None:
        """Return the grant policies, None where they cannot be read."""
        try:
            async with asyncio.timeout(budget):
                return await self._policies.current()
        except (TimeoutError, EngineError) as error:
            _log.warning("existing violations are not forgiven: %s", type(error).__name__)
            return None


def is_component(user: str) -> bool:
    """Tell whether somebody is a part of Kubernetes that carries out what other requests were allowed to ask for."""
    return (
        user in _CONTROL_PLANE
        or user.startswith("system:node:")
        or (user.startswith(_ACCOUNT) and user.removeprefix(_ACCOUNT) in _CONTROLLERS)
    )


def _speaks_of(policies: Sequence[GrantPolicy], result: RuleResult, namespace: str) -> bool:
    return any(covers(one, result.identity, (result.rule,), namespace) for one in policies)


def _rule_of(route: WebhookRoute, result: RuleResult) -> Rule | None:
    policy = route.blocking.find(result.identity)
    rules = policy.rules if policy is not None else ()
    return next((one.rule for one in rules if one.rule.name == result.rule), None)


def _failed(result: RuleResult, forgiven: Forgiven) -> RuleResult:
    first = forgiven.now[0]
    return replace(
        result,
        status=Status.FAIL,
        message=f"{first.message} ({NOT_FORGIVEN})",
        path=first.path,
        properties={**result.properties, **first.properties},
        forgiven=None,
    )
