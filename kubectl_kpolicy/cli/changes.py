"""Carrying out a change from a command: the same work as in the console, one line of outcome for each thing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from kubectl_kpolicy.output.diagnostics import ExitCode, visible
from kubectl_kpolicy.session import cluster

from .flags import Arguments, cluster_flags

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controllers.kube import Access, Client
    from kubectl_kpolicy.actions.executor import Outcome
    from kubectl_kpolicy.output.rows import Row


def perform(args: Arguments, action: str, rows: Sequence[Row], form: Mapping[str, str]) -> int:
    """Do an action on rows, print what became of each, and return the exit code."""

    async def work(client: Client, _access: Access) -> list[Outcome]:
        from kubectl_kpolicy.actions.catalog import action_of
        from kubectl_kpolicy.actions.executor import ActionExecutor
        from kubectl_kpolicy.session.identity import who_am_i

        doer = ActionExecutor(client, cluster.now, await who_am_i(client))
        return await doer.perform(action_of(action), rows, form)

    outcomes = cluster.with_client(cluster_flags(args), work)
    tried = f" ({form['dry-run']} dry run)" if form.get("dry-run") else ""
    code = ExitCode.DONE
    for row, outcome in zip(rows, outcomes, strict=True):
        stream = sys.stdout if outcome.done else sys.stderr
        print(visible(f"{named(row)}: {outcome.text}{tried}"), file=stream)
        if not outcome.done:
            code = ExitCode.FAILED if outcome.error is None else cluster.exit_code(outcome.error)
    return code


def named(row: Row) -> str:
    """Return how people call what is behind a row: `kind.group/name`, and its namespace where it has one."""
    from kubectl_kpolicy.output.structured import name_of

    place = row.text("namespace")
    return name_of(row.object) + (f" in {place}" if place else "")
