"""`kubectl kpolicy check`: files against policies and exceptions, those in force in the cluster by default; for pipelines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .flags import FORMATS, add_cluster_flags, add_list_flags, output_format

if TYPE_CHECKING:
    import argparse

SUMMARY = "check files against policies and exceptions, those of a cluster by default"
_REPORTS = ("sarif", "junit", "html")
_SEVERITIES = ("critical", "high", "medium", "low", "info")


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its flags."""
    parser = sub.add_parser("check", help=SUMMARY, description=f"{SUMMARY[0].upper()}{SUMMARY[1:]}.",
        epilog="example: kubectl kpolicy check -f deploy/ --fail-on high --baseline known.json\n\n"
               "A baseline is what `check -o json` or `violations -o json` printed: findings in it fail nothing.")  # fmt: skip
    add = parser.add_argument
    add("-f", "--filename", action="append", default=[], metavar="FILE|FOLDER|-", help="what to check (repeatable)")  # fmt: skip
    add("--policies", action="append", default=[], metavar="cluster|PATH", help="policies: those in force in the cluster (the default), or files (repeatable)")  # fmt: skip
    add("--exceptions", action="append", default=[], metavar="cluster|PATH", help="exceptions, likewise; without a cluster none by default")  # fmt: skip
    add("--policy", default="*", metavar="NAME", help="only this policy (wildcards)")
    add("--fail-on", choices=_SEVERITIES, default="", help="return 1 only for failures from this severity on; for any by default")  # fmt: skip
    add("--baseline", default="", metavar="FILE", help="findings that are known and fail nothing")
    add("--all", action="store_true", help="show passing results and those of the baseline, too")
    add("--as-of", default="", metavar="TIME", help="instant of the decision, RFC 3339; now by default")  # fmt: skip
    add("--values-file", default="", metavar="FILE", help="values file with variables")
    add("--set", action="append", default=[], metavar="A=B,…", help="variables")
    add("--userinfo", default="", metavar="FILE", help="file with user, groups and roles")
    add("--registry", action="store_true", help="with a cluster: ask image registries, as docker is logged in")  # fmt: skip
    add_list_flags(parser)
    add("-o", "--output", type=_format, default="table", metavar="FORMAT", help=f"{'|'.join((*FORMATS, *_REPORTS))}|jsonpath=TEMPLATE|custom-columns=SPEC")  # fmt: skip
    add_cluster_flags(parser)
    parser.set_defaults(run=run)


def _format(text: str) -> str:
    return text if text in _REPORTS else output_format(text)


def run(args: argparse.Namespace) -> int:
    """Print what fails and return 1 when something does."""
    from kubectl_kpolicy.session import cluster

    args.policies = args.policies or ["cluster"]
    args.exceptions = args.exceptions or (["cluster"] if "cluster" in args.policies else [])

    def check(given: argparse.Namespace) -> int:
        from kubectl_kpolicy.apply.checking import run_command

        return run_command(given)

    return cluster.guarded(check, args)
