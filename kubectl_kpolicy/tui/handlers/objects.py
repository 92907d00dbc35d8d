"""The object behind a row as it is in the cluster: as YAML with what policies object to, below its owners and policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from engine.errors import EngineError
from kubectl_kpolicy.cluster import violations
from kubectl_kpolicy.cluster.marking import Objection, marked, objections, shown_object, trees
from kubectl_kpolicy.cluster.subject import object_named, place_in_rows
from kubectl_kpolicy.output.cells import plain
from kubectl_kpolicy.tui.modals.texts import TextWindow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.model import Object
    from kubectl_kpolicy.output.rows import Row
    from kubectl_kpolicy.tui.app import Console

_NOT_RECORDED = "a recording does not hold the object; this is the record of it"


def title_of(app: Console) -> str:
    """Return what the row is about, for the border of a window."""
    row = app.row
    name = (row.text("resource") or row.text("name") or row.key) if row is not None else app.current
    return plain(name).replace("[", r"\[")


async def show_yaml(app: Console) -> None:
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


async def _real(app: Console, row: Row) -> tuple[Object | None, list[str], str]:
    """Return the object of a row, its owners, and why it is not there."""
    from kubectl_kpolicy.cluster.owners import chain
    from kubectl_kpolicy.cluster.sources import LiveSource

    if not isinstance(app.here.source, LiveSource):
        return None, [], _NOT_RECORDED
    try:
        obj = await object_named(
            app.here.source.client, row.text("namespace"), row.text("resource")
        )
    except EngineError as error:
        return None, [], plain(error.message)
    return obj, await chain(app.here.source.client, obj), ""


async def fetched(app: Console, namespace: str, resource: str) -> Object | None:
    """Return the object from the cluster; None in a recording, or where it is gone or may not be read but reports tell of it.

    Raises EngineError.
    """
    from kubectl_kpolicy.cluster.sources import LiveSource

    if not isinstance(app.here.source, LiveSource):
        return None
    try:
        return await object_named(app.here.source.client, namespace, resource)
    except EngineError as error:
        if place_in_rows(violations.all_rows(app.here.source.world), namespace, resource) is None:
            raise
        app.say(error.message, "yellow")
        return None
