"""Which command does what was done in the console: nouns of screens, filters, order and forms put into an action's command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubectl_kpolicy.actions.catalog import DESCRIPTIONS, LISTS
from kubectl_kpolicy.actions.registry import command_line
from kubectl_kpolicy.output.fields import word

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kubectl_kpolicy.actions.registry import Action
    from kubectl_kpolicy.output.rows import Row

    from .app import Console

_WAITING = ("draft", "pending", "scheduled")
_TO_SAY = {name: name.upper() for name in ("reason", "comment", "for")}
"""What a form asks for: until it is filled in its name stands there, never what the row says about something else."""
_EVERYWHERE = ("health", "pulse")
"""Screens whose commands know no namespaces."""


def line_of(app: Console, action: Action, rows: Sequence[Row], **form: str) -> str:
    """Return the command line that does an action with these rows, `form` being what was filled in; several joined by ` && `."""
    words = {**_words(app), **_TO_SAY, **form}
    subjects: list[Row | None] = [*rows] if action.bulk else [*rows[:1]]
    lines = [_line(app, action, row, words) for row in subjects or [None]]
    return " && ".join(dict.fromkeys(lines))


def is_told(app: Console, action: Action) -> bool:
    """Tell whether the command log is to tell of an action that changes nothing."""
    shows_a_list = app.view is not None or "<list>" not in action.command
    return action.is_told and not action.is_guarded and shows_a_list


def _line(app: Console, action: Action, row: Row | None, words: Mapping[str, str]) -> str:
    verdict = ending(row, app.doer.user) if row is not None else "revoke"
    parts = {
        "list": _list(app),
        "describe": DESCRIPTIONS.get(app.current, LISTS[app.current]),
        "ending": verdict,
        "why": "comment" if verdict == "deny" else "reason",
        "pausing": "resume" if row is not None and row.text("state") == "paused" else "pause",
        "preview": "preview" if row is not None and is_policy(row) else "describe",
        "all": "" if _shows_failures(app) else " --all",
    }
    return command_line(action, [row] if row is not None else [], parts, **words)


def _list(app: Console) -> str:
    view = app.view
    if view is None or app.current in _EVERYWHERE:
        return LISTS[app.current]
    place = "-n {space}" if view.state.namespace else "-A"
    return f"{LISTS[app.current]} {place}"


def _words(app: Console) -> dict[str, str]:
    found = {"screen": app.current}
    if app.view is not None:
        state = app.view.state
        found |= {"filter": state.filter.text, "group": state.group, "space": state.namespace}
        found["order"] = state.order[0] if state.order else ""
    return {name: value for name, value in found.items() if value}


def _shows_failures(app: Console) -> bool:
    return app.current != "violations" or app.view is None or app.view.state.failures


def ending(row: Row, user: str) -> str:
    """Return the verdict that ends a grant: one's own is withdrawn or dropped, somebody else's denied or revoked."""
    if row.text("requester") == user:
        return "withdraw" if row.text("state") in _WAITING else "drop"
    return "deny" if row.text("state") in ("draft", "pending") else "revoke"


def is_policy(row: Row) -> bool:
    """Tell whether a row of Cleanup is a policy and not an object with a label."""
    return word(row.object, "kind") in ("CleanupPolicy", "ClusterCleanupPolicy")
