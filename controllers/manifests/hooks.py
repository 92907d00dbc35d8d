"""What a Helm release runs beside what it installs: a Job before it is deleted, and one before it is upgraded.

Each has an account of its own with the rights for just that, by name, which Helm makes with the Job and takes away after it.
The work is `controllers.installation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .bundle import blocking, kinds
from .choice import DEFAULT, Choice, labels_of
from .deploy import NAME, UNPRIVILEGED_CONTAINER, UNPRIVILEGED_POD
from .rbac import GROUP
from .rbac.rules import rule
from .written import WRITTEN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.model import Object


LEAVE, BRING_KINDS = "leave", "bring-kinds"
"""What `python -m controllers.installation` is told to do."""
_LABELS: Final = labels_of("installation")
_LONGEST: Final = 240


@dataclass(frozen=True, slots=True)
class Hook:
    """A Job at an event of a release: what it is called with, and what it may do in the cluster and in its namespace."""

    name: str
    event: str
    words: tuple[str, ...]
    rules: tuple[Object, ...]
    own_rules: tuple[Object, ...] = ()


def leaving(choice: Choice = DEFAULT) -> Hook:
    """Return what is done before a release is deleted; with the kinds of the choice, every policy goes, too."""
    with_kinds = ("--kinds",) if choice.with_kinds else ()
    return Hook(
        "kpolicy-leave",
        "pre-delete",
        (LEAVE, *with_kinds),
        tuple(_deleting([*blocking(choice.namespace), *(kinds() if choice.with_kinds else [])])),
        (
            rule("apps", ("deployments/scale",), ("patch",), NAME),
            rule("", ("pods",), ("list",)),
            *(
                rule(kind.group, (kind.plural,), ("delete",), *named(choice.namespace))
                for kind, named in WRITTEN.items()
            ),
        ),
    )


def bringing_kinds() -> Hook:
    """Return what is done before a release is upgraded: Helm itself never changes kinds that are there."""
    names = [one["metadata"]["name"] for one in kinds()]
    resources = ("customresourcedefinitions",)
    return Hook(
        "kpolicy-kinds",
        "pre-upgrade",
        (BRING_KINDS,),
        (
            rule("apiextensions.k8s.io", resources, ("create",)),
            rule("apiextensions.k8s.io", resources, ("get", "update"), *names),
        ),
    )


def _deleting(objects: Iterable[Object]) -> Iterable[Object]:
    """Yield the rules that let objects be looked at and deleted, by name."""
    names: dict[tuple[str, str], list[str]] = {}
    for one in objects:
        group = one["apiVersion"].rpartition("/")[0]
        names.setdefault((group, f"{one['kind'].lower()}s"), []).append(one["metadata"]["name"])
    for (group, plural), named in names.items():
        yield rule(group, (plural,), ("get", "delete"), *named)


def objects_of(hook: Hook, choice: Choice = DEFAULT) -> list[Object]:
    """Return account, rights and Job of a hook, with the annotations by which Helm knows them."""
    return [
        _object(hook, "v1", "ServiceAccount", choice.namespace),
        *_bound(hook, "ClusterRole", hook.rules, choice, ""),
        *(_bound(hook, "Role", hook.own_rules, choice, choice.namespace) if hook.own_rules else ()),
        {
            **_object(hook, "batch/v1", "Job", choice.namespace, weight=1),
            "spec": _job(hook, choice),
        },
    ]


def _bound(
    hook: Hook, kind: str, rules: tuple[Object, ...], choice: Choice, namespace: str
) -> list[Object]:
    version = f"{GROUP}/v1"
    account = {"kind": "ServiceAccount", "name": hook.name, "namespace": choice.namespace}
    return [
        {**_object(hook, version, kind, namespace), "rules": list(rules)},
        {
            **_object(hook, version, f"{kind}Binding", namespace),
            "roleRef": {"apiGroup": GROUP, "kind": kind, "name": hook.name},
            "subjects": [account],
        },
    ]


def _object(hook: Hook, version: str, kind: str, namespace: str, weight: int = 0) -> Object:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {
            "name": hook.name,
            **({"namespace": namespace} if namespace else {}),
            "labels": {**_LABELS},
            "annotations": {
                "helm.sh/hook": hook.event,
                "helm.sh/hook-weight": str(weight),
                "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
            },
        },
    }


def _job(hook: Hook, choice: Choice) -> Object:
    """Return the Job's spec: tried a few times, because the rights of its account may take a moment to count."""
    pod: Object = {
        "serviceAccountName": hook.name,
        "restartPolicy": "Never",
        "securityContext": {**UNPRIVILEGED_POD},
        "containers": [
            {
                "name": "kpolicy",
                "image": choice.image,
                "command": ["/app/bin/python", "-I", "-u", "-m", "controllers.installation"],
                "args": [*hook.words, f"--namespace={choice.namespace}"],
                "resources": {
                    "requests": {"cpu": choice.cpu, "memory": choice.memory},
                    "limits": {"memory": choice.memory_limit},
                },
                "securityContext": {**UNPRIVILEGED_CONTAINER},
            }
        ],
    }
    if choice.pull_secrets:
        pod["imagePullSecrets"] = [{"name": one} for one in choice.pull_secrets]
    return {
        "backoffLimit": 4,
        "activeDeadlineSeconds": _LONGEST,
        "template": {"metadata": {"labels": {**_LABELS}}, "spec": pod},
    }
