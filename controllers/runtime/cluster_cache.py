"""Everything about the cluster that a decision needs, kept current: policies, exceptions, namespaces, bindings, settings.

One object that watches feed and requests read; nothing here waits. It is ready when every kind in `WATCHED` was listed
once, and before that no decision may be taken from it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controllers.kube import kinds
from controllers.store.namespaces import Namespaces
from controllers.store.policies import ExceptionRules
from engine.model.kinds import ASKED_KINDS, NAMESPACED
from engine.vocabulary import SERVICE_ACCOUNT

from .configuration import Configuration, read_configuration
from .policy_cache import PolicyCache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from controllers.kube.discovery import Discovery
    from engine.model import Json, Object

    from .metrics import Metrics


class Bindings:
    """RoleBindings and ClusterRoleBindings by subject; `version` grows with every change."""

    def __init__(self) -> None:
        self.version = 0
        self._grants: dict[str, tuple[str, bool, tuple[str, ...]]] = {}
        self._by_subject: dict[str, set[str]] = {}

    def put(self, obj: Object) -> None:
        """Take over a binding."""
        self.remove(obj)
        metadata, reference = obj["metadata"], obj.get("roleRef") or {}
        namespace, name = str(metadata.get("namespace") or ""), str(reference.get("name") or "")
        is_cluster_role = reference.get("kind") == "ClusterRole"
        subjects = tuple(_subjects(obj.get("subjects") or (), namespace))
        shown = name if is_cluster_role else f"{namespace}:{name}"
        key = _key(obj)
        self._grants[key] = (shown, is_cluster_role, subjects)
        for subject in subjects:
            self._by_subject.setdefault(subject, set()).add(key)

    def remove(self, obj: Object) -> None:
        """Forget a binding."""
        self.version += 1
        key = _key(obj)
        for subject in self._grants.pop(key, ("", False, ()))[2]:
            keys = self._by_subject.get(subject, set())
            keys.discard(key)
            if not keys:
                self._by_subject.pop(subject, None)

    def roles(
        self, username: str, groups: Iterable[str]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return roles (`namespace:name`) and cluster roles bound to a user or one of the groups, each sorted."""
        keys: set[str] = set()
        for subject in (f"User:{username}", *(f"Group:{group}" for group in groups)):
            keys |= self._by_subject.get(subject, set())
        found = [self._grants[key][:2] for key in keys]
        return (
            tuple(sorted({name for name, is_cluster in found if not is_cluster})),
            tuple(sorted({name for name, is_cluster in found if is_cluster})),
        )


def _key(obj: Object) -> str:
    metadata = obj["metadata"]
    return f"{metadata.get('namespace') or ''}/{metadata.get('name')}"


def _subjects(subjects: Iterable[Mapping[str, Json]], namespace: str) -> Iterator[str]:
    for subject in subjects:
        name = subject.get("name")
        if subject.get("kind") == "ServiceAccount":
            yield f"User:{SERVICE_ACCOUNT}{subject.get('namespace') or namespace}:{name}"
        else:
            yield f"{subject.get('kind')}:{name}"


WATCHED = (
    kinds.CLUSTER_POLICIES,
    kinds.POLICIES,
    kinds.POLICY_EXCEPTIONS,
    kinds.NAMESPACES,
    kinds.ROLE_BINDINGS,
    kinds.CLUSTER_ROLE_BINDINGS,
    kinds.CONFIG_MAPS,
)
"""Kinds that must be listed before anything is decided; of ConfigMaps only the engine's own is watched."""

WATCHED_IF_SERVED = (*kinds.CEL_POLICIES, kinds.CEL_EXCEPTIONS)
"""Kinds that are known too where the server has them, in whichever version it prefers."""

_POLICIES = frozenset(one.plural for one in ASKED_KINDS)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Change:
    """Something that changed: which kind, how, and the object."""

    kind: kinds.Kind
    type: str
    object: Object


class ClusterCache:
    """The cluster as this process knows it.

    `on_change` are called after each change that means something, `on_listed` once for each kind when it is complete; they
    must not wait. `is_fed` tells whether whoever feeds it is still there: what is not heard of may have changed long since.
    `resolve_values` is what every evaluation of this process is told under that name.
    """

    def __init__(
        self,
        discovery: Discovery,
        metrics: Metrics,
        *,
        exceptions: ExceptionRules | None = None,
        force_ignore: bool = False,
        resolve_values: bool = False,
    ) -> None:
        self.discovery = discovery
        self.policies = PolicyCache(exceptions, force_ignore=force_ignore)
        self.resolve_values = resolve_values
        self.exception_rules = exceptions or ExceptionRules()
        self.namespaces = Namespaces()
        self.bindings = Bindings()
        self.configuration: Configuration = read_configuration(None)
        self.on_change: list[Callable[[Change], None]] = []
        self.on_listed: list[Callable[[kinds.Kind], None]] = []
        self.is_fed: Callable[[], bool] = lambda: True
        self._metrics = metrics
        self.watched = (*WATCHED, *self.served_too())
        self._waiting = set(self.watched)
        self._parents: dict[tuple[str, str, str], kinds.Kind | None] = {}

    def served_too(self) -> tuple[kinds.Kind, ...]:
        """Return the kinds of WATCHED_IF_SERVED that the server has by now."""
        found = (self.discovery.of_resource(kind.group, kind.plural) for kind in WATCHED_IF_SERVED)
        return tuple(kind for kind in found if kind is not None)

    @property
    def missing(self) -> tuple[str, ...]:
        """What was not listed yet or is not followed any more, for people who ask why we are not ready."""
        waiting = self._waiting if self.is_fed() else self.watched
        return tuple(sorted(str(kind) for kind in waiting))

    @property
    def is_ready(self) -> bool:
        """Whether everything was listed once and is followed since."""
        return not self._waiting and self.is_fed()

    def listed(self, kind: kinds.Kind) -> None:
        """Note that a kind was listed completely; the last one compiles the policies before anybody asks."""
        is_late = kind not in self.watched
        if kind not in self._waiting and not is_late:
            return
        self._waiting.discard(kind)
        if is_late:
            self.watched = (*self.watched, kind)
        if not self._waiting:
            _ = self.policies.snapshot
        for listener in self.on_listed:
            listener(kind)

    def put(self, kind: kinds.Kind, obj: Object) -> None:
        """Take over an object that is new or changed."""
        if self._put(kind, obj):
            self._tell(Change(kind, "PUT", obj))

    def remove(self, kind: kinds.Kind, obj: Object) -> None:
        """Forget an object that is gone."""
        match kind.plural:
            case plural if plural in _POLICIES:
                self.policies.remove_policy(obj)
                self._count(obj, "deleted")
            case "policyexceptions":
                self.policies.remove_exception(obj)
            case "namespaces":
                self.namespaces.remove(obj)
            case "rolebindings" | "clusterrolebindings":
                self.bindings.remove(obj)
            case "configmaps":
                self._configure(None)
        self._tell(Change(kind, "REMOVED", obj))

    def parent_kind(self, request: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return group, version and kind of a request's resource, which for a subresource is its parent's kind."""
        resource = request["resource"]
        group, plural = str(resource.get("group") or ""), str(resource.get("resource") or "")
        place = (group, plural, str(resource.get("version") or ""))
        if place not in self._parents or self._parents[place] is None:
            self._parents[place] = self.discovery.of_resource(*place)
        kind = self._parents[place]
        if kind is None:
            found: Mapping[str, Json] = request["kind"]
            return found
        return {"group": kind.group, "version": kind.version, "kind": kind.kind}

    def _put(self, kind: kinds.Kind, obj: Object) -> bool:
        match kind.plural:
            case plural if plural in _POLICIES:
                changed = self.policies.put_policy(obj)
                if changed:
                    self._count(obj, "created or updated")
                return changed
            case "policyexceptions":
                return self.policies.put_exception(obj)
            case "namespaces":
                self.namespaces.put(obj)
            case "rolebindings" | "clusterrolebindings":
                self.bindings.put(obj)
            case "configmaps":
                self._configure(obj)
        return True

    def _configure(self, obj: Object | None) -> None:
        self.configuration = read_configuration(obj)
        for problem in self.configuration.problems:
            _log.warning("configuration: %s", problem)

    def _count(self, obj: Object, what: str) -> None:
        metadata = obj.get("metadata") or {}
        is_namespaced = obj.get("kind") in NAMESPACED
        namespace = str(metadata.get("namespace") or "default") if is_namespaced else "-"
        scope = "namespaced" if is_namespaced else "cluster"
        name = str(metadata.get("name") or "")
        self._metrics.count("kyverno_policy_changes", (name, namespace, scope, what))

    def _tell(self, change: Change) -> None:
        for listener in self.on_change:
            listener(change)
