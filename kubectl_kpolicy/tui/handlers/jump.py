"""Going to a part of the screen: by letters laid over it, or by a click on what the header names."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Static

from engine.record import record
from kubectl_kpolicy.actions.screens import SCREENS
from kubectl_kpolicy.tui.widgets.frame import Header

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from textual import events
    from textual.app import ComposeResult

    from kubectl_kpolicy.tui.stage import Stage

_DOORS = ("context", "namespaces", "read-only", "grants", "inbox")


async def open_door(app: Stage, door: str) -> None:
    """Go to a screen, do an action, or put the focus on the table."""
    action = app.registry.get(door)
    if door in SCREENS:
        app.go(door)
    elif action is not None:
        await app.perform(action)
    elif app.table is not None:
        app.screen.set_focus(app.table)


def jump(app: Stage) -> None:
    """Go to a part of the screen by a letter."""

    async def chosen(door: str | None) -> None:
        if door is not None:
            await open_door(app, door)

    app.push_screen(
        Jump(list(_marks(app)), [(one.letter, one.name) for one in SCREENS.values()]), chosen
    )


def _marks(app: Stage) -> Iterator[Mark]:
    header = app.query_one(Header)
    for number, door in enumerate(_DOORS, 1):
        place = header.place_of(door)
        if place is not None and header.display:
            yield Mark(str(number), place, header.region.y, door)
    if app.table is not None:
        region = app.table.region
        yield Mark("t", region.x, region.y, "table")
        yield Mark("/", region.x, max(region.y - 1, 0), "filter")
        yield Mark("=", region.x + 2, max(region.y - 1, 0), "filter-build")


# Letters over the parts of the screen: one press goes there. What lies below stays to be seen.


@record
class Mark:
    """A letter, where it stands, and the door that it opens."""

    letter: str
    x: int
    y: int
    door: str


class Jump(ModalScreen[str | None]):
    """Returns the door whose letter was pressed, None for any other key."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "Close", show=False)]

    def __init__(self, marks: Sequence[Mark], screens: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._marks = marks
        self._screens = screens
        self.places = {one.letter: one.door for one in marks} | dict(screens)

    def compose(self) -> ComposeResult:
        """Put the letters where they belong, and those of the screens below."""
        for mark in self._marks:
            label = Static(mark.letter, classes="jump", markup=False)
            label.styles.offset = (mark.x, mark.y)
            yield label
        text = Text()
        for letter, screen in self._screens:
            text.append(f" {letter} ", "bold reverse")
            text.append(f" {screen}  ")
        yield Static(text, id="jump-screens")

    def on_key(self, event: events.Key) -> None:
        """Go where the letter says; any other key closes."""
        event.stop()
        self.dismiss(self.places.get(event.character or ""))
