"""`kubectl kpolicy uninstall`: takes away what `install` brought and what the controllers wrote, webhooks first.

Prints it for `kubectl delete`, or with `--apply` removes it itself: only what carries our mark in the cluster, because Kyverno's
objects have the same names; `--unchecked` prints every name without asking the cluster. Policies and all else of our kinds stay
unless `--crds` is given.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .flags import Arguments, Flags, cluster_flags, guarded
from .install import write

if TYPE_CHECKING:
    from controllers.kube import Access, Client


def add_arguments(flags: Flags) -> None:
    """Add the command's flags."""
    flags.example(
        "kubectl kpolicy uninstall --apply",
        "",
        "Without --apply: kubectl kpolicy uninstall | kubectl delete --ignore-not-found -f -",
        "--crds also deletes every policy, exception and report.",
        "--unchecked also names Kyverno's own webhooks and roles, because their names are the same.",
    )
    how = flags.one_of()
    how.switch("--apply", "remove it; what is not kpolicy's stays")
    how.switch("--unchecked", "print every name, without asking the cluster")
    flags.switch("--crds", "also the CRDs, and with them every object of these kinds")
    flags.output("yaml", "json")
    flags.of_cluster()


@guarded
def run(args: Arguments) -> int:
    """Print the objects to delete, in order, or delete them."""
    from controllers.manifests.bundle import removed
    from controllers.manifests.choice import NAMESPACE, Choice

    choice = Choice(
        args.namespace or NAMESPACE, with_kinds=args.crds, with_service_monitor=not args.unchecked
    )
    objects = removed(choice)
    if args.unchecked:
        write(objects, args.output)
        return 0
    from controllers.manifests import removal
    from kubectl_kpolicy.session import cluster

    async def work(client: Client, _access: Access) -> list[dict[str, Any]]:
        found = await removal.ours(client, objects, _stays)
        if args.apply:
            await removal.remove(client, found, print, _stays)
        return [one for one, _, _ in found]

    found = cluster.with_client(cluster_flags(args), work)
    if not args.apply:
        write(found, args.output)
    return 0


def _stays(text: str) -> None:
    print(text, file=sys.stderr)
