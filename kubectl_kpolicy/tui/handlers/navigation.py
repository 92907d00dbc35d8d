"""Moving about: the cursor, marks, screens, namespaces."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kubectl_kpolicy.tui.command_line import SCREENS
from kubectl_kpolicy.tui.widgets.gauges import PulseView

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubectl_kpolicy.tui.app import Console

_FAR = 10**9


def _move(by: int, app: Console) -> None:
    if app.table is not None:
        app.table.move_to(app.table.index + by)
    elif app.current == "pulse":
        view = app.query_one(PulseView)
        view.move(by * view.columns if abs(by) == 1 else by)
    elif app.current == "explain":
        tree = app.query_one("#explain Tree")
        getattr(tree, "action_cursor_down" if by > 0 else "action_cursor_up")()


def _page(direction: int, app: Console) -> None:
    if app.table is not None:
        app.table.move_to(app.table.index + direction * app.table.page())


def _sideways(by: int, app: Console) -> None:
    if app.table is not None:
        app.table.scroll_relative(x=by * 8, animate=False)
    elif app.current == "pulse":
        app.query_one(PulseView).move(by)


def _mark(app: Console) -> None:
    if app.table is not None:
        app.table.mark()


def _mark_range(app: Console) -> None:
    if app.table is not None:
        app.table.mark_range()


def _mark_clear(app: Console) -> None:
    if app.table is not None:
        app.table.state.marks.clear()
        app.table.refresh()


def _beside(by: int, app: Console) -> None:
    app.go(SCREENS[(SCREENS.index(app.current) + by) % len(SCREENS)])


def _step(by: int, app: Console) -> None:
    place = app.history.step(by)
    if place is not None:
        app.go(place.screen, place.where or None, remember=False)


def _last(app: Console) -> None:
    place = app.history.before()
    if place is not None:
        app.go(place.screen)


def set_namespace(app: Console, namespace: str) -> None:
    """Show one namespace, or all of them, on every screen."""
    for view in app.views.values():
        view.state.namespace = namespace
    app.say(f"namespace {namespace}" if namespace else "all namespaces")
    app.draw()


def _favourite(digit: int, app: Console) -> None:
    if digit == 0:
        set_namespace(app, "")
    elif digit <= len(app.settings.favourites):
        set_namespace(app, app.settings.favourites[digit - 1])
    else:
        app.say(f"there is no favourite {digit}; list some under `favourites` in the configuration", "yellow")  # fmt: skip


HANDLERS: dict[str, Callable[[Console], None]] = {
    "down": partial(_move, 1),
    "up": partial(_move, -1),
    "top": partial(_move, -_FAR),
    "bottom": partial(_move, _FAR),
    "page-down": partial(_page, 1),
    "page-up": partial(_page, -1),
    "left": partial(_sideways, -1),
    "right": partial(_sideways, 1),
    "mark": _mark,
    "mark-range": _mark_range,
    "mark-clear": _mark_clear,
    "previous-screen": partial(_beside, -1),
    "next-screen": partial(_beside, 1),
    "history-back": partial(_step, -1),
    "history-forward": partial(_step, 1),
    "last": _last,
    **{f"namespace-{digit}": partial(_favourite, digit) for digit in range(10)},
}
