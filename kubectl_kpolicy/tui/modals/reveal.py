"""Shows a code once: masked, for five seconds at a key, never in a picture or a recording of the screen.

The code is drawn by a widget that draws dots whenever the console makes a picture of itself; it is not kept after closing.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Static

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from textual.app import ComposeResult

SHOWN_FOR = 5
CLIPBOARD_FOR = 30


class Secret(Widget):
    """A line that shows its text only while it is told to, and never in a picture."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text
        self.is_open = False
        self.is_pictured = False

    def __repr__(self) -> str:
        return "<Secret>"

    def render(self) -> str:
        """Return the text, or as many dots."""
        if self.is_open and not self.is_pictured:
            return self._text
        return "".join("-" if char == "-" else "•" for char in self._text)

    def taken(self) -> str:
        """Return the text, for the clipboard."""
        return self._text

    def forget(self) -> None:
        """Keep nothing."""
        self._text = ""


@contextmanager
def pictured(shown: Screen[Any]) -> Iterator[None]:
    """Let every secret on a screen draw dots while a picture of it is made."""
    secrets = list(shown.query(Secret))
    _picture(secrets, is_pictured=True)
    try:
        yield
    finally:
        _picture(secrets, is_pictured=False)


def _picture(secrets: Iterable[Secret], *, is_pictured: bool) -> None:
    for secret in secrets:
        secret.is_pictured = is_pictured
        secret.refresh(layout=False)


class Reveal(ModalScreen[bool]):
    """Returns whether the code was noted."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "show", "Show", show=False),
        Binding("c", "copy", "Copy", show=False),
        Binding("escape,q", "close", "Close", show=False),
        Binding("y", "noted", "Noted", show=False),
    ]

    def __init__(self, title: str, code: str, about: str) -> None:
        super().__init__()
        self._title = title
        self._secret = Secret(code)
        self._about = about
        self._left = 0
        self._asked = False

    def compose(self) -> ComposeResult:
        """Make the window."""
        with Vertical(classes="window reveal") as window:
            window.border_title = self._title
            window.border_subtitle = "space show · c copy · esc close"
            yield Static(self._about, markup=False)
            yield self._secret
            yield Static("masked; space shows it for 5 s", id="note", markup=False)

    def on_mount(self) -> None:
        """Count down while the code is shown."""
        self.set_interval(1.0, self._second)

    def action_show(self) -> None:
        """Show the code for five seconds."""
        self._left = SHOWN_FOR
        self._secret.is_open = True
        self._secret.refresh()
        self._note(f"hides in {self._left} s")

    def action_copy(self) -> None:
        """Copy the code, and empty the clipboard after half a minute."""
        self.app.copy_to_clipboard(self._secret.taken())
        self.app.set_timer(CLIPBOARD_FOR, lambda: self.app.copy_to_clipboard(" "))
        self._note(f"copied; the clipboard is emptied in {CLIPBOARD_FOR} s")

    def action_close(self) -> None:
        """Ask whether the code was noted; a second time, close."""
        if self._asked:
            self._leave(noted=False)
        self._asked = True
        self._note("code noted? it is not shown again · y yes · esc no")

    def action_noted(self) -> None:
        """Close when it was asked."""
        if self._asked:
            self._leave(noted=True)

    def _leave(self, *, noted: bool) -> None:
        self._secret.forget()
        self.dismiss(noted)

    def _second(self) -> None:
        if self._left > 0:
            self._left -= 1
            self._note(f"hides in {self._left} s")
        if self._left == 0 and self._secret.is_open:
            self._secret.is_open = False
            self._secret.refresh()
            self._note("masked; space shows it for 5 s")

    def _note(self, text: str) -> None:
        self.query_one("#note", Static).update(text)
