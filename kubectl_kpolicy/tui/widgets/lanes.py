"""Grants and clean-ups as lanes below their list: a common axis, a line for the present, ticks for what happened or will.

What is left of a stretch is heavy, what is over is thin, what still waits is dashed, so that nothing rests on colour alone.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.message import Message

from kubectl_kpolicy.cluster.lanes import Lane, Window, lanes, window
from kubectl_kpolicy.output import time_format
from kubectl_kpolicy.output.cells import cell_role, mark_of, plain
from kubectl_kpolicy.output.rows import Column, Row, Shape

from .frame import Painted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events

    from kubectl_kpolicy.cluster.cache import ClusterCache

_TICKS = {
    "request": ("◇", "?", "asked", ""),
    "approve": ("✓", "+", "approved", "success"),
    "deny": ("⊘", "#", "denied", "error"),
    "use": ("•", "*", "used", "accent"),
    "run": ("▼", "v", "runs", "warning"),
    "end": ("▼", "v", "deletes", "error"),
}
"""Glyph, its form in ASCII, the word of the legend, and the role."""
_LEGENDS = {"grants": ("request", "approve", "deny", "use"), "cleanup": ("run",)}
_STEPS = tuple(timedelta(minutes=minutes) for minutes in (5, 15, 30, 60, 120, 180, 360, 720, 1440))
_APART = 9
_MOST = 500
_LEFT = Column("left", "LEFT", Shape.LEFT)

Cell = tuple[str, str]
"""A letter and its role."""


class LanesPanel(Painted):
    """The lanes of the rows around the cursor."""

    class Chosen(Message):
        """A lane was clicked."""

        def __init__(self, row: Row) -> None:
            super().__init__()
            self.row = row

    def __init__(self, *, marks: str) -> None:
        super().__init__()
        self.display = False
        self._marks = marks
        self._rows: Sequence[Row] = ()
        self._cursor = 0
        self._top = 0
        self._now = datetime.now(UTC)
        self._window = Window(self._now, self._now + _STEPS[-1])
        self._lines: list[list[Segment]] = []
        self._shown: object = None
        self._named = 16
        self._given: Any = None

    def on_resize(self) -> None:
        """Draw anew in the room there is now."""
        if self._given is not None:
            self.put(*self._given)

    def put(
        self,
        rows: Sequence[Row],
        at: Row | None,
        noun: str,
        world: ClusterCache,
        now: datetime,
        room: int,
    ) -> None:
        """Show rows in at most so many lines, those around the one under the cursor."""
        self._given = (rows, at, noun, world, now, room)
        height = min(len(rows) + 1, room - 1)
        self.styles.height = height + 1
        self._cursor = next((number for number, row in enumerate(rows) if row is at), self._cursor)
        self._cursor = min(self._cursor, len(rows) - 1)
        page = max(height - 1, 1)
        self._top = max(min(self._top, self._cursor), self._cursor - page + 1, 0)
        self._top = min(self._top, max(len(rows) - page, 0))
        seen = rows[self._top : self._top + page]
        asked = (
            tuple(map(id, seen)),
            self._cursor,
            self.size.width,
            world.version("grants", "auditsegments"),
            now,
        )
        if asked == self._shown:
            return
        self._rows, self._now, self._shown = rows, now, asked
        told = lanes(seen, noun, world, now)
        self._named = max((cell_len(plain(lane.label)) for lane in told), default=0)
        width = self._room()
        wide = window(lanes(rows[:_MOST], noun, world, now) if noun == "grants" else (), noun, now)
        self._window = wide.stepped(width)
        drawn = [(lane, self._cursor == self._top + number) for number, lane in enumerate(told)]
        self._lines = [self._axis(width)] + [
            self._line(lane, width, at_cursor) for lane, at_cursor in drawn
        ]
        self.border_title = f"{self._window.begins:%a %H:%M} to {self._window.ends:%a %H:%M} UTC  {self._legend(noun)}"
        self.refresh()

    def is_outdated(self, now: datetime) -> bool:
        """Tell whether so much time has passed that lanes look otherwise."""
        return (now - self._now) * self._room() >= self._window.ends - self._window.begins

    def _room(self) -> int:
        return max(self.size.width - self._label_width() - 3, 10)

    def _label_width(self) -> int:
        return max(16, min(self._named, self.size.width // 3))

    def _legend(self, noun: str) -> str:
        told = [f"{self._glyph(name)} {_TICKS[name][2]}" for name in _LEGENDS.get(noun, ())]
        return "  ".join([*told, "━ left", "─ over"])

    def _glyph(self, name: str) -> str:
        return _TICKS[name][1 if self._marks == "ascii" else 0]

    def line_at(self, y: int) -> Sequence[Segment]:
        """Return the axis, a lane, or nothing."""
        return self._lines[y] if y < len(self._lines) else ()

    def on_click(self, event: events.Click) -> None:
        """Tell which lane was clicked."""
        number = self._top + event.y - 2
        if event.y >= 2 and number < len(self._rows):
            self.post_message(self.Chosen(self._rows[number]))

    def _axis(self, width: int) -> list[Segment]:
        """Return the line with the instants."""
        cells: list[Cell] = [(" ", "head")] * width
        present = self._window.cell(self._now, width)
        for at in _marks_between(self._window, width):
            cell, text = self._window.cell(at, width), at.strftime("%H:%M")
            if cell + len(text) <= width and not present - len(text) - 1 < cell < present + 5:
                cells[cell : cell + len(text)] = [(letter, "muted") for letter in text]
        cells[present : present + 4] = [(letter, "head") for letter in "│now"]
        return [
            Segment(" " * (self._label_width() + 3), self.style_of("")),
            *self._drawn(cells[:width]),
        ]

    def _line(self, lane: Lane, width: int, at_cursor: bool) -> list[Segment]:
        mark = mark_of(lane.state)
        sign = mark.ascii if self._marks == "ascii" else mark.glyph
        room = self._label_width()
        label = plain(lane.label)
        if cell_len(label) > room:
            label = set_cell_size(label, room - 1) + "…"
        head = Segment(f"{sign} ", self.style_of(mark.role, at_cursor=at_cursor))
        name = Segment(set_cell_size(label, room) + " ", self.style_of("", at_cursor=at_cursor))
        return [head, name, *self._drawn(self.cells(lane, width), at_cursor=at_cursor)]

    def _drawn(self, cells: Sequence[Cell], *, at_cursor: bool = False) -> list[Segment]:
        groups = groupby(cells, key=lambda cell: cell[1])
        return [
            Segment(
                "".join(letter for letter, _ in group), self.style_of(role, at_cursor=at_cursor)
            )
            for role, group in groups
        ]

    def cells(self, lane: Lane, width: int) -> list[Cell]:
        """Return the letters of a lane with their roles."""
        made: list[Cell] = [(" ", "")] * width
        present = self._window.cell(self._now, width)
        made[present] = ("│", "head")
        if said := self._outside(lane):
            _write(made, said, "muted", present)
            return made
        if lane.begins is not None and lane.ends is not None and not _is_run(lane):
            self._stretch(made, lane, present)
        for tick in lane.ticks:
            cell = self._window.cell(tick.at, width)
            if 0 <= cell < width:
                made[cell] = (self._glyph(tick.what), _TICKS[tick.what][3])
        if lane.goes_on:
            last = max(self._window.cell(lane.ticks[-1].at, width), 0)
            made[last + 1 :] = [("╌", "warning")] * (width - last - 1)
        return made

    def _outside(self, lane: Lane) -> str:
        """Return what to say of a lane that has nothing in the window."""
        if lane.said or lane.ends is None:
            return lane.said or "no end known"
        if lane.ends < self._window.begins:
            return f"‹ ended {time_format.age(lane.ends, self._now)} ago"
        first = lane.ends if _is_run(lane) else lane.begins or lane.ends
        if first >= self._window.ends:
            return f"› in {time_format.span((first - self._now).total_seconds())}"
        return ""

    def _stretch(self, made: list[Cell], lane: Lane, present: int) -> None:
        """Draw from beginning to end: over thin, left heavy, waiting dashed."""
        assert lane.begins is not None
        assert lane.ends is not None
        width = len(made)
        first, last = self._window.cell(lane.begins, width), self._window.cell(lane.ends, width)
        waits = self._window.cell(lane.held, width) if lane.held is not None else first
        role = mark_of(lane.state).role
        left = (
            role if lane.held is not None else cell_role(_LEFT, lane.ends, self._now, lane.begins)
        )
        for cell in range(max(first, 0), min(last + 1, width)):
            if cell < waits or waits >= last:
                made[cell] = ("╌", role)
            elif cell != present:
                made[cell] = ("━", left) if cell > present else ("─", "muted")
        if first < 0:
            made[0] = ("‹", "muted")
        if last >= width:
            made[-1] = ("›", "muted")


def _is_run(lane: Lane) -> bool:
    """Tell whether a lane has nothing but instants: a policy runs, and is no stretch of time."""
    return bool(lane.ticks) and lane.ticks[0].what == "run"


def _write(cells: list[Cell], text: str, role: str, present: int) -> None:
    """Put a text into cells, at the side that its arrow points to; one without an arrow not across the line of the present."""
    at = max(len(cells) - len(text), 0) if text.startswith("›") else 0
    if text[0] not in "‹›" and present < len(text) <= len(cells) - present - 2:
        at = present + 2
    for number, letter in enumerate(text[: len(cells)]):
        cells[at + number] = (letter, role)


def _marks_between(shown: Window, width: int) -> list[datetime]:
    """Return the instants that the axis names: round ones, far enough apart to be read."""
    length = shown.ends - shown.begins
    step = next((one for one in _STEPS if one * width >= length * _APART), _STEPS[-1])
    seconds = step.total_seconds()
    first = datetime.fromtimestamp((shown.begins.timestamp() // seconds + 1) * seconds, UTC)
    return [first + step * number for number in range(int((shown.ends - first) // step) + 1)]
