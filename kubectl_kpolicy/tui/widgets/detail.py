"""Details of a row as a text that can be scrolled, beside the list on wide screens and in a window on narrow ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.containers import VerticalScroll
from textual.widgets import Static

from kubectl_kpolicy.output.cells import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from kubectl_kpolicy.cluster.details import Section


class Detail(VerticalScroll, can_focus=False):
    """The pane to the right of a list."""

    def compose(self) -> ComposeResult:
        """Make the one text in it."""
        yield Static(id="detail-text")

    def show(self, sections: Sequence[Section]) -> None:
        """Draw sections."""
        self.query_one("#detail-text", Static).update(text_of(sections))
        self.scroll_home(animate=False)


def text_of(sections: Sequence[Section]) -> Text:
    """Return sections as text: labels dim, titles bold, every value harmless."""
    text = Text(overflow="fold")
    width = max((len(label) for one in sections for label, _ in one.pairs), default=0)
    for section in sections:
        if section.title:
            text.append(f"\n{section.title}\n", "bold")
        for label, value in section.pairs:
            text.append(f"{label:>{width}}  ", "dim")
            text.append(f"{plain(value)}\n")
        for line in section.lines:
            text.append(f"{plain(line)}\n")
    return text
