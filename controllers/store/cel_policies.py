"""Policies written in CEL as the API server is told of them: the requests they concern, and their status (rows L-01, W-04).

Apart from `policies`, whose kinds say in rules what these say in match constraints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.model.kinds import BY_NAME, KUBERNETES, is_enabled, mode_of

from .policies import NO_NATIVE, NativeState, condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from engine.model import Block, Policy


ANY: Final = "*"
_OPERATIONS: Final = frozenset({"CONNECT", "CREATE", "DELETE", "UPDATE"})
_NAMESPACED: Final = "Namespaced"
_NOT_CONFIGURED: Final = "Policy is not configured in the webhook."


def is_of_cel(policy: Policy) -> bool:
    """Tell whether a policy is of the kinds written in CEL, which have no rules."""
    kind = BY_NAME.get(policy.kind)
    return kind is not None and kind.is_cel


def webhook_rules(policy: Policy, *, is_native: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the rules of a webhook for what a policy and its autogen variants concern.

    They are in the one form that an API server accepts, whatever the policy says: a single refused rule would keep all
    webhooks from being configured. A policy for other documents than requests concerns none. One that `is_native` has no variants.
    """
    row = BY_NAME.get(policy.kind)
    hears_all = row is not None and row.family.hears_all
    blocks = written_rules(policy.raw["spec"]) if is_native else resource_rules(policy)
    for block in blocks:
        rule = {
            "apiGroups": _words(block.get("apiGroups"), may_be_empty=True),
            "apiVersions": _words(block.get("apiVersions")),
            "operations": sorted(_OPERATIONS)
            if hears_all
            else _operations(block.get("operations")),
            "resources": _resources(block.get("resources") or ()),
            "scope": _scope(policy, block),
        }
        if rule["operations"] and rule["resources"] and rule["scope"]:
            yield rule


def resource_rules(policy: Policy) -> Iterator[Mapping[str, Any]]:
    """Yield the resource rules of a policy as written, and those that autogen adds."""
    from engine.evaluate.cel.autogen import variants

    spec = policy.raw["spec"]
    if mode_of(spec) != KUBERNETES:
        return
    for one in (spec, *(variant.spec for variant in variants(spec))):
        yield from written_rules(one)


def written_rules(spec: Block) -> Sequence[Mapping[str, Any]]:
    """Return the resource rules of a spec as written."""
    return tuple((spec.get("matchConstraints") or {}).get("resourceRules") or ())


def _words(listed: Iterable[str] | None, *, may_be_empty: bool = False) -> list[str]:
    """Return the words of a list in order; `*` stands alone, and nothing at all means it."""
    found = {str(word) for word in listed or (ANY,) if word or may_be_empty}
    return [ANY] if ANY in found or not found else sorted(found)


def _operations(listed: Iterable[str] | None) -> list[str]:
    words = _words(listed)
    return words if words == [ANY] else [word for word in words if word in _OPERATIONS]


def _resources(listed: Iterable[str]) -> list[str]:
    """Return resources without those that a wider one among them includes."""
    found = {str(word) for word in listed if word}
    if "*/*" in found:
        return ["*/*"]
    return sorted(word for word in found if found.isdisjoint(_wider(word)))


def _wider(word: str) -> set[str]:
    """Return the words that include another one."""
    head, slash, tail = word.partition("/")
    return ({f"{ANY}/{tail}", f"{head}/{ANY}"} if slash else {ANY}) - {word}


def _scope(policy: Policy, block: Mapping[str, Any]) -> str:
    """Return the scope of a rule; of a policy of one namespace nothing outside of namespaces is concerned."""
    scope = str(block.get("scope") or ANY)
    if not policy.namespace:
        return scope
    return _NAMESPACED if scope in (ANY, _NAMESPACED) else ""


def is_scanning(policy: Policy) -> bool:
    """Tell whether a policy concerns what is there already."""
    return is_enabled(policy.raw["spec"], "background")


def cel_status(
    policy: Policy | None,
    error: str,
    now: str,
    missing: Sequence[str] = (),
    *,
    is_asked_for: bool = True,
    failing: str = "",
    broken: Sequence[str] = (),
    native: NativeState = NO_NATIVE,
) -> dict[str, Any]:
    """Return the status of a policy that is in force, or (with `error`) of one that is not.

    `missing` are rights that reports about it lack, `is_asked_for` says whether the webhook configurations have it. It is ready
    when every condition says so, and a policy that concerns no requests has none about webhooks. `failing` is what it could not
    do to objects, if anything: upstream's status is silent about that, and about exceptions that do not
    compile, of which `broken` says why. `native` tells of a native policy in its place.
    """
    conditions = []
    if policy is None or error or is_enabled(policy.raw["spec"], "admission"):
        holds = not error and is_asked_for
        text = error or ("Webhook configured." if holds else _NOT_CONFIGURED)
        conditions.append(condition("WebhookConfigured", text, now, holds=holds))
    if policy is not None:
        text = _about_reports(policy, missing)
        conditions.append(condition("RBACPermissionsGranted", text, now, holds=not missing))
    if failing:
        conditions.append(condition("GenerationSucceeded", failing, now, holds=False))
    if broken:
        conditions.append(condition("ExceptionsCompiled", "; ".join(broken), now, holds=False))
    is_ready = all(one["status"] == "True" for one in conditions)
    return {
        "conditionStatus": {
            "ready": is_ready,
            "message": error or native.message,
            "conditions": conditions,
        },
        "autogen": _autogen(policy) if policy and not error else {},
        "generated": native.generated,
    }


def _about_reports(policy: Policy, missing: Sequence[str]) -> str:
    if missing:
        return f"Policy is not ready for reporting, missing permissions: {'; '.join(missing)}."
    if is_scanning(policy):
        return "Policy is ready for reporting."
    return "Background scanning disabled; reporting permissions not required."


def _autogen(policy: Policy) -> dict[str, Block]:
    """Return what autogen makes of a policy, by the name of the variant; nothing at all where it makes none."""
    from engine.evaluate.cel.autogen import variants

    configs = {
        variant.name: {"targets": list(variant.targets), "spec": variant.spec}
        for variant in variants(policy.raw["spec"])
    }
    return {"configs": configs} if configs else {}
