"""`kubectl kpolicy doctor`: what policies, grants and the console depend on, checked, with the command that mends it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .flags import Arguments, Flags, guarded, list_request

if TYPE_CHECKING:
    from controllers.kube import Client
    from kubectl_kpolicy.cluster.cache import ClusterCache
    from kubectl_kpolicy.cluster.health import Check
    from kubectl_kpolicy.output.rows import Row


def add_arguments(flags: Flags) -> None:
    """Add the command's flags."""
    flags.example("kubectl kpolicy doctor --fix-commands | sh -x")
    flags.of_cluster()
    flags.of_lists()
    flags.switch("--fix-commands", "print only the commands that fix what is wrong")
    flags.switch("--exit-code", "exit with 1 when something is wrong")


@guarded
def run(args: Arguments) -> int:
    """Print the findings, worst first; return 1 only when that was asked for."""
    from engine.record import replace
    from kubectl_kpolicy.cluster.health import checks, rows_of
    from kubectl_kpolicy.session import cluster

    from .lists import listing_of, print_rows, read_world, selected

    listing = listing_of("health")
    more: list[Check] = []

    async def learn(client: Client, world: ClusterCache) -> None:
        from kubectl_kpolicy.cluster.diagnosis import more_checks

        more.extend(await more_checks(client, world, cluster.skew(), cluster.now()))

    flags = list_request(args, everywhere=True)
    world, now = read_world(flags, listing, learn)
    found = rows_of([*checks(world, now), *more])
    rows = selected(flags, found, listing, now, lambda _row: True)
    rows.sort(key=lambda row: ("fail", "warn", "unknown", "ok").index(row.text("status")))
    if args.fix_commands:
        print(*_fixes(rows), sep="\n")
    else:
        output = "wide" if flags.output == "table" else flags.output
        print_rows(replace(flags, output=output), rows, listing, now)
    return int(args.exit_code and any(row.text("status") == "fail" for row in rows))


def _fixes(rows: list[Row]) -> list[str]:
    """Return the commands, each once; advice that is no command is a comment."""
    told = ((row.text("check"), row.text("fix")) for row in rows if row.text("status") != "ok")
    lines = (fix if fix.startswith("kubectl ") else f"# {check}: {fix}" for check, fix in told if fix)  # fmt: skip
    return list(dict.fromkeys(lines))
