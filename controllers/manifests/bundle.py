"""Everything that makes a cluster ours, in the order in which it is installed, and the reverse.

For `kubectl kpolicy install` and `uninstall`, and for tests that start the controllers under the rights that are shipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine import vocabulary

from .choice import Choice
from .crds import definitions
from .deploy import controllers, namespace_of, report_store
from .guards import guards
from .rbac import roles
from .webhooks import WEBHOOKS

if TYPE_CHECKING:
    from engine.model import Object


WRITER: Final = "kyverno:admission-controller"
"""The binding that lets the controllers write webhook configurations."""


def installed(choice: Choice) -> list[Object]:
    """Return the objects to apply, each after those that it needs."""
    defined = definitions() if choice.with_kinds else []
    if not choice.with_controllers:
        return defined
    objects = [
        *defined,
        *([namespace_of(choice.namespace)] if choice.with_namespace else []),
        *guards(choice.namespace),
        *roles(choice.namespace, with_people=choice.with_people_roles),
        *controllers(choice),
        *(report_store.objects(choice) if choice.with_report_store else []),
    ]
    return [marked(one) for one in objects]


def guarding(namespace: str) -> list[Object]:
    """Return the API server's own policies that guard what is ours, as they are installed."""
    return [marked(one) for one in guards(namespace)]


def marked(one: Object) -> Object:
    """Return an object with the mark that tells ours from Kyverno's of the same name; removal goes by it."""
    metadata = one["metadata"]
    annotations = {**metadata.get("annotations", {}), vocabulary.OWNER: "kpolicy"}
    return {**one, "metadata": {**metadata, "annotations": annotations}}


def webhooks() -> list[Object]:
    """Return the webhook configurations that the controllers write, by name."""
    return [
        _named("admissionregistration.k8s.io/v1", kind, name)
        for kind, names in WEBHOOKS.items()
        for name in names
    ]


def blocking(namespace: str) -> list[Object]:
    """Return what makes the API server wait for us, in the order in which it goes.

    Before webhooks only the right to write them goes, because controllers that still run would restore them at once.
    """
    return [*_reversed([one for one in roles(namespace) if _lets_write_webhooks(one)]), *webhooks()]


def kinds() -> list[Object]:
    """Return the kinds by name, in the order in which they go."""
    return _reversed(definitions())


def removed(choice: Choice) -> list[Object]:
    """Return what to delete, in order: webhooks first, so that nothing asks for answers that nobody gives.

    Kinds go last and only with `with_kinds`, because every policy goes with them. Of what is chosen only where and what
    counts: everything that stands around controllers there goes, but what is for the Prometheus operator only with
    `with_service_monitor`, because most clusters have no such kinds.
    """
    if not choice.with_controllers:
        return [*webhooks(), *kinds()]
    has_operator = choice.with_service_monitor
    everything = Choice(
        choice.namespace,
        with_service_monitor=has_operator,
        with_prometheus_rule=has_operator,
        with_dashboard=True,
    )
    running = [
        *roles(choice.namespace),
        *controllers(everything),
        *report_store.objects(everything),
    ]
    return [
        *blocking(choice.namespace),
        *_reversed([one for one in running if not _lets_write_webhooks(one)]),
        *_reversed(guards(choice.namespace)),
        *(kinds() if choice.with_kinds else []),
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
