"""What leads to a change: the form of a grant, the dialogs before something is changed or destroyed, and what came of it.

Dialogs are waited for until they stand, so that what somebody types ahead gets into them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.grants import length_of
from kubectl_kpolicy.actions.registry import Action
from kubectl_kpolicy.actions.registry import Danger as Level
from kubectl_kpolicy.grants import form as forms
from kubectl_kpolicy.output.cells import plain
from kubectl_kpolicy.output.diagnostics import sentence
from kubectl_kpolicy.output.rows import CLUSTER
from kubectl_kpolicy.tui import commands
from kubectl_kpolicy.tui.modals.danger import Danger, Question
from kubectl_kpolicy.tui.modals.texts import TextWindow
from kubectl_kpolicy.tui.modals.wizard import GrantWizard
from kubectl_kpolicy.tui.stage import by_cluster
from kubectl_kpolicy.tui.widgets.detail import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual.widget import AwaitMount

    from controllers.kube import Client
    from kubectl_kpolicy.actions.executor import Outcome
    from kubectl_kpolicy.grants.form import Draft
    from kubectl_kpolicy.output.rows import Row
    from kubectl_kpolicy.tui.stage import Stage


def request(app: Stage) -> AwaitMount | None:
    """Open the form of a grant for what is marked, else for the row, or an empty one."""
    try:
        draft = forms.draft_of_all(_of_one_cluster(app) or [app.subject])
    except EngineError as error:
        app.say(sentence(error), "yellow")
        return None
    return _open_wizard(app, draft)


def _of_one_cluster(app: Stage) -> list[Row]:
    """Return the rows that a request is for; raises EngineError where they are of several clusters."""
    rows = app.rows
    names = [one.name for one, _ in by_cluster(rows, app.clusters)]
    if len(names) > 1:
        raise EngineError(
            f"the marked rows are in {' and '.join(names)}", help="a grant is for one cluster"
        )
    return rows


def new_grant(app: Stage) -> AwaitMount:
    """Ask for an exception."""
    return _open_wizard(app, forms.Draft(namespace=app.settings.namespace))


def adopt(app: Stage) -> AwaitMount | None:
    """Ask for a grant that takes this exception over, with an end and a reason."""
    row = app.row
    if row is None:
        return None
    policy, _, rule = row.text("rules").partition(" ")[0].partition("/")
    kind, _, name = row.text("target").partition(" ")[0].partition("/")
    return _open_wizard(app, forms.Draft(policy=policy, rule=rule, kind=kind, name=name, namespace=row.text("namespace")))  # fmt: skip


def _open_wizard(app: Stage, draft: Draft) -> AwaitMount:
    there = app.here

    async def hand_in(draft: Draft) -> None:
        said = await there.grant_form.submit(draft)
        app.log_command(commands.at(there, forms.command(draft)))
        app.say(said)

    wizard = GrantWizard(draft, there.grant_form, where=there.name)
    return app.ask(wizard, hand_in, "nothing was asked for")


def ask(action: Action, app: Stage) -> AwaitMount | None:
    """Ask before an action is done; the worst ones want the name of the first thing typed."""
    rows = app.rows
    if action.needs_row and not rows:
        return None
    if action.unfit is not None and (unfit := action.unfit(rows[0])):
        app.say(unfit, "yellow")
        return None

    async def perform(form: dict[str, str]) -> None:
        line = commands.line_of(app, action, rows, **form)
        outcomes = []
        for there, mine in by_cluster(rows, app.clusters):
            outcomes += await there.doer.perform(action, mine, form)
        if any(one.done for one in outcomes):
            app.log_command(line)
        _tell(app, outcomes)

    return app.ask(Danger(_question(app, action, rows)), perform, "nothing was changed")


def _question(app: Stage, action: Action, rows: Sequence[Row]) -> Question:
    places = [one.name for one, _ in by_cluster(rows, app.clusters) if one.name]
    names = names_of(rows)
    destroys = action.danger is Level.DESTROYS
    title = (action.named and action.named(rows[0], app.here.doer.user)) or action.title
    effect = action.help if title != "Resume" else "Go on with what was paused."
    effect += f" In cluster {', '.join(places)}." if places else ""
    return Question(
        title,
        effect,
        names,
        word=_word(action, rows[0]) if destroys else "",
        fields=action.fields,
        command=commands.line_of(app, action, rows),
        destroys=destroys,
        objection=_objection if any(one.name == "for" for one in action.fields) else None,
    )


def _word(action: Action, row: Row) -> str:
    """Return what has to be typed before something is destroyed."""
    return row.text(action.typed).rpartition("/")[2] or row.text("name")


def _objection(form: Mapping[str, str]) -> str:
    length = length_of(form["for"])
    return "" if length else f"`{form['for']}` is no length of time; try 30m or 2h"


def _tell(app: Stage, outcomes: Sequence[Outcome]) -> None:
    """Say what came of an action: the first failure, or the first success."""
    failed = [one for one in outcomes if not one.done]
    told = failed[0] if failed else outcomes[0] if outcomes else None
    count = f" ({len(outcomes) - len(failed)} of {len(outcomes)})" if len(outcomes) > 1 else ""
    if told is not None:
        app.say(f"{told.text}{count}", "red" if failed else "")
    if app.table is not None and not failed:
        app.table.state.marks.clear()


def names_of(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return what rows are about, for a dialog."""
    return tuple(map(_name_of, rows))


def _name_of(row: Row) -> str:
    name = row.text("resource") or row.text("name") or row.text("id")
    return "/".join(filter(None, (row.text(CLUSTER.id), row.text("namespace"), name)))


def preview(app: Stage) -> None:
    """Plan the row's run beside the work of the console: many objects may have to be read."""
    if app.row is None:
        return
    if app.here.client is None:
        app.say("a recording does not hold the objects that would go", "yellow")
        return
    app.say("planning …")
    app.run_worker(_show(app, app.here.client, app.row), group="preview", exclusive=True)


async def _show(app: Stage, client: Client, row: Row) -> None:
    from kubectl_kpolicy.cluster.planning import plans_of, preview

    now, asked_on = app.source.now(), app.screen
    try:
        plans = await plans_of(client, [row], now)
    except EngineError as error:
        app.say(error.message, "red")
        return
    app.say("")
    if app.current == "cleanup" and app.screen is asked_on:
        title = plain(f"Preview: {row.text('object')}").replace("[", r"\[")
        await app.push_screen(TextWindow(title, text_of(preview(row, plans, now))))
