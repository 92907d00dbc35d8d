"""Notices on the screen: a line above the footer, with a key that leads to where one can act; it goes by itself after a minute."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from rich.text import Text
from textual.widgets import Static

from engine.record import replace
from kubectl_kpolicy.cluster.beside import each
from kubectl_kpolicy.cluster.news import SOURCES, Notice, Watch
from kubectl_kpolicy.output.cells import mark_of, plain
from kubectl_kpolicy.output.rows import CLUSTER

from .frame import key_name

if TYPE_CHECKING:
    from datetime import datetime

    from kubectl_kpolicy.cluster.cache import ClusterCache

_STAYS, _AGAIN, _MOST = 60.0, 15.0, 50


class NoticeLine(Static):
    """The newest notice that nobody answered yet, and how many there are."""

    def __init__(self, *, marks: str, key: str) -> None:
        super().__init__(id="notice", markup=False)
        self.display = False
        self.told: list[tuple[datetime, Notice]] = []
        self._unread = 0
        self._watches: defaultdict[str, Watch] = defaultdict(Watch)
        self._marks = marks
        self._key = key
        self._version = -1
        self._looked: datetime | None = None

    def look(self, world: ClusterCache, now: datetime) -> None:
        """Look for news where something has changed or time has passed, and let old ones go."""
        version = world.version(*SOURCES)
        waited = self._looked is None or (now - self._looked).total_seconds() >= _AGAIN
        if version != self._version or waited:
            self._version, self._looked = version, now
            news = [
                _of(name, one)
                for name, there in each(world).items()
                for one in self._watches[name].news(there, now)
            ]
            if news:
                self.told = [*self.told, *((now, one) for one in news)][-_MOST:]
                self._unread += len(news)
                self._show()
        if self._unread and (now - self.told[-1][0]).total_seconds() >= _STAYS:
            self.dismiss()

    def dismiss(self) -> None:
        """Take the line away; the notices stay to be listed."""
        self._unread = 0
        self.display = False

    def _show(self) -> None:
        notice = self.told[-1][1]
        mark = mark_of(notice.state)
        text = Text(no_wrap=True, overflow="ellipsis", end="")
        text.append(f" {key_name(self._key)} ", "bold")
        text.append(f"{self._unread} notices  " if self._unread > 1 else "")
        text.append(f"{mark.ascii if self._marks == 'ascii' else mark.glyph} ", "bold")
        text.append(plain(notice.text))
        for role in ("error", "warning", "success"):
            self.set_class(mark.role == role, f"-{role}")
        self.update(text)
        self.display = True


def _of(name: str, notice: Notice) -> Notice:
    """Return a notice with the cluster that it is from, where there are several."""
    if not name:
        return notice
    where = f"{notice.where} {CLUSTER.id}={name}".strip()
    return replace(notice, text=f"{name}: {notice.text}", where=where)
