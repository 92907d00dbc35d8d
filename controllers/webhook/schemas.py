"""Warnings of CEL expressions that do not fit the kinds they are about, from the schemas that the API server publishes.

For the validator, when a policy is written. A server that does not answer in time costs the warnings and never the policy.
"""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import islice, product
from typing import TYPE_CHECKING, Any, Final

from controllers.kube import Client, Discovery, Kind, KubeError
from engine.lang import wildcard
from engine.match import parse_kind

from .admission_rules import kinds_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from engine.lint.cel_types import Schemas
    from engine.model import Policy, Rule

    Check = Callable[[Schemas, Mapping[str, Any]], Iterator[str]]

MOST_KINDS: Final = 10
"""Kinds of one rule that are looked at, as Kubernetes does for its own policies."""

_MOST_NAMED: Final = 1000
"""Pairs of group and resource that are looked for."""
_SECONDS: Final = 2.0
_MOST_BYTES: Final = 32 * 1024 * 1024


async def type_warnings(client: Client, discovery: Discovery, policy: Policy) -> list[str]:
    """Return what the schemas of the kinds that rules name exactly say about the rules' CEL expressions."""
    from engine.lint.cel_types import rule_warnings

    pairs = [
        (kind, partial(rule_warnings, rule))
        for rule in policy.rules
        for kind in islice(_kinds(rule, discovery), MOST_KINDS)
    ]
    return await _warnings(client, pairs)


async def cel_policy_warnings(client: Client, discovery: Discovery, policy: Policy) -> list[str]:
    """Return what the schemas of the resources that a policy written in CEL names exactly say about its expressions."""
    from engine.lint.cel_types import policy_warnings

    check = partial(policy_warnings, policy.raw.get("spec") or {})
    kinds = islice(_resources(policy, discovery), MOST_KINDS)
    return await _warnings(client, [(kind, check) for kind in kinds])


async def _warnings(client: Client, pairs: Sequence[tuple[Kind, Check]]) -> list[str]:
    known: dict[str, Schemas | None] = {}
    found: dict[str, None] = {}
    for kind, check in pairs:
        if kind.root not in known:
            known[kind.root] = await _schemas(client, kind.root)
        schemas = known[kind.root]
        if schemas is None:
            continue
        shape = schemas.of_kind(kind.group, kind.version, kind.kind)
        if shape is not None:
            named = f"{kind.group}/{kind.version}, Kind={kind.kind}"
            found |= dict.fromkeys(f"{named}: {text}" for text in check(schemas, shape))
    return list(found)


def _resources(policy: Policy, discovery: Discovery) -> Iterator[Kind]:
    """Yield the kinds of the resources that match constraints name without wildcards; those of autogen are not written so."""
    constraints = (policy.raw.get("spec") or {}).get("matchConstraints") or {}
    pairs = (
        pair
        for rule in constraints.get("resourceRules") or ()
        for pair in product(rule.get("apiGroups") or (), rule.get("resources") or ())
    )
    for group, plural in islice(pairs, _MOST_NAMED):
        kind = discovery.of_resource(str(group), str(plural))
        if kind is not None:
            yield kind


def _kinds(rule: Rule, discovery: Discovery) -> Iterator[Kind]:
    """Yield the kinds that a rule with expressions names without wildcards."""
    if not (rule.cel_preconditions or (rule.validate or {}).get("cel")):
        return
    for text in dict.fromkeys(kinds_in(rule.match)):
        named = parse_kind(text)
        if named.subresource or wildcard.has_wildcard(named.kind):
            continue
        yield from discovery.matching(named.group, named.version, named.kind, preferred=True)


async def _schemas(client: Client, root: str) -> Schemas | None:
    from engine.lint.cel_types import Schemas

    try:
        async with asyncio.timeout(_SECONDS):
            document = await client.raw("GET", f"/openapi/v3{root}", limit=_MOST_BYTES)
    except (KubeError, TimeoutError):
        return None
    return Schemas(document) if isinstance(document, dict) else None
