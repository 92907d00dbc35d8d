"""The webhook configurations that belong into the cluster, as documents (rows W-01 to W-03, W-07).

Pure: policies in force, kinds of the server, settings and our address in, documents out. Names and labels are upstream's,
because people's scripts look for them; the annotation `kpolicy.io/owner` tells ours from Kyverno's.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from controllers.kube.discovery import ANY
from controllers.manifests.deploy import NO_ENFORCER
from controllers.runtime.webhook_routes import FAIL, IGNORE, WebhookRoute, WebhookRoutes
from controllers.store.policies import match_conditions, timeout_of
from engine import vocabulary
from engine.model.kinds import CEL_GROUP, CEL_KINDS, CLASSIC_GROUP, KINDS

from .address import Address
from .admission_rules import admission_rules, reachable, undecided
from .audit_events import SHOWN_CHANGES, SHOWN_DELETIONS
from .cel_webhooks import CelWebhook, cel_webhooks, selector_within

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from controllers.kube import Discovery
    from controllers.runtime.configuration import Configuration
    from engine.evaluate import PolicySet
    from engine.model import Json, Object

    _Placed = tuple[str, Object]
    """A webhook, and where it is served: what tells it from all others."""

MANAGED_BY: Final = {"webhook.kyverno.io/managed-by": "kyverno"}
RESOURCE_VALIDATING: Final = "kyverno-resource-validating-webhook-cfg"
RESOURCE_MUTATING: Final = "kyverno-resource-mutating-webhook-cfg"
VALIDATING: Final = "ValidatingWebhookConfiguration"
MUTATING: Final = "MutatingWebhookConfiguration"

_ALL: Final = "all"
"""Keeps the enforcer of AKS from adding selectors of its own, as upstream does."""

_LONGEST_NAME: Final = 253
_SECONDS, _MOST_SECONDS, _NOTE_SECONDS = 10, 30, 5
_GENERATES: Final = {"name": "generates", "expression": "object.?spec.?rules.orValue([]).exists(r, has(r.generate))"}  # fmt: skip

_BOOTSTRAP: Final = (
    ("Node", "", "nodes"),
    ("Lease", "coordination.k8s.io", "leases"),
    ("CertificateSigningRequest", "certificates.k8s.io", "certificatesigningrequests"),
    ("TokenReview", "authentication.k8s.io", "tokenreviews"),
    ("SubjectAccessReview", "authorization.k8s.io", "subjectaccessreviews"),
    ("SelfSubjectAccessReview", "authorization.k8s.io", "selfsubjectaccessreviews"),
)
"""What a cluster needs to come up with. Where settings filter these kinds out, the API server need not ask us at all."""


def configurations(
    routes: WebhookRoutes,
    discovery: Discovery,
    settings: Configuration,
    address: Address,
    *,
    forwards: bool = True,
) -> list[Object]:
    """Return all configurations; those of resources are there without policies, too, and then ask for nothing.

    Without `forwards` match conditions of policies written in CEL are tested by us alone.
    """
    stages = (
        ("validate", VALIDATING, RESOURCE_VALIDATING),
        ("mutate", MUTATING, RESOURCE_MUTATING),
    )
    resources = []
    for stage, kind, name in stages:
        webhooks = _of_classic(stage, routes, discovery, settings, address)
        for hook in cel_webhooks(stage, routes, settings, forwards=forwards):
            webhooks += _of_cel(hook, stage, discovery, settings, address)
        resources.append(_document(kind, name, _told_apart(webhooks), settings))
    made = [*resources, *_fixed(address, settings)]
    if address.callers:
        for document in made:
            document["metadata"]["annotations"][vocabulary.CALLERS] = address.callers
    return made


def condition_probe(name: str, conditions: Sequence[Mapping[str, Json]]) -> Object:
    """Return a configuration that asks for nothing, for the API server to judge match conditions by in a dry run."""
    address = Address(b"")
    webhook = _validator("probe.kyverno.svc", "/", IGNORE, "kpolicy.io", ["none"], address)
    probe = {
        **webhook,
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "matchConditions": list(conditions),
    }
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": VALIDATING,
        "metadata": {"name": f"kpolicy-probe-{digest}"},
        "webhooks": [probe],
    }


def _of_cel(
    hook: CelWebhook, stage: str, discovery: Discovery, settings: Configuration, address: Address
) -> list[_Placed]:
    """Return the webhook of policies written in CEL with its path, none where the server has nothing that they concern."""
    is_mutating = stage == "mutate"
    rules = admission_rules(hook.rules, discovery, mutating=is_mutating)
    if not rules:
        return []
    own = undecided(rules, hook.conditions)
    conditions = [*settings.match_conditions, *own, *_bootstrap(rules, settings)]
    made: Object = {
        **_head(hook.name, hook.failure_policy),
        "matchPolicy": hook.match_policy,
        "clientConfig": address.client_config(hook.path),
        "rules": rules,
        "timeoutSeconds": min(hook.seconds or _SECONDS, _MOST_SECONDS),
        **hook.selectors,
    }
    if is_mutating:
        conditions += reachable(rules)
        made["reinvocationPolicy"] = "IfNeeded" if hook.is_reinvoked else "Never"
    return [(hook.path, {**made, "matchConditions": conditions} if conditions else made)]


def _of_classic(
    stage: str,
    routes: Mapping[str, WebhookRoute],
    discovery: Discovery,
    settings: Configuration,
    address: Address,
) -> list[_Placed]:
    is_mutating = stage == "mutate"
    made = []
    for path, route in _served(stage, routes):
        sets = (route.mutate,) if is_mutating else (route.blocking, route.audit, route.triggers)
        rules = admission_rules(_rules(sets), discovery, mutating=is_mutating)
        if rules:
            made.append((path, _webhook(stage, path, sets, rules, settings, address)))
    return made


def _served(stage: str, routes: Mapping[str, WebhookRoute]) -> list[tuple[str, WebhookRoute]]:
    """Return the routes whose paths name no policies: not those of kinds that have such paths at a stage."""
    own = {f"{word}/{one.route}" for word in ("fail", "ignore") for one in CEL_KINDS if stage in one.family.stages}  # fmt: skip
    return [(name, routes[name]) for name in sorted(routes) if name != _ALL and name not in own]


def _rules(sets: Iterable[PolicySet]) -> Iterable[Any]:
    return (rule for one in sets for policy in one.policies for rule in policy.rules)


def _webhook(
    stage: str,
    route_path: str,
    sets: Iterable[PolicySet],
    rules: list[dict[str, Any]],
    settings: Configuration,
    address: Address,
) -> Object:
    policies = [policy.policy for one in sets for policy in one.policies]
    asked = [timeout_of(policy) or _SECONDS for policy in policies]
    is_own = "/" in route_path
    own = match_conditions(policies[0]) if is_own else ()
    within = policies[0].namespace if is_own else ""
    failure_policy = IGNORE if route_path.partition("/")[0] == IGNORE.lower() else FAIL
    made: Object = {
        **_head(_name(stage, route_path), failure_policy),
        "clientConfig": address.client_config(f"/{stage}/{route_path}"),
        "rules": rules,
        "timeoutSeconds": min(max(asked, default=_SECONDS), _MOST_SECONDS),
        "namespaceSelector": selector_within(within, settings)
        if within
        else dict(settings.namespace_selector or {}),
        "objectSelector": dict(settings.object_selector or {}),
    }
    conditions = [*settings.match_conditions, *undecided(rules, own), *_bootstrap(rules, settings)]
    if stage == "mutate":
        conditions += reachable(rules)
        made["reinvocationPolicy"] = "IfNeeded"
    return {**made, "matchConditions": conditions} if conditions else made


def _name(stage: str, route_path: str) -> str:
    plain, _, rest = route_path.partition("/")
    if rest and "/" not in rest:
        return f"{rest}.{stage}.kyverno.svc-{plain}"
    return f"{stage}.kyverno.svc-{route_path.replace('/', '-')}"


def _told_apart(webhooks: Iterable[_Placed]) -> list[Object]:
    """Return webhooks by name: upstream's, with a digest where several policies come to one name, or one to a name too long.

    The API server refuses a configuration with two webhooks of one name, and with it every later policy.
    """
    placed = list(webhooks)
    often = Counter(one["name"] for _, one in placed)
    made = [
        one
        if often[one["name"]] == 1 and len(one["name"]) <= _LONGEST_NAME
        else {**one, "name": _with_digest(one["name"], place)}
        for place, one in placed
    ]
    return sorted(made, key=lambda one: str(one["name"]))


def _with_digest(name: str, place: str) -> str:
    digest = hashlib.sha256(place.encode()).hexdigest()[:8]
    return f"{name[: _LONGEST_NAME - len(digest) - 1].rstrip('.-')}-{digest}"


def _head(name: str, failure_policy: str) -> Object:
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "failurePolicy": failure_policy,
        "matchPolicy": "Equivalent",
        "sideEffects": "NoneOnDryRun",
    }


def _bootstrap(rules: list[dict[str, Any]], settings: Configuration) -> list[dict[str, str]]:
    """Keep what a cluster comes up with away from webhooks that ask for everything, where settings drop it anyway."""
    if not any(ANY in rule["apiGroups"] for rule in rules):
        return []
    dropped = [
        f'(request.resource.group == "{group}" && request.resource.resource == "{plural}")'
        for kind, group, plural in _BOOTSTRAP
        if any(
            one.kind.kind == kind and (one.namespace, one.name) == (ANY, ANY)
            for one in settings.filters
        )
    ]
    if not dropped:
        return []
    return [{"name": "kpolicy-bootstrap", "expression": f"!({' || '.join(dropped)})"}]


def _fixed(address: Address, settings: Configuration) -> list[Object]:
    """Return the configurations that do not depend on policies; those with nothing to ask are there for their names."""
    validator = f"{address.service}.{address.namespace}.svc"
    cleanup = f"kyverno-cleanup-controller.{address.namespace}.svc"
    labelled = {"matchExpressions": [{"key": vocabulary.TTL_LABEL, "operator": "Exists"}]}
    ttl = _validator(cleanup, "/verifyttl", IGNORE, ANY, [ANY], address)
    policies, of_cel = (
        _validator("validate-policy.kyverno.svc", "/policyvalidate", FAIL, group, kinds, address)
        for group, kinds in (
            (CLASSIC_GROUP, _plurals(CLASSIC_GROUP, is_timed=False)),
            (
                CEL_GROUP,
                [*_plurals(CEL_GROUP, is_timed=False), *_plurals(CEL_GROUP, is_timed=True)],
            ),
        )
    )
    asked: tuple[tuple[str, list[Object]], ...] = (
        ("kyverno-policy-validating-webhook-cfg",
         [{**policies, "rules": [*policies["rules"], *of_cel["rules"]]}]),
        ("kyverno-exception-validating-webhook-cfg",
         [_validator(validator, "/exceptionvalidate", FAIL, CLASSIC_GROUP, ["policyexceptions"], address)]),
        ("kyverno-cel-exception-validating-webhook-cfg",
         [_validator(validator, "/celexception/validate", FAIL, CEL_GROUP, ["policyexceptions"], address)]),
        ("kyverno-cleanup-validating-webhook-cfg",
         [_validator(cleanup, "/cleanupvalidate", FAIL, CLASSIC_GROUP,
                _plurals(CLASSIC_GROUP, is_timed=True), address)]),
        ("kyverno-global-context-validating-webhook-cfg",
         [_validator(validator, "/globalcontextvalidate", FAIL, CLASSIC_GROUP, ["globalcontextentries"], address)]),
        ("kpolicy-grant-validating-webhook-cfg",
         [_validator("validate-grant.kpolicy.svc", "/grantvalidate", FAIL, "kpolicy.io",
                ["grantpolicies", "grants", "onetimecodes"], address),
          *_noting(address)]),
        ("kyverno-ttl-validating-webhook-cfg", [{**ttl, "objectSelector": labelled}]),
    )  # fmt: skip
    marking = {**policies, **_head("mutate-policy.kyverno.svc", IGNORE), "matchConditions": [_GENERATES],
               "reinvocationPolicy": "Never", "clientConfig": address.client_config("/policymutate")}  # fmt: skip
    return [
        *(_document(VALIDATING, name, webhooks, settings) for name, webhooks in asked),
        _document(MUTATING, "kyverno-policy-mutating-webhook-cfg", [marking], settings),
        _document(MUTATING, "kyverno-verify-mutating-webhook-cfg", [], settings),
    ]


def _plurals(group: str, *, is_timed: bool) -> list[str]:
    """Return the resources of a group that work by a schedule, or those that do not."""
    return sorted(
        one.plural for one in KINDS if one.group == group and one.family.is_timed == is_timed
    )


def _noting(address: Address) -> list[Object]:
    """Return the webhooks that write down who does what; nothing waits for them where they cannot be asked."""
    made = _validator("audit.kpolicy.svc", "/auditnote", IGNORE, "kpolicy.io", ["*"], address)
    [rule] = made["rules"]
    deletions = {"operations": ["DELETE"], "resources": sorted(SHOWN_DELETIONS - SHOWN_CHANGES)}
    every = {**rule, "operations": ["CREATE", "UPDATE", "DELETE"]}
    rules = [
        {**rule, **deletions},
        {**every, "resources": ["grantpolicies"]},
        {**every, "apiGroups": ["kyverno.io", CEL_GROUP], "resources": ["policyexceptions"]},
        *({**every, "apiGroups": [group], "resources": sorted(one.plural for one in KINDS if one.group == group)}
          for group in (CLASSIC_GROUP, CEL_GROUP)),
    ]  # fmt: skip
    labelled = {"matchExpressions": [{"key": vocabulary.TTL_LABEL, "operator": "Exists"}]}
    marked = _validator("audit-cleanup.kpolicy.svc", "/auditnote", IGNORE, ANY, [ANY], address)
    kept = {"sideEffects": "NoneOnDryRun", "timeoutSeconds": _NOTE_SECONDS}
    return [{**made, **kept, "rules": rules}, {**marked, **kept, "objectSelector": labelled}]


def _validator(
    name: str, path: str, failure_policy: str, group: str, resources: list[str], address: Address
) -> Object:
    rule = {
        "apiGroups": [group],
        "apiVersions": [ANY],
        "operations": ["CREATE", "UPDATE"],
        "resources": resources,
        "scope": ANY,
    }
    return {
        **_head(name, failure_policy),
        "sideEffects": "None",
        "clientConfig": address.client_config(path),
        "rules": [rule],
        "timeoutSeconds": _SECONDS,
        "namespaceSelector": {},
        "objectSelector": {},
    }


def _document(
    kind: str, name: str, webhooks: list[Object], settings: Configuration
) -> dict[str, Json]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "labels": {**settings.webhook_labels, **MANAGED_BY},
            "annotations": {
                **settings.webhook_annotations,
                vocabulary.OWNER: "kpolicy",
                NO_ENFORCER: "true",
            },
        },
        "webhooks": webhooks,
    }
