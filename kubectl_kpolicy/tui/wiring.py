"""Connects the console to a cluster's grants: requests are judged and handed in, decisions are made under one's own name.

The same code as the `grant` command's (`granting`), so that both refuse alike and in the same words.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kubectl_kpolicy.actions.desk import ReportDesk
from kubectl_kpolicy.granting import decisions, requests

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controllers.kube import Client
    from engine.model import Object
    from kubectl_kpolicy.cluster.rows import Row
    from kubectl_kpolicy.session.identity import Identity

    from .app import Console

_VERDICTS = {"approve": "approve", "deny": "deny"}


def connect_grants(app: Console, client: Client, me: Identity) -> None:
    """Let a console request grants and decide about them as somebody."""
    app.desk = ReportDesk(app.source.world, partial(_hand_in, app, client, me))
    for name, verdict in _VERDICTS.items():
        app.doer.offer(name, partial(_decide, client, me, verdict))
    app.doer.offer("grant-revoke", partial(_end, client, me))


async def _hand_in(app: Console, client: Client, me: Identity, obj: Object, dry_run: bool) -> str:
    """Judge a request and create it; return what waits for whom."""
    spec = {**obj["spec"], "requester": me.user, "requesterGroups": list(me.groups)}
    wanted = {**obj, "spec": spec}
    policy = await requests.judge(client, wanted, app.source.now())
    made = await requests.hand_in(client, wanted, dry_run=dry_run)
    name = made["metadata"]["name"]
    if policy is None or not policy.levels:
        return f"requested: {name}"
    return f"requested: {name}; may be approved by {' and '.join(requests.who_may_approve(policy))}"


async def _decide(
    client: Client, me: Identity, verdict: str, row: Row, form: Mapping[str, str]
) -> str:
    comment = form.get("comment") or form.get("reason") or ""
    await decisions.decide(client, (row.text("namespace"), row.text("name")), verdict, me, comment)
    return f"{verdict}: {row.text('namespace')}/{row.text('name')}"


async def _end(client: Client, me: Identity, row: Row, form: Mapping[str, str]) -> str:
    """End a grant by the verdict that fits: one's own is withdrawn or dropped, somebody else's revoked."""
    waits = row.text("state") in ("draft", "pending", "scheduled")
    own = row.text("requester") == me.user
    verdict = ("withdraw" if waits else "drop") if own else "deny" if row.text("state") == "pending" else "revoke"  # fmt: skip
    return await _decide(client, me, verdict, row, form)
