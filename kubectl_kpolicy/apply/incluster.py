"""The rules of a cluster, and objects of it by name, for commands that judge with what is in force there.

One connection, made as kubectl's flags say, which then also answers what policies ask for.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from engine.lang.yaml import Document
from engine.model.kinds import ASKED_KINDS, CEL_GROUP, CLASSIC_GROUP
from engine.record import replace

from .documents import Loaded, sort_documents
from .scope import labels_by_namespace, namespaces_by_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.model import Object
    from kubectl_kpolicy.session.cluster import ClusterFlags

    from .outside import Outside
    from .processor import Setting

POLICIES = tuple(one.kind for one in ASKED_KINDS if one.is_evaluated)
EXCEPTIONS = ("PolicyException",)
GROUPS = (CLASSIC_GROUP, CEL_GROUP)


class Live:
    """A cluster with policies in force. Made by `opened`."""

    def __init__(self, outside: Outside, namespace: str) -> None:
        self._outside = outside
        self._namespace = namespace

    def add_policies(self, loaded: Loaded) -> None:
        """Add the policies in force; those that cannot be read stand in `problems`.

        Raises KubeError where not all can be listed, because a verdict without them would be none.
        """
        self._add(loaded, POLICIES)
        if self._outside.problems:
            error = self._outside.problems[0]
            error.help = (
                "name files with --policies PATH instead, or ask for the right to list policies"
            )
            raise error

    def add_exceptions(self, loaded: Loaded) -> None:
        """Add the exceptions; those that cannot be read or listed stand in `problems`."""
        self._add(loaded, EXCEPTIONS)
        loaded.problems.extend(self._outside.problems)
        self._outside.problems.clear()

    def _add(self, loaded: Loaded, kinds: Sequence[str]) -> None:
        objects = self._outside.of_kinds(GROUPS, kinds)
        found = sort_documents((Document(obj, file=_place(obj)) for obj in objects), strict=False)
        loaded.policies.extend(found.policies)
        loaded.exceptions.extend(found.exceptions)
        loaded.problems.extend(found.problems)

    def settled(self, setting: Setting) -> Setting:
        """Return a setting in which the cluster answers, and in which its namespaces have their labels."""
        namespaces = self._outside.namespaces()
        world = replace(
            setting.world,
            outside=self._outside,
            namespaces={**namespaces_by_name(namespaces), **setting.world.namespaces},
        )
        labels = {**labels_by_namespace(namespaces), **setting.namespace_labels}
        return replace(setting, world=world, namespace_labels=labels)

    def named(self, names: Sequence[str], namespace: str) -> list[Object]:
        """Return the objects that `KIND/NAME` mean, in this namespace or the context's; raises Misuse, EngineError, NotFound."""
        return [self._outside.named(name, namespace or self._namespace) for name in names]


def _place(obj: Object) -> str:
    metadata = obj.get("metadata") or {}
    namespace = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{str(obj.get('kind')).lower()}/{namespace}{metadata.get('name')} of the cluster"


@contextmanager
def opened(flags: ClusterFlags, *, registry: bool = False) -> Iterator[Live]:
    """Give the cluster that kubectl's flags name; close the connection afterwards. Raises AccessError, KubeError."""
    from kubectl_kpolicy.session import cluster

    from .outside import Outside

    access = cluster.access_of(flags)
    with closing(Outside(access, registry=registry)) as outside:
        yield Live(outside, access.namespace or "default")
