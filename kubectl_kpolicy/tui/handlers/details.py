"""Showing one thing: details, why it fails, the object as it is in the cluster, help, the command log; copying and exporting."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from engine.errors import EngineError, reason_of
from engine.fields import word
from kubectl_kpolicy.actions.prompt import COMMAND_WORDS
from kubectl_kpolicy.actions.registry import Danger
from kubectl_kpolicy.cluster import explaining, violations
from kubectl_kpolicy.cluster.audit import extent
from kubectl_kpolicy.cluster.details import hint, sections
from kubectl_kpolicy.cluster.knowledge import known
from kubectl_kpolicy.cluster.marking import Objection, marked, objections, shown_object, trees
from kubectl_kpolicy.cluster.policies import LISTING as POLICIES
from kubectl_kpolicy.cluster.subject import object_named, place_in_rows
from kubectl_kpolicy.output.cells import plain
from kubectl_kpolicy.output.diagnostics import sentence
from kubectl_kpolicy.output.explanation import Reason
from kubectl_kpolicy.output.structured import yaml_text
from kubectl_kpolicy.output.time_format import absolute
from kubectl_kpolicy.tui.modals.help import HelpEntry, HelpWindow
from kubectl_kpolicy.tui.modals.picker import Choice
from kubectl_kpolicy.tui.modals.texts import TextWindow
from kubectl_kpolicy.tui.state import Heading
from kubectl_kpolicy.tui.views import ExplainView
from kubectl_kpolicy.tui.widgets.detail import text_of
from kubectl_kpolicy.tui.widgets.frame import key_name
from kubectl_kpolicy.tui.widgets.gauges import PulseView

from . import perform_named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.model import Object
    from kubectl_kpolicy.output.rows import Row
    from kubectl_kpolicy.tui.stage import Stage

_DANGERS = {Danger.LOOKS: "", Danger.ASKS: "opens a form", Danger.CHANGES: "changes", Danger.DESTROYS: "destroys"}  # fmt: skip


def open_row(app: Stage) -> None:
    """Show everything about the row; on Pulse, go to the rows behind the number."""
    if app.current == "pulse":
        door = app.query_one(PulseView).door
        if door is not None:
            app.go(door.screen, door.where)
        return
    line = app.table.line if app.table is not None else None
    if isinstance(line, Heading) and app.view is not None:
        app.view.state.fold(line.value)
        app.draw()
    elif app.row is not None:
        describe(app)


def describe(app: Stage) -> None:
    """Show all values of the row."""
    if app.row is not None and app.view is not None:
        found = sections(app.row, app.view.state.listing, app.here.source.world, app.source.now())
        app.push_screen(TextWindow(title_of(app), text_of(found)))


def _harmless(text: str) -> str:
    return "\n".join(plain(line) for line in text.splitlines())


def show_hint(app: Stage) -> None:
    """Show what the policy's author says about mending it."""
    if app.row is not None:
        said = _harmless(hint(app.row, app.here.source.world))
        app.push_screen(TextWindow("How to mend it", said))


async def explain(app: Stage) -> None:
    """Why this object fails."""
    row = app.row
    if row is None:
        return
    if not row.text("resource"):
        app.go("violations", f"policy={row.text('policy') or row.text('name')}")
        return
    app.explained = row
    await explain_object(app, row.text("namespace"), row.text("resource"))


async def explain_object(app: Stage, namespace: str, resource: str) -> None:
    """Open the Explain screen for an object, as the engine decides about it now or as reports tell.

    Without a namespace that of the screen, or else the only one that has such an object.
    """
    world, now = app.here.source.world, app.source.now()
    place = namespace or app.settings.namespace
    try:
        obj = await fetched(app, place, resource)
        if obj is None:
            place, resource, found = _told(app, place, resource)
        else:
            place, resource = word(obj, "metadata", "namespace"), f"{word(obj, 'kind')}/{word(obj, 'metadata', 'name')}"  # fmt: skip
            found = await _asked(app, obj)
    except EngineError as error:
        found = [Reason(plain(sentence(error)), "error")]
    app.go("explain")
    title = f"{place}/{resource}" if place else resource
    app.query_one(ExplainView).show(title, found, unknown=known(world, POLICIES).said(now))


def _told(app: Stage, namespace: str, resource: str) -> tuple[str, str, list[Reason]]:
    """Return what reports tell of an object, with its place as they have it; raises EngineError where they tell nothing."""
    world, now = app.here.source.world, app.source.now()
    place = place_in_rows(violations.all_rows(world), namespace, resource)
    if place is None:
        said = known(world, violations.LISTING).said(now)
        raise EngineError(f"no policy report is about `{resource}`" + (f" in namespace {namespace}" if namespace else ""), help=said)  # fmt: skip
    return *place, explaining.explained_by_reports(world, *place, now)


async def _asked(app: Stage, obj: dict[str, object]) -> list[Reason]:
    """Ask the engine about an object of the cluster, and the cluster for what rules have to know; raises EngineError."""
    from controllers.kube import Discovery
    from controllers.lookups.assembling import for_person

    client = app.here.client
    assert client is not None
    discovery = Discovery(client)
    await discovery.refresh()
    lookups = for_person(client=client, discovery=discovery)
    try:
        source = app.here.source
        return await explaining.explained_by_engine(source.world, obj, source.now(), lookups.resolve)  # fmt: skip
    finally:
        await lookups.close()


def show_help(app: Stage) -> None:
    """Keys and words of this screen."""
    found = []
    for action in app.registry.on(app.current):
        keys = " ".join(key_name(key) for key in app.registry.keys(action))
        danger = _DANGERS[action.danger]
        text = action.help + (f" ({danger})" if danger else "")
        found.append(HelpEntry(keys, action.title, text, f"on {app.current}" if action.screens else "everywhere"))  # fmt: skip
    found += [
        HelpEntry(f":{word}", text, "", "command line") for word, text in COMMAND_WORDS.items()
    ]
    found += [HelpEntry(f":{name}", plain(line), "", "command line") for name, line in app.settings.aliases.items()]  # fmt: skip
    app.push_screen(HelpWindow(f"Help: {app.current}", found))


def menu(app: Stage) -> None:
    """Everything that can be done with the row, with keys."""
    choices = []
    for action in app.registry.on(app.current):
        if not action.screens and not action.needs_row:
            continue
        keys = app.registry.keys(action)
        choices.append(Choice(action.id, action.title, key_name(keys[0]) if keys else "", app.refusal(action)))  # fmt: skip

    app.pick(f"Actions: {title_of(app)}", choices, lambda name: perform_named(app, name))


def show_log(app: Stage) -> None:
    """Show the command lines behind what was done here."""
    lines = "\n".join(app.command_log) or "nothing was done yet; what you do shows here as commands"
    app.push_screen(TextWindow("Command log", lines))


def copy(app: Stage) -> None:
    """Copy name, message, YAML or command, over SSH as well."""
    row = app.row
    if row is None:
        return
    values = {
        "name": row.text("resource") or row.text("name") or row.key,
        "message": row.text("message") or row.text("detail") or row.text("reason"),
        "yaml": yaml_text(shown_object(row.object)),
        "command": app.command_log[-1] if app.command_log else "",
    }
    choices = [Choice(name, f"{name}: {plain(value[:60])}") for name, value in values.items() if value]  # fmt: skip

    def chosen(name: str) -> None:
        app.copy_to_clipboard(values[name])
        app.say(f"copied {name}")

    app.pick("Copy", choices, chosen)


def export(app: Stage) -> None:
    """Write the rows that are shown to a file."""
    view = app.view
    if view is None:
        return
    rows = [one for one in view.table.lines if not isinstance(one, Heading)]

    def chosen(form: str) -> None:
        from kubectl_kpolicy.output.listings import write_rows

        stamp = absolute(app.source.now()).replace(":", "")
        path = Path(f"kpolicy-{app.current}-{stamp}.{form}")
        try:
            with path.open("w") as out:
                write_rows(out, rows, view.state.listing, form, app.source.now())
        except OSError as error:
            app.say(f"cannot write {path}: {reason_of(error)}", "red")
            return
        app.say(f"wrote {len(rows)} rows to {path}")

    choices = [Choice("jsonl", "JSON lines"), Choice("csv", "CSV"), Choice("md", "Markdown")]
    app.pick("Export what is shown", choices, chosen)


def policy_results(app: Stage) -> None:
    """Results of this policy, passing ones included."""
    if app.row is not None:
        app.go("violations", f"policy={app.row.text('policy')}")
        if app.view is not None:
            app.view.state.failures = False


def policy_exceptions(app: Stage) -> None:
    """Exceptions that name this policy."""
    if app.row is not None:
        app.go("exceptions", f"rules={app.row.text('policy')}/*")


def policy_test(app: Stage) -> None:
    """Show the command that tests a file against this policy."""
    if app.row is not None:
        name = app.row.text("name")
        text = f"kubectl get clusterpolicy {name} -o yaml > policy.yaml\nkubectl kpolicy apply policy.yaml -r FILE --detailed-results\n"
        app.push_screen(TextWindow("Test a file against this policy", text))


def follow(app: Stage) -> None:
    """Only records about this object."""
    if app.row is not None:
        app.go("audit", f'object="{app.row.text("object")}"')


def tail(app: Stage) -> None:
    """Follow new records as they come."""
    if app.view is not None:
        app.view.state.order = ("-seq",)
        app.draw()
        app.view.table.move_to(0)
        app.say("newest first; new records appear at the top")


def verify_audit(app: Stage) -> None:
    """Check the chain of audit records and say what was found."""
    from engine.audit import segment_of, verify

    try:
        segments = [segment_of(obj) for obj in app.here.source.world.objects("auditsegments")]
    except EngineError as error:
        app.say(error.message, "yellow")
        return
    findings = verify(segments)
    lines = [f"{one.kind} at record {one.seq} in {one.segment}: {one.message}" for one in findings]
    lines.append(extent(segments, len(findings)))
    lines.append("without a checkpoint kept elsewhere a cut tail cannot be seen: kubectl kpolicy audit verify --checkpoint SEQ:HASH")  # fmt: skip
    app.push_screen(TextWindow("Chain of records", _harmless("\n".join(lines))))


# The object behind a row as it is in the cluster: as YAML with what policies object to, below its owners and policies.

_NOT_RECORDED = "a recording does not hold the object; this is the record of it"


def title_of(app: Stage) -> str:
    """Return what the row is about, for the border of a window."""
    row = app.row
    name = (row.text("resource") or row.text("name") or row.key) if row is not None else app.current
    return plain(name).replace("[", r"\[")


async def show_yaml(app: Stage) -> None:
    """Show the object as YAML; that of a violation or a denied request as it is in the cluster."""
    row = app.row
    if row is None:
        return
    title = title_of(app)
    if app.current not in ("violations", "blocks") or not row.text("resource"):
        app.push_screen(TextWindow(title, _yaml(row.object, ())))
        return
    obj, owners, said = await _real(app, row)
    world = app.here.source.world
    place = (row.text("namespace"), row.text("resource"))
    results = violations.rows_by_object(world).get(place, ())
    head = Text()
    for line in (*([said] if said else []), *trees(owners, results)):
        head.append(f"# {line}\n", "dim")
    shown = None if obj is None else shown_object(obj)
    body = _yaml(row.object, ()) if shown is None else _yaml(shown, objections(shown, world))
    app.push_screen(TextWindow(title, head.append_text(body)))


def _yaml(obj: Object, found: Sequence[Objection]) -> Text:
    """Return an object as text, what is objected to at the end of its line."""
    text = Text()
    for line, mark in marked(shown_object(obj), found):
        text.append(line)
        if mark:
            text.append(f"  # {mark}", "bold red")
        text.append("\n")
    return text


async def _real(app: Stage, row: Row) -> tuple[Object | None, list[str], str]:
    """Return the object of a row, its owners, and why it is not there."""
    from kubectl_kpolicy.cluster.owners import chain

    client = app.here.client
    if client is None:
        return None, [], _NOT_RECORDED
    try:
        obj = await object_named(client, row.text("namespace"), row.text("resource"))
    except EngineError as error:
        return None, [], plain(error.message)
    return obj, await chain(client, obj), ""


async def fetched(app: Stage, namespace: str, resource: str) -> Object | None:
    """Return the object from the cluster; None in a recording, or where it is gone or may not be read but reports tell of it.

    Raises EngineError.
    """
    if app.here.client is None:
        return None
    try:
        return await object_named(app.here.client, namespace, resource)
    except EngineError as error:
        if place_in_rows(violations.all_rows(app.here.source.world), namespace, resource) is None:
            raise
        app.say(error.message, "yellow")
        return None
