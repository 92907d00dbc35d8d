"""Which command does what was done in the console: nouns of screens, filters, order and forms put into an action's command line."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from engine.fields import word
from kubectl_kpolicy.actions.catalog import ending_of
from kubectl_kpolicy.actions.registry import Action, command_line
from kubectl_kpolicy.actions.screens import SCREENS

from .stage import cluster_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kubectl_kpolicy.output.rows import Row

    from .stage import OneCluster, Stage

_TO_SAY = {name: name.upper() for name in ("reason", "comment", "for")}
"""What a form asks for: until it is filled in its name stands there, never what the row says about something else."""


def line_of(app: Stage, action: Action, rows: Sequence[Row], **form: str) -> str:
    """Return the command line that does an action with these rows, `form` being what was filled in; several joined by ` && `."""
    words = {**_words(app), **_TO_SAY, **form}
    subjects: list[Row | None] = [*rows] if action.bulk else [*rows[:1]]
    lines = [_line(app, action, row, words) for row in subjects or [None]]
    return " && ".join(dict.fromkeys(lines))


def at(there: OneCluster, line: str) -> str:
    """Return a command line for a cluster of several; for the only one as it is."""
    return f"{line} --context {shlex.quote(there.name)}" if there.name else line


def _placed(app: Stage, action: Action, row: Row | None, line: str) -> str:
    """Return a command line for the row's cluster, or for all of a list."""
    if "<list>" in action.command and len(app.clusters) > 1:
        return f"{line} --contexts {shlex.quote(','.join(app.clusters))}"
    return at(cluster_of(row, app.clusters), line) if row is not None else line


def is_told(app: Stage, action: Action) -> bool:
    """Tell whether the command log is to tell of an action that changes nothing."""
    shows_a_list = app.view is not None or "<list>" not in action.command
    return action.is_told and not action.is_guarded and shows_a_list


def _line(app: Stage, action: Action, row: Row | None, words: Mapping[str, str]) -> str:
    user = cluster_of(row, app.clusters).doer.user
    verdict = ending_of(row, user) if row is not None else "revoke"
    parts = {
        "list": _list(app),
        "describe": SCREENS[app.current].describe or SCREENS[app.current].command,
        "ending": verdict,
        "why": "comment" if verdict == "deny" else "reason",
        "pausing": "resume" if row is not None and row.text("state") == "paused" else "pause",
        "preview": "preview" if row is not None and is_policy(row) else "describe",
        "all": "" if _shows_failures(app) else " --all",
    }
    line = command_line(action, [row] if row is not None else [], parts, **words)
    return _placed(app, action, row, line)


def _list(app: Stage) -> str:
    view = app.view
    if view is None or SCREENS[app.current].everywhere:
        return SCREENS[app.current].command
    place = "-n {space}" if view.state.namespace else "-A"
    return f"{SCREENS[app.current].command} {place}"


def _words(app: Stage) -> dict[str, str]:
    found = {"screen": app.current}
    if app.view is not None:
        state = app.view.state
        found |= {"filter": state.filter.text, "group": state.group, "space": state.namespace}
        found["order"] = state.order[0] if state.order else ""
    return {name: value for name, value in found.items() if value}


def _shows_failures(app: Stage) -> bool:
    return app.current != "violations" or app.view is None or app.view.state.failures


def is_policy(row: Row) -> bool:
    """Tell whether a row of Cleanup is a policy and not an object with a label."""
    return word(row.object, "kind") in ("CleanupPolicy", "ClusterCleanupPolicy")
