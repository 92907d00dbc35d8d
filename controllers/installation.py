"""`python -m controllers.installation`: what has to be done in a cluster before a release is deleted or upgraded.

`leave` takes away what the controllers wrote, in an order in which nothing waits for them in between: the right to write webhooks,
the webhooks, the replicas, and what they kept. `bring-kinds` creates and updates the kinds of this version. Run by the
Helm chart's hooks under accounts that may do just that, which are documents here, too.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine import vocabulary
from engine.errors import EngineError

from .kube import Client, Clock, KubeError, NotFound, connect, find, load_access
from .kube.clock import SystemClock
from .kube.kinds import CRDS, PODS, Kind
from .manifests.bundle import blocking, kinds, marked, webhooks
from .manifests.choice import DEFAULT, NAMESPACE, Choice, labels_of
from .manifests.crds import definitions
from .manifests.deploy import NAME, SELECTOR, UNPRIVILEGED_CONTAINER, UNPRIVILEGED_POD, headed
from .manifests.rbac import GROUP
from .manifests.rbac.rules import rule
from .manifests.removal import ours, remove
from .manifests.written import WRITTEN

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from engine.model import Object

_DEPLOYMENTS: Final = Kind("apps", "v1", "deployments", "Deployment")
_PAUSE: Final = 0.5
PATIENCE: Final = 180.0
"""Seconds that replicas may take to end, and kinds to be gone."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what is asked for; return 1, with one line on standard error, when it cannot be done."""
    parser = argparse.ArgumentParser(prog="python -m controllers.installation")
    parser.add_argument("what", choices=(LEAVE, BRING_KINDS))
    parser.add_argument("--namespace", default=NAMESPACE, help="namespace of the controllers (%(default)s)")  # fmt: skip
    parser.add_argument("--kinds", action="store_true", help="with `leave`: the kinds, too, and with them every policy")  # fmt: skip
    parser.add_argument("--kubeconfig", type=Path, help="how to reach the API server; without it, as a Pod does")  # fmt: skip
    given = parser.parse_args(arguments)
    try:
        asyncio.run(_run(given))
    except EngineError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return 1
    return 0


async def _run(given: argparse.Namespace) -> None:
    clock = SystemClock()
    client = connect(load_access(given.kubeconfig, None), clock=clock)
    try:
        if given.what == BRING_KINDS:
            await bring_kinds(client)
        else:
            await leave(client, clock, given.namespace, with_kinds=given.kinds)
    finally:
        await client.close()


async def leave(client: Client, clock: Clock, namespace: str, *, with_kinds: bool = False) -> None:
    """Take away what the controllers wrote, and the replicas that would write it again; raises KubeError."""
    await remove(client, await ours(client, blocking(namespace), print), print, print)
    await _stop_replicas(client, clock, namespace)
    # An API server may go by the right that was taken for a moment yet, in which a replica restores a webhook.
    await remove(client, await ours(client, webhooks(), print), print, print)
    for kind, named in WRITTEN.items():
        for name in named(namespace):
            await _delete(client, kind, name, namespace)
    if with_kinds:
        found = await ours(client, kinds(), print)
        await remove(client, found, print, print)
        names = {one["metadata"]["name"] for one, _, _ in found}

        async def gone() -> bool:
            return not any([await find(client, CRDS, name) for name in names])

        await _until(clock, gone, "kinds are still there")


async def _stop_replicas(client: Client, clock: Clock, namespace: str) -> None:
    """Have no replica run any more, and wait until the last has ended: until then it may write."""
    try:
        await client.patch(_DEPLOYMENTS, NAME, namespace, {"spec": {"replicas": 0}}, subresource="scale")  # fmt: skip
    except NotFound:
        return
    selector = ",".join(f"{key}={value}" for key, value in SELECTOR.items())

    async def ended() -> bool:
        return not (await client.list_all(PODS, namespace, label_selector=selector)).items

    await _until(clock, ended, "replicas are still running")
    print(f"Deployment {NAME}: stopped")


async def _delete(client: Client, kind: Kind, name: str, namespace: str) -> None:
    try:
        await client.delete(kind, name, namespace)
    except NotFound:
        return
    print(f"{kind.kind} {name}: deleted")


async def _until(clock: Clock, holds: Callable[[], Awaitable[bool]], problem: str) -> None:
    """Wait until something holds; raises KubeError with the problem when that takes too long."""
    end = clock.monotonic() + PATIENCE
    while not await holds():
        if clock.monotonic() > end:
            raise KubeError(f"{problem} after {PATIENCE:.0f} s")
        await clock.sleep(_PAUSE)


async def bring_kinds(client: Client) -> None:
    """Create the kinds of this version and bring those that are there up to it; raises KubeError.

    What is there and not ours stays as it is. A version that objects are stored in and that this release does not have is
    for the API server to refuse.
    """
    for definition in definitions():
        wanted = marked(definition)
        name = wanted["metadata"]["name"]
        there = await find(client, CRDS, name)
        if there is None:
            await client.create(CRDS, wanted)
            print(f"CustomResourceDefinition {name}: created")
            continue
        if vocabulary.OWNER not in (there["metadata"].get("annotations") or {}):
            print(f"CustomResourceDefinition {name}: stays, it is not ours")
            continue
        await client.update(CRDS, _brought(there, wanted))
        print(f"CustomResourceDefinition {name}: up to date")


def _brought(there: Object, wanted: Object) -> Object:
    """Return what is there with the spec that is wanted, and with what the API server added to it."""
    conversion = (
        {"conversion": there["spec"]["conversion"]} if "conversion" in there["spec"] else {}
    )
    return {**there, "spec": {**conversion, **wanted["spec"]}}


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
    made = headed(_LABELS, version, kind, hook.name, namespace)
    made["metadata"]["annotations"] = {
        "helm.sh/hook": hook.event,
        "helm.sh/hook-weight": str(weight),
        "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
    }
    return made


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


if __name__ == "__main__":
    sys.exit(main())
