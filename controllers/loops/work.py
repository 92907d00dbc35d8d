"""Writing work down: UpdateRequests for rules of generate and mutate-existing (rows U-01, U-07).

For the sink, which does so before a request is answered, and for the loop that looks at policies as they change. Writing the
same work twice is one request, because its name follows from its content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.kube import AlreadyExists, Forbidden, Kind, NotFound
from controllers.kube.kinds import UPDATE_REQUESTS
from controllers.kube.store import key_of
from controllers.store import update_requests
from engine.model import Object, Review, RuleType

from .rules import is_unaffected, standing_operation, trigger_kinds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from engine.evaluate.rules import CompiledRule

    from .context import LoopContext


def request_type(policy: str, type_: RuleType) -> str:
    """Return what an UpdateRequest calls a type of rule of a policy, named by its identity."""
    is_of_cel = ":" in policy
    if type_ is RuleType.GENERATION:
        return update_requests.CEL_GENERATE if is_of_cel else update_requests.GENERATE
    return update_requests.CEL_MUTATE if is_of_cel else update_requests.MUTATE


async def write_down(context: LoopContext, update: update_requests.UpdateRequest) -> None:
    """Create an UpdateRequest; one that is there already is the same work. Raises KubeError."""
    obj = update_requests.document(update, context.namespace)
    try:
        await context.client.create(UPDATE_REQUESTS, obj)
    except AlreadyExists:
        return
    context.metrics.count("kyverno_updaterequest", (update.type, "created"))


def unproven(
    type_: str, policy: str, work: tuple[update_requests.RuleWork, ...], review: Review
) -> update_requests.UpdateRequest:
    """Return work on the word of somebody who proved nothing: what is to be looked at, and what must have changed there."""
    before, after = review.old_object, review.object
    changes = before is not None and after is not None and not is_unaffected(before, after)
    version = str(((before or {}).get("metadata") or {}).get("resourceVersion") or "")
    return update_requests.UpdateRequest(
        type_,
        policy,
        work,
        is_proven=False,
        claimed=review.operation,
        seen=version if changes else "",
    )


def trigger_of(review: Review) -> dict[str, str]:
    """Return the reference to the object under review, which for a subresource is its parent."""
    request = review.request
    named = {
        "apiVersion": f"{review.group}/{review.version}" if review.group else review.version,
        "kind": review.kind,
        "namespace": str(request.get("namespace") or review.namespace),
        "name": str(review.name or request.get("name") or ""),
        "uid": "" if review.subresource else str(review.metadata.get("uid") or ""),
    }
    if review.kind == "Namespace":
        named["namespace"] = ""
    return {key: value for key, value in named.items() if value}


# The objects that are there already and that a rule concerns: its triggers, listed from the server.
#
# For rules that act for existing objects. The same filters count as at admission, so that what is never put before policies is
# left alone here, too.


async def existing_triggers(context: LoopContext, rule: CompiledRule) -> AsyncIterator[Object]:
    """Yield the objects that match a rule; kinds that we may not list are passed over. Raises KubeError."""
    for kind in trigger_kinds(context.cache.discovery, rule, "list"):
        async for obj in _objects(context, kind, rule.policy.namespace):
            if await concerns(context, rule, obj):
                yield obj


async def concerns(context: LoopContext, rule: CompiledRule, obj: Object) -> bool:
    """Tell whether a rule is about an object, whoever asks and whatever happens to it."""
    review = await context.review(obj, standing_operation(rule))
    if context.cache.configuration.filters_out(review, *key_of(obj)):
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
            yield kind.typed(item)
