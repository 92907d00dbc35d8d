"""One-time codes in the console: the form for one, the one time that it is shown, and bringing an object along with one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.model.kinds import is_of_cel
from kubectl_kpolicy.actions.registry import Field
from kubectl_kpolicy.cluster import celkinds
from kubectl_kpolicy.tui import commands
from kubectl_kpolicy.tui.modals.danger import Danger, Question
from kubectl_kpolicy.tui.modals.reveal import Reveal

if TYPE_CHECKING:
    from textual.widget import AwaitMount

    from kubectl_kpolicy.actions.codes import CodeActions, Issued
    from kubectl_kpolicy.output.rows import Row
    from kubectl_kpolicy.tui.stage import Stage

_NOBODY = "a recording cannot be changed"
_TTL = "15m"


def issue(app: Stage) -> AwaitMount | None:
    """Ask for whom and for what a code shall be, for what the row shows where it shows something."""
    there, action = app.here, app.registry.get("code-issue")
    codes = there.codes
    if codes is None or action is None:
        app.say(_NOBODY, "yellow")
        return None

    async def make(form: dict[str, str]) -> None:
        issued = await codes.issue(form)
        app.log_command(commands.at(there, commands.line_of(app, action, (), **form)))
        _reveal(app, issued)

    return app.ask(Danger(_question(app, codes)), make, "no code was issued")


def _question(app: Stage, codes: CodeActions) -> Question:
    row = app.subject if app.current != "codes" else None
    return Question(
        "Issue",
        "A code lets one person get one object past named rules, once. It is shown once, and kept nowhere." + _place(app),
        fields=(
            Field("user", "for user", "who may use it", _user_of(row)),
            Field("bind", "good for", "POLICY/RULE:KIND/NAME", _binding_of(row)),
            Field("namespace", "namespace", "of the object", row.text("namespace") if row else app.settings.namespace),
            Field("ttl", "usable for", "such as 15m", _TTL),
            Field("reason", "reason", "why, for the record"),
        ),
        destroys=False,
        objection=codes.objection,
    )  # fmt: skip


def _place(app: Stage) -> str:
    """Return the cluster that a dialog is about as a sentence, where there are others."""
    return f" In cluster {app.here.name}." if app.here.name else ""


def _user_of(row: Row | None) -> str:
    return "" if row is None else row.text("requester") or row.text("user")


def _binding_of(row: Row | None) -> str:
    """Return what a row is about as a code says it; empty where it is not about one object and one rule."""
    if row is None:
        return ""
    policy = celkinds.identity_of(row)
    rule = row.text("rules") or (policy if is_of_cel(policy) else f"{policy}/{row.text('rule')}")
    place = row.text("target") or row.text("resource")
    return f"{rule}:{place}" if not set("* ") & set(rule + place) else ""


def _reveal(app: Stage, issued: Issued) -> None:
    def closed(noted: bool | None) -> None:
        if noted:
            app.say("the code was noted")
        else:
            app.say("the code was not noted; nobody can see it again: void it with ^d and issue another", "yellow")  # fmt: skip

    app.push_screen(Reveal("One-time code", issued.take(), issued.about), closed)


def redeem(app: Stage) -> AwaitMount | None:
    """Ask for a file and a code, and apply the one with the other."""
    there, action = app.here, app.registry.get("code-redeem")
    codes = there.codes
    if codes is None or action is None:
        app.say(_NOBODY, "yellow")
        return None
    question = Question(
        "Redeem",
        "Apply an object that was denied, with a code. The code is in no command line, no log and no picture."
        + _place(app),
        fields=(
            Field("file", "file", "the object, as YAML or JSON"),
            Field("namespace", "namespace", "where the file names none", _namespace(app)),
            Field("code", "code", "XXXX-XXXX-XXXX-XXXX-XXXX", hidden=True),
        ),
        destroys=False,
    )

    async def use(form: dict[str, str]) -> None:
        told = {name: form[name] for name in ("file", "namespace")}
        line = commands.at(there, commands.line_of(app, action, (), **told))
        app.say(await codes.redeem(form))
        app.log_command(line)

    return app.ask(Danger(question), use, "no code was used")


def _namespace(app: Stage) -> str:
    """Return the namespace that a code on the screen is for, or the one that is looked at."""
    row = app.row
    bound = row.text("place") if row is not None else ""
    return bound or app.settings.namespace or "default"
