"""The window in which columns of a list are switched on and off."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from kubectl_kpolicy.output.rows import Column


class Columns(ModalScreen[tuple[str, ...] | None]):
    """Returns the ids of the columns that shall be shown, in the screen's order; none at all mean its own choice."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Close", show=False),
        Binding("space", "turn", "On or off", show=False, priority=True),
        Binding("enter", "done", "Done", show=False, priority=True),
        Binding("r", "own", "Reset", show=False),
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

    def on_mount(self) -> None:
        """Put the cursor on the first column."""
        self.query_one(OptionList).highlighted = 0

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

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        found = self.query_one(OptionList)
        if by > 0:
            found.action_cursor_down()
        else:
            found.action_cursor_up()

    def action_own(self) -> None:
        """Go back to what the screen shows by itself."""
        self.dismiss(())

    def action_done(self) -> None:
        """Return what is switched on."""
        self.dismiss(tuple(one.id for one in self._columns if one.id in self._shown))
