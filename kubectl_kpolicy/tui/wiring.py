"""Connects the console to a cluster's grants and codes: requests are judged and handed in, decisions made under one's own name.

The same code as that of the commands `grant` and `otp`, so that both refuse alike and in the same words.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.record import record
from kubectl_kpolicy.actions.codes import CodeDesk
from kubectl_kpolicy.grants import decisions, requests
from kubectl_kpolicy.grants.form import GrantForm

from .commands import ending

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controllers.kube import Client
    from engine.model import Object
    from kubectl_kpolicy.output.rows import Row
    from kubectl_kpolicy.session.identity import Identity

    from .app import Console

_SAID = {"approve": "approved", "deny": "denied", "comment": "asked about", "withdraw": "withdrew", "drop": "dropped", "revoke": "revoked"}  # fmt: skip
_VERDICTS = {"approve": "approve", "deny": "deny", "ask-back": "comment"}


def connect(app: Console, client: Client, me: Identity) -> None:
    """Let a console request grants, decide about them, and issue and use codes as somebody."""
    app.grant_form = GrantForm(app.source.world, app.source.now, me, partial(_judged, app, client))
    for name, verdict in _VERDICTS.items():
        app.doer.offer(name, partial(_decide, client, me, verdict))
    app.doer.offer("grant-revoke", partial(_end, client, me))
    app.doer.offer("extend", partial(_extend, app, client, me))
    app.codes = CodeDesk(client, me, app.source.now, app.source.world)
    app.doer.offer("code-void", app.codes.void)


async def _judged(app: Console, client: Client, wanted: Object, dry_run: bool) -> str:
    """Judge a request and create it; return what waits for whom."""
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
    return f"{_SAID[verdict]} {row.text('namespace')}/{row.text('name')}"


async def _end(client: Client, me: Identity, row: Row, form: Mapping[str, str]) -> str:
    """End a grant by the verdict that fits whoever ends it."""
    return await _decide(client, me, ending(row, me.user), row, form)


async def _extend(
    app: Console, client: Client, me: Identity, row: Row, form: Mapping[str, str]
) -> str:
    """Ask for a grant that follows the one of the row, or the one behind its exception."""
    if not row.text("grant"):
        raise EngineError("no grant is behind it")
    place = (row.text("namespace"), row.text("grant"))
    longer = _Longer(form["for"], form["reason"])
    wanted = await requests.successor(client, place, me, longer, app.source.now())
    return await _judged(app, client, wanted, False)


@record
class _Longer:
    """What the successor of a grant is asked for with."""

    length: str
    reason: str
    ticket: str = ""
