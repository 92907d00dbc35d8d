"""Carrying out a change from a command: the same work as in the console, one line of outcome for each thing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from kubectl_kpolicy.output.diagnostics import ExitCode
from kubectl_kpolicy.session import cluster

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from controllers.kube import Access, Client
    from kubectl_kpolicy.actions.doing import Outcome
    from kubectl_kpolicy.cluster.rows import Row


def perform(
    args: argparse.Namespace, action: str, rows: Sequence[Row], form: Mapping[str, str]
) -> int:
    """Do an action on rows, print what became of each, and return the exit code."""

    async def work(client: Client, _access: Access) -> list[Outcome]:
        from kubectl_kpolicy.actions.doing import Doer
        from kubectl_kpolicy.session.identity import who_am_i

        user = (await who_am_i(client)).user
        return await Doer(client, cluster.now, user).perform(action, rows, form)

    outcomes = cluster.with_client(args, work)
    for outcome in outcomes:
        stream = sys.stdout if outcome.done else sys.stderr
        print(f"{outcome.row}: {outcome.text}", file=stream)
    return ExitCode.DONE if all(one.done for one in outcomes) else ExitCode.FAILED
