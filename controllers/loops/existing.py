"""The objects that are there already and that a rule concerns: its triggers, listed from the server.

For rules that act for existing objects. The same filters count as at admission, so that what is never put before policies is
left alone here, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.kube import Forbidden, NotFound

from .rules import standing_operation, trigger_kinds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from controllers.kube import Kind
    from engine.evaluate.rules import CompiledRule
    from engine.model import Object

    from .context import LoopContext


async def existing_triggers(context: LoopContext, rule: CompiledRule) -> AsyncIterator[Object]:
    """Yield the objects that match a rule; kinds that we may not list are passed over. Raises KubeError."""
    for kind in trigger_kinds(context.cache.discovery, rule, "list"):
        async for obj in _objects(context, kind, rule.policy.namespace):
            if await concerns(context, rule, obj):
                yield obj


async def concerns(context: LoopContext, rule: CompiledRule, obj: Object) -> bool:
    """Tell whether a rule is about an object, whoever asks and whatever happens to it."""
    metadata = obj.get("metadata") or {}
    namespace = str(metadata.get("namespace") or "")
    review = await context.review(obj, standing_operation(rule))
    if context.cache.configuration.filters_out(review, namespace, str(metadata.get("name") or "")):
        return False
    return bool(rule.matcher.applies(review))


async def _objects(context: LoopContext, kind: Kind, namespace: str) -> AsyncIterator[Object]:
    if namespace and not kind.namespaced:
        return
    try:
        page = await context.client.list_all(kind, namespace)
    except (Forbidden, NotFound):
        return
    for item in page.items:
        if not (item.get("metadata") or {}).get("deletionTimestamp"):
            yield {"apiVersion": kind.api_version, "kind": kind.kind, **item}
