"""`kubectl kpolicy status`: how things stand, in the numbers of the console's Pulse screen."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from engine import vocabulary
from engine.errors import EngineError

from .flags import Arguments, Flags, guarded, list_request

if TYPE_CHECKING:
    from kubectl_kpolicy.cluster.cache import ClusterCache


def add_arguments(flags: Flags) -> None:
    """Add the command's flags."""
    flags.example("kubectl kpolicy status --exit-code --fail-on high")
    flags.of_cluster()
    flags.output("table", "json", "yaml")
    flags.switch("--exit-code", "exit with 1 when anything fails")
    flags.choice("--fail-on", vocabulary.SEVERITIES, "with --exit-code, only for this severity or higher", default="")  # fmt: skip
    flags.replay()


@guarded
def run(args: Arguments) -> int:
    """Print the numbers; return 1 only when that was asked for."""
    from engine.record import replace
    from kubectl_kpolicy.actions.screens import SCREENS
    from kubectl_kpolicy.cluster import pulse
    from kubectl_kpolicy.cluster.resources import RESOURCES
    from kubectl_kpolicy.cluster.violations import LISTING
    from kubectl_kpolicy.output.diagnostics import report
    from kubectl_kpolicy.output.structured import write_object
    from kubectl_kpolicy.output.table import Column, Table

    from .lists import check_needs, read_world

    everything = replace(LISTING, wants=(*(name for name in RESOURCES if name not in LISTING.needs), "ttl", "journal"))  # fmt: skip
    world, now = read_world(list_request(args, everywhere=True, output="table"), everything)
    check_needs(world, LISTING)
    gauges = pulse.gauges(world, now)
    if args.output == "table":
        place = _place(args)
        table = Table([Column("WHAT"), Column("COUNT"), Column("SEE")])
        for gauge in gauges:
            said = gauge.knowledge.said(now)
            if gauge.value is None:
                table.add(gauge.title, "-", said)
                continue
            where = f" --where '{gauge.where}'" if gauge.where else ""
            command = SCREENS[gauge.screen].command
            table.add(gauge.title, gauge.text, f"kubectl kpolicy {command}{place}{where}")
        sys.stdout.write(table.text())
    else:
        numbers = {gauge.id: gauge.value for gauge in gauges}
        write_object(sys.stdout, {"apiVersion": vocabulary.KPOLICY, "kind": "Status", "counts": numbers}, args.output)  # fmt: skip
    if not args.exit_code:
        return 0
    failures = next(one for one in gauges if one.id == "failures")
    if failures.value is None and failures.knowledge.problem is not None:
        reason = failures.knowledge.problem.message
        report(EngineError(f"nobody knows whether anything fails: {reason}"))
        return 1
    return _verdict(args, world)


def _place(args: Arguments) -> str:
    """Return the flags with which other commands look at the cluster and the place that was counted."""
    flags = ("kubeconfig", "context", "cluster", "user", "namespace", "replay")
    given = [f" --{name} {shlex.quote(value)}" for name in flags if (value := getattr(args, name))]
    given += [f" --as {shlex.quote(args.as_user)}"] if args.as_user else []
    given += [f" --as-group {shlex.quote(one)}" for one in args.as_group]
    return ("" if args.namespace else " -A") + "".join(given)


def _verdict(args: Arguments, world: ClusterCache) -> int:
    from kubectl_kpolicy.cluster.violations import all_rows, is_failure
    from kubectl_kpolicy.output.rows import severity_rank

    least = severity_rank(args.fail_on) if args.fail_on else 0
    return int(any(is_failure(row) and severity_rank(row.cells["severity"]) >= least for row in all_rows(world)))  # fmt: skip
