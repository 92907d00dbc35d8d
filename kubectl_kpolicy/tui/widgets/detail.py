"""Details of a row as a text that can be scrolled, beside the list on wide screens and in a window on narrow ones."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text
from textual.containers import VerticalScroll

from kubectl_kpolicy.output.cells import plain

from .frame import SteadyText

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.app import ComposeResult

    from kubectl_kpolicy.cluster.details import Section


_NARROWEST, _WIDEST = 15, 75
USUAL: Final = 35
"""Percent of the width that details take where nobody says otherwise."""
LEAST: Final = 34
"""Cells that they keep beside a list that would be cut."""


class Detail(VerticalScroll, can_focus=False):
    """The pane to the right of a list; `share` is its part of the width in percent, which its left edge changes when it is dragged.

    Until somebody says how wide it is to be, it gives way to a list that then stands whole.
    """

    def __init__(self, share: int = USUAL) -> None:
        super().__init__(id="detail")
        self._is_dragged = False
        self.take(share)
        self._gives_way = share == USUAL

    share: int

    def take(self, share: int) -> None:
        """Take another part of the width, within what leaves both panes readable."""
        self._gives_way = False
        self.share = max(_NARROWEST, min(share, _WIDEST))
        self.styles.width = f"{self.share}%"

    def give_way(self, spare: int) -> None:
        """Take the cells that the list beside leaves when it stands whole, where those are fewer than usual and enough to read by."""
        if self._gives_way:
            usual = self.app.size.width * USUAL // 100
            self.styles.width = spare if LEAST <= spare < usual else f"{USUAL}%"

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin to drag at the left edge."""
        if event.x == 0:
            self._is_dragged = True
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Follow the mouse with the left edge."""
        if self._is_dragged:
            width = self.app.size.width
            self.take(round(100 * (width - event.screen_x) / width))

    def on_mouse_up(self) -> None:
        """End dragging."""
        self._is_dragged = False
        self.release_mouse()

    def compose(self) -> ComposeResult:
        """Make the one text in it."""
        yield _Told(id="detail-text")

    def show(self, sections: Sequence[Section]) -> None:
        """Draw sections."""
        if self.query_one(_Told).show(sections):
            self.scroll_home(animate=False)


class _Told(SteadyText):
    """Sections in the width that there is."""

    _sections: Sequence[Section] = ()

    def show(self, sections: Sequence[Section]) -> bool:
        """Draw sections, and return whether they are others than before."""
        is_new = sections != self._sections
        self._sections = sections
        self.on_resize()
        return is_new

    def on_resize(self) -> None:
        self.update(text_of(self._sections, self.size.width))


def text_of(sections: Sequence[Section], room: int = 0) -> Text:
    """Return sections as text: labels dim, titles bold, every value harmless, what is longer than `room` goes on below itself."""
    text = Text(overflow="fold")
    width = max((len(label) for one in sections for label, _ in one.pairs), default=0)
    for section in sections:
        if section.title:
            text.append(f"\n{section.title}\n", "bold")
        for label, value in section.pairs:
            text.append(f"{label:>{width}}  ", "dim")
            text.append(f"{_hanging(plain(value), width + 2, room)}\n")
        for line in section.lines:
            text.append(f"{plain(line)}\n")
    return text


@cache
def _wrapping(room: int) -> Console:
    """Return what Rich asks how to break lines; it reads the environment when it is made."""
    return Console(width=room)


def _hanging(value: str, indent: int, room: int) -> str:
    """Return a value whose further lines begin below the first; one with a longer word is left to be broken at the edge."""
    width = room - indent
    if cell_len(value) <= width or max(map(cell_len, value.split()), default=0) > width:
        return value
    lines = Text(value).wrap(_wrapping(room), width)
    return f"\n{' ' * indent}".join(line.plain.rstrip() for line in lines)
