"""What expressions of admission policies ask for, answered from the sandbox's own store: objects, lists, rights.

Apart from the policies themselves, because it is the store's side of `expressions.Facts`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.access.reviews import answer
from kpolicy_sandbox.errors import ApiError
from kpolicy_sandbox.objects.selectors import matches_selector
from kpolicy_sandbox.objects.versions import presented

if TYPE_CHECKING:
    from kpolicy_sandbox.call import Call
    from kpolicy_sandbox.kinds import Resource

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoredFacts:
    """The facts for one call; each is what the store has at this moment."""

    call: Call

    def get(self, api_version: str, kind: str, namespace: str, name: str) -> Object | None:
        """Return an object, None when there is none. LookupError for a kind that is not served."""
        resource = self._resource(api_version, kind)
        found = self.call.cluster.store.get(resource.storage, namespace, name)
        return found and presented(resource, found)

    def list(self, api_version: str, kind: str, namespace: str, selector: Object) -> list[Object]:
        """Return the objects that a label selector selects in a namespace. LookupError for a kind that is not served."""
        resource = self._resource(api_version, kind)
        if resource.namespaced and not namespace:
            return []
        return [
            presented(resource, obj)
            for obj in self.call.cluster.store.list(resource.storage, namespace)
            if matches_selector(selector, obj["metadata"].get("labels") or {})
        ]

    def reviewed(self, review: Object) -> Object:
        """Return a SubjectAccessReview with its answer. LookupError for one without a question."""
        resource = self.call.cluster.resource("authorization.k8s.io", "subjectaccessreviews")
        try:
            return answer(self.call.on(resource=resource), review)
        except ApiError as error:
            raise LookupError(error.message) from error

    def _resource(self, api_version: str, kind: str) -> Resource:
        found = self.call.cluster.registry.by_api_version(api_version, kind)
        if found is None:
            text = f'failed to find resource referenced by paramKind: no matches for kind "{kind}" in version "{api_version}"'
            raise LookupError(text)
        return found
