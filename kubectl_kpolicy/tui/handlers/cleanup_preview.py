"""Showing what the next run of a clean-up would do, planned with the code of `kubectl kpolicy cleanup preview`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError
from kubectl_kpolicy.output.cells import plain
from kubectl_kpolicy.tui.modals.texts import TextWindow
from kubectl_kpolicy.tui.widgets.detail import text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from controllers.kube import Client
    from kubectl_kpolicy.output.rows import Row
    from kubectl_kpolicy.tui.app import Console


def preview(app: Console) -> None:
    """Plan the row's run beside the work of the console: many objects may have to be read."""
    from kubectl_kpolicy.cluster.sources import LiveSource

    if app.row is None:
        return
    if not isinstance(app.here.source, LiveSource):
        app.say("a recording does not hold the objects that would go", "yellow")
        return
    app.say("planning …")
    app.run_worker(_show(app, app.here.source.client, app.row), group="preview", exclusive=True)


async def _show(app: Console, client: Client, row: Row) -> None:
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


HANDLERS: dict[str, Callable[[Console], None]] = {"cleanup-preview": preview}
