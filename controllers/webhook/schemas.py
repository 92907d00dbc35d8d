"""Warnings of CEL expressions that do not fit the kinds they are about, from the schemas that the API server publishes.

For the desk, when a policy is written. A server that does not answer in time costs the warnings and never the policy.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING, Final

from controllers.kube import KubeError
from engine.lang import wildcard
from engine.match import parse_kind

from .admission_rules import kinds_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controllers.kube import Client, Discovery, Kind
    from engine.lint.cel_types import Schemas
    from engine.model import Policy, Rule

MOST_KINDS: Final = 10
"""Kinds of one rule that are looked at, as Kubernetes does for its own policies."""

_SECONDS: Final = 2.0
_MOST_BYTES: Final = 32 * 1024 * 1024


async def type_warnings(client: Client, discovery: Discovery, policy: Policy) -> list[str]:
    """Return what the schemas of the kinds that rules name exactly say about the rules' CEL expressions."""
    found: dict[str, None] = {}
    known: dict[str, Schemas | None] = {}
    for rule in policy.rules:
        for kind in islice(_kinds(rule, discovery), MOST_KINDS):
            if kind.root not in known:
                known[kind.root] = await _schemas(client, kind.root)
            found |= dict.fromkeys(_of_kind(rule, kind, known[kind.root]))
    return list(found)


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


def _of_kind(rule: Rule, kind: Kind, schemas: Schemas | None) -> Iterator[str]:
    from engine.lint.cel_types import rule_warnings

    shape = schemas.of_kind(kind.group, kind.version, kind.kind) if schemas is not None else None
    if schemas is None or shape is None:
        return
    for text in rule_warnings(rule, schemas, shape):
        yield f"{kind.group}/{kind.version}, Kind={kind.kind}: {text}"
