"""Decisions about grants from a row, and requests handed in: the same code as that of the command, so that both refuse alike."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from engine.errors import EngineError
from kubectl_kpolicy.grants import decisions, requests
from kubectl_kpolicy.grants.arguments import missing

from .catalog import ending_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from controllers.kube import Client
    from engine.model import Object
    from kubectl_kpolicy.output.rows import Row

    from .executor import ActionExecutor

_SAID = {"approve": "approved", "deny": "denied", "comment": "asked about", "withdraw": "withdrew", "drop": "dropped", "revoke": "revoked"}  # fmt: skip


async def hand_in(client: Client, wanted: Object, now: datetime, *, dry_run: bool = False) -> str:
    """Judge a request and create it; return what waits for whom. Raises EngineError."""
    policy = await requests.judge(client, wanted, now)
    lacking = await missing(client, wanted)
    made = await requests.hand_in(client, wanted, dry_run=dry_run)
    said = [f"requested: {made['metadata']['name']}", *lacking]
    if policy is not None and policy.levels:
        said.append(f"may be approved by {' and '.join(requests.who_may_approve(policy))}")
    return "; ".join(said)


async def end(doer: ActionExecutor, row: Row, form: Mapping[str, str]) -> str:
    """End a grant by the verdict that fits whoever ends it; raises EngineError."""
    return await _decide(ending_of(row, doer.user), doer, row, form)


async def _decide(verdict: str, doer: ActionExecutor, row: Row, form: Mapping[str, str]) -> str:
    """Decide about the grant of a row, or leave a question for its requester (`comment`); raises EngineError."""
    if not doer.user:
        raise EngineError("the server has not said who you are", help="`kubectl kpolicy whoami` asks it")  # fmt: skip
    comment = form.get("comment") or form.get("reason") or ""
    place = (row.text("namespace"), row.text("name"))
    await decisions.decide(doer.client, place, verdict, doer.who, comment)
    return f"{_SAID[verdict]} {place[0]}/{place[1]}"


approve, deny, ask_back = (partial(_decide, verdict) for verdict in ("approve", "deny", "comment"))


async def extend(doer: ActionExecutor, row: Row, form: Mapping[str, str]) -> str:
    """Ask for a grant that follows the one of the row, or the one behind its exception; raises EngineError."""
    if not row.text("grant"):
        raise EngineError("no grant is behind it")
    place, now = (row.text("namespace"), row.text("grant")), doer.now()
    longer = requests.Longer(form["for"], form["reason"])
    wanted = await requests.successor(doer.client, place, doer.who, longer, now)
    return await hand_in(doer.client, wanted, now)
