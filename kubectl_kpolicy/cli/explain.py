"""`kubectl kpolicy explain`: why policies decide as they do about objects, step by step, of a cluster or in files."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .apply import add_inputs
from .flags import add_cluster_flags, guarded, request_of

if TYPE_CHECKING:
    import argparse


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its flags."""
    parser = sub.add_parser(
        "explain",
        description="Explain step by step what policies decide about resources.",
        epilog="example: kubectl kpolicy explain deploy/web -n shop\n"
        "example: kubectl kpolicy explain Pod/web --policies policies/ --resource pod.yaml\n\n"
        "Without --policies, the policies and exceptions of the cluster apply.",
    )
    add_cluster_flags(parser)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="KIND/NAME",
        help="objects in the resource files, or in the cluster where there are none",
    )
    parser.add_argument(
        "-p",
        "--policies",
        action="append",
        default=[],
        metavar="PATH",
        help="files or folders with policies, instead of the cluster's",
    )
    add_inputs(parser)
    # INVARIANT: `-f` and `-s` are FILE and SERVER of kubectl here, because this command speaks to clusters
    parser.add_argument("-f", "--filename", dest="resources", action="append", default=[], metavar="FILE", help="the same as --resource")  # fmt: skip
    parser.add_argument("--values-file", default="", metavar="FILE", help="values file with variables")  # fmt: skip
    parser.add_argument("-s", "--server", default="", metavar="URL", help="address of the server")
    parser.add_argument("--set", action="append", default=[], metavar="A=B,…", help="variables")
    parser.add_argument(
        "--policy", default="*", metavar="NAME", help="only this policy (wildcards)"
    )
    parser.add_argument("--rule", default="*", metavar="NAME", help="only this rule (wildcards)")
    parser.add_argument(
        "--as-of",
        default="",
        metavar="TIME",
        help="decide as of this instant, RFC 3339 (now by default)",
    )
    parser.add_argument(
        "--trace",
        action="store_true",
        help="print values in full, however long",
    )
    parser.set_defaults(run=run)


@guarded
def run(args: argparse.Namespace) -> int:
    """Print the explanation, return the exit code."""
    from kubectl_kpolicy.apply.explaining import ExplainRequest, run_command
    from kubectl_kpolicy.apply.inputs import ApplyRequest

    asked = request_of(ExplainRequest, args, inputs=request_of(ApplyRequest, args, cluster=False))
    return run_command(asked, sys.stdout, sys.stderr)
