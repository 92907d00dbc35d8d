"""Which roles are bound to whom, answered without asking the API server (row A-39).

Upstream reads all bindings on every request; here they are indexed by subject as they change. Only names are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.vocabulary import SERVICE_ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from engine.model import Json, Object


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
