"""The ConfigMap `kyverno`, read live: what is never put before policies, and how webhooks are configured (row W-20).

For the webhook, which filters requests by it, and for the loops that write webhook configurations and Events. Values that
cannot be read are named in `problems` and count as not given; nothing here ever fails.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import orjson

from engine.lang import wildcard
from engine.lang.imagetext import DOCKER_HUB, RegistryDefaults
from engine.match import KindFilter, parse_kind
from engine.model import Json, Object, Review, review_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_MOST_SORTS, _LONGEST_SORT = 4096, 1024
_FILTER = re.compile(r"\[([^\[\]]*)\]")
_ANY = "*"

DEFAULT_FILTERS = (
    "[*/*,kyverno,*][Event,*,*][*/*,kube-system,*][*/*,kube-public,*][*/*,kube-node-lease,*][Node,*,*][Node/?*,*,*]"
    "[APIService,*,*][APIService/?*,*,*][TokenReview,*,*][SubjectAccessReview,*,*][SelfSubjectAccessReview,*,*]"
    "[Binding,*,*][Pod/binding,*,*][ReplicaSet,*,*][ReplicaSet/?*,*,*][EphemeralReport,*,*][ClusterEphemeralReport,*,*]"
    "[CertificateSigningRequest,*,*][Lease,*,*]"
)
"""What a cluster must not depend on us for, when there is no ConfigMap at all."""

DEFAULT_GROUPS = "system:nodes"


@dataclass(frozen=True, slots=True)
class ResourceFilter:
    """One entry `[Kind,namespace,name]`; all three may hold wildcards."""

    kind: KindFilter
    namespace: str = _ANY
    name: str = _ANY

    def concerns(self, review: Review, namespace: str) -> bool:
        """Tell whether objects of this sort in a namespace are filtered, by whatever name."""
        return self._means(review) and wildcard.match(self.namespace, namespace)

    def matches(self, review: Review, namespace: str, name: str) -> bool:
        """Tell whether an object is filtered; a Namespace also counts as lying in itself."""
        if not self._means(review):
            return False
        if review.kind == "Namespace" and not review.group and wildcard.match(self.namespace, name):
            return True
        return wildcard.match(self.namespace, namespace) and wildcard.match(self.name, name)

    def _means(self, review: Review) -> bool:
        return self.kind.matches(review.group, review.version, review.kind, review.subresource)


class Filters:
    """Resource filters by kind, because every request is held against all of them.

    Which of them concern a sort of object in a namespace is found once; of most objects it is none.
    """

    def __init__(self, filters: Iterable[ResourceFilter] = ()) -> None:
        self._known: dict[tuple[str, ...], tuple[ResourceFilter, ...]] = {}
        self._by_kind: dict[str, list[ResourceFilter]] = {}
        self._open: list[tuple[str, ResourceFilter]] = []
        for one in filters:
            if not wildcard.has_wildcard(one.kind.kind):
                self._by_kind.setdefault(one.kind.kind, []).append(one)
            elif wildcard.has_wildcard(one.namespace):
                self._open.append(("", one))
            else:
                self._open.append((one.namespace, one))

    def match(self, review: Review, namespace: str, name: str) -> bool:
        """Tell whether one of the filters matches an object."""
        found = self.of(review, namespace)
        return any(one.matches(review, namespace, name) for one in found) if found else False

    def of(self, review: Review, namespace: str) -> tuple[ResourceFilter, ...]:
        """Return the filters that match some object of this sort in a namespace."""
        sort = (review.kind, review.group, review.version, review.subresource, namespace)
        found = self._known.get(sort)
        if found is None:
            found = tuple(self._concerning(review, namespace))
            # these texts come from requests: neither many nor long ones are kept
            if len(self._known) >= _MOST_SORTS:
                self._known.clear()
            if sum(map(len, sort)) <= _LONGEST_SORT:
                self._known[sort] = found
        return found

    def _concerning(self, review: Review, namespace: str) -> Iterator[ResourceFilter]:
        """Yield the filters that match an object by all but its name, which for a Namespace is also its place."""
        is_place = review.kind == "Namespace"
        for one in self._by_kind.get(review.kind, ()):
            if is_place or one.concerns(review, namespace):
                yield one
        for place, one in self._open:
            if is_place or ((not place or place == namespace) and one.concerns(review, namespace)):
                yield one


@dataclass(frozen=True, slots=True)
class Names:
    """Wildcard names that are left out, and those (written `!name`) that are not, whatever else says."""

    excluded: tuple[str, ...] = ()
    included: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.excluded)

    def includes(self, names: Iterable[str]) -> bool:
        """Tell whether one of the names is expressly kept in."""
        return bool(self.included) and _any_matches(self.included, names)

    def excludes(self, names: Iterable[str]) -> bool:
        """Tell whether one of the names is left out."""
        return bool(self.excluded) and _any_matches(self.excluded, names)


_FALSE = frozenset({"0", "f", "false"})


@dataclass(frozen=True, slots=True)
class Configuration:
    """What the ConfigMap says."""

    filters: tuple[ResourceFilter, ...] = ()
    usernames: Names = field(default_factory=Names)
    groups: Names = field(default_factory=Names)
    roles: Names = field(default_factory=Names)
    cluster_roles: Names = field(default_factory=Names)
    registry: RegistryDefaults = DOCKER_HUB
    success_events: bool = False
    success_event_actions: tuple[str, ...] = ()
    namespace_selector: Mapping[str, Json] | None = None
    object_selector: Mapping[str, Json] | None = None
    match_conditions: tuple[Mapping[str, Json], ...] = ()
    webhook_annotations: Mapping[str, str] = field(default_factory=dict)
    webhook_labels: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    _index: Filters = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_index", Filters(self.filters))

    def excludes_user(self, review: Review) -> bool:
        """Tell whether requests of this user are never put before policies (row W-10)."""
        if not (self.usernames or self.groups or self.roles or self.cluster_roles):
            return False
        user = review.user
        asked = (
            (self.usernames, (user.username,)),
            (self.groups, user.groups),
            (self.roles, user.roles),
            (self.cluster_roles, user.cluster_roles),
        )
        if any(names.includes(of_user) for names, of_user in asked):
            return False
        return any(names.excludes(of_user) for names, of_user in asked)

    def filters_for(self, review: Review, namespace: str) -> tuple[ResourceFilter, ...]:
        """Return the filters of which one may leave out objects like this one, by their names."""
        return self._index.of(review, namespace)

    def filters_out(self, review: Review, namespace: str, name: str) -> bool:
        """Tell whether objects like this one are never put before policies."""
        return self._index.match(review, namespace, name)

    def leaves_out(self, obj: Object) -> bool:
        """Tell the same of one object."""
        metadata = obj["metadata"]
        namespace, name = str(metadata.get("namespace") or ""), str(metadata["name"])
        return self.filters_out(review_of(obj), namespace, name)


def read_configuration(config_map: Object | None) -> Configuration:
    """Return what a ConfigMap says; without one, defaults that keep a cluster able to start."""
    if config_map is None:
        return Configuration(filters=read_filters(DEFAULT_FILTERS), groups=_names(DEFAULT_GROUPS))
    data = {
        str(key): value
        for key, value in (config_map.get("data") or {}).items()
        if isinstance(value, str)
    }
    problems: list[str] = []
    selectors = _selectors(_json(data, "webhooks", problems), problems)
    return Configuration(
        filters=read_filters(data.get("resourceFilters", "")),
        usernames=_names(data.get("excludeUsernames", "")),
        groups=_names(data.get("excludeGroups", "")),
        roles=_names(data.get("excludeRoles", "")),
        cluster_roles=_names(data.get("excludeClusterRoles", "")),
        registry=RegistryDefaults(
            data.get("defaultRegistry") or DOCKER_HUB.registry,
            data.get("enableDefaultRegistryMutation", "").strip().lower() not in _FALSE,
        ),
        success_events=data.get("generateSuccessEvents", "").strip().lower() == "true",
        success_event_actions=_list(data.get("successEventActions", "")),
        namespace_selector=selectors.get("namespaceSelector"),
        object_selector=selectors.get("objectSelector"),
        match_conditions=_conditions(_json(data, "matchConditions", problems)),
        webhook_annotations=_texts(_json(data, "webhookAnnotations", problems)),
        webhook_labels=_texts(_json(data, "webhookLabels", problems)),
        problems=tuple(problems),
    )


def read_filters(text: str) -> tuple[ResourceFilter, ...]:
    """Read `[Kind,namespace,name]` entries; missing parts are any."""
    found = []
    for entry in _FILTER.findall(text):
        kind, *rest = (part.strip() for part in entry.split(","))
        namespace, name = (*rest, "", "")[:2]
        found.append(ResourceFilter(parse_kind(kind or _ANY), namespace or _ANY, name or _ANY))
    return tuple(found)


def _names(text: str) -> Names:
    entries = _list(text)
    return Names(
        excluded=tuple(one for one in entries if not one.startswith("!")),
        included=tuple(one[1:] for one in entries if one.startswith("!") and len(one) > 1),
    )


def _list(text: str) -> tuple[str, ...]:
    return tuple(part for raw in text.split(",") if (part := raw.strip()))


def _any_matches(patterns: tuple[str, ...], names: Iterable[str]) -> bool:
    tests = _tests(patterns)
    return any(test(name) for name in names for test in tests)


@lru_cache(maxsize=64)
def _tests(patterns: tuple[str, ...]) -> tuple[Callable[[str], bool], ...]:
    return tuple(map(wildcard.compiled, patterns))


def _json(data: Mapping[str, str], key: str, problems: list[str]) -> Any:
    text = data.get(key, "")
    if not text.strip():
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        problems.append(f"`{key}` of the ConfigMap is not JSON: {error}")
        return None


def _selectors(value: Any, problems: list[str]) -> dict[str, Any]:
    """Return the selectors of `webhooks`, which is an object or a list whose first entry counts."""
    first = value[0] if isinstance(value, list) and value else value
    if first is None:
        return {}
    if not isinstance(first, dict):
        problems.append("`webhooks` of the ConfigMap is neither an object nor a list of them")
        return {}
    return {key: part for key, part in first.items() if isinstance(part, dict)}


def _conditions(value: Any) -> tuple[dict[str, Any], ...]:
    return tuple(one for one in value if isinstance(one, dict)) if isinstance(value, list) else ()


def _texts(value: Any) -> dict[str, str]:
    return {str(key): str(part) for key, part in value.items()} if isinstance(value, dict) else {}
