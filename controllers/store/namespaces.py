"""Labels of namespaces, for namespace selectors.

Only labels are kept. A namespace that is not known here is not taken for one without labels: callers ask
the API server for it, or treat the question as failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.model import Object


class Namespaces:
    """The labels of all namespaces that were seen."""

    def __init__(self) -> None:
        self._labels: dict[str, Mapping[str, str]] = {}

    def __len__(self) -> int:
        return len(self._labels)

    def put(self, obj: Object) -> None:
        """Take over the labels of a namespace."""
        self._labels[str(obj["metadata"]["name"])] = labels_of(obj)

    def remove(self, obj: Object) -> None:
        """Forget a namespace."""
        self._labels.pop(str(obj["metadata"]["name"]), None)

    def labels(self, name: str) -> Mapping[str, str] | None:
        """Return the labels of a namespace, None when it is not known."""
        return self._labels.get(name)


def labels_of(obj: Object) -> Mapping[str, str]:
    """Return the labels of an object."""
    return (obj.get("metadata") or {}).get("labels") or {}
