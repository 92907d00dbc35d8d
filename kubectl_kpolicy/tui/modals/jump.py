"""Letters over the parts of the screen: one press goes there. What lies below stays to be seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Static

from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.app import ComposeResult


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
