"""The screens' bodies: a list with its table and its words, the gauges, the tree of an explanation."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text
from textual.containers import Vertical
from textual.widgets import Static, Tree

from engine.record import record
from kubectl_kpolicy.actions.screens import LISTINGS
from kubectl_kpolicy.cluster.beside import BesideCache, beside
from kubectl_kpolicy.cluster.knowledge import Sight, awaited, known
from kubectl_kpolicy.cluster.lanes import has_lanes
from kubectl_kpolicy.cluster.resources import called
from kubectl_kpolicy.output.cells import mark_of, plain
from kubectl_kpolicy.output.explanation import Reason, cut
from kubectl_kpolicy.output.rows import CLUSTER

from .state import Heading, ListState, Shown
from .widgets.frame import SteadyText
from .widgets.lanes import LanesPanel
from .widgets.table import PolicyTable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from textual.app import ComposeResult
    from textual.widgets.tree import TreeNode

    from kubectl_kpolicy.cluster.cache import ClusterCache
    from kubectl_kpolicy.output.rows import Listing

    from .settings import Settings


_TALL = 28
"""Rows from which on a list has its lanes below it without being asked for them."""
_LANES_SHARE = 0.4


class ListView(Vertical):
    """A list screen: border with title and counts, the table, and words where there are no rows."""

    def __init__(self, listing: Listing, now: datetime, *, marks: str) -> None:
        super().__init__(id=listing.noun, classes="view")
        self.state = ListState(listing)
        self.table = PolicyTable(self.state, now, marks=marks)
        # INVARIANT: both are here before they are on the screen, for a key that follows at once.
        self.lanes = LanesPanel(marks=marks) if has_lanes(listing.noun) else None
        self.wants_lanes: bool | None = None
        self.notice = SteadyText(classes="notice", markup=False)
        self.asked_for_labels = False

    def compose(self) -> ComposeResult:
        """Make table and notice."""
        yield self.table
        if self.lanes is not None:
            yield self.lanes
        yield self.notice

    def update_from(self, world: ClusterCache, now: datetime) -> None:
        """Show what the ClusterCache holds now."""
        shown = self.state.shown(world, now)
        found = standing(self.state, shown, world, now)
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
        self._world, self._now = world, now
        self.show_lanes()

    _world: ClusterCache | None = None
    _now: datetime | None = None

    def show_lanes(self) -> None:
        """Show the rows on the screen as lanes, where that is wanted or where there is room for them anyway."""
        if self.lanes is None or self._world is None or self._now is None:
            return
        rows = [line for line in self.table.lines if not isinstance(line, Heading)]
        wanted = self.size.height >= _TALL if self.wants_lanes is None else self.wants_lanes
        self.lanes.display = wanted and bool(rows) and self.table.display
        if self.lanes.display:
            room = max(int(self.size.height * _LANES_SHARE), 4)
            self.lanes.put(
                rows, self.table.row, self.state.listing.noun, self._world, self._now, room
            )

    def toggle_lanes(self) -> bool:
        """Show lanes, or hide them; tell whether they are shown."""
        if self.lanes is None:
            return False
        self.wants_lanes = not self.lanes.display
        self.show_lanes()
        return bool(self.lanes.display)

    def tick(self, now: datetime) -> None:
        """Let time pass on what is shown."""
        self.table.tick(now)
        self._now = now
        if self.lanes is not None and self.lanes.display and self.lanes.is_outdated(now):
            self.show_lanes()

    def on_resize(self) -> None:
        """Give lanes the room there is now."""
        self.show_lanes()

    def on_policy_table_moved(self) -> None:
        """Let lanes follow the cursor."""
        self.show_lanes()

    def on_lanes_panel_chosen(self, event: LanesPanel.Chosen) -> None:
        """Put the cursor on the row whose lane was clicked."""
        at = next((at for at, line in enumerate(self.table.lines) if line is event.row), None)
        if at is not None:
            self.table.move_to(at)

    def _title(self, shown: Shown) -> str:
        state = self.state
        limits = [state.listing.narrowed] if state.failures and state.listing.failures else []
        limits += [state.filter.text] if state.filter.text else []
        limits += [f"ns={state.namespace}"] if state.namespace else []
        more = "+" if shown.is_cut else ""
        count = f"{shown.kept:,}{more}".replace(",", " ")
        total = f" of {shown.total:,}{more}".replace(",", " ") if shown.total != shown.kept else ""
        text = f"{state.listing.title} ({', '.join([count + total + shown.of, *limits])})"
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


def list_view(screen: str, settings: Settings, world: ClusterCache, now: datetime) -> ListView:
    """Return a list screen as settings have it, of one cluster or of several side by side."""
    is_beside = isinstance(world, BesideCache)
    listing = beside(LISTINGS[screen]) if is_beside else LISTINGS[screen]
    made = ListView(listing, now, marks="ascii" if settings.ascii else "glyph")
    made.state.namespace = settings.namespace
    chosen = settings.columns.get(screen, ())
    made.state.columns = (CLUSTER.id, *chosen) if is_beside and chosen else chosen
    if screen == "violations":
        made.state.known = settings.seen
    return made


def _words(found: Standing) -> Text:
    text = Text(plain(found.text), "bold" if found.hides_rows else "")
    if found.help:
        text.append("\n" if found.hides_rows else "   ")
        text.append(plain(found.help), "dim")
    return text


def _escaped(text: str) -> str:
    """Return a text in which brackets are no markup, for border titles."""
    return plain(text).replace("[", r"\[")


# How things stand with what a screen shows: loading, hindered, stale, empty or fine, and in words why and what next.


class Condition(StrEnum):
    """Whether rows can be shown, and whether they can be believed."""

    FINE = "fine"
    EMPTY = "empty"
    LOADING = "loading"
    HINDERED = "hindered"
    STALE = "stale"


@record
class Standing:
    """The condition, a sentence about it, and the next step."""

    condition: Condition
    text: str = ""
    help: str = ""

    @property
    def hides_rows(self) -> bool:
        """Whether there is nothing to show but the words."""
        return self.condition not in (Condition.FINE, Condition.STALE)


def standing(state: ListState, shown: Shown, world: ClusterCache, now: datetime) -> Standing:
    """Return how things stand with a list screen; only where all is known, no rows means that there is nothing."""
    listing = state.listing
    knowledge = known(world, listing)
    said = knowledge.said(now)
    advice = knowledge.problem.help if knowledge.problem is not None else ""
    waits = knowledge.sight is Sight.LOADING or (knowledge.sight is Sight.PARTLY and not said)
    if shown.lines:
        condition = Condition.STALE if knowledge.sight is Sight.STALE else Condition.FINE
        if waits:
            said = f"more is on its way: {_awaited(listing, world)}"
        return Standing(condition, said, advice)
    if not shown.total and listing.noun != "health":
        if waits:
            return Standing(Condition.LOADING, f"waiting for the API server: {_awaited(listing, world)}", "rows show as soon as they come")  # fmt: skip
        if said:
            return Standing(Condition.HINDERED, said, advice)
    if shown.total:
        there = (
            "the only row does not fit" if shown.total == 1 else f"none of {shown.total} rows fits"
        )
        text = f"{there}: {_limits(state)}"
        return Standing(Condition.EMPTY, f"{text}; {said}" if said else text, _way_out(state))
    return Standing(Condition.EMPTY, listing.empty, listing.next_step)


def _awaited(listing: Listing, world: ClusterCache) -> str:
    return ", ".join(dict.fromkeys(map(called, awaited(world, listing))))


def _limits(state: ListState) -> str:
    limits = [f"`{state.filter.text}`"] if state.filter.text else []
    if state.failures and state.listing.failures is not None:
        limits.append(state.listing.narrowed)
    if state.namespace:
        limits.append(f"namespace {state.namespace}")
    if state.hidden:
        limits.append(f"{len(state.hidden)} ignored")
    return ", ".join(limits) or "the screen"


def _way_out(state: ListState) -> str:
    ways = ["esc clears the filter"] if state.filter.text else []
    if state.failures and state.listing.failures is not None:
        ways.append("! shows everything")
    if state.namespace:
        ways.append("0 shows all namespaces")
    return "; ".join(ways)


# When changes of the cluster cache are drawn: soon where drawing is quick, more rarely where it is not, and not between two quick keys.
#
# Knows no widgets; time comes from whoever asks.

_SHARE = 5.0
"""Drawing may take one part in so many of the time."""

_DEAR, _BETWEEN_KEYS, _LONGEST = 0.03, 0.15, 1.0


class Pace:
    """See the module; all instants are seconds of one clock that never goes back."""

    def __init__(self) -> None:
        self._cost = 0.0
        self._ended = -_LONGEST
        self._pressed = -_LONGEST

    def drew(self, began: float, ended: float) -> None:
        """Note when something was drawn."""
        self._cost, self._ended = ended - began, ended

    def pressed(self, at: float) -> None:
        """Note that a key was pressed."""
        self._pressed = at

    def is_due(self, now: float) -> bool:
        """Tell whether changes may be drawn now; they never wait longer than a second beyond their share."""
        since = now - self._ended
        if since < _SHARE * self._cost:
            return False
        hurries = self._cost > _DEAR and now - self._pressed < _BETWEEN_KEYS
        return not hurries or since > _SHARE * self._cost + _LONGEST


# The Explain screen: policy, rule and condition as a tree, with what held, what did not, and the values that were seen.


_LONGEST_VALUE = 200
_HELP = "e on a violation, block, policy or exception explains it; `:explain KIND/NAME` explains an object"


class ExplainView(Vertical):
    """A tree of reasons; empty until something is to be explained."""

    def __init__(self) -> None:
        super().__init__(id="explain", classes="view")
        self.border_title = "Explain"
        self.reasons: Tree[Reason] = Tree("nothing yet")
        self.reasons.show_root = False

    def compose(self) -> ComposeResult:
        """Make the tree."""
        yield self.reasons
        yield Static(_HELP, classes="notice", markup=False)

    def show(self, title: str, reasons: Sequence[Reason], unknown: str = "") -> None:
        """Show why something is as it is; what failed is open, the rest is folded. `unknown` is what may speak of it unread."""
        self.border_title = f"Explain {plain(title)}".replace("[", r"\[")
        self.reasons.reset(Text(plain(title)))
        self.reasons.root.expand()
        for reason in reasons:
            _add(self.reasons.root, reason)
        self.query_one(".notice", Static).display = not reasons
        if not reasons:
            self.query_one(".notice", Static).update(unknown or "no policy speaks of this object")


def _width(node: TreeNode[Reason]) -> int:
    """Return how many cells there are for a leaf below a node."""
    depth, place = 2, node
    while place.parent is not None:
        depth, place = depth + 1, place.parent
    return max(20, (node.tree.size.width or node.tree.app.size.width - 4) - 4 * depth)


def _add(node: TreeNode[Reason], reason: Reason) -> None:
    is_outcome = reason.kind == "outcome"
    if reason.kind == "result" or (is_outcome and not reason.text):
        # the last step of a rule, and its own line, say the same
        return
    label = Text(no_wrap=True)
    mark = mark_of(reason.state)
    label.append(f"{mark.glyph} {reason.state} " if reason.state and not is_outcome else "", "bold")
    what = f"{reason.kind} " if reason.kind not in ("", "rule", "outcome") else ""
    label.append(plain(f"{what}{reason.text}"))
    if reason.value:
        label.append(f"  = {plain(cut(reason.value, _LONGEST_VALUE))}", "dim")
    if not reason.parts:
        label.no_wrap = False
        for line in label.wrap(Console(width=200), _width(node)):
            node.add_leaf(line, reason)
        return
    below = node.add(label, reason, expand=reason.state in ("fail", "error", "warn", "no"))
    for part in reason.parts:
        _add(below, part)
