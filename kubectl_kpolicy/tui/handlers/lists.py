"""Looking at a list in another way: order, columns, groups, failures, and the windows that choose among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError
from kubectl_kpolicy.output.rows import Shape
from kubectl_kpolicy.tui.modals.picker import Choice
from kubectl_kpolicy.tui.themes import SHORT, theme_name
from kubectl_kpolicy.tui.widgets.detail import Detail

if TYPE_CHECKING:
    from kubectl_kpolicy.tui.stage import Stage

_BY_WORD = {
    "name": ("name", "resource", "id", "target", "object", "check"),
    "age": ("age", "time", "issued", "due", "left"),
    "namespace": ("namespace", "scope"),
    "severity": ("severity", "state", "status", "mode", "result", "risk"),
}
_NEWEST_FIRST = (Shape.AGE, Shape.TIME)


def sort(word: str, app: Stage) -> None:
    """Sort by the column that a word stands for."""
    if app.view is None:
        return
    state = app.view.state
    column = next((found for name in _BY_WORD[word] if (found := state.listing.column(name))), None)
    if column is None:
        app.say(f"nothing to sort by {word} here", "yellow")
        return
    if column.shape in _NEWEST_FIRST and state.order[:1] != (f"-{column.id}",):
        state.order = (f"-{column.id}", *state.order)
    else:
        state.sort_by(column.id)
    app.draw()


def sort_picker(app: Stage) -> None:
    """Choose the column to sort by."""
    if app.view is None:
        return
    state = app.view.state
    choices = [Choice(one.id, one.head, one.shape) for one in state.listing.columns]

    def chosen(name: str) -> None:
        state.sort_by(name)
        app.draw()

    app.pick("Sort by", choices, chosen)


def reverse(app: Stage) -> None:
    """Turn the order round."""
    if app.view is not None:
        app.view.state.reverse()
        app.draw()


def wide(app: Stage) -> None:
    """Show all columns."""
    if app.view is not None:
        app.view.state.wide = not app.view.state.wide
        app.view.table.measure()


def failures(app: Stage) -> None:
    """Show only what fails, or everything."""
    if app.view is not None and app.view.state.listing.failures is not None:
        app.view.state.failures = not app.view.state.failures
        app.draw()


def timeline(app: Stage) -> None:
    """Show the rows as lanes in time, or hide them."""
    if app.view is not None:
        app.say("timeline on" if app.view.toggle_lanes() else "timeline off")


def group(app: Stage) -> None:
    """Group rows by the next column that lends itself to it."""
    if app.view is not None:
        name = app.view.state.next_group()
        app.say(f"grouped by {name}" if name else "not grouped")
        app.draw()


def audit_exceptions(app: Stage) -> None:
    """Only exceptions with something wrong."""
    if app.view is not None:
        app.view.state.where("" if app.view.state.filter.text else 'drift!=""')
        app.draw()


def ignore(app: Stage) -> None:
    """Hide this row on this computer until it changes; nothing is granted."""
    if app.view is not None and app.rows:
        app.view.state.hidden |= {row.key for row in app.rows}
        app.say(f"{len(app.view.state.hidden)} ignored here; `:v` with a filter shows others")
        app.view.state.marks.clear()
        app.draw()


def themes(app: Stage) -> None:
    """Choose colours; two pairs are for colour-blind eyes."""

    def chosen(name: str) -> None:
        app.theme = theme_name(name)

    choices = [Choice(name, name, "now" if theme_name(name) == app.theme else "") for name in SHORT]
    app.pick("Theme", choices, chosen)


def maximize(app: Stage) -> None:
    """Give the whole screen to the table, or back."""
    detail = app.query_one("#detail")
    detail.styles.display = "none" if detail.styles.display != "none" else "block"
    if detail.styles.display == "block":
        detail.styles.clear_rule("display")
    if app.table is not None:
        app.call_after_refresh(app.table.measure)


def resize(by: int, app: Stage) -> None:
    """Give the details a wider or narrower part of the screen."""
    pane = app.query_one(Detail)
    pane.take(pane.share + by)
    app.say(f"details take {pane.share} % of the width")


def toggle_header(app: Stage) -> None:
    """Show or hide the header."""
    header = app.query_one("#header")
    header.display = not header.display


async def refresh(app: Stage) -> None:
    """Read again what is not watched."""
    app.say("reading again …")
    try:
        await app.source.refresh()
    except EngineError as error:
        app.say(error.message, "yellow")
    else:
        app.say("read again")
    app.draw()
