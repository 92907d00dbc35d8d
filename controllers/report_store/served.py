"""The kinds that the store serves: reports of both groups, which are the same reports under two names.

A report is kept once, without `apiVersion` and `kind`; those are put before it as it is given out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import orjson

from controllers.kube.kinds import (
    CLUSTER_OPEN_REPORTS,
    CLUSTER_POLICY_REPORTS,
    OPEN_REPORTS,
    POLICY_REPORTS,
)
from controllers.manifests.crds.kinds import KINDS, CustomKind

if TYPE_CHECKING:
    from controllers.kube import Kind

VERBS: Final = ("create", "delete", "get", "list", "update", "watch")
_DEFINED: Final = {(one.group, one.plural): one for one in KINDS}


@dataclass(frozen=True)
class Served:
    """A kind with what is said of its objects."""

    kind: Kind

    @property
    def list_kind(self) -> str:
        """The kind of a list of these."""
        return f"{self.kind.kind}List"

    @property
    def defined(self) -> CustomKind:
        """What the definition of the kind says of columns and fields."""
        return _DEFINED[self.kind.group, self.kind.plural]

    @cached_property
    def _head(self) -> bytes:
        head = {"apiVersion": self.kind.api_version, "kind": self.kind.kind}
        return orjson.dumps(head)[:-1] + b","

    def document(self, body: bytes) -> bytes:
        """Return the JSON of an object of this kind from the JSON as it is kept, which is never empty."""
        return self._head + body[1:]


def _served(kind: Kind) -> Served:
    return Served(
        replace(
            kind,
            verbs=VERBS,
            singular=kind.kind.lower(),
            short_names=(_DEFINED[kind.group, kind.plural].short,),
            categories=("kyverno",),
        )
    )


SERVED: Final = tuple(
    map(_served, (POLICY_REPORTS, CLUSTER_POLICY_REPORTS, OPEN_REPORTS, CLUSTER_OPEN_REPORTS))
)
GROUPS: Final = tuple(dict.fromkeys((one.kind.group, one.kind.version) for one in SERVED))
"""Group and version of all that is served, in the order in which they are listed."""


def served_at(group: str, version: str, plural: str) -> Served | None:
    """Return what stands at a path."""
    return next(
        (
            one
            for one in SERVED
            if (one.kind.group, one.kind.version, one.kind.plural) == (group, version, plural)
        ),
        None,
    )
