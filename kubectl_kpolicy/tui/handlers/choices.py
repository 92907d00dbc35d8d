"""Choosing what is looked at: columns, a filter put together step by step, namespaces, contexts, two grants side by side, views."""

from __future__ import annotations

from collections import Counter
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from kubectl_kpolicy.cluster.details import Section, sections
from kubectl_kpolicy.filter import compile_filter, parts_of, quoted
from kubectl_kpolicy.output.cells import plain
from kubectl_kpolicy.output.rows import SEVERITIES, Column, Row, Shape
from kubectl_kpolicy.session.cluster import meant
from kubectl_kpolicy.session.config import save_view
from kubectl_kpolicy.session.kept import save_columns
from kubectl_kpolicy.tui.modals.picker import Choice, Columns
from kubectl_kpolicy.tui.modals.texts import TextWindow
from kubectl_kpolicy.tui.stage import cluster_of
from kubectl_kpolicy.tui.state import Heading

from .navigation import set_namespace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubectl_kpolicy.tui.stage import Stage
    from kubectl_kpolicy.tui.views import ListView

_MOST = 60
_TIMES = ("5m", "30m", "1h", "6h", "1d", "7d")
_EQUAL = {"=": "is", "!=": "is not"}
_ORDERED = {">=": "at least", "<=": "at most", **_EQUAL}
_COMPARISONS = {
    Shape.AGE: {"<": "younger", ">": "older"},
    Shape.TIME: {"<": "within", ">": "farther away"},
    Shape.LEFT: {"<": "sooner", ">": "later"},
    Shape.NUMBER: _ORDERED,
    Shape.SEVERITY: _ORDERED,
}


def columns(app: Stage) -> None:
    """Choose which columns this screen shows; kept for the next time."""
    view = app.view
    if view is None:
        return

    def chosen(ids: tuple[str, ...] | None) -> None:
        if ids is None:
            return
        view.state.columns = ids
        name = _place(app)
        app.settings.columns[name] = ids
        kept = save_columns(app.settings.columns)
        app.say(f"columns of {name}" + ("" if kept else "; they cannot be kept on this computer"))
        view.table.measure()

    shown = [one.id for one in view.table.columns]
    app.push_screen(Columns(view.state.listing.columns, shown), chosen)


def _place(app: Stage) -> str:
    """Return what columns are kept under: the saved view that is open, or the screen."""
    view = app.view
    text = view.state.filter.text if view is not None else ""
    for name, saved in app.settings.views.items():
        screen, _, where = saved.partition(":")
        if screen.strip() == app.current and where.strip() == text and text:
            return f"view {name}"
    return app.current


# Filters.


def build_filter(app: Stage) -> None:
    """Ask for a column, a comparison and a value, one after the other, and put them to the filter that is there."""
    view = app.view
    if view is None:
        return
    parts = parts_of(view.state.filter.text)
    choices = [Choice(f"-{number}", f"without {part}", "remove") for number, part in enumerate(parts)]  # fmt: skip
    choices += [Choice(one.id, one.head, one.shape) for one in view.state.listing.columns]

    def chosen(name: str) -> None:
        if name.startswith("-"):
            _where(app, view, [part for number, part in enumerate(parts) if f"-{number}" != name])
            return
        column = view.state.listing.column(name)
        if column is not None:
            _ask_comparison(app, view, column)

    app.pick(_title(view), choices, chosen)


def _title(view: ListView) -> str:
    text = view.state.filter.text
    return f"Filter: {text}".replace("[", r"\[") if text else "Filter by column"


def _ask_comparison(app: Stage, view: ListView, column: Column) -> None:
    signs = _COMPARISONS.get(column.shape, _EQUAL)
    choices = [Choice(sign, f"{column.id}{sign}…", meaning) for sign, meaning in signs.items()]
    app.pick(column.head, choices, lambda sign: _ask_value(app, view, column, sign))


def _ask_value(app: Stage, view: ListView, column: Column, sign: str) -> None:
    """Offer the values that are there with their counts, and how many rows each would leave."""
    rows = [one for one in view.table.lines if not isinstance(one, Heading)]
    choices = [Choice(value, value or "(none)", f"{count:,}" if count else "") for value, count in _values(column, rows)]  # fmt: skip

    def chosen(value: str) -> None:
        _where(app, view, [*parts_of(view.state.filter.text), f"{column.id}{sign}{_quoted(value)}"])

    app.pick(f"{column.head} {sign}", choices, chosen)


def _values(column: Column, rows: Sequence[Row]) -> list[tuple[str, int]]:
    if column.shape in (Shape.AGE, Shape.TIME, Shape.LEFT):
        return [(one, 0) for one in _TIMES]
    counts = Counter(row.text(column.id) for row in rows)
    if column.shape is Shape.SEVERITY:
        return [(one, counts[one]) for one in SEVERITIES if one]
    return counts.most_common(_MOST)


def _quoted(value: str) -> str:
    if value and not set(value) & set(' \t\n"()\\'):
        return value
    return quoted(value)


def _where(app: Stage, view: ListView, parts: Sequence[str]) -> None:
    text = " ".join(parts)
    compile_filter(text, view.state.listing)
    view.state.where(text)
    app.draw()
    kept = sum(not isinstance(one, Heading) for one in view.table.lines)
    app.say(f"{kept} rows fit" + (f" `{text}`; = adds more" if text else ""))


# Namespaces and contexts.


def namespaces(app: Stage) -> None:
    """Choose a namespace among those that have rows, as :ns does."""
    counts: Counter[str] = Counter()
    for view in app.views.values():
        counts.update(one.text("namespace") for one in view.state.rows(app.source.world, app.source.now()))  # fmt: skip
    favourites = [name for name in app.settings.favourites if name not in counts]
    names = sorted((name for name in counts if name), key=lambda name: (-counts[name], name))
    choices = [Choice("", "all namespaces", f"{sum(counts.values()):,}")]
    choices += [Choice(name, name, f"{counts[name]:,}") for name in [*names, *favourites]]
    app.pick("Namespace", choices, lambda name: set_namespace(app, name))


def contexts(app: Stage) -> None:
    """Choose another context of the kubeconfig, as :ctx does."""
    names = app.contexts()
    if not names:
        app.say("a recording has one context", "yellow")
        return
    choices = [Choice(name, name, "now" if name == app.settings.context else "") for name in names]
    if len(names) > 1:
        choices.append(Choice("*", "all of them side by side", str(len(names))))
    app.pick("Context", choices, lambda name: go_to_context(app, name))


def go_to_context(app: Stage, name: str) -> None:
    """Leave for another context, or for several side by side; the console opens again there, on the same screen. Raises Misuse."""
    chosen = ",".join(meant(name, app.contexts()))
    if chosen == app.settings.context:
        app.say(f"this is {chosen} already")
    else:
        app.exit(chosen)


# Grants and views.


def compare(app: Stage) -> None:
    """Show two grants side by side."""
    row, table = app.row, app.table
    if row is None or table is None:
        return
    marked = [one for one in table.chosen if one.key != row.key]
    if len(marked) != 1:
        app.say("mark one grant with space, put the cursor on the other", "yellow")
        return
    listing, now = table.state.listing, app.source.now()
    left, right = (
        sections(one, listing, cluster_of(one, app.clusters).source.world, now)
        for one in (marked[0], row)
    )
    title = f"{marked[0].text('name')} and {row.text('name')}".replace("[", r"\[")
    app.push_screen(TextWindow(title, compared(left, right, min(app.size.width * 9 // 10, 120))))


def save(app: Stage, name: str) -> None:
    """Keep screen and filter as a view in the configuration; raises EngineError."""
    view = app.view
    if view is None or not name:
        app.say("`:save NAME` keeps a list with its filter", "yellow")
        return
    text = f"{app.current}: {view.state.filter.text}".strip()
    path = save_view(name, text)
    app.settings.views[name] = text
    app.say(f"kept as `:view {name}` in {path}")


# Two rows side by side: what both say once, what they say differently marked.

_LABEL, _WIDEST, _MOST_SIDE = 14, 46, 12


def compared(one: Sequence[Section], other: Sequence[Section], width: int) -> Text:
    """Return two sets of sections as a text for a window of so many cells: label, left, right; `≠` before what differs."""
    left, right = _values_of(one), _values_of(other)
    room = max(12, min(_WIDEST, (width - _LABEL - 12) // 2))
    text = Text(no_wrap=True, overflow="ellipsis")
    for label in dict.fromkeys([*left, *right]):
        here, there = left.get(label, ""), right.get(label, "")
        style = "bold" if here != there else ""
        pairs = zip_longest(_pieces(here, room), _pieces(there, room), fillvalue="")
        for number, (one_part, other_part) in enumerate(pairs):
            text.append("≠ " if style and not number else "  ", "bold")
            text.append(f"{label if not number else '':<{_LABEL}}  "[: _LABEL + 2], "dim")
            text.append(set_cell_size(one_part, room), style)
            text.append("  ")
            text.append(f"{other_part}\n", style)
    return text


def _values_of(sections: Sequence[Section]) -> dict[str, str]:
    """Return the values by label; lines of a section under its title."""
    found: dict[str, str] = {}
    for section in sections:
        for label, value in section.pairs:
            found.setdefault(plain(label), plain(value))
        if section.lines:
            found.setdefault(plain(section.title), "; ".join(map(plain, section.lines)))
    return found


def _pieces(value: str, room: int) -> list[str]:
    """Return a value in lines of so many cells; of a very long one the beginning."""
    pieces: list[str] = []
    rest = value
    while rest and len(pieces) < _MOST_SIDE:
        taken = rest[:room]
        while cell_len(taken) > room:
            taken = taken[:-1]
        pieces.append(taken)
        rest = rest[len(taken) :]
    return [*pieces[:-1], f"{pieces[-1][:-1]}…"] if rest else pieces or [""]
