"""Pulse: tiles with their differences, failures by the hour, where they are, and compliance; whatever is counted is a door.

What is not known is a question mark with the reason in the place of a figure, in tiles, charts and maps alike.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.message import Message

from engine.record import record
from kubectl_kpolicy.cluster.charts import Framework, HeatMap, Sample, before
from kubectl_kpolicy.cluster.knowledge import Knowledge, Sight
from kubectl_kpolicy.filter import quoted
from kubectl_kpolicy.output import time_format
from kubectl_kpolicy.output.cells import drained, halved, mark_of, plain, sparkline
from kubectl_kpolicy.output.rows import SEVERITIES

from .frame import Painted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from textual import events

    from kubectl_kpolicy.cluster.pulse import Gauge

_FILLS = {"critical": "█", "high": "▓", "medium": "▒", "low": "░"}
_HUES = {"critical": "error", "high": "error", "medium": "warning", "low": "accent"}
_SHADES = "░▒▓█"
_TILE, _WIDE = 19, 110
_GOOD, _BAD = 80, 50
"""Percents from which on compliance is good, and below which it is bad."""


@record
class Board:
    """Everything that Pulse shows, as of an instant."""

    gauges: Sequence[Gauge]
    hours: Sequence[Mapping[str, int]]
    heat: HeatMap
    frameworks: Sequence[Framework]
    reports: Knowledge
    past: Sequence[Sample]
    now: datetime


@record
class Door:
    """Where something on the screen leads, and what is said of it while the cursor is there."""

    screen: str
    where: str
    said: str


Span = tuple[str, str, int]
"""A text, its role, and the number of the door that it belongs to (-1: none)."""
Line = list[Span]


class PulseView(Painted, can_focus=True):
    """Draws a board; the cursor goes from door to door."""

    class Pressed(Message):
        """Somebody clicked a door."""

    def __init__(self, *, marks: str = "glyph") -> None:
        super().__init__(name="pulse")
        self.doors: list[Door] = []
        self.index = 0
        self._marks = marks
        self._board: Board | None = None
        self._lines: list[Line] = []
        self._places: list[tuple[int, int]] = []
        self._top = 0

    def put(self, board: Board) -> None:
        """Show a board."""
        self._board = board
        self._draw()

    @property
    def door(self) -> Door | None:
        """What is under the cursor."""
        return self.doors[self.index] if self.index < len(self.doors) else None

    def move(self, by: int) -> None:
        """Move the cursor to a door further on or back."""
        self._go(max(0, min(self.index + by, len(self.doors) - 1)))

    def step(self, by: int) -> None:
        """Move the cursor up or down, to the nearest door there."""
        if abs(by) > 1 or not self._places:
            self.move(by)
            return
        y, x = self._places[self.index]

        def distance(number: int) -> tuple[int, int]:
            line, cell = self._places[number]
            return abs(line - y), abs(cell - x)

        there = [number for number, (line, _) in enumerate(self._places) if (line - y) * by > 0]
        if there:
            self._go(min(there, key=distance))

    def _go(self, index: int) -> None:
        self.index = max(index, 0)
        if self._places:
            line, page = self._places[self.index][0], max(self.size.height, 1)
            self._top = 0 if line < page else min(max(self._top, line - page + 2), line)
        self._tell()
        self.refresh()

    def _tell(self) -> None:
        said = self.door.said if self.door is not None else ""
        self.border_subtitle = plain(said).replace("[", r"\[")

    def on_resize(self) -> None:
        """Lay everything out in the room there is now."""
        self._draw()

    def on_click(self, event: events.Click) -> None:
        """Go through the door that was clicked."""
        x, number = 0, -1
        at = self._top + event.y - 1
        for text, _, door in self._lines[at] if 0 <= at < len(self._lines) else ():
            if x <= event.x - 1 < x + cell_len(text):
                number = door
            x += cell_len(text)
        if number >= 0:
            self._go(number)
            self.post_message(self.Pressed())

    def line_at(self, y: int) -> Sequence[Segment]:
        """Return a line; the door under the cursor has a bar before it."""
        number = self._top + y
        if number >= len(self._lines):
            return ()
        made = []
        for text, role, door in self._lines[number]:
            at_cursor = door >= 0 and door == self.index
            shown = f"▌{text[1:]}" if at_cursor and text.startswith(" ") else text
            made.append(Segment(shown, self.style_of(role, at_cursor=at_cursor)))
        return made

    # Laying out.

    def _draw(self) -> None:
        if self._board is None or not self.size.width:
            return
        self.doors = []
        width, board = self.size.width, self._board
        lines = self._tiles(board, width)
        if width >= _WIDE:
            left = width * 45 // 100
            room = max(self.size.height - len(lines) - 1, 10)
            charts = [
                *self._hours(board, left, max(room // 2 - 3, 4)),
                [],
                *self._compliance(board, left),
            ]
            lines += [[], *_beside(charts, self._heat(board, width - left - 2, room - 3), left + 2)]
        else:
            lines += [[], *self._hours(board, width, 4), [], *self._compliance(board, width)]
            lines += [[], *self._heat(board, width, len(board.heat.policies))]
        self._lines = lines
        self._places = [(0, 0)] * len(self.doors)
        for y in range(len(lines) - 1, -1, -1):
            x = 0
            for text, _, door in lines[y]:
                if door >= 0:
                    self._places[door] = (y, x)
                x += cell_len(text)
        self._go(min(self.index, max(len(self.doors) - 1, 0)))

    def _door(self, screen: str, where: str, said: str) -> int:
        self.doors.append(Door(screen, where, said))
        return len(self.doors) - 1

    def _tiles(self, board: Board, width: int) -> list[Line]:
        across = max(2, min(width // _TILE, 6))
        size = width // across
        lines: list[Line] = []
        for first in range(0, len(board.gauges), across):
            above: Line = []
            below: Line = []
            for gauge in board.gauges[first : first + across]:
                door = self._door(gauge.screen, gauge.where, gauge.counted)
                sign = self._sign(gauge)
                above.append((_cut(f" {sign} {gauge.counted}", size), gauge.role, door))
                below.append(
                    (_cut(f"   {self._second(gauge, board, size - 4)}", size), "muted", door)
                )
            lines += [above, below]
        return lines

    def _sign(self, gauge: Gauge) -> str:
        word = {"error": "fail", "warning": "warn", "success": "pass"}.get(gauge.role, "")
        mark = mark_of(word)
        return mark.ascii if self._marks == "ascii" else mark.glyph

    def _second(self, gauge: Gauge, board: Board, room: int) -> str:
        """Return what stands below a number: why it is not whole, or its difference and its day."""
        if gauge.knowledge.sight is not Sight.WHOLE:
            return plain(gauge.knowledge.brief(board.now))
        told = difference(gauge.value, before(board.past, gauge.id, board.now))
        line = sparkline(halved(gauge.trend, max(room - len(told) - 1, 6)))
        return " ".join(filter(None, (told, line)))

    def _hours(self, board: Board, width: int, height: int) -> list[Line]:
        """Return the failures of a day as bars of their severities."""
        totals = [sum(hour.values()) for hour in board.hours]
        most = max(totals, default=0)
        title: Line = [(" Failures by the hour  ", "head", -1)]
        title += [(f"{fill} {name}  ", _HUES[name], -1) for name, fill in _FILLS.items()]
        if board.reports.sight in (Sight.LOADING, Sight.HINDERED):
            return [title, [(f" ? {plain(board.reports.brief(board.now))}", "muted", -1)]]
        if not most:
            return [
                title,
                [(f" none reported in the last 24 hours{self._doubt(board)}", "muted", -1)],
            ]
        room = max(1, min((width - 7) // len(totals), 4))
        lines = [title]
        for row in range(height - 1, -1, -1):
            label = most if row == height - 1 else ""
            line: Line = [(f"{label:>5} ", "muted", -1)]
            for hour, total in zip(board.hours, totals, strict=True):
                name = _severity_at(hour, total, most, height, row)
                fill = " " if name is None else _FILLS.get(name, "·")
                line.append((fill * room, _HUES.get(name or "", "muted"), -1))
            lines.append(line)
        lines.append(
            [(f"{'-24h':>10}{'now':>{room * len(totals) - 4}}{self._doubt(board)}", "muted", -1)]
        )
        return lines

    def _doubt(self, board: Board) -> str:
        said = plain(board.reports.brief(board.now))
        return f"  ({said})" if said else ""

    def _compliance(self, board: Board, width: int) -> list[Line]:
        """Return how much of each framework's results pass, and how that went."""
        lines: list[Line] = [
            [(" Compliance: results that pass", "head", -1), (self._doubt(board), "muted", -1)]
        ]
        blind = board.reports.sight in (Sight.LOADING, Sight.HINDERED)
        name_width = max([4, *(cell_len(one.name) for one in board.frameworks[:6])]) + 1
        name_width = min(name_width, max(width // 3, 15))
        for one in board.frameworks[:6]:
            percent = None if blind else one.percent
            where = " or ".join(f"category={quoted(name)}" for name in one.categories)
            door = self._door("policies", where, f"policies of {one.name}")
            text = f" {_cut(plain(one.name), name_width)}"
            if percent is None:
                lines.append([(text, "", door), ("?  no results known", "muted", door)])
                continue
            bar = drained(percent / 100, 10)
            figures = f" {percent:>3} %  {one.passed} of {one.judged}  "
            way = _cut(_way(board, one.name, percent), max(width - name_width - 30, 0))
            lines.append([(text, "", door), (bar, _role_of(percent), door), (figures, "", door), (way, "muted", door)])  # fmt: skip
        if not board.frameworks:
            lines.append([(" ? no policy names a category" if not blind else " ?", "muted", -1)])
        return lines

    def _heat(self, board: Board, width: int, height: int) -> list[Line]:
        """Return a map of policies by namespaces; each place that fails is a door."""
        heat = board.heat
        lines: list[Line] = [[(" Where it fails: policies by namespaces", "head", -1)]]
        if board.reports.sight in (Sight.LOADING, Sight.HINDERED):
            return [*lines, [(f" ? {plain(board.reports.brief(board.now))}", "muted", -1)]]
        if not heat.policies:
            return [*lines, [(f" nowhere{self._doubt(board)}", "muted", -1)]]
        label = min(max(map(cell_len, heat.policies)) + 2, width // 3)
        size = max([11, *(cell_len(plain(one)) + 2 for one in heat.namespaces)])
        if label + size * len(heat.namespaces) > width:
            size = 11
        places = heat.namespaces[: max((width - label) // size, 1)]
        policies = heat.policies[: max(height, 1)]
        most = max(heat.counts.values())
        head = "".join(_cut(f" {plain(place) or '(cluster)'}", size) for place in places)
        lines.append([(" " * label + head, "muted", -1)])
        for policy in policies:
            cells = [self._spot(heat, policy, place, most, size) for place in places]
            lines.append([(_cut(f" {plain(policy)}", label), "", -1), *cells])
        more = [
            f"{left} more {what}"
            for left, what in (
                (len(heat.policies) - len(policies), "policies"),
                (len(heat.namespaces) - len(places), "namespaces"),
            )
            if left
        ]
        if more:
            lines.append([(f" {', '.join(more)}", "muted", -1)])
        return lines

    def _spot(self, heat: HeatMap, policy: str, place: str, most: int, size: int) -> Span:
        """Return how much of a policy fails in a namespace, darker the nearer it is to the most of all."""
        count = heat.counts.get((policy, place), 0)
        if not count:
            return _cut("      ·", size), "muted", -1
        worst = heat.worst.get((policy, place), "")
        where = f"policy={quoted(policy)} ns={quoted(place)}"
        said = f"{policy} in {place or 'no namespace'}: {count}, worst {worst or 'unrated'}"
        shade = _SHADES[min(count * len(_SHADES) // (most + 1), len(_SHADES) - 1)]
        door = self._door("violations", where, said)
        return _cut(f" {shade}{shade}{count:>5}", size), _HUES.get(worst, ""), door


def _role_of(percent: int) -> str:
    if percent == 100:
        return "success"
    return "error" if percent < _BAD else "warning" if percent < _GOOD else "accent"


def _way(board: Board, framework: str, percent: int) -> str:
    """Return how the percentage of a framework changed, in words and as a line."""
    key = f"framework {framework}"
    past = [sample.numbers[key] for sample in board.past[-23:] if key in sample.numbers]
    told = difference(percent, before(board.past, key, board.now))
    return " ".join(filter(None, (told, sparkline([*past, percent]) if past else "")))


def _severity_at(
    hour: Mapping[str, int], total: int, most: int, height: int, row: int
) -> str | None:
    """Return which severity fills a row of an hour's bar, the worst lowest; None above its top."""
    units = max(round(total * height / most), 1) if total else 0
    if row >= units:
        return None
    reached, wanted = 0, (row + 0.5) * total / units
    for name in SEVERITIES:
        reached += hour.get(name, 0)
        if reached >= wanted:
            return name
    return ""


def difference(value: int | None, earlier: tuple[int, float] | None) -> str:
    """Return how a number has changed since an earlier one, empty where either is not known."""
    if value is None or earlier is None:
        return ""
    number, ago = earlier
    span = time_format.span(ago)
    return f"{value - number:+} in {span}" if value != number else f"as {span} ago"


def _cut(text: str, width: int) -> str:
    """Return a text in exactly so many cells, with an ellipsis where something is missing."""
    if cell_len(text) > width - 1:
        return set_cell_size(text, max(width - 2, 0)) + "… " if width > 1 else " " * width
    return set_cell_size(text, width)


def _beside(left: Sequence[Line], right: Sequence[Line], width: int) -> list[Line]:
    """Return two blocks side by side."""
    nothing: Line = []
    made = []
    for one, other in zip_longest(left, right, fillvalue=nothing):
        used = sum(cell_len(text) for text, _, _ in one)
        made.append([*one, (" " * max(width - used, 0), "", -1), *other])
    return made
