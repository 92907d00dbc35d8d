"""`kubectl kpolicy check`: files against policies and exceptions, those in force in the cluster by default; for pipelines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from engine.vocabulary import SEVERITIES

from .flags import (
    FORMATS,
    add_cluster_flags,
    add_list_flags,
    guarded,
    list_request,
    output_format,
    request_of,
)

if TYPE_CHECKING:
    import argparse

    from kubectl_kpolicy.apply.checking import Checked, CheckRequest

    from .selection import ListRequest

_REPORTS = ("sarif", "junit", "github", "html")
_WITHOUT_TIME = ("age", "first", "source")


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its flags."""
    parser = sub.add_parser(
        "check",
        epilog="example: kubectl kpolicy check -f deploy/ --fail-on high --baseline known.json\n\n"
        "A baseline is what `check -o json` or `violations -o json` printed: findings in it fail nothing.",
    )
    add = parser.add_argument
    add("-f", "--filename", action="append", default=[], metavar="FILE|FOLDER|-", help="what to check (repeatable)")  # fmt: skip
    add("--policies", action="append", default=[], metavar="cluster|PATH", help="the policies of the cluster (the default), or files (repeatable)")  # fmt: skip
    add("--exceptions", action="append", default=[], metavar="cluster|PATH", help="likewise for exceptions; none by default without a cluster")  # fmt: skip
    add("--policy", default="*", metavar="NAME", help="only this policy (wildcards)")
    add("--fail-on", choices=SEVERITIES, default="", help="exit with 1 only for failures of at least this severity (any by default)")  # fmt: skip
    add(
        "--baseline", default="", metavar="FILE", help="known findings, which do not fail the check"
    )
    add("--all", action="store_true", help="also show passing results and those in the baseline")
    add("--as-of", default="", metavar="TIME", help="decide as of this instant, RFC 3339 (now by default)")  # fmt: skip
    add("--values-file", default="", metavar="FILE", help="values file with variables")
    add("--set", action="append", default=[], metavar="A=B,…", help="variables")
    add("--userinfo", default="", metavar="FILE", help="file with user, groups and roles")
    add("--registry", action="store_true", help="with a cluster: query image registries, with docker's credentials")  # fmt: skip
    add_list_flags(parser)
    add("-o", "--output", type=_format, default="table", metavar="FORMAT", help=f"{'|'.join((*FORMATS, *_REPORTS))}|jsonpath=TEMPLATE|custom-columns=SPEC")  # fmt: skip
    add_cluster_flags(parser)
    parser.set_defaults(run=run)


def _format(text: str) -> str:
    return output_format(text, _REPORTS)


@guarded
def run(args: argparse.Namespace) -> int:
    """Print what fails and return 1 when something does."""
    from kubectl_kpolicy.apply.checking import FROM_CLUSTER, CheckRequest

    policies = tuple(args.policies) or (FROM_CLUSTER,)
    exceptions = tuple(args.exceptions) or ((FROM_CLUSTER,) if FROM_CLUSTER in policies else ())
    asked = request_of(CheckRequest, args, policies=policies, exceptions=exceptions)
    return show_checked(asked, list_request(args), whole=args.all, fail_on=args.fail_on)


def show_checked(asked: CheckRequest, flags: ListRequest, *, whole: bool, fail_on: str = "") -> int:
    """Check files and print what fails, or the `whole` result; return 1 for failures of `fail_on` or worse; raises EngineError."""
    from kubectl_kpolicy.apply.checking import check
    from kubectl_kpolicy.output.rows import severity_rank

    done = check(asked)
    _show(flags, done, whole=whole)
    if not flags.quiet:
        _tell(asked, done)
    least = severity_rank(fail_on) if fail_on else 0
    found = any(row.cells["result"] in ("fail", "error") and severity_rank(row.cells["severity"]) >= least for row in done.new)  # fmt: skip
    return int(found or done.is_broken)


def _show(flags: ListRequest, done: Checked, *, whole: bool) -> None:
    """Print rows as `violations` does; raises Misuse."""
    from engine.record import replace
    from kubectl_kpolicy.cluster.violations import LISTING, is_failure
    from kubectl_kpolicy.session import cluster

    from .printing import print_rows
    from .selection import selected

    columns = tuple(one for one in LISTING.columns if one.id not in _WITHOUT_TIME)
    listing, now = replace(LISTING, columns=columns, sort=("severity", "namespace", "resource")), cluster.now()  # fmt: skip
    rows = done.rows if whole else done.new
    chosen = selected(flags, rows, listing, now, lambda row: whole or is_failure(row))
    if flags.output in _REPORTS:
        from kubectl_kpolicy.output.reports import written

        sys.stdout.write(written(flags.output, "violations", chosen, listing, now, done.places))
    elif chosen or flags.output not in ("table", "wide"):
        print_rows(flags, chosen, listing, now)


def _tell(asked: CheckRequest, done: Checked) -> None:
    """Say on standard error what the run came to."""
    from kubectl_kpolicy.apply.baseline import identity_of
    from kubectl_kpolicy.cluster.violations import is_failure

    failing = [row for row in done.rows if is_failure(row)]
    fresh = sum(map(is_failure, done.new))
    passed = sum(row.cells["result"] == "pass" for row in done.rows)
    text = f"{len(failing)} of {len(failing) + passed} results fail"
    if asked.baseline:
        gone = len(done.known - {identity_of(row.object) for row in failing})
        text += f"; {len(failing) - fresh} are in the baseline, {fresh} are new, {gone} of the baseline are gone"
    print(text, file=sys.stderr)
