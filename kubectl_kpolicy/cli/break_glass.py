"""`kubectl kpolicy break-glass`: takes kpolicy's own webhooks out of the way when they keep a cluster from working.

For the night in which the engine is down and nothing can be admitted. Webhook configurations are themselves never subject to
webhooks, so that this works when nothing else does. What is taken away is written to a file first, and that it was done stays
in the cluster as an Event.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from engine import vocabulary

from .flags import Arguments, Flags, cluster_flags, guarded

if TYPE_CHECKING:
    from controllers.kube import Access, Client, Kind
    from engine.model import Object

_SYSTEM = "kyverno"
_STORED_ONLY = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")  # fmt: skip


def add_arguments(flags: Flags) -> None:
    """Add the command's flags."""
    flags.example(
        'kubectl kpolicy break-glass --reason "engine down, nodes cannot join" --yes',
        "",
        "Nothing is enforced afterwards. To restore: kubectl apply --server-side -f BACKUP",
    )
    flags.reason()
    flags.yes()
    flags.text("--backup", "FILE", "where to save what is removed (kpolicy-break-glass-TIME.yaml)")
    flags.of_cluster()


@guarded
def run(args: Arguments) -> int:
    """Take the webhooks away and return the exit code."""
    from kubectl_kpolicy.session import cluster

    return cluster.with_client(cluster_flags(args), lambda client, access: _break(args, client, access))  # fmt: skip


async def _break(args: Arguments, client: Client, _access: Access) -> int:
    found = await _in_the_way(client)
    if not found:
        print("no webhook of kpolicy is in the way", file=sys.stderr)
        return 0
    if not args.yes:
        for kind, obj in found:
            print(f"would delete {kind}/{obj['metadata']['name']}")
        print("help: add --yes to do it; until they are back nothing is enforced", file=sys.stderr)
        return 0
    file = _keep(args.backup, [obj for _, obj in found])
    for kind, obj in found:
        await _take(client, kind, obj)
    await _say(client, args.reason, len(found))
    print(f"what was taken away is in {file}; to come back: kubectl apply --server-side -f {file}", file=sys.stderr)  # fmt: skip
    return await _check(client)


async def _in_the_way(client: Client) -> list[tuple[Kind, Object]]:
    """Return our webhooks, and before them the right to write webhooks, with which controllers would restore them."""
    from controllers.kube import NotFound
    from controllers.kube.kinds import CLUSTER_ROLE_BINDINGS, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
    from controllers.manifests.bundle import WRITER
    from kubectl_kpolicy.cluster.fetching import named

    found: list[tuple[Kind, Object]] = []
    for kind in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS):
        page = await client.list_all(kind)
        found += [(kind, obj) for obj in named(page.items, kind) if _is_ours(obj)]
    if not found:
        return []
    try:
        binding = await client.get(CLUSTER_ROLE_BINDINGS, WRITER)
    except NotFound:
        return found
    return [*([(CLUSTER_ROLE_BINDINGS, binding)] if _is_ours(binding) else []), *found]


def _is_ours(obj: Object) -> bool:
    return vocabulary.OWNER in (obj["metadata"].get("annotations") or {})


def _keep(name: str, objects: list[Object]) -> str:
    """Write objects to a new file as they can be applied again and return its name; raises EngineError."""
    from engine.errors import EngineError, reason_of
    from kubectl_kpolicy.output.structured import yaml_stream
    from kubectl_kpolicy.session import cluster

    file = name or f"kpolicy-break-glass-{cluster.now():%Y%m%dT%H%M%SZ}.yaml"
    try:
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise EngineError(f"cannot write `{file}`: {reason_of(error)}; nothing was taken away", help="name another file with --backup") from error  # fmt: skip
    with os.fdopen(opened, "w") as out:
        out.write(yaml_stream(map(_plain, objects)))
    return file


def _plain(obj: Object) -> Object:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _STORED_ONLY}
    return {**obj, "metadata": metadata}


async def _take(client: Client, kind: Kind, obj: Object) -> None:
    from controllers.kube import NotFound

    name = obj["metadata"]["name"]
    try:
        await client.delete(kind, name)
    except NotFound:
        return
    print(f"{kind}/{name} deleted")


async def _say(client: Client, reason: str, count: int) -> None:
    """Leave an Event; that it cannot be written keeps nobody from what is urgent."""
    from controllers.kube import KubeError
    from kubectl_kpolicy.session.identity import leave_event

    about = {"apiVersion": "v1", "kind": "Namespace", "name": _SYSTEM, "namespace": _SYSTEM}
    done = f"took {count} objects of kpolicy's webhooks away: {reason}"
    try:
        await leave_event(client, about, "kpolicy-break-glass-", "BreakGlass", done)
    except KubeError as error:
        print(f"warning: no Event could be written about it: {error.message}", file=sys.stderr)


async def _check(client: Client) -> int:
    """Look whether a controller put webhooks back, as one with more rights than it was shipped with can."""
    import asyncio

    await asyncio.sleep(1)
    if not await _in_the_way(client):
        return 0
    print(
        "error: webhooks are back: a controller restored them\n"
        f"help: stop it first, such as by kubectl -n {_SYSTEM} scale deployment --all --replicas=0, then run this again",
        file=sys.stderr,
    )
    return 1
