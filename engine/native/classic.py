"""ValidatingAdmissionPolicies from ClusterPolicies with one `validate.cel` rule (rows NG-11, NG-12).

A rule names kinds where native policies name resources, and says more about who asks and where than they can; what they
cannot say keeps the policy with us.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.fields import part
from engine.lang import wildcard

from .objects import VALIDATING, Documents, NotNative, constraints, documents, given, skipped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from engine.exceptions import CompiledException
    from engine.model import Block, Json, Policy, Rule

    Resolve = Callable[[str], Iterable[tuple[str, str, str]]]
    """Returns group, version and resource (with its subresource) of a kind as a rule writes it."""

_OPERATIONS: Final = ("CREATE", "UPDATE", "CONNECT", "DELETE")
_PEOPLE: Final = ("roles", "clusterRoles", "subjects")
_SELECTORS: Final = ("namespaceSelector", "selector")
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"


def translated_classic(
    policy: Policy, exceptions: Sequence[CompiledException], now: datetime, resolve: Resolve
) -> Documents:
    """Return the ValidatingAdmissionPolicy of a ClusterPolicy; raises NotNative."""
    rule = _only_rule(policy)
    cel = dict(rule.validate or {})["cel"]
    matched = _entries(rule.match, "match")
    left_out = [_excluded(rule.exclude, "exclude")]
    left_out += [_excepted(one, rule) for one in _counting(policy, rule, exceptions, now)]
    excluded, inside = _left_out(left_out, resolve)
    conditions = [
        *part(policy.raw, "spec", "webhookConfiguration").get("matchConditions", ()),
        *rule.cel_preconditions,
    ]
    spec = {
        "failurePolicy": policy.failure_policy,
        "matchConstraints": constraints(
            {
                **_selectors(matched),
                "resourceRules": list(_as_rules(matched, resolve)),
                "excludeResourceRules": excluded,
            }
        ),
        "matchConditions": [*conditions, *inside],
        "validations": cel.get("expressions"),
        **given(cel, ("auditAnnotations", "paramKind", "variables")),
    }
    binding = {"validationActions": _actions(policy, rule), **given(cel, ("paramRef",))}
    return documents(policy, given(spec, spec), binding)


def _no(why: str) -> NotNative:
    return skipped(VALIDATING, why)


def _only_rule(policy: Policy) -> Rule:
    if len(policy.rules) != 1:
        raise _no(": multiple rules are not applicable.")
    [rule] = policy.rules
    cel = (rule.validate or {}).get("cel")
    if not isinstance(cel, dict):
        raise _no(" for non CEL rules.")
    if cel.get("generate") is not True:
        raise _no(": validate.cel.generate is not set to true.")
    if not policy.admission:
        raise _no(": admission is disabled.")
    if rule.preconditions or rule.context:
        raise _no(": preconditions and context are not applicable.")
    if policy.failure_action_overrides or (rule.validate or {}).get("failureActionOverrides"):
        raise _no(": failureActionOverrides are not applicable.")
    return rule


def _actions(policy: Policy, rule: Rule) -> list[str]:
    action = str((rule.validate or {}).get("failureAction") or policy.failure_action)
    return ["Deny"] if action.lower() == "enforce" else ["Audit", "Warn"]


def _counting(
    policy: Policy, rule: Rule, exceptions: Sequence[CompiledException], now: datetime
) -> list[CompiledException]:
    """Return the exceptions of the rule.

    INVARIANT: one that ends is never written into a native policy, which has no clock: the policy stays with us until then.
    """
    found = [
        one for one in exceptions if one.names(policy.key, rule.name) and not one.is_expired(now)
    ]
    ends = [one.expires_at for one in found if one.expires_at is not None]
    if ends:
        raise skipped(VALIDATING, ": a policy exception that ends is configured.", min(ends))
    return found


def _excepted(one: CompiledException, rule: Rule) -> list[Block]:
    exception = one.exception
    named = {name for reference in exception.references for name in reference.rule_names}
    if exception.conditions or exception.pod_security or named != {rule.name}:
        raise _no(": a policy exception is configured.")
    return _excluded(exception.match, "the match of a policy exception")


def _entries(block: Block, where: str) -> list[Block]:
    """Return the resource filters of a match or exclude block, of which there may be several only where any counts."""
    every = list(block.get("all") or ())
    if len(every) > 1:
        raise _no(f": multiple 'all' in {where} are not applicable.")
    entries = [*(block.get("any") or ()), *every] or ([block] if block else [])
    if block.get("any") and every:
        raise _no(f": 'any' beside 'all' in {where} is not applicable.")
    return [_resources(entry, where) for entry in entries]


def _resources(entry: Block, where: str) -> Block:
    if any(entry.get(name) for name in _PEOPLE):
        raise _no(f": roles, clusterRoles and subjects in {where} are not applicable.")
    resources: dict[str, Any] = entry.get("resources") or {}
    if resources.get("annotations"):
        raise _no(f": annotations in {where} are not applicable.")
    words = [*_names(resources), *(resources.get("namespaces") or ())]
    if any(wildcard.has_wildcard(str(word)) for word in words):
        raise _no(f": wildcards in names and namespaces of {where} are not applicable.")
    return resources


def _excluded(block: Block, where: str) -> list[Block]:
    """Return the resource filters of what is left out."""
    entries = _entries(block, where)
    for one in entries:
        if any(one.get(name) for name in _SELECTORS):
            raise _no(f": selectors in {where} are not applicable.")
        if one.get("kinds") and one.get("namespaces"):
            raise _no(f": kinds in namespaces in {where} are not applicable.")
        if not (one.get("kinds") or one.get("namespaces")) or (
            _names(one) and not one.get("kinds")
        ):
            raise _no(f": {where} without kinds is not applicable.")
    return entries


def _names(resources: Block) -> list[str]:
    single = resources.get("name")
    return [*([single] if single else []), *(resources.get("names") or ())]


def _operations(resources: Block) -> list[str]:
    return list(resources.get("operations") or _OPERATIONS)


def _selectors(entries: Sequence[Block]) -> dict[str, Any]:
    """Return the selectors, which there is one of for everything that is matched; raises NotNative."""
    found = [_selected(one) for one in entries]
    if len(found) > 1 and any(found) and any(one != found[0] for one in found):
        raise _no(": selectors and namespaces of some matched resources are not applicable.")
    if len(found) > 1 and any(one.get(name) for one in entries for name in _SELECTORS):
        raise _no(": selectors of several matched resources are not applicable.")
    return found[0] if found else {}


def _selected(resources: Block) -> dict[str, Any]:
    by_namespace: dict[str, Any] = dict(resources.get("namespaceSelector") or {})
    if namespaces := resources.get("namespaces"):
        own = {"key": _NAMESPACE_NAME, "operator": "In", "values": list(namespaces)}
        by_namespace["matchExpressions"] = [*(by_namespace.get("matchExpressions") or ()), own]
    made = {"namespaceSelector": by_namespace, "objectSelector": resources.get("selector")}
    return given(made, made)


def _left_out(
    blocks: Iterable[Sequence[Block]], resolve: Resolve
) -> tuple[list[dict[str, Json]], list[dict[str, Json]]]:
    """Return the resource rules and the conditions that leave out what exclude blocks and exceptions name; raises NotNative."""
    rules: list[dict[str, Json]] = []
    conditions: list[dict[str, Json]] = []
    for entries in blocks:
        rules += _as_rules([one for one in entries if one.get("kinds")], resolve)
        for one in entries:
            if not one.get("kinds"):
                # the rule speaks of the Namespace objects alone, the condition of what is in them
                namespaces, operations = list(one["namespaces"]), _operations(one)
                about = ("", "v1", operations, namespaces)
                rules.append(_rule(about, ["namespaces"]))
                inside = f"request.namespace in {_listed(namespaces)}"
                during = f"request.operation in {_listed(operations)}"
                name = f"kpolicy-left-out-{len(conditions)}"
                conditions.append({"name": name, "expression": f"!({inside} && {during})"})
    return rules, conditions


def _listed(words: Iterable[str]) -> str:
    return f"[{', '.join(repr(str(word)) for word in words)}]"


def _as_rules(entries: Iterable[Block], resolve: Resolve) -> Iterator[dict[str, Json]]:
    """Yield the rules of resource filters, resources of one group and version in one of them; raises NotNative."""
    joined: dict[tuple[Any, ...], set[str]] = {}
    for one in entries:
        operations, names = tuple(_operations(one)), tuple(_names(one))
        for text in one.get("kinds") or ("*",):
            found = list(resolve(str(text)))
            if not found:
                raise _no(f": the kind `{text}` is not served.")
            for group, version, resource in found:
                joined.setdefault((group, version, operations, names), set()).add(resource)
    for about, resources in joined.items():
        yield _rule(about, sorted(resources))


def _rule(about: tuple[Any, ...], resources: list[str]) -> dict[str, Json]:
    group, version, operations, names = about
    rule: dict[str, Json] = {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(operations),
        "resources": resources,
    }
    return {**rule, "resourceNames": list(names)} if names else rule
