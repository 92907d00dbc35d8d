"""`kubectl kpolicy test`: test files of upstream's format, run offline (rows K-04 to K-09)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .flags import request_of

if TYPE_CHECKING:
    import argparse

FORMATS = ("table", "json", "yaml", "markdown", "junit")


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its flags."""
    parser = sub.add_parser(
        "test",
        description="Run the test files (kyverno-test.yaml) below the given paths, without a cluster.",
        epilog="example: kubectl kpolicy test . --fail-only",
    )
    add = parser.add_argument
    add(
        "paths",
        nargs="*",
        default=["."],
        metavar="PATH",
        help="test files, or folders or git repositories to search",
    )
    add("-f", "--file-name", default="kyverno-test.yaml", help="name of test files in folders")
    add("-t", "--test-case-selector", default="", metavar="policy=P,rule=R,resource=N",
        help="check only matching results; names take wildcards")  # fmt: skip
    add(
        "-o",
        "--output",
        "--output-format",
        choices=FORMATS,
        default="table",
        metavar="FORMAT",
        help=f"format of the results: {', '.join(FORMATS)}",
    )
    add("--fail-only", action="store_true", help="show failed results only")
    add("--detailed-results", action="store_true", help="show messages")
    add("--remove-color", action="store_true", help="never use colours")
    add("--require-tests", action="store_true", help="fail when no test was found")
    add("--strict", action="store_true",
        help="also fail when no rule answers where pass, fail, warn or error is expected")  # fmt: skip
    add("-b", "--git-branch", default="", metavar="NAME", help="branch of git repositories")
    add("--resolve-values", action="store_true",
        help="also resolve `{{ … }}` inside values, as Kyverno does")  # fmt: skip
    add(
        "-j",
        "--jobs",
        type=int,
        default=0,
        metavar="N",
        help="number of processes (one per processor); the output keeps its order",
    )
    add("-w", "--watch", action="store_true", help="run again whenever a file changes")
    add("--registry", action="store_true", help="query image registries, with docker's credentials")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the tests, print the results, return the exit code."""
    from kubectl_kpolicy.testing.session import TestRequest, run_command

    request = request_of(TestRequest, args)
    if not args.watch:
        return run_command(request, sys.stdout, sys.stderr)
    from kubectl_kpolicy.session.rerunning import rerun

    return rerun(lambda: run_command(request, sys.stdout, sys.stderr), request.paths, sys.stderr)
