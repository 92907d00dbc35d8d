"""Which requests the API server must bring to us: rules of webhook configurations from the kinds that policies name (row W-02).

Pure: compiled policies and the kinds a server has in, rules out. A rule may ask for more than a policy matches, never for
less; whatever is brought in vain costs a lookup, whatever is not brought is not checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from controllers.kube.discovery import ANY, NAMESPACED, Place, resources_of
from controllers.store.cel_policies import is_of_cel, webhook_rules
from engine import vocabulary
from engine.match import parse_kind
from engine.model import Block, RuleType
from engine.reach import GUARDED_GROUPS, OWN_GROUP, POLICY_GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from controllers.kube import Discovery
    from engine.evaluate.rules import CompiledRule

EVERY_OPERATION = ("CONNECT", "CREATE", "DELETE", "UPDATE")
_CHANGING = ("CREATE", "UPDATE")


Wanted = dict[Place, dict[str, set[str]]]


def admission_rules(
    rules: Iterable[CompiledRule], discovery: Discovery, *, mutating: bool = False
) -> list[dict[str, Any]]:
    """Return the rules of a webhook that serves some compiled rules, in one fixed order.

    Kinds that the server does not have are left out; they come in when the server has them. So are, for mutating, kinds that no
    policy may change; what a wildcard brings all the same is for match conditions.
    """
    wanted: Wanted = {}
    said: list[dict[str, Any]] = []
    for rule in rules:
        if is_of_cel(rule.policy):
            said += (one for one in webhook_rules(rule.policy) if one not in said)
            continue
        for text, operations in kinds_of(rule, mutating=mutating):
            for place, resource in resources_of(parse_kind(text), discovery):
                held = place if not rule.policy.namespace else _inside(place)
                if held is not None and not (mutating and held.group == OWN_GROUP):
                    wanted.setdefault(held, {}).setdefault(resource, set()).update(operations)
    return _without_covered([*_as_rules(wanted), *sorted(said, key=_said_order)])


def kinds_of(
    rule: CompiledRule, *, mutating: bool = False
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the kinds that a rule matches, each with the operations it is asked about.

    A part of the match without kinds concerns all of them.
    """
    usual = _CHANGING if mutating else EVERY_OPERATION
    needed = _needed(rule)
    for resources in resource_blocks(rule.rule.match):
        asked = tuple(map(str, resources.get("operations") or usual))
        operations = (*asked, *needed)
        for kind in resources.get("kinds") or (ANY,):
            yield str(kind), operations


def kinds_in(match: Block) -> list[str]:
    """Return the kinds that a match block names, as written."""
    return [str(kind) for block in resource_blocks(match) for kind in block.get("kinds") or ()]


def unknown_kinds(texts: Iterable[str], discovery: Discovery) -> list[str]:
    """Return the kinds, as written, that the server does not have."""
    return [
        text for text in texts if not any(True for _ in resources_of(parse_kind(text), discovery))
    ]


def _needed(rule: CompiledRule) -> tuple[str, ...]:
    """Return operations that a rule must hear of whatever it matches: what it made follows its trigger (row U-04)."""
    generate = rule.rule.generate
    if rule.type is RuleType.GENERATION and generate and generate.get("synchronize"):
        return ("UPDATE", "DELETE")
    return ()


def resource_blocks(match: Block) -> Iterator[Mapping[str, Any]]:
    """Yield the resource filters of a match block, those of all its entries that name kinds or, without any, may match all."""
    entries = [*(match.get("any") or ()), *(match.get("all") or ())] or [match]
    blocks = [entry.get("resources") or {} for entry in entries if isinstance(entry, dict)]
    if match.get("all") and any(block.get("kinds") for block in blocks):
        blocks = [block for block in blocks if block.get("kinds")]
    yield from blocks


def _inside(place: Place) -> Place | None:
    """Return what a policy of one namespace can concern in a place."""
    if place.group in GUARDED_GROUPS:
        return None
    if place.scope == NAMESPACED:
        return place
    return Place(place.group, place.version, NAMESPACED) if place.group == ANY else None


def _as_rules(wanted: Wanted) -> list[dict[str, Any]]:
    """Join resources of one place that are asked about for the same operations."""
    joined: dict[tuple[Place, tuple[str, ...]], list[str]] = {}
    for place, resources in wanted.items():
        for resource, operations in resources.items():
            named = (ANY,) if ANY in operations else tuple(sorted(operations))
            joined.setdefault((place, named), []).append(resource)
    return [
        {
            "apiGroups": [place.group],
            "apiVersions": [place.version],
            "operations": list(operations),
            "resources": sorted(resources),
            "scope": place.scope,
        }
        for (place, operations), resources in sorted(joined.items(), key=_order)
    ]


def _said_order(rule: Mapping[str, Any]) -> Any:
    names = ("apiGroups", "apiVersions", "resources", "scope", "operations")
    return tuple(rule[name] for name in names)


def _order(item: tuple[tuple[Place, tuple[str, ...]], list[str]]) -> Any:
    (place, operations), resources = item
    return place.group, place.version, sorted(resources), place.scope, operations


def _without_covered(rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out rules that another one includes; the API server would ask only once anyway."""
    return [
        rule
        for rule in rules
        if not any(other is not rule and _covers(other, rule) for other in rules)
    ]


def _covers(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    if one["scope"] not in (ANY, other["scope"]):
        return False
    names = ("apiGroups", "apiVersions", "operations")
    return all(ANY in one[name] or set(other[name]) <= set(one[name]) for name in names) and all(
        resource in one["resources"] or (ANY in one["resources"] and "/" not in resource)
        for resource in other["resources"]
    )


# Conditions by which the API server does not ask us about what rules would bring all the same.

_GROUPS: Final = ", ".join(f'"{group}"' for group in sorted(POLICY_GROUPS))
_IS_EXCEPTION: Final = (
    f'request.resource.group in [{_GROUPS}] && request.resource.resource == "policyexceptions"'
)
_GRANTED: Final = (
    f"({{0}} != null && {{0}}.metadata.?annotations[?'{vocabulary.GRANT}'].hasValue())"
)
"""Whether a state of an exception carries a grant, in CEL."""


def reachable(rules: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Keep from mutating webhooks what no policy may change, where rules would bring it."""
    found = []
    if any(ANY in rule["apiGroups"] for rule in rules):
        expression = f'request.resource.group != "{OWN_GROUP}"'
        found.append({"name": "kpolicy-own-kinds", "expression": expression})
    if any(_brings_exceptions(rule) for rule in rules):
        granted = " || ".join(_GRANTED.format(state) for state in ("object", "oldObject"))
        expression = f"!({_IS_EXCEPTION} && ({granted}))"
        found.append({"name": "kpolicy-granted-exceptions", "expression": expression})
    return found


def undecided(
    rules: list[dict[str, Any]], conditions: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return a policy's own conditions, with one by which they are not tested where decisions about exceptions are carried out.

    The API server refuses a request of which a condition cannot be evaluated, unless another one does not hold.
    """
    is_about = any(
        {ANY, OWN_GROUP} & set(rule["apiGroups"]) or _brings_exceptions(rule) for rule in rules
    )
    if not (conditions and is_about):
        return list(conditions)
    state = f'request.resource.group == "{OWN_GROUP}" && request.subResource == "status"'
    end = f'{_IS_EXCEPTION} && request.operation == "DELETE" && {_GRANTED.format("oldObject")}'
    expression = f"!(({state}) || ({end}))"
    return [*conditions, {"name": "kpolicy-decided", "expression": expression}]


def _brings_exceptions(rule: dict[str, Any]) -> bool:
    return bool(
        {ANY, *POLICY_GROUPS} & set(rule["apiGroups"])
        and {ANY, "policyexceptions"} & set(rule["resources"])
    )
