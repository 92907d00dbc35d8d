"""A list to choose from: actions of a row, themes, columns, namespaces, views; typing narrows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from engine.record import record
from kubectl_kpolicy.output.cells import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult


@record
class Choice:
    """One entry: what is returned, its words, what stands to the right, and why it cannot be chosen (empty: it can)."""

    id: str
    title: str
    right: str = ""
    refused: str = ""


class Picker(ModalScreen[str | None]):
    """Returns the id of what was chosen, None when the window was closed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Close", show=False),
        Binding("down,ctrl+n", "move(1)", "Down", show=False, priority=True),
        Binding("up", "move(-1)", "Up", show=False, priority=True),
    ]

    def __init__(self, title: str, choices: Sequence[Choice]) -> None:
        super().__init__()
        self._title = title
        self._choices = choices

    def compose(self) -> ComposeResult:
        """Make the window."""
        with Vertical(classes="window picker") as window:
            window.border_title = self._title
            window.border_subtitle = "type to narrow · enter choose · esc close"
            yield Input(placeholder="type to narrow", compact=True)
            yield OptionList(*self._options(""), markup=False)

    def on_mount(self) -> None:
        """Put the cursor on the first entry."""
        self.query_one(OptionList).highlighted = 0

    def _options(self, typed: str) -> list[Option]:
        words = typed.lower().split()
        return [
            Option(_line(one), id=one.id, disabled=bool(one.refused))
            for one in self._choices
            if all(word in f"{one.title} {one.id}".lower() for word in words)
        ]

    def on_input_changed(self, event: Input.Changed) -> None:
        """Narrow the list."""
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(self._options(event.value))
        options.highlighted = 0 if options.option_count else None

    def on_input_submitted(self) -> None:
        """Choose what is under the cursor."""
        self.query_one(OptionList).action_select()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Return what was chosen."""
        self.dismiss(event.option.id)

    def action_move(self, by: int) -> None:
        """Move the cursor of the list while the text has the focus."""
        options = self.query_one(OptionList)
        if by > 0:
            options.action_cursor_down()
        else:
            options.action_cursor_up()


def _line(choice: Choice) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{choice.right:>9}  ", "bold")
    text.append(plain(choice.title))
    if choice.refused:
        text.append(f"  ({choice.refused})", "italic")
    return text
