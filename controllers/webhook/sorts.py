"""Requests that are alike: what they have in common is worked out with the first of each sort, and remembered.

A cluster sees few sorts: the same components ask for the same operations on the same kinds in the same namespaces. What depends
on nothing else (who asks, which policies concern it, what is filtered) holds until policies, settings or bindings change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from engine.model import Json, Object, Review
from engine.reach import EXCEPTION_KIND, OWN_GROUP, POLICY_GROUPS, REPORT_GROUPS, is_granted
from engine.record import filled, replace

from . import envelope
from .triggers import for_own_requests

if TYPE_CHECKING:
    from controllers.runtime.cluster_cache import ClusterCache
    from controllers.runtime.figures import Place
    from controllers.runtime.policy_cache import Snapshot
    from controllers.runtime.sink import Stage
    from controllers.runtime.webhook_routes import WebhookRoute
    from engine.evaluate import PolicySet
    from engine.model import UserInfo

    from .counting import Usual
    from .timing import Passed, Timing

NO_LABELS: Final[Mapping[str, str]] = {}
_MOST, _LONGEST = 4096, 4096
"""How many sorts are remembered, and how many characters of one: these texts come from requests."""


class Sort:
    """Requests that differ in their objects and names only.

    `filter` tells of those that are allowed by their name or object (None: none is). `policies` are asked before the answer, `audit` after it and `triggers` in between, where there are
    any for the kind. `place` is the namespace whose labels count, empty where none do; `passed` counts for measurements. `usual`
    are the results that most requests get, with where they are counted.
    """

    __slots__ = (
        "_fields",
        "audit",
        "filter",
        "passed",
        "place",
        "policies",
        "route",
        "triggers",
        "usual",
    )

    def __init__(
        self,
        fields: Mapping[str, Any],
        place: str,
        stage: Stage,
        route: WebhookRoute,
        *,
        is_own: bool,
        timing: Timing,
    ) -> None:
        self._fields, self.place, self.route = fields, place, route
        kind = fields["kind"]
        self.filter: Filter | None = None
        policies = route.blocking if stage == "validate" else route.mutate
        self.policies = for_own_requests(policies) if is_own and stage == "mutate" else policies
        self.audit: PolicySet | None = route.audit if route.audit.for_kind(kind) else None
        self.triggers: PolicySet | None = route.triggers if route.triggers.for_kind(kind) else None
        self.passed: Passed = timing.passed(self.policies, kind)
        self.usual: Usual = []

    @property
    def about(self) -> Place:
        """The labels of what its requests are about: kind, namespace, operation."""
        return self._fields["kind"], self.place or "-", self._fields["operation"].lower()

    def review(self, request: Mapping[str, Json], labels: Mapping[str, str]) -> Review:
        """Return what policies are asked about in a request, with the labels of its `place`."""
        fields, namespace = self._fields, request.get("namespace") or ""
        # what is told beside names differs from login to login, and no binding goes by it
        if extra := request["userInfo"].get("extra"):
            fields = {**fields, "user": replace(fields["user"], extra=extra)}
        return filled(
            Review,
            {
                **fields,
                "object": _placed(request.get("object"), namespace, request),
                "old_object": _placed(request.get("oldObject"), namespace, request),
                "namespace_labels": labels,
                "request": request,
                "dry_run": request.get("dryRun") is True,
            },
        )


class Sorts:
    """Sorts of requests as they came, while what they were worked out by stays as it is."""

    def __init__(
        self, cache: ClusterCache, timing: Timing, background_users: frozenset[str]
    ) -> None:
        self._cache, self._timing, self._background_users = cache, timing, background_users
        self._known: dict[tuple[Any, ...], Sort | None] = {}
        self._snapshot: Snapshot | None = None
        self._configuration, self._bindings = cache.configuration, -1

    def of(self, stage: Stage, route_path: str, request: Mapping[str, Json]) -> Sort | None:
        """Return the sort of a request, None for one that no policy is asked about.

        That the names in it are texts was checked when it was read.
        """
        cache, info = self._cache, request["userInfo"]
        snapshot, configuration = cache.policies.snapshot, cache.configuration
        if (
            snapshot is not self._snapshot
            or configuration is not self._configuration
            or cache.bindings.version != self._bindings
            or len(self._known) >= _MOST
        ):
            self._known = {}
            self._snapshot, self._configuration = snapshot, configuration
            self._bindings = cache.bindings.version
        # rules name the kind of the parent of a subresource
        subresource = request.get("subResource")
        kind = cache.parent_kind(request) if subresource else request["kind"]
        key = (
            stage, route_path, kind.get("group"), kind.get("version"), kind.get("kind"), subresource,
            request.get("operation"), request.get("namespace"),
            info.get("username"), info.get("uid"), *(info.get("groups") or ()),
        )  # fmt: skip
        try:
            return self._known[key]
        except KeyError:
            made = self._made(snapshot, stage, route_path, request, kind)
        if sum(map(len, filter(None, key))) <= _LONGEST:
            self._known[key] = made
        return made

    def _made(
        self,
        snapshot: Snapshot,
        stage: Stage,
        route_path: str,
        request: Mapping[str, Json],
        kind: Mapping[str, Json],
    ) -> Sort | None:
        route = snapshot.routes.find(route_path)
        if route is None or not route.concerns(stage, kind.get("kind") or ""):
            return None
        user = envelope.user_of({**request["userInfo"], "extra": None}, self._cache.bindings.roles)
        fields, namespace = _fields_of(request, kind, user), request.get("namespace") or ""
        # a Namespace itself does not carry the labels of its namespace (row A-37)
        place = namespace if fields["kind"] != "Namespace" else ""
        is_own = user.username in self._background_users
        made = Sort(fields, place, stage, route, is_own=is_own, timing=self._timing)
        found = filter_of(self._cache, made.review(request, NO_LABELS), namespace)
        made.filter = None if isinstance(found, bool) else found
        return None if found is True else made


def _fields_of(
    request: Mapping[str, Json], kind: Mapping[str, Json], user: UserInfo
) -> dict[str, Any]:
    """Return the fields of a Review that requests of a sort share."""
    return {
        "operation": request.get("operation") or "",
        "group": kind.get("group") or "",
        "version": kind.get("version") or "",
        "kind": kind.get("kind") or "",
        "subresource": request.get("subResource") or "",
        "user": user,
    }


def _placed(obj: Object | None, namespace: str, request: Mapping[str, Json]) -> Object | None:
    """Return an object that states its namespace and name; options of CONNECT requests do not by themselves."""
    if obj is None:
        return None
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    if metadata.get("namespace") or not namespace or obj.get("kind") == "Namespace":
        return obj
    name = metadata.get("name") or request.get("name")
    placed = {**metadata, "namespace": namespace}
    return {**obj, "metadata": {**placed, "name": name} if name else placed}


# Requests that are never put before policies (row W-10).
#
# Users come first, then kinds, then what the engine itself keeps about requests. One exception: an Event for which a policy
# is written by name gets through the filter that would drop all Events, because such a policy would otherwise never act and
# the published one-time code policies need it.

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
