"""Labels of namespaces, for namespace selectors, and their UIDs.

Nothing else is kept. A namespace that is not known here is not taken for one without labels: callers ask
the API server for it, or treat the question as failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.model import Object


class Namespaces:
    """The labels and UIDs of all namespaces that were seen."""

    def __init__(self) -> None:
        self._labels: dict[str, Mapping[str, str]] = {}
        self._uids: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._labels)

    def put(self, obj: Object) -> None:
        """Take over a namespace."""
        name = str(obj["metadata"]["name"])
        self._labels[name], self._uids[name] = labels_of(obj), uid_of(obj)

    def remove(self, obj: Object) -> None:
        """Forget a namespace."""
        name = str(obj["metadata"]["name"])
        self._labels.pop(name, None)
        self._uids.pop(name, None)

    def labels(self, name: str) -> Mapping[str, str] | None:
        """Return the labels of a namespace, None when it is not known."""
        return self._labels.get(name)

    def uid(self, name: str) -> str:
        """Return the UID of a namespace as last seen, nothing when it is not known."""
        return self._uids.get(name, "")


def labels_of(obj: Object) -> Mapping[str, str]:
    """Return the labels of an object."""
    return (obj.get("metadata") or {}).get("labels") or {}


def uid_of(obj: Object) -> str:
    """Return the UID of an object, nothing where it has none yet."""
    return str((obj.get("metadata") or {}).get("uid") or "")
