"""The window with the keys of a screen in two columns; what is typed keeps those that have all of its words."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.table import Table
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from engine.record import record
from kubectl_kpolicy.output.cells import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.app import ComposeResult

_SPACIOUS = 100
"""Columns of the screen from which on whole sentences stand in both columns; below, sentences come with a search."""


@record
class HelpEntry:
    """One line of help: keys or words to type, what they are called, a sentence, and the heading that it belongs to."""

    keys: str
    title: str
    text: str
    heading: str

    def has(self, words: Sequence[str]) -> bool:
        """Tell whether all words are in it."""
        everything = f"{self.keys} {self.title} {self.text} {self.heading}".lower()
        return all(word in everything for word in words)


class HelpWindow(ModalScreen[None]):
    """Shows entries until it is closed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter", "dismiss", "Close", show=False, priority=True),
        Binding("down", "scroll(1)", "Down", show=False, priority=True),
        Binding("up", "scroll(-1)", "Up", show=False, priority=True),
        Binding("pagedown", "scroll(15)", "Page down", show=False, priority=True),
        Binding("pageup", "scroll(-15)", "Page up", show=False, priority=True),
    ]

    def __init__(self, title: str, entries: Sequence[HelpEntry]) -> None:
        super().__init__()
        self._title = title
        self._entries = entries

    def compose(self) -> ComposeResult:
        """Make the window."""
        with Vertical(classes="window help") as window:
            window.border_title = self._title
            window.border_subtitle = "type to search · ↑↓ scroll · esc close"
            yield Input(placeholder="type to search", compact=True, id="help-search")
            with VerticalScroll(can_focus=False):
                yield Static(id="help-text")

    def on_mount(self) -> None:
        """Show everything."""
        self._show("")

    def on_resize(self, _event: events.Resize) -> None:
        """Lay the columns out anew."""
        self._show(self.query_one(Input).value)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Keep what fits what was typed."""
        self._show(event.value)

    def _show(self, typed: str) -> None:
        words = typed.lower().split()
        kept = [one for one in self._entries if one.has(words)]
        spacious = self.app.size.width >= _SPACIOUS
        if not kept:
            body: Table | Text = Text(f"nothing here has `{plain(typed)}`")
        elif words and not spacious:
            body = _column(kept, "", told=True)
        else:
            body = columns(kept, told=spacious)
        self.query_one("#help-text", Static).update(body)
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def action_scroll(self, lines: int) -> None:
        """Scroll by lines."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)


def columns(entries: Sequence[HelpEntry], *, told: bool) -> Table:
    """Return entries in two columns of like length, with their sentences where they are `told`."""
    half = _half(entries, told=told)
    table = Table.grid(expand=True, padding=(0, 1))
    table.add_column(ratio=1)
    table.add_column(ratio=1)
    table.add_row(
        _column(entries[:half], "", told=told),
        _column(entries[half:], _heading(entries[:half]), told=told),
    )
    return table


def _half(entries: Sequence[HelpEntry], *, told: bool) -> int:
    """Return how many entries make half of the lines, about, a sentence being counted by its length."""
    sizes = [1 + (len(one.title + one.text) // 40 if told else 0) for one in entries]
    taken = 0
    for index, size in enumerate(sizes):
        if taken >= sum(sizes) / 2:
            return index
        taken += size
    return len(entries)


def _heading(entries: Sequence[HelpEntry]) -> str:
    return entries[-1].heading if entries else ""


def _column(entries: Sequence[HelpEntry], heading: str, *, told: bool) -> Table:
    """Return a column of entries below their headings; that of the column before is not said again."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(justify="right", width=11 if told else 9)
    table.add_column()
    for one in entries:
        if one.heading != heading:
            heading = one.heading
            table.add_row("", Text(heading, "bold underline"))
        text = Text(one.title, "bold" if told and one.text else "")
        if told and one.text:
            text.append(f"  {one.text}", "not bold")
        table.add_row(Text(one.keys, "bold"), text)
    return table
