"""`kubectl kpolicy explain`: why policies decide as they do about objects, step by step, without a cluster."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .apply import add_inputs

if TYPE_CHECKING:
    import argparse

SUMMARY = "explain step by step what policies decide about resources"


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its flags."""
    parser = sub.add_parser(
        "explain",
        help=SUMMARY,
        description=f"{SUMMARY[0].upper()}{SUMMARY[1:]}.",
        epilog="example: kubectl kpolicy explain Pod/web --policies policies/ --resource pod.yaml",
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="KIND/NAME",
        help="objects of the resource files; all by default",
    )
    parser.add_argument(
        "-p",
        "--policies",
        action="append",
        required=True,
        metavar="PATH",
        help="files or folders with policies",
    )
    add_inputs(parser)
    parser.add_argument(
        "--policy", default="*", metavar="NAME", help="only this policy (wildcards)"
    )
    parser.add_argument("--rule", default="*", metavar="NAME", help="only this rule (wildcards)")
    parser.add_argument(
        "--as-of",
        default="",
        metavar="TIME",
        help="instant of the decision, RFC 3339; now by default",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the explanation, return the exit code."""
    from kubectl_kpolicy.applying.explaining import run_command

    return run_command(args, sys.stdout, sys.stderr)
