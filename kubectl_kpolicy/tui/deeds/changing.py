"""What leads to a change: the form of a grant, the dialogs before something is changed or destroyed, and what came of it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.record import replace
from kubectl_kpolicy.actions import desk as desks
from kubectl_kpolicy.actions.registry import Danger as Level
from kubectl_kpolicy.tui.modals.danger import Danger, Question
from kubectl_kpolicy.tui.modals.wizard import GrantWizard

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubectl_kpolicy.actions.desk import Draft
    from kubectl_kpolicy.tui.app import Console

_FIELDS: dict[str, tuple[tuple[str, str], ...]] = {
    "approve": (("comment", "comment for the record"),),
    "deny": (("comment", "why not"),),
    "ask-back": (("comment", "your question"),),
    "exception-revoke": (("reason", "why, for the record"),),
    "grant-revoke": (("reason", "why, for the record"),),
    "extend": (("for", "for how long, such as 1h"), ("reason", "why it is still needed")),
    "code-void": (("reason", "why, for the record"),),
    "code-issue": (("user", "for whom"), ("bind", "POLICY/RULE:KIND/NAME"), ("ttl", "how long it can be used, such as 15m")),
    "code-redeem": (("code", "the code"),),
    "cleanup-postpone": (("for", "for how long, such as 1h"), ("reason", "why, for the record")),
    "cleanup-skip": (("reason", "why, for the record"),),
    "cleanup-pause": (("reason", "why, for the record"),),
}  # fmt: skip


def _request(app: Console) -> None:
    """Open the form of a grant for the row, or an empty one."""
    draft = desks.draft_of(app.subject)
    if len(app.rows) > 1:
        names = {row.text("resource").rpartition("/")[2] for row in app.rows}
        draft = replace(draft, name=_shared(sorted(names)))
    _open_wizard(app, draft)


def _shared(names: list[str]) -> str:
    """Return one name for several: their common beginning with `*`, or the first where they share none."""
    start = names[0]
    for name in names[1:]:
        while not name.startswith(start):
            start = start[:-1]
    return names[0] if len(names) == 1 else f"{start}*"


def _new_grant(app: Console) -> None:
    _open_wizard(app, desks.Draft(namespace=app.settings.namespace))


def _adopt(app: Console) -> None:
    row = app.row
    if row is not None:
        policy, _, rule = row.text("rules").partition(" ")[0].partition("/")
        kind, _, name = row.text("target").partition(" ")[0].partition("/")
        _open_wizard(app, desks.Draft(policy=policy, rule=rule, kind=kind, name=name, namespace=row.text("namespace")))  # fmt: skip


def _open_wizard(app: Console, draft: Draft) -> None:
    async def filled_in(draft: Draft | None) -> None:
        if draft is None:
            return
        app.log_command(desks.command(draft))
        try:
            app.say(await app.desk.submit(draft))
        except EngineError as error:
            app.say(f"{error.message}; {error.help}" if error.help else error.message, "red")

    app.push_screen(GrantWizard(draft, app.desk), filled_in)


def _ask(name: str, app: Console) -> None:
    """Ask before an action is done; the worst ones want the name of the first thing typed."""
    action = app.registry.get(name)
    rows = app.rows
    if action is None or (action.needs_row and not rows):
        return
    names = tuple(_name_of(row.cells.get("namespace"), row.text("name") or row.text("id")) for row in rows)  # fmt: skip
    word = rows[0].text("name") or rows[0].text("id") if action.danger is Level.DESTROYS else ""
    question = Question(action.title, action.help, names, word, _FIELDS.get(name, ()), app.line_of(action))  # fmt: skip

    async def answered(form: dict[str, str] | None) -> None:
        if form is None:
            app.say("nothing was changed")
            return
        outcomes = await app.doer.perform(name, rows, form)
        failed = [one for one in outcomes if not one.done]
        told = failed[0] if failed else outcomes[0] if outcomes else None
        count = f" ({len(outcomes) - len(failed)} of {len(outcomes)})" if len(outcomes) > 1 else ""
        if told is not None:
            app.say(f"{told.text}{count}", "red" if failed else "")
        if app.table is not None and not failed:
            app.table.state.marks.clear()

    app.push_screen(Danger(question), answered)


def _name_of(namespace: object, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


DEEDS: dict[str, Callable[[Console], None]] = {
    "request": _request,
    "grant-new": _new_grant,
    "exception-adopt": _adopt,
    **{name: partial(_ask, name) for name in _FIELDS},
}
