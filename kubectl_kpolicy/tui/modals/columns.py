"""The window in which columns of a list are switched on and off."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import SelectionList
from textual.widgets.selection_list import Selection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from kubectl_kpolicy.cluster.rows import Column


class Columns(ModalScreen[tuple[str, ...] | None]):
    """Returns the ids of the columns that shall be shown, in the screen's order; none at all mean its own choice."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Close", show=False),
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
            choices = [Selection(one.head, one.id, one.id in self._shown) for one in self._columns]
            yield SelectionList[str](*choices, compact=True)

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        found = self.query_one(SelectionList)
        if by > 0:
            found.action_cursor_down()
        else:
            found.action_cursor_up()

    def action_own(self) -> None:
        """Go back to what the screen shows by itself."""
        self.dismiss(())

    def action_done(self) -> None:
        """Return what is switched on."""
        chosen = set(self.query_one(SelectionList).selected)
        self.dismiss(tuple(one.id for one in self._columns if one.id in chosen))
