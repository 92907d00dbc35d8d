"""Everything that makes a cluster ours, in the order in which it is installed, and the reverse.

For `kubectl kpolicy install` and `uninstall`, and for tests that start the controllers under the rights that are shipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .crds import definitions
from .deploy import IMAGE, controllers, namespace_of
from .guards import guards
from .rbac import NAMESPACE, roles
from .webhooks import WEBHOOKS

if TYPE_CHECKING:
    from engine.model import Object

OWNER: Final = "kpolicy.io/owner"
"""The annotation of everything that we bring."""

WRITER: Final = "kyverno:admission-controller"
"""The binding that lets the controllers write webhook configurations."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What is installed, and how."""

    namespace: str = NAMESPACE
    image: str = IMAGE
    replicas: int = 3
    with_kinds: bool = True
    with_controllers: bool = True


def installed(choice: Choice) -> list[Object]:
    """Return the objects to apply, each after those that it needs."""
    kinds = definitions() if choice.with_kinds else []
    if not choice.with_controllers:
        return kinds
    objects = [
        *kinds,
        namespace_of(choice.namespace),
        *guards(choice.namespace),
        *roles(choice.namespace),
        *controllers(choice.namespace, choice.image, choice.replicas),
    ]
    return [_marked(one) for one in objects]


def _marked(one: Object) -> Object:
    """Return an object with the mark that tells ours from Kyverno's of the same name; removal goes by it."""
    metadata = one["metadata"]
    annotations = {**metadata.get("annotations", {}), OWNER: "kpolicy"}
    return {**one, "metadata": {**metadata, "annotations": annotations}}


def removed(choice: Choice) -> list[Object]:
    """Return what to delete, in order: webhooks first, so that nothing asks for answers that nobody gives.

    Only the right to write webhooks goes before them, because controllers that still run would restore them at once. Kinds
    go last and only with `with_kinds`, because every policy goes with them.
    """
    webhooks: list[Object] = [
        _named("admissionregistration.k8s.io/v1", kind, name)
        for kind, names in WEBHOOKS.items()
        for name in names
    ]
    if not choice.with_controllers:
        return [*webhooks, *_reversed(definitions())]
    running = [*roles(choice.namespace), *controllers(choice.namespace, choice.image)]
    kinds = definitions() if choice.with_kinds else []
    return [
        *_reversed([one for one in running if _lets_write_webhooks(one)]),
        *webhooks,
        *_reversed([one for one in running if not _lets_write_webhooks(one)]),
        *_reversed(guards(choice.namespace)),
        *_reversed(kinds),
        *_reversed([namespace_of(choice.namespace)]),
    ]


def _lets_write_webhooks(one: Object) -> bool:
    return (one["kind"], one["metadata"]["name"]) == ("ClusterRoleBinding", WRITER)


def _reversed(objects: list[Object]) -> list[Object]:
    return [
        _named(one["apiVersion"], one["kind"], **_place(one["metadata"]))
        for one in reversed(objects)
    ]


def _place(metadata: Object) -> dict[str, str]:
    return {key: metadata[key] for key in ("name", "namespace") if key in metadata}


def _named(api_version: str, kind: str, name: str, namespace: str = "") -> Object:
    place = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": place}
