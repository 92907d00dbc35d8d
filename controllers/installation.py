"""`python -m controllers.installation`: what has to be done in a cluster before a release is deleted or upgraded.

`leave` takes away what the controllers wrote, in an order in which nothing waits for them in between: the right to write webhooks,
the webhooks, the replicas, and what they kept. `bring-kinds` creates and updates the kinds of this version. Run by the
Helm chart's hooks under accounts that may do just that (`controllers.manifests.hooks`).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from controllers.kube import Client, Clock, KubeError, NotFound, connect, load_access
from controllers.kube.clock import SystemClock
from controllers.kube.kinds import CRDS, PODS, Kind
from controllers.manifests.bundle import blocking, kinds, marked, webhooks
from controllers.manifests.choice import NAMESPACE
from controllers.manifests.crds import definitions
from controllers.manifests.deploy import NAME, SELECTOR
from controllers.manifests.hooks import BRING_KINDS, LEAVE
from controllers.manifests.removal import ours, remove
from controllers.manifests.written import WRITTEN
from engine import vocabulary
from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

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
            left = [name for name in names if not await _is_gone(client, CRDS, name)]
            return not left

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


async def _is_gone(client: Client, kind: Kind, name: str) -> bool:
    try:
        await client.get(kind, name)
    except NotFound:
        return True
    return False


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
        try:
            there = await client.get(CRDS, name)
        except NotFound:
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


if __name__ == "__main__":
    sys.exit(main())
