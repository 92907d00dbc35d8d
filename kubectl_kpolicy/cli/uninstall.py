"""`kubectl kpolicy uninstall`: takes away what `install` brought and what the controllers wrote, webhooks first.

Prints it for `kubectl delete`, or with `--apply` removes it itself: only what carries our mark in the cluster, because Kyverno's
objects have the same names; `--unchecked` prints every name without asking the cluster. Policies and all else of our kinds stay
unless `--crds` is given.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .flags import add_cluster_flags, cluster_flags
from .install import write

if TYPE_CHECKING:
    import argparse

    from controllers.kube import Access, Client, Kind

HELP = "remove what install brought, webhooks first"
_MARK = "kpolicy.io/owner"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.epilog = (
        "example: kubectl kpolicy uninstall --apply\n"
        "\n"
        "Without --apply: kubectl kpolicy uninstall | kubectl delete --ignore-not-found -f -\n"
        "With --crds the kinds go, and with them every policy, exception and report.\n"
        "With --unchecked nobody is asked: Kyverno's webhooks and roles have the same names and would go, too."
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--apply", action="store_true", help="remove it; what is not ours stays")
    how.add_argument(
        "--unchecked", action="store_true", help="print every name, without asking the cluster"
    )
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
    if args.unchecked:
        write(objects, args.output)
        return 0
    from kubectl_kpolicy.session import cluster

    def reach(args: argparse.Namespace) -> int:
        async def work(client: Client, _access: Access) -> list[dict[str, Any]]:
            found = await _ours(client, objects)
            if args.apply:
                await _remove(client, found)
            return [one for one, _, _ in found]

        found = cluster.with_client(cluster_flags(args), work)
        if not args.apply:
            write(found, args.output)
        return 0

    return cluster.guarded(reach, args)


async def _ours(
    client: Client, objects: list[dict[str, Any]]
) -> list[tuple[dict[str, Any], Kind, str]]:
    """Return those of these objects that are there and ours, in order, each with its kind and UID; raises KubeError.

    What is there and not ours is named on the error stream.
    """
    from controllers.kube import Discovery, NotFound

    discovery = Discovery(client)
    await discovery.refresh()
    found = []
    for one in objects:
        kind = discovery.find(one["apiVersion"], one["kind"])
        if kind is None:
            continue
        name, namespace = one["metadata"]["name"], one["metadata"].get("namespace", "")
        try:
            metadata = (await client.get(kind, name, namespace))["metadata"]
        except NotFound:
            continue
        if _MARK in (metadata.get("annotations") or {}):
            found.append((one, kind, metadata["uid"]))
        else:
            print(f"{one['kind']} {name}: stays, it is not ours", file=sys.stderr)
    return found


async def _remove(client: Client, found: list[tuple[dict[str, Any], Kind, str]]) -> None:
    """Delete objects in order and say so; raises KubeError."""
    from controllers.kube import Conflict, NotFound

    for one, kind, uid in found:
        name, namespace = one["metadata"]["name"], one["metadata"].get("namespace", "")
        try:
            await client.delete(kind, name, namespace, uid=uid)
        except NotFound:
            continue
        except Conflict:
            print(f"{one['kind']} {name}: stays, it was made anew meanwhile", file=sys.stderr)
            continue
        print(f"{one['kind']} {name}: deleted")
