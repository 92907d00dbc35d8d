"""`kubectl kpolicy version`: which kpolicy this is. Imports nothing: it is the yardstick of the start-up path."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

HELP = "print the version"
VERSION = "0.1.0"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.epilog = "example: kubectl kpolicy version -o json"
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "json", "yaml"),
        default="text",
        help="format of the output",
    )
    parser.add_argument(
        "--client",
        action="store_true",
        help="only this program's version, no cluster's (always so for now)",
    )


def run(args: argparse.Namespace) -> int:
    """Print the version."""
    client = {
        "version": VERSION,
        "python": ".".join(map(str, sys.version_info[:3])),
        "platform": sys.platform,
    }
    if getattr(args, "output", "text") == "text":
        print(f"Client Version: v{VERSION}")
        return 0
    from kubectl_kpolicy.output.formats import write_object

    write_object(sys.stdout, {"clientVersion": client}, args.output)
    return 0
