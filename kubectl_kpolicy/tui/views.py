"""The screens' bodies: a list with its table and its words, the gauges, the tree of an explanation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.containers import Vertical
from textual.widgets import Static

from kubectl_kpolicy.output.cells import plain

from .screen_status import Condition, standing
from .state import ListState
from .widgets.table import PolicyTable

if TYPE_CHECKING:
    from datetime import datetime

    from textual.app import ComposeResult

    from kubectl_kpolicy.cluster.cache import ClusterCache
    from kubectl_kpolicy.output.rows import Listing

    from .screen_status import Standing
    from .state import Shown


class ListView(Vertical):
    """A list screen: border with title and counts, the table, and words where there are no rows."""

    def __init__(self, listing: Listing, now: datetime, *, marks: str) -> None:
        super().__init__(id=listing.noun, classes="view")
        self.state = ListState(listing)
        self.table = PolicyTable(self.state, now, marks=marks)
        # INVARIANT: both are here before they are on the screen, for a key that follows at once.
        self.notice = Static(classes="notice", markup=False)
        self.standing: Standing | None = None
        self.asked_for_labels = False

    def compose(self) -> ComposeResult:
        """Make table and notice."""
        yield self.table
        yield self.notice

    def update_from(self, world: ClusterCache, now: datetime) -> None:
        """Show what the ClusterCache holds now."""
        shown = self.state.shown(world, now)
        found = self.standing = standing(self.state, shown, world, now)
        self.table.is_stale = found.condition is Condition.STALE
        self.table.put(shown.lines, now)
        self.table.display = not found.hides_rows
        notice = self.notice
        notice.display = bool(found.text)
        notice.set_class(found.hides_rows, "-alone")
        notice.set_class(found.condition in (Condition.STALE, Condition.HINDERED), "-bad")
        notice.update(_words(found))
        is_known = found.condition not in (Condition.LOADING, Condition.HINDERED)
        self.border_title = self._title(shown) if is_known else self.state.listing.title
        self.border_subtitle = self._order()

    def _title(self, shown: Shown) -> str:
        state = self.state
        limits = [state.listing.narrowed] if state.failures and state.listing.failures else []
        limits += [state.filter.text] if state.filter.text else []
        limits += [f"ns={state.namespace}"] if state.namespace else []
        count = f"{shown.kept:,}".replace(",", " ")
        total = f" of {shown.total:,}".replace(",", " ") if shown.total != shown.kept else ""
        text = f"{state.listing.title} ({', '.join([count + total, *limits])})"
        new = f"  {shown.new} new" if shown.new else ""
        return _escaped(text + new)

    def _order(self) -> str:
        names = []
        for name in self.state.order[:2]:
            column = self.state.listing.column(name.lstrip("-"))
            if column is not None:
                names.append(column.head + ("↓" if name.startswith("-") else "↑"))
        group = f"  by {self.state.group}" if self.state.group else ""
        return _escaped(f"sort {' '.join(names)}{group}") if names else ""


def _words(found: Standing) -> Text:
    text = Text(plain(found.text), "bold" if found.hides_rows else "")
    if found.help:
        text.append("\n" if found.hides_rows else "   ")
        text.append(plain(found.help), "dim")
    return text


def _escaped(text: str) -> str:
    """Return a text in which brackets are no markup, for border titles."""
    return plain(text).replace("[", r"\[")
