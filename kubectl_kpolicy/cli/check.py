"""`kubectl kpolicy check`: files against policies and exceptions, those in force in the cluster by default; for pipelines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from engine.vocabulary import SEVERITIES

from .flags import FORMATS, Arguments, Flags, guarded, list_request, output_format, request_of

if TYPE_CHECKING:
    from kubectl_kpolicy.apply.checking import Checked, CheckRequest

    from .selection import ListRequest

_REPORTS = ("sarif", "junit", "github", "html")
_WITHOUT_TIME = ("age", "first", "source")


def add_arguments(flags: Flags) -> None:
    """Add the command's flags."""
    flags.example("kubectl kpolicy check -f deploy/ --fail-on high --baseline known.json", "",
        "A baseline is what `check -o json` or `violations -o json` printed: findings in it fail nothing.")  # fmt: skip
    flags.many("-f --filename", "FILE|FOLDER|-", "what to check (repeatable)")
    flags.many("--policies", "cluster|PATH", "the policies of the cluster (the default), or files (repeatable)")  # fmt: skip
    flags.many("--exceptions", "cluster|PATH", "likewise for exceptions; none by default without a cluster")  # fmt: skip
    flags.text("--policy", "NAME", "only this policy (wildcards)", default="*")
    flags.choice("--fail-on", SEVERITIES, "exit with 1 only for failures of at least this severity (any by default)", default="")  # fmt: skip
    flags.text("--baseline", "FILE", "known findings, which do not fail the check")
    flags.switch("--all", "also show passing results and those in the baseline")
    flags.text("--as-of", "TIME", "decide as of this instant, RFC 3339 (now by default)")
    flags.text("--values-file", "FILE", "values file with variables")
    flags.many("--set", "A=B,…", "variables")
    flags.text("--userinfo", "FILE", "file with user, groups and roles")
    flags.switch("--registry", "with a cluster: query image registries, with docker's credentials")
    flags.of_lists()
    flags.text("-o --output", "FORMAT", f"{'|'.join((*FORMATS, *_REPORTS))}|jsonpath=TEMPLATE|custom-columns=SPEC", type=_format, default="table")  # fmt: skip
    flags.of_cluster()


def _format(text: str) -> str:
    return output_format(text, _REPORTS)


@guarded
def run(args: Arguments) -> int:
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
    from kubectl_kpolicy.apply.checking import identity_of
    from kubectl_kpolicy.cluster.violations import is_failure

    failing = [row for row in done.rows if is_failure(row)]
    fresh = sum(map(is_failure, done.new))
    passed = sum(row.cells["result"] == "pass" for row in done.rows)
    text = f"{len(failing)} of {len(failing) + passed} results fail"
    if asked.baseline:
        gone = len(done.known - {identity_of(row.object) for row in failing})
        text += f"; {len(failing) - fresh} are in the baseline, {fresh} are new, {gone} of the baseline are gone"
    print(text, file=sys.stderr)
