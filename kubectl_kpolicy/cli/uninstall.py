"""`kubectl kpolicy uninstall`: takes away what `install` brought and what the controllers wrote, webhooks first.

Prints it for `kubectl delete`, or with `--apply` removes it itself: then only what carries our mark, because Kyverno's objects have
the same names. Policies and all else of our kinds stay unless `--crds` is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .flags import add_cluster_flags
from .install import write

if TYPE_CHECKING:
    import argparse

    from controllers.kube import Access, Client, Discovery

HELP = "remove what install brought, webhooks first"
_MARK = "kpolicy.io/owner"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.epilog = (
        "example: kubectl kpolicy uninstall --apply\n"
        "\n"
        "Without --apply: kubectl kpolicy uninstall | kubectl delete --ignore-not-found -f -\n"
        "With --crds the kinds go, and with them every policy, exception and report."
    )
    parser.add_argument("--apply", action="store_true", help="remove it; what is not ours stays")
    parser.add_argument(
        "--crds", action="store_true", help="the kinds, too, with every object of them"
    )
    parser.add_argument(
        "-o", "--output", choices=("yaml", "json"), default="yaml", help="format of the output"
    )
    add_cluster_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Print the objects to delete, in order, or delete them."""
    from controllers.manifests.bundle import Choice, removed

    objects = removed(Choice(namespace=args.namespace or "kyverno", with_kinds=args.crds))
    if not args.apply:
        write(objects, args.output)
        return 0
    from kubectl_kpolicy.session import cluster

    def remove(args: argparse.Namespace) -> int:
        async def work(client: Client, _access: Access) -> None:
            await _remove(client, objects)

        cluster.with_client(args, work)
        return 0

    return cluster.guarded(remove, args)


async def _remove(client: Client, objects: list[dict[str, Any]]) -> None:
    """Delete objects in order and say of each what became of it; raises KubeError."""
    from controllers.kube import Discovery

    discovery = Discovery(client)
    await discovery.refresh()
    for one in objects:
        done = await _remove_one(client, discovery, one)
        if done:
            print(f"{one['kind']} {one['metadata']['name']}: {done}")


async def _remove_one(client: Client, discovery: Discovery, one: dict[str, Any]) -> str:
    """Delete an object that is there and ours; return what was done, or nothing."""
    from controllers.kube import NotFound

    kind = discovery.find(one["apiVersion"], one["kind"])
    place = one["metadata"]
    if kind is None:
        return ""
    name, namespace = place["name"], place.get("namespace", "")
    try:
        metadata = (await client.get(kind, name, namespace))["metadata"]
        if _MARK not in (metadata.get("annotations") or {}):
            return "stays, it is not ours"
        await client.delete(kind, name, namespace, uid=metadata["uid"])
    except NotFound:
        return ""
    return "deleted"
