"""Requests that are never put before policies (row W-10).

Users come first, then kinds, then what the engine itself keeps about requests. One exception: an Event for which a policy
is written by name gets through the filter that would drop all Events, because such a policy would otherwise never act and
the published one-time code policies need it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from engine.model import Json, Review
from engine.reach import EXCEPTION_KIND, OWN_GROUP, POLICY_GROUPS, REPORT_GROUPS, is_granted

if TYPE_CHECKING:
    from controllers.runtime.cluster_cache import ClusterCache

Filter = Callable[[Review, Mapping[str, Json]], bool]
"""Tells of a request whether it is allowed without asking any policy."""

_DECIDED = frozenset({OWN_GROUP, *POLICY_GROUPS})
"""Groups of which people decide what some requests carry out."""


def filter_of(cache: ClusterCache, review: Review, namespace: str) -> Filter | bool:
    """Return what filters requests in a namespace that differ from this one in name and object only: True for all, False for none."""
    configuration = cache.configuration
    if configuration.excludes_user(review) or _is_bookkeeping(review):
        return True
    is_named = review.kind == "Event" and cache.policies.snapshot.names_events
    filters = () if is_named else configuration.filters_for(review, namespace)
    if not filters and review.group not in _DECIDED:
        return False

    def is_filtered(review: Review, request: Mapping[str, Json]) -> bool:
        name = str(request.get("name") or "") or review.name
        return _carries_out(review) or any(one.matches(review, namespace, name) for one in filters)

    return is_filtered


def _is_bookkeeping(review: Review) -> bool:
    """Tell whether an object is a report or an UpdateRequest: made by the thousand, and only by us."""
    return review.group in REPORT_GROUPS or (
        review.kind == "UpdateRequest" and review.group == "kyverno.io"
    )


def _carries_out(review: Review) -> bool:
    """Tell whether a request does what people decided: a policy that refused it would keep alive what somebody revoked.

    Who says what became of grants and codes is pinned by the API server's own policies.
    """
    if review.group == OWN_GROUP:
        return review.subresource == "status"
    is_exception = review.group in POLICY_GROUPS and review.kind == EXCEPTION_KIND
    return is_exception and review.operation == "DELETE" and is_granted(review.old_object or {})
