"""A list to choose from: actions of a row, themes, columns, namespaces, views; typing narrows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeVar

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

    from kubectl_kpolicy.output.rows import Column

T = TypeVar("T")


@record
class Choice:
    """One entry: what is returned, its words, what stands to the right, and why it cannot be chosen (empty: it can)."""

    id: str
    title: str
    right: str = ""
    refused: str = ""


class _Listed(ModalScreen[T]):
    """A window with one list in it."""

    def on_mount(self) -> None:
        """Put the cursor on the first entry."""
        self.query_one(OptionList).highlighted = 0

    def action_move(self, by: int) -> None:
        """Move the cursor of the list, also while a text has the focus."""
        options = self.query_one(OptionList)
        if by > 0:
            options.action_cursor_down()
        else:
            options.action_cursor_up()


class Picker(_Listed["str | None"]):
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


def _line(choice: Choice) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{choice.right:>9}  ", "bold")
    text.append(plain(choice.title))
    if choice.refused:
        text.append(f"  ({choice.refused})", "italic")
    return text


# The window in which columns of a list are switched on and off.


class Columns(_Listed["tuple[str, ...] | None"]):
    """Returns the ids of the columns that shall be shown, in the screen's order; none at all mean its own choice."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Close", show=False),
        Binding("space", "turn", "On or off", show=False, priority=True),
        Binding("enter", "done", "Done", show=False, priority=True),
        Binding("r", "dismiss(())", "Reset", show=False),
        Binding("j", "move(1)", "Down", show=False),
        Binding("k", "move(-1)", "Up", show=False),
    ]

    def __init__(self, columns: Sequence[Column], shown: Sequence[str]) -> None:
        super().__init__()
        self._columns = columns
        self._shown = set(shown)

    def compose(self) -> ComposeResult:
        """Make the window."""
        with Vertical(classes="window picker") as window:
            window.border_title = "Columns"
            window.border_subtitle = "space on/off · r the usual ones · enter done"
            yield OptionList(*(Option(self._line(one), one.id) for one in self._columns))

    def _line(self, column: Column) -> Text:
        """Return a line that tells by a sign, not by colour, whether the column is shown."""
        return Text(f"[{'x' if column.id in self._shown else ' '}] {column.head}")

    def action_turn(self) -> None:
        """Show the column under the cursor, or show it no more."""
        found = self.query_one(OptionList)
        if found.highlighted is not None:
            column = self._columns[found.highlighted]
            self._shown ^= {column.id}
            found.replace_option_prompt_at_index(found.highlighted, self._line(column))

    def on_option_list_option_selected(self) -> None:
        """Switch the column that was clicked."""
        self.action_turn()

    def action_done(self) -> None:
        """Return what is switched on."""
        self.dismiss(tuple(one.id for one in self._columns if one.id in self._shown))
