"""The table of rows: draws only the lines on the screen, so that fifty thousand of them cost what fifty cost.

Keeps cursor and marks by row key, so that a row stays under the cursor while others come and go. Values are shown harmless:
nothing that an object holds can steer the terminal.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from kubectl_kpolicy.output.cells import cell_role, cell_text, drained, plain, share_left
from kubectl_kpolicy.output.rows import Column, Row, Shape
from kubectl_kpolicy.tui.state import Heading, ListState

from .flashes import SIGN, Flashes
from .widths import GAP, LONGEST, columns_for, shared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from textual import events


_SAMPLE = 200
_ROOMY = 84
"""Cells from which on a countdown has its draining bar beside it."""
_ROLES = ("error", "warning", "success", "accent", "muted", "alarm")


class PolicyTable(ScrollView, can_focus=True):
    """See the module. `state` says what is shown; `put` hands over new lines."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "table--head", "table--cursor", "table--mark", "table--heading", "table--stale",
        *(f"table--{role}" for role in _ROLES),
    }  # fmt: skip

    class Moved(Message):
        """The cursor stands on another row."""

    class Chosen(Message):
        """A row was clicked twice, or clicked while it was under the cursor."""

    def __init__(self, state: ListState, now: datetime, *, marks: str = "glyph") -> None:
        super().__init__(id=f"table-{state.listing.noun}")
        self.state = state
        self.now = now
        self.is_stale = False
        self.lines: Sequence[Row | Heading] = ()
        self.index = 0
        self.flashes = Flashes()
        self._marks = marks
        self._widths: list[tuple[Column, int]] = []
        self._measured_in = 0
        self._natural_widths: dict[tuple[str, bool], int] = {}
        self._styles_by_name: dict[str, Style] = {}
        self._base = Style.null()

    @property
    def row(self) -> Row | None:
        """The row under the cursor; None on a heading or in an empty table."""
        line = self.line
        return None if line is None or isinstance(line, Heading) else line

    @property
    def line(self) -> Row | Heading | None:
        """The line under the cursor."""
        return self.lines[self.index] if self.index < len(self.lines) else None

    @property
    def chosen(self) -> list[Row]:
        """The marked rows, or the one under the cursor."""
        marked = [
            one
            for one in self.lines
            if not isinstance(one, Heading) and one.key in self.state.marks
        ]
        return marked or ([self.row] if self.row else [])

    def put(self, lines: Sequence[Row | Heading], now: datetime) -> None:
        """Show other lines; the cursor stays on its row, or at its height when the row is gone."""
        before = self.line
        self.lines, self.now = lines, now
        self.index = self._place_of(before)
        top = int(self.scroll_offset.y)
        self.flashes.look(lines[top : top + self.page() + 1], now)
        self.measure()
        self._moved()

    def measure(self) -> None:
        """Find the widths of columns anew, from what is in the first lines and the room there is."""
        self._widths, self._measured_in = self._measured(), self.size.width
        width = sum(width + GAP for _, width in self._widths)
        self.virtual_size = Size(width, len(self.lines) + 1)
        self.refresh()

    def tick(self, now: datetime) -> None:
        """Draw those lines on the screen anew whose ages and countdowns read otherwise than before."""
        before, self.now = self.now, now
        timed = [column for column, _ in self._widths if column.shape in (Shape.AGE, Shape.LEFT)]
        top, past = int(self.scroll_offset.y), self.flashes.past(now)
        if past:
            self.refresh()
        for y, line in enumerate(self.lines[top : top + self.page() + 1] if timed else ()):
            if not isinstance(line, Heading) and self._looks(line, timed, before) != self._looks(line, timed, now):  # fmt: skip
                self.refresh(Region(0, y + 1, self.size.width, 1))

    def _looks(self, row: Row, columns: Sequence[Column], now: datetime) -> list[tuple[str, str]]:
        """Return what cells of a row read at an instant, and in which role."""
        return [(self._text(one, row, now), role_of(one, row, now)) for one in columns]

    def move_to(self, index: int) -> None:
        """Put the cursor on a line, and the line on the screen."""
        index = max(0, min(index, len(self.lines) - 1))
        if index != self.index:
            self.index = index
            self.refresh()
            self._moved()
        self._show_cursor()

    def page(self) -> int:
        """Return how many rows fit on the screen."""
        return max(1, self.scrollable_content_region.height - 1)

    def mark(self) -> None:
        """Mark the row, or take its mark away, and go on to the next."""
        if self.row is not None:
            self.state.marks ^= {self.row.key}
        self.move_to(self.index + 1)
        self.refresh()

    def mark_range(self) -> None:
        """Mark all rows between the nearest mark above and the cursor."""
        keys = [None if isinstance(one, Heading) else one.key for one in self.lines[: self.index + 1]]  # fmt: skip
        last = max((at for at, key in enumerate(keys) if key in self.state.marks), default=self.index)  # fmt: skip
        self.state.marks |= {key for key in keys[last:] if key}
        self.refresh()

    def _place_of(self, line: Row | Heading | None) -> int:
        height = max(0, min(self.index, len(self.lines) - 1))
        if line is None or (self.lines and _same(line, self.lines[height])):
            return height
        itself = (at for at, other in enumerate(self.lines) if other is line)
        alike = (at for at, other in enumerate(self.lines) if _same(line, other))
        return next(chain(itself, alike), height)

    def _moved(self) -> None:
        self.post_message(self.Moved())

    def _show_cursor(self) -> None:
        """Scroll so that the cursor's line is on the screen; the head covers the first line of it."""
        top, page = int(self.scroll_y), self.page()
        if self.index < top:
            self.scroll_to(y=self.index, animate=False)
        elif self.index >= top + page:
            self.scroll_to(y=self.index - page + 1, animate=False)

    # Widths.

    @property
    def columns(self) -> list[Column]:
        """The columns that are shown."""
        return [column for column, _ in self._widths]

    def _chosen_columns(self, natural: Callable[[Column], int]) -> list[Column]:
        """Return all columns, those that somebody chose, or those that there is room for."""
        columns = self.state.listing.columns
        if self.state.columns and not self.state.wide:
            return [one for one in columns if one.id in self.state.columns]
        if self.state.wide:
            return list(columns)
        return columns_for(columns, self._room, natural)

    @property
    def _room(self) -> int:
        """The cells that columns may share; one is kept for the bar to scroll by."""
        return self.size.width - 1

    @property
    def _is_roomy(self) -> bool:
        """Whether countdowns have their draining bars beside them."""
        return self.size.width >= _ROOMY

    @property
    def whole(self) -> int:
        """The cells in which the columns stand whole that somebody chose, or that are shown without being asked for."""
        chosen = self.state.columns
        columns = [one for one in self.state.listing.columns if (one.id in chosen if chosen else not one.wide)]  # fmt: skip
        return sum(self._natural(one, roomy=True) + GAP for one in columns) + 1

    def _measured(self) -> list[tuple[Column, int]]:
        self._natural_widths.clear()
        if not self.size.width:
            return []
        found = [(column, self._natural(column)) for column in self._chosen_columns(self._natural)]
        needed = sum(width + GAP for _, width in found)
        return shared(found, max(self._room, needed) if self.state.wide else self._room)

    def _natural(self, column: Column, *, roomy: bool = False) -> int:
        """Return how many cells a column needs to show its head and the first rows whole, as of when widths were measured."""
        has_bar = bool(column.since) and (roomy or self._is_roomy)
        found = self._natural_widths.get((column.id, has_bar))
        if found is None:
            texts = (self._text(column, row, roomy=roomy) for row in self._sample())
            width = max(map(cell_len, texts), default=0)
            head = cell_len(column.head) + (1 if self._arrow(column) else 0)
            found = max(head, min(width, LONGEST))
            self._natural_widths[column.id, has_bar] = found
        return found

    def _sample(self) -> Iterator[Row]:
        return (one for one in self.lines[:_SAMPLE] if not isinstance(one, Heading))

    def _text(self, column: Column, row: Row, now: datetime | None = None, *, roomy: bool = False) -> str:  # fmt: skip
        at = now or self.now
        if column.brief is not None:
            return plain(column.brief(row, at))
        value = row.cells.get(column.id)
        text = plain(cell_text(column, value, at, marks=self._marks))
        share = share_left(value, row.cells.get(column.since), at) if column.since else None
        if not share or not (roomy or self._is_roomy):
            return text
        return f"{drained(share)} {text}"

    def _arrow(self, column: Column) -> str:
        first = self.state.order[0] if self.state.order else ""
        if first.lstrip("-") != column.id:
            return ""
        return "↓" if first.startswith("-") else "↑"

    # Drawing.

    def notify_style_update(self) -> None:
        """Forget colours when the theme changes."""
        self._styles_by_name.clear()
        super().notify_style_update()

    def _style(self, name: str) -> Style:
        found = self._styles_by_name.get(name)
        if found is None:
            found = self.get_component_rich_style(f"table--{name}", partial=name in _ROLES)
            self._styles_by_name[name] = found
        return found

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return lines of the screen, all of them in one style."""
        self._base = self.rich_style
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Return one line of the screen: the head, a heading, a row, or nothing."""
        width = self.scrollable_content_region.width
        if self._measured_in != self.size.width:
            # the first drawing may come before the message about the size
            self._widths, self._measured_in = self._measured(), self.size.width
        if y == 0:
            strip = self._head()
        else:
            index = int(self.scroll_offset.y) + y - 1
            if index >= len(self.lines):
                return Strip.blank(width, self._base)
            strip = self._line(index)
        offset = int(self.scroll_offset.x)
        return strip.crop_extend(offset, offset + width, strip_style(strip, self._base))

    def _head(self) -> Strip:
        style = self._style("head")
        segments = [Segment("  ", style)]
        for column, width in self._widths:
            text = column.head + self._arrow(column)
            segments.append(Segment(_sized(text, width, column) + " " * GAP, style))
        return Strip(segments)

    def _line(self, index: int) -> Strip:
        line = self.lines[index]
        base = self._base
        if self.is_stale:
            base += self._style("stale")
        at_cursor = index == self.index
        if at_cursor:
            base += self._style("cursor") if self.has_focus else Style(underline=True)
        if isinstance(line, Heading):
            return Strip([Segment(heading_text(line), base + self._style("heading"))])
        return self._row_strip(line, base, keeps_colour=not at_cursor and not self.is_stale)

    def _row_strip(self, row: Row, base: Style, *, keeps_colour: bool) -> Strip:
        marked = row.key in self.state.marks
        is_changed = self.flashes.is_changed(row, self.now)
        sign = "▌" if marked else SIGN if is_changed else " "
        if keeps_colour and is_changed:
            base += Style(bold=True, reverse=True)
        elif keeps_colour and self.flashes.has_ended(row):
            base += self._style("muted")
        segments = [Segment(f"{sign} ", base + self._style("mark"))]
        for column, width in self._widths:
            role = role_of(column, row, self.now)
            style = base + self._style(role) if role in _ROLES and keeps_colour else base
            segments.append(Segment(_sized(self._text(column, row), width, column), style))
            segments.append(Segment(" " * GAP, base))
        return Strip(segments)

    # What the mouse and the window do.

    def on_resize(self) -> None:
        """Give columns the room there is now."""
        self.measure()
        self._show_cursor()

    def on_focus(self) -> None:
        """Draw the cursor."""
        self.refresh()

    def on_blur(self) -> None:
        """Draw the cursor thin."""
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Put the cursor where the mouse is; on the head, sort by the column."""
        if event.y == 0:
            self._sort_at(event.x + int(self.scroll_offset.x))
            return
        index = int(self.scroll_offset.y) + event.y - 1
        if index == self.index and event.chain > 1:
            self.post_message(self.Chosen())
        elif index < len(self.lines):
            self.move_to(index)

    def _sort_at(self, x: int) -> None:
        left = 2
        for column, width in self._widths:
            if left <= x < left + width + GAP:
                self.state.sort_by(column.id)
                self.post_message(self.Sorted())
                return
            left += width + GAP

    class Sorted(Message):
        """Somebody asked for another order."""

    def cursor_region(self) -> Region:
        """Return where the cursor is, for what is shown beside it."""
        return Region(0, self.index + 1, self.size.width, 1)


def heading_text(line: Heading) -> str:
    """Return the line above a group; of one of which nothing is known the reason."""
    name = f"{line.column}: {plain(line.value) or '(none)'}"
    if line.count is None:
        return f"! {name} (unknown) {plain(line.reason)}"
    return f"{'>' if line.folded else 'v'} {name} ({line.count})"


def role_of(column: Column, row: Row, now: datetime) -> str:
    """Return the colour role of a cell of a row."""
    return cell_role(column, row.cells.get(column.id), now, row.cells.get(column.since))


def strip_style(strip: Strip, fallback: Style) -> Style:
    """Return the style in which a line goes on to the right edge: that of its last part."""
    segments = list(strip)
    return segments[-1].style or fallback if segments else fallback


def _same(one: Row | Heading, other: Row | Heading) -> bool:
    if isinstance(one, Heading) or isinstance(other, Heading):
        return isinstance(one, Heading) and isinstance(other, Heading) and one.value == other.value
    return one.key == other.key


def _sized(text: str, width: int, column: Column) -> str:
    """Return a text in exactly so many cells, numbers to the right, what is cut off shown by an ellipsis."""
    size = cell_len(text)
    if column.shape is Shape.NUMBER and size < width:
        return " " * (width - size) + text
    if size > width:
        return set_cell_size(text, max(width - 1, 0)) + "…"
    return text + " " * (width - size)
