"""Pulse: gauges in a grid, each with its number, its words and, where it has a past, a sparkline of 24 hours."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.text import Text
from textual.containers import Grid
from textual.message import Message
from textual.widgets import Static

from kubectl_kpolicy.cluster.knowledge import Sight
from kubectl_kpolicy.output.cells import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events

    from kubectl_kpolicy.cluster.pulse import Gauge

_BARS = "▁▂▃▄▅▆▇█"


class GaugeBox(Static):
    """One gauge; the one under the cursor has a thick border."""

    class Pressed(Message):
        """Somebody clicked a gauge."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, index: int) -> None:
        super().__init__(classes="gauge")
        self.index = index

    def show(self, gauge: Gauge, now: datetime, *, at_cursor: bool) -> None:
        """Draw a gauge; where its number cannot be believed, why stands in the place of the sparkline."""
        for role in ("error", "warning", "success", "plain"):
            self.set_class(gauge.role == role, f"-{role}")
        self.set_class(at_cursor, "-cursor")
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(gauge.text, "bold")
        text.append(f" {gauge.title}")
        if gauge.knowledge.sight is not Sight.WHOLE:
            text.append(f"\n{plain(gauge.knowledge.brief(now))}")
        elif any(gauge.trend):
            room = max(self.content_size.width, 6)
            text.append(f"\n{sparkline(halved(gauge.trend, room))}", "dim")
        self.update(text)

    def on_click(self, _event: events.Click) -> None:
        """Say that this one was meant."""
        self.post_message(self.Pressed(self.index))


class PulseView(Grid, can_focus=True):
    """All gauges; the cursor goes over them row by row."""

    def __init__(self) -> None:
        super().__init__(id="pulse")
        self.gauges: Sequence[Gauge] = ()
        self.index = 0
        self._now = datetime.now(UTC)

    def put(self, gauges: Sequence[Gauge], now: datetime) -> None:
        """Show these gauges as of an instant."""
        self._now = now
        boxes = list(self.query(GaugeBox))
        missing = len(gauges) - len(boxes)
        if missing > 0:
            self.mount_all(GaugeBox(len(boxes) + number) for number in range(missing))
        self.gauges = gauges
        self.call_after_refresh(self._draw)

    def move(self, by: int) -> None:
        """Move the cursor."""
        self.index = max(0, min(self.index + by, len(self.gauges) - 1))
        self._draw()

    @property
    def columns(self) -> int:
        """How many gauges stand side by side."""
        return 4 if self.size.width >= 60 else 2

    def on_resize(self) -> None:
        """Fit the grid to the width."""
        self.styles.grid_size_columns = self.columns

    def _draw(self) -> None:
        for box in self.query(GaugeBox):
            if box.index < len(self.gauges):
                box.show(self.gauges[box.index], self._now, at_cursor=box.index == self.index)  # fmt: skip


def halved(values: Sequence[int], room: int) -> Sequence[int]:
    """Return a trend with neighbours added up until it fits into so many cells."""
    made = list(values)
    while len(made) > room:
        made = [sum(made[at : at + 2]) for at in range(0, len(made), 2)]
    return made


def sparkline(values: Sequence[int]) -> str:
    """Return a row of bars, the largest value as the full one, nothing as a blank."""
    most = max(values, default=0)
    if not most:
        return ""
    return "".join(" " if not value else _BARS[round((len(_BARS) - 1) * value / most)] for value in values)  # fmt: skip
