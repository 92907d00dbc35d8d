"""`kubectl kpolicy install`: everything that a cluster needs, as YAML for `kubectl apply`.

Printed and not applied, so that it can be read, kept in a repository and changed before anything happens.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

HELP = "print what runs kpolicy in a cluster, for kubectl apply"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.epilog = (
        "example: kubectl kpolicy install | kubectl apply --server-side -f -\n"
        "\n"
        "To see what would change: kubectl kpolicy install | kubectl diff -f -"
    )
    parser.add_argument(
        "-n", "--namespace", default="kyverno", help="namespace of the controllers (kyverno)"
    )
    parser.add_argument("--image", default="", help="image of the controllers")
    parser.add_argument("--replicas", type=_count, default=3, help="how many controllers run (3)")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--crds-only", action="store_true", help="only the kinds")
    only.add_argument("--skip-crds", action="store_true", help="all but the kinds")
    parser.add_argument(
        "-o", "--output", choices=("yaml", "json"), default="yaml", help="format of the output"
    )


def run(args: argparse.Namespace) -> int:
    """Print the objects, each after those that it needs."""
    from controllers.manifests.bundle import Choice, installed
    from controllers.manifests.deploy import IMAGE

    choice = Choice(
        namespace=args.namespace,
        image=args.image or IMAGE,
        replicas=args.replicas,
        with_kinds=not args.skip_crds,
        with_controllers=not args.crds_only,
    )
    write(installed(choice), args.output)
    return 0


def write(objects: list[dict[str, object]], form: str) -> None:
    """Write objects as a stream of YAML documents, or as one List in JSON."""
    from kubectl_kpolicy.output.structured import json_text, list_of, yaml_stream

    if form == "json":
        sys.stdout.write(json_text(list_of(objects)))
    else:
        sys.stdout.write(yaml_stream(objects))


def _count(text: str) -> int:
    import argparse

    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of one or more")
    return int(text)
