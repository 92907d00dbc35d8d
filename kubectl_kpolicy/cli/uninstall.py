"""`kubectl kpolicy uninstall`: what `install` brought and what the controllers wrote, for `kubectl delete`, webhooks first.

Printed and not applied, as `install` is. Policies and all else of our kinds stay unless `--crds` is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .install import add_place, write

if TYPE_CHECKING:
    import argparse

HELP = "print what to remove from a cluster, for kubectl delete, webhooks first"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.epilog = (
        "example: kubectl kpolicy uninstall | kubectl delete --ignore-not-found -f -\n"
        "\n"
        "With --crds the kinds go, and with them every policy, exception and report."
    )
    add_place(parser)
    parser.add_argument(
        "--crds", action="store_true", help="the kinds, too, with every object of them"
    )
    parser.add_argument(
        "-o", "--output", choices=("yaml", "json"), default="yaml", help="format of the output"
    )


def run(args: argparse.Namespace) -> int:
    """Print the objects to delete, in order."""
    from controllers.manifests.bundle import Choice, removed

    write(removed(Choice(namespace=args.namespace, with_kinds=args.crds)), args.output)
    return 0
