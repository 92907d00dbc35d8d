"""What expressions of admission policies ask for, answered from the sandbox's own store: objects, lists, rights.

Apart from the policies themselves, because it is the store's side of the engine's lookups.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.access.reviews import answer as reviewed
from kpolicy_sandbox.errors import ApiError
from kpolicy_sandbox.objects.selectors import matches_selector
from kpolicy_sandbox.objects.versions import presented

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.evaluate import Answer, ListLookup, Lookup, ObjectLookup
    from kpolicy_sandbox.call import Call
    from kpolicy_sandbox.kinds import Resource

_REVIEWS = "/subjectaccessreviews"


def answers_of(call: Call, lookups: Iterable[Lookup]) -> dict[Lookup, Answer]:
    """Return the answers to questions; what is not kept in the store is answered by an error."""
    return {one: _answer(call, one) for one in lookups}


def _answer(call: Call, lookup: Lookup) -> Answer:
    from engine.evaluate import Answer, ApiCallLookup, ListLookup, ObjectLookup

    match lookup:
        case ObjectLookup() | ListLookup():
            return _stored(call, lookup)
        case ApiCallLookup(method="POST") if lookup.url_path.endswith(_REVIEWS):
            return _right(call, json.loads(lookup.body))
    return Answer.failed(f"{type(lookup).__name__} is not answered in admission")


def _stored(call: Call, lookup: ObjectLookup | ListLookup) -> Answer:
    from engine.evaluate import Answer, ObjectLookup

    resource = call.cluster.registry.by_api_version(lookup.api_version, lookup.kind)
    if resource is None:
        text = f'failed to find resource referenced by paramKind: no matches for kind "{lookup.kind}" in version "{lookup.api_version}"'
        return Answer.failed(text)
    if isinstance(lookup, ObjectLookup):
        found = call.cluster.store.get(resource.storage, lookup.namespace, lookup.name)
        return Answer.found(found and presented(resource, found))
    return Answer.found(_listed(call, resource, lookup))


def _listed(call: Call, resource: Resource, lookup: ListLookup) -> list[Any]:
    if resource.namespaced and not lookup.namespace:
        return []
    selector = json.loads(lookup.selector or "{}")
    return [
        presented(resource, obj)
        for obj in call.cluster.store.list(resource.storage, lookup.namespace)
        if matches_selector(selector, obj["metadata"].get("labels") or {})
    ]


def _right(call: Call, body: dict[str, Any]) -> Answer:
    from engine.evaluate import Answer

    resource = call.cluster.resource("authorization.k8s.io", "subjectaccessreviews")
    try:
        return Answer.found(reviewed(call.on(resource=resource), body))
    except ApiError as error:
        return Answer.failed(error.message)
