"""Moving about: the cursor, marks, screens, namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubectl_kpolicy.actions.screens import LISTINGS, SCREENS
from kubectl_kpolicy.output.cells import plain
from kubectl_kpolicy.tui.modals.picker import Choice
from kubectl_kpolicy.tui.widgets.gauges import PulseView
from kubectl_kpolicy.tui.widgets.notices import NoticeLine

if TYPE_CHECKING:
    from kubectl_kpolicy.tui.stage import Stage


def move(by: int, app: Stage) -> None:
    """Move the cursor by so many rows."""
    if app.table is not None:
        app.table.move_to(app.table.index + by)
    elif app.current == "pulse":
        app.query_one(PulseView).step(by)
    elif app.current == "explain":
        tree = app.query_one("#explain Tree")
        getattr(tree, "action_cursor_down" if by > 0 else "action_cursor_up")()


def page(direction: int, app: Stage) -> None:
    """Move the cursor by a screen."""
    if app.table is not None:
        app.table.move_to(app.table.index + direction * app.table.page())


def sideways(by: int, app: Stage) -> None:
    """Show columns further left or right."""
    if app.table is not None:
        app.table.scroll_relative(x=by * 8, animate=False)
    elif app.current == "pulse":
        app.query_one(PulseView).move(by)


def mark(app: Stage) -> None:
    """Mark the row for what is done to several at once."""
    if app.table is not None:
        app.table.mark()


def mark_range(app: Stage) -> None:
    """Mark all rows from the last mark to this one."""
    if app.table is not None:
        app.table.mark_range()


def clear_marks(app: Stage) -> None:
    """Take away all marks."""
    if app.table is not None:
        app.table.state.marks.clear()
        app.table.refresh()


def beside(by: int, app: Stage) -> None:
    """Go to the screen beside this one."""
    names = list(SCREENS)
    app.go(names[(names.index(app.current) + by) % len(names)])


def step(by: int, app: Stage) -> None:
    """Go back or forth in the history of screens."""
    place = app.history.step(by)
    if place is not None:
        app.go(place.screen, place.where or None, remember=False)


def last(app: Stage) -> None:
    """Go to the screen before this one."""
    place = app.history.before()
    if place is not None:
        app.go(place.screen)


def open_view(app: Stage, name: str) -> None:
    """Open a saved view: a screen with its filter; raises FilterError for one that does not fit."""
    screen, _, where = app.settings.views.get(name, "").partition(":")
    if screen.strip() not in LISTINGS:
        known = ", ".join(app.settings.views) or "none"
        app.say(f"there is no view `{name}`; there are: {known}", "yellow")
        return
    app.go(screen.strip(), where.strip())
    chosen = app.settings.columns.get(f"view {name}")
    if app.view is not None and chosen:
        app.view.state.columns = chosen


def set_namespace(app: Stage, namespace: str) -> None:
    """Show one namespace, or all of them, on every screen."""
    for view in app.views.values():
        view.state.namespace = namespace
    app.say(f"namespace {namespace}" if namespace else "all namespaces")
    app.draw()


def favourite(digit: int, app: Stage) -> None:
    """Show a favourite namespace of the configuration; all of them for 0."""
    if digit == 0:
        set_namespace(app, "")
    elif digit <= len(app.settings.favourites):
        set_namespace(app, app.settings.favourites[digit - 1])
    else:
        app.say(f"there is no favourite {digit}; list some under `favourites` in the configuration", "yellow")  # fmt: skip


def go_to_notice(app: Stage) -> None:
    """Go where the notice leads; with several, choose one."""
    line = app.query_one(NoticeLine)
    line.dismiss()
    if not line.told:
        app.say("no notice yet: decisions, ends and new critical failures show here")
        return

    def chosen(number: str) -> None:
        notice = line.told[int(number)][1]
        app.go(notice.screen, notice.where)

    if len(line.told) == 1:
        chosen("0")
        return
    newest = reversed(list(enumerate(line.told)))
    choices = [Choice(str(number), plain(one.text), f"{at:%H:%M}") for number, (at, one) in newest]
    app.pick("Notices", choices, chosen)
