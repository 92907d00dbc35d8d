"""What `doctor` asks a cluster beyond what is read anyway: clocks, versions, certificates, and whether exceptions count at all."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from controllers.kube.errors import KubeError
from controllers.kube.kinds import Kind
from engine import vocabulary
from engine.errors import EngineError
from engine.fields import items, part, word
from engine.parse import parse_policy
from engine.requester import asks_of_request

from .health import Check, engine_of, listed, webhooks
from .protection import protection

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from controllers.kube import Client
    from engine.model import Object

    from .cache import ClusterCache

DEPLOYMENTS = Kind("apps", "v1", "deployments", "Deployment")
MOST_SKEW = 5.0
"""Seconds that clocks may differ before countdowns are worth a remark."""
_SOON = timedelta(days=30)
_COMPONENT = "app.kubernetes.io/component=admission-controller"
_RESOLVES = "--resolve-values"
_ENABLED, _NAMESPACE = "--enablePolicyException", "--exceptionNamespace"


async def more_checks(
    client: Client, world: ClusterCache, skew: float, now: datetime
) -> list[Check]:
    """Return the findings; what may not be read is one of them."""
    return [
        _clock(skew),
        await _version(client),
        *_certificates(world, now),
        *await _exceptions(client, world),
        *await protection(client, world),
        *callers(world),
    ]


def _clock(skew: float) -> Check:
    if abs(skew) <= MOST_SKEW:
        return Check("clock", "ok", "this machine and the API server agree on the time")
    side = "behind" if skew > 0 else "ahead of"
    return Check("clock", "warn", f"this machine is {abs(skew):.0f} s {side} the API server; countdowns go by the later of both",
                 "synchronise this machine's clock, such as by chrony or systemd-timesyncd")  # fmt: skip


async def _version(client: Client) -> Check:
    try:
        found: Any = await client.raw("GET", "/version")
    except KubeError as error:
        return Check(
            "server", "unknown", f"the version of the server cannot be read: {error.message}"
        )
    version = str(found.get("gitVersion") or "") if isinstance(found, dict) else ""
    minor = str(found.get("minor") or "").rstrip("+") if isinstance(found, dict) else ""
    if minor.isdigit() and int(minor) < 28:
        return Check("server", "warn", f"Kubernetes {version} has no SelfSubjectReview, which grants need", "upgrade to Kubernetes 1.28 or later")  # fmt: skip
    return Check("server", "ok", f"Kubernetes {version}")


def _certificates(world: ClusterCache, now: datetime) -> Iterator[Check]:
    """Judge the authorities that webhooks are trusted by: the one that ends first counts."""
    ends: dict[str, datetime] = {}
    for hook in (hook for hooks in webhooks(world) for hook in hooks):
        for one in items(hook, "webhooks"):
            end = _end_of(word(one, "clientConfig", "caBundle"))
            if end is not None:
                ends[word(hook, "metadata", "name")] = end
    if not ends:
        return
    name, first = min(ends.items(), key=lambda pair: pair[1])
    text = f"{first:%Y-%m-%d}"
    if first <= now:
        yield Check("authority", "fail", f"the authority of {name} ended on {text}: the API server trusts no webhook", "restart the engine: it makes another one")  # fmt: skip
    elif first - now < _SOON:
        yield Check("authority", "warn", f"the authority of {name} ends on {text}", "see whether the engine runs and leads: it makes another one in time")  # fmt: skip
    else:
        yield Check("authority", "ok", f"the authority of webhooks is good until {text}")


def _end_of(bundle: str) -> datetime | None:
    """Return when the first certificate to end in a bundle does; None for none, or what is none."""
    if not bundle:
        return None
    from cryptography import x509

    try:
        found = x509.load_pem_x509_certificates(base64.b64decode(bundle, validate=True))
    except (ValueError, binascii.Error):
        return None
    return min(one.not_valid_after_utc for one in found)


async def _exceptions(client: Client, world: ClusterCache) -> list[Check]:
    """Tell whether exceptions count: Kyverno passes over them unless two of its flags say otherwise."""
    try:
        page = await client.list_all(DEPLOYMENTS, label_selector=_COMPONENT)
    except KubeError as error:
        return [Check("exceptions", "unknown", f"the engine's flags cannot be read: {error.message}")]  # fmt: skip
    judged = [_judged(deployment, engine_of(world)) for deployment in page.items]
    return [*judged, *_values(world, page.items), *_images(world, page.items)]


def _images(world: ClusterCache, deployments: Iterable[Object]) -> Iterator[Check]:
    """Tell which of our images are named by a tag, behind which another image can be put."""
    from controllers.manifests.deploy import is_pinned

    if engine_of(world) != "kpolicy":
        return
    named = {word(one, "image") for deployment in deployments for one in items(deployment, "spec", "template", "spec", "containers")}  # fmt: skip
    if loose := sorted(image for image in named if image and not is_pinned(image)):
        yield Check("image", "warn", f"{', '.join(loose)} is named by a tag, behind which another image can be put",
                    "name it by digest: kubectl kpolicy install --image NAME@sha256:DIGEST | kubectl apply --server-side -f -")  # fmt: skip
    elif named:
        yield Check("image", "ok", "the controllers' image is named by its digest")


def _values(world: ClusterCache, deployments: Iterable[Object]) -> list[Check]:
    """Tell whether values are read as expressions, and if not, which policies may rely on it."""
    for deployment in deployments:
        if dict(_flags(deployment)).get(_RESOLVES) == "true":
            place = f"{word(deployment, 'metadata', 'namespace')}/{word(deployment, 'metadata', 'name')}"
            return [Check("values", "warn", f"{place} reads values as expressions ({_RESOLVES}): whoever may write a value that a policy uses decides what it reads and shows")]  # fmt: skip
    if engine_of(world) == "Kyverno":
        return [Check("values", "warn", "Kyverno reads values as expressions: whoever may write a value that a policy uses decides what it reads and shows")]  # fmt: skip
    policies = (*world.objects("clusterpolicies"), *world.objects("policies"))
    found = sorted(name for policy in policies for name in _relying(policy))
    if not found:
        return [Check("values", "ok", "values are data, and no policy is known to need them read as expressions")]  # fmt: skip
    return [Check("values", "warn", f"these may decide otherwise than in Kyverno where a value holds `{{{{` or makes up an expression: {listed(found)}",
                  f"see docs/values.md; {_RESOLVES} of the engine reads values as Kyverno does")]  # fmt: skip


def _relying(policy: Object) -> Iterator[str]:
    from engine.lint.values import rereadings

    for rule in items(policy, "spec", "rules"):
        if rereadings(rule):
            yield f"{word(policy, 'metadata', 'name')}/{rule.get('name')}"


def _judged(deployment: Object, engine: str) -> Check:
    metadata = deployment["metadata"]
    place = f"{metadata.get('namespace')}/{metadata['name']}"
    flags = dict(_flags(deployment))
    fix = f"change its flags: kubectl -n {metadata.get('namespace')} edit deployment {metadata['name']}"
    if flags.get(_ENABLED, "true").lower() in ("false", "0", "f"):
        return Check("exceptions", "fail", f"{place} passes over every exception ({_ENABLED}=false): grants let nothing through", fix)  # fmt: skip
    where = flags.get(_NAMESPACE, "*" if engine == "kpolicy" else "")
    if not where:
        return Check("exceptions", "fail", f"{place} names no namespace for exceptions ({_NAMESPACE}): grants let nothing through", fix)  # fmt: skip
    if where != "*":
        return Check("exceptions", "warn", f"{place} honours exceptions in {where} only", fix)
    return Check("exceptions", "ok", f"{place} honours exceptions in every namespace")


def _flags(deployment: Object) -> Iterator[tuple[str, str]]:
    for container in items(deployment, "spec", "template", "spec", "containers"):
        for text in container.get("args") or ():
            name, equals, value = str(text).partition("=")
            yield f"--{name.lstrip('-')}", value if equals else "true"


# How the engine of a cluster tells the API server from others, and what it does not do because of that (docs/callers.md).

_HELP: Final = "give the API server a certificate: docs/callers.md says how"
_MODES: Final = {
    "certificate": ("ok", "the API server is known by its certificate", ""),
    "trusted path": ("warn", "the API server is known by a path only, which --trust-path takes for a proof: whoever reads it in an error can forge requests for some seconds", _HELP),
    "path": ("warn", "the API server is known by a path only, which proves nothing: requests have only the effects that the cluster itself shows", _HELP),
    "nobody": ("fail", "nobody is known to the engine: whoever reaches it is answered", _HELP),
}  # fmt: skip


def callers(world: ClusterCache) -> Iterator[Check]:
    """Yield how callers are known, and which rules and codes do nothing because of that."""
    ours, _ = webhooks(world)
    if not ours:
        return
    told = {word(hook, "metadata", "annotations", vocabulary.CALLERS) for hook in ours}
    mode = told.pop() if len(told) == 1 else ""
    if mode not in _MODES:
        yield Check("callers", "unknown", "the webhook configurations do not all say how callers are known",
                    "see whether a replica leads; it writes them")  # fmt: skip
        return
    status, detail, fix = _MODES[mode]
    yield Check("callers", status, detail, fix)
    if mode in ("path", "nobody"):
        yield from _left_undone(world)


def _left_undone(world: ClusterCache) -> Iterator[Check]:
    rules = sorted(_rules(world))
    if rules:
        yield Check("callers: rules", "warn", f"not carried out, because nobody proves what they go by: {', '.join(rules)}", _HELP)  # fmt: skip
    codes = sorted(
        word(one, "metadata", "name")
        for one in world.objects("grantpolicies")
        if word(one, "spec", "codes", "mode") not in ("", "off")
        and part(one, "spec", "codes").get("strict") is not True
    )
    if codes:
        yield Check("callers: codes", "warn", f"no code is offered or taken under grant policies that are not strict: {', '.join(codes)}", _HELP)  # fmt: skip


def _rules(world: ClusterCache) -> Iterator[str]:
    """Yield the rules that do work on other objects and go by more than the live object shows."""
    for obj in (*world.objects("clusterpolicies"), *world.objects("policies")):
        try:
            policy = parse_policy(obj, strict=False)
        except EngineError:
            # one that cannot be read is a finding of its own, and carries out nothing
            continue
        for rule in policy.rules:
            works = bool(rule.generate or (rule.mutate or {}).get("targets"))
            if works and (asked := asks_of_request(rule)):
                yield f"{policy.key}/{rule.name} ({asked})"
