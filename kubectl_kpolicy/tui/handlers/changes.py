"""What leads to a change: the form of a grant, the dialogs before something is changed or destroyed, and what came of it.

Dialogs are waited for until they stand, so that what somebody types ahead gets into them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.record import replace
from kubectl_kpolicy.actions.registry import Danger as Level
from kubectl_kpolicy.grants import form as forms
from kubectl_kpolicy.output.time_format import length_of
from kubectl_kpolicy.tui import commands
from kubectl_kpolicy.tui.modals.danger import Danger, Field, Question
from kubectl_kpolicy.tui.modals.wizard import GrantWizard

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from textual.widget import AwaitMount

    from kubectl_kpolicy.actions.executor import Outcome
    from kubectl_kpolicy.actions.registry import Action
    from kubectl_kpolicy.grants.form import Draft
    from kubectl_kpolicy.output.rows import Row
    from kubectl_kpolicy.tui.app import Console

_REASON = Field("reason", "reason", "why, for the record")
_HOW_LONG = Field("for", "for", "how long, such as 1h", "1h")
_FIELDS: dict[str, tuple[Field, ...]] = {
    "approve": (Field("comment", "comment", "for the record"),),
    "deny": (Field("comment", "comment", "why not"),),
    "ask-back": (Field("comment", "question", "what you want to know; the request stays open"),),
    "exception-revoke": (),
    "grant-revoke": (_REASON,),
    "extend": (_HOW_LONG, Field("reason", "reason", "why it is still needed")),
    "code-void": (),
    "cleanup-postpone": (_HOW_LONG, _REASON),
    "cleanup-skip": (_REASON,),
    "cleanup-pause": (_REASON,),
}


def _request(app: Console) -> AwaitMount:
    """Open the form of a grant for the row, or an empty one."""
    draft = forms.draft_of(app.subject)
    if len(app.rows) > 1:
        names = {row.text("resource").rpartition("/")[2] for row in app.rows}
        draft = replace(draft, name=_shared(sorted(names)), block="")
    return _open_wizard(app, draft)


def _shared(names: list[str]) -> str:
    """Return one name for several: their common beginning with `*`, or the first where they share none."""
    start = names[0]
    for name in names[1:]:
        while not name.startswith(start):
            start = start[:-1]
    return names[0] if len(names) == 1 else f"{start}*"


def _new_grant(app: Console) -> AwaitMount:
    return _open_wizard(app, forms.Draft(namespace=app.settings.namespace))


def _adopt(app: Console) -> AwaitMount | None:
    row = app.row
    if row is None:
        return None
    policy, _, rule = row.text("rules").partition(" ")[0].partition("/")
    kind, _, name = row.text("target").partition(" ")[0].partition("/")
    return _open_wizard(app, forms.Draft(policy=policy, rule=rule, kind=kind, name=name, namespace=row.text("namespace")))  # fmt: skip


def _open_wizard(app: Console, draft: Draft) -> AwaitMount:
    async def filled_in(draft: Draft | None) -> None:
        if draft is None:
            app.say("nothing was asked for")
            return
        try:
            said = await app.grant_form.submit(draft)
        except EngineError as error:
            app.say(sentence(error), "red")
            return
        app.log_command(forms.command(draft))
        app.say(said)

    return app.push_screen(
        GrantWizard(draft, app.grant_form, is_ascii=app.settings.ascii), filled_in
    )


def sentence(error: EngineError) -> str:
    """Return an error with its way out."""
    return f"{error.message}; {error.help}" if error.help else error.message


def _ask(name: str, app: Console) -> AwaitMount | None:
    """Ask before an action is done; the worst ones want the name of the first thing typed."""
    action, rows = app.registry.get(name), app.rows
    if action is None or (action.needs_row and not rows):
        return None
    if unfit := _unfit(name, rows):
        app.say(unfit, "yellow")
        return None

    async def answered(form: dict[str, str] | None) -> None:
        if form is None:
            app.say("nothing was changed")
            return
        line = commands.line_of(app, action, rows, **form)
        outcomes = await app.doer.perform(name, rows, form)
        if any(one.done for one in outcomes):
            app.log_command(line)
        _tell(app, outcomes)

    return app.push_screen(Danger(_question(app, action, rows)), answered)


def _unfit(name: str, rows: Sequence[Row]) -> str:
    """Return why rows are none for an action that is offered on their screen."""
    if name == "extend" and not rows[0].text("grant"):
        return "no grant is behind this exception; H asks for one that takes it over"
    if name == "grant-revoke" and rows[0].cells["state"] in _OVER:
        return f"it is {rows[0].text('state')}, which is final"
    if name == "code-void" and rows[0].text("state") in ("used", "confirmed", "void"):
        return f"it is {rows[0].text('state')} already"
    return ""


def _question(app: Console, action: Action, rows: Sequence[Row]) -> Question:
    names = tuple(_name_of(row.cells.get("namespace"), row.text("name") or row.text("id")) for row in rows)  # fmt: skip
    destroys = action.danger is Level.DESTROYS
    fields = _FIELDS[action.id]
    title, effect = action.title, action.help
    if action.id == "cleanup-pause" and rows[0].text("state") == "paused":
        title, effect = "Resume", "Go on with what was paused."
    if action.id == "grant-revoke":
        title = commands.ending(rows[0], app.doer.user).capitalize()
    return Question(
        title,
        effect,
        names,
        word=_word(action.id, rows[0]) if destroys else "",
        fields=fields,
        command=commands.line_of(app, action, rows),
        destroys=destroys,
        objection=_objection if any(one.name == "for" for one in fields) else None,
    )


_OVER = ("expired", "revoked", "dropped", "idle-expired", "exhausted", "denied", "withdrawn", "timed-out")  # fmt: skip


_TYPED = {"grant-revoke": "target", "deny": "target", "code-void": "user"}
"""Cells to be typed where the name of the thing is drawn by chance."""


def _word(name: str, row: Row) -> str:
    """Return what has to be typed before something is destroyed."""
    return row.text(_TYPED.get(name, "name")).rpartition("/")[2] or row.text("name")


def _objection(form: Mapping[str, str]) -> str:
    length = length_of(form["for"])
    return "" if length else f"`{form['for']}` is no length of time; try 30m or 2h"


def _tell(app: Console, outcomes: Sequence[Outcome]) -> None:
    """Say what came of an action: the first failure, or the first success."""
    failed = [one for one in outcomes if not one.done]
    told = failed[0] if failed else outcomes[0] if outcomes else None
    count = f" ({len(outcomes) - len(failed)} of {len(outcomes)})" if len(outcomes) > 1 else ""
    if told is not None:
        app.say(f"{told.text}{count}", "red" if failed else "")
    if app.table is not None and not failed:
        app.table.state.marks.clear()


def _name_of(namespace: object, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


HANDLERS: dict[str, Callable[[Console], AwaitMount | None]] = {
    "request": _request,
    "grant-new": _new_grant,
    "exception-adopt": _adopt,
    **{name: partial(_ask, name) for name in _FIELDS},
}
