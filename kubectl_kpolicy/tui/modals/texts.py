"""A window with text to read: YAML, details, help, the command log."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

if TYPE_CHECKING:
    from textual.app import ComposeResult


class TextWindow(ModalScreen[None]):
    """Shows a text until it is closed; `c` copies it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "dismiss", "Close", show=False),
        Binding("j,down", "scroll(1)", "Down", show=False),
        Binding("k,up", "scroll(-1)", "Up", show=False),
        Binding("pagedown,space", "scroll(15)", "Page down", show=False),
        Binding("pageup", "scroll(-15)", "Page up", show=False),
        Binding("c", "copy", "Copy", show=False),
    ]

    def __init__(self, title: str, text: Text | str) -> None:
        super().__init__()
        self._title = title
        self._text = Text(text) if isinstance(text, str) else text

    def compose(self) -> ComposeResult:
        """Make the window."""
        with Vertical(classes="window") as window:
            window.border_title = self._title
            window.border_subtitle = "esc close · c copy"
            with VerticalScroll(can_focus=True):
                yield Static(self._text, markup=False)

    def action_scroll(self, lines: int) -> None:
        """Scroll by lines."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def action_copy(self) -> None:
        """Copy the text."""
        self.app.copy_to_clipboard(self._text.plain)
        self.notify("copied")
