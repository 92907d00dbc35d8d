"""The line at the bottom: filters while they are typed, commands when they are done; and what `esc` takes back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from textual.widgets import Input

from engine.errors import EngineError
from engine.lang import duration
from kubectl_kpolicy.actions.plugins import plugin_id
from kubectl_kpolicy.actions.prompt import understand
from kubectl_kpolicy.cluster.recording import ReplaySource
from kubectl_kpolicy.cluster.sources import LiveSource
from kubectl_kpolicy.cluster.subject import subject_of
from kubectl_kpolicy.filter import FilterError
from kubectl_kpolicy.output.diagnostics import sentence
from kubectl_kpolicy.output.time_format import absolute, instant, span
from kubectl_kpolicy.session.config import theme_named
from kubectl_kpolicy.tui.completing import completions, line_text, said_of, suggestion
from kubectl_kpolicy.tui.themes import theme_name
from kubectl_kpolicy.tui.widgets.frame import Entry

from . import call, choices, perform_named
from .navigation import open_view, set_namespace

if TYPE_CHECKING:
    from textual.events import Key

    from kubectl_kpolicy.tui.stage import Stage
    from kubectl_kpolicy.tui.state import ListState

UNLOCKED_FOR = 15 * 60


_ASKS = {
    "/": "text, /regex/, !not, sev>=high, age<1h",
    ":": "screen, ns NAME, ctx NAME[,NAME], view NAME, save NAME, theme NAME, at TIME, write; tab completes, ↑ goes back",
}


def _open(app: Stage, mark: str, text: str = "") -> None:
    line = app.query_one("#line", Input)
    line.add_class("-open")
    line.placeholder = _ASKS[mark]
    line.value = mark + text
    app.lines.rest()
    app.screen.set_focus(line)
    line.action_end()


def filter_line(app: Stage) -> None:
    """Keep rows that fit."""
    if app.view is not None:
        _open(app, "/", app.view.state.filter.text)


def command_line(app: Stage) -> None:
    """Go to a screen or run a command."""
    _open(app, ":")


def close_line(app: Stage) -> None:
    """Close the line and give the focus back."""
    line = app.query_one("#line", Input)
    line.remove_class("-open")
    line.value = ""
    app.screen.set_focus(app.table or app.query_one(f"#{app.current}"))


def changed(app: Stage) -> None:
    """Filter with what stands there so far; half a filter is no mistake yet, it is only said."""
    line = app.query_one("#line", Input)
    if app.view is None or not line.has_class("-open") or not line.value.startswith("/"):
        return
    try:
        app.view.state.where(line.value[1:])
        app.say("")
    except FilterError as error:
        app.view.state.where("")
        app.say(sentence(error), "yellow")
    app.draw()


_EDITS = {
    "backspace": "delete_left", "delete": "delete_right", "left": "cursor_left", "right": "cursor_right", "home": "home",
    "end": "end",
}  # fmt: skip
_LINE_EDITS = {**_EDITS, "ctrl+a": "home", "ctrl+e": "end", "ctrl+u": "delete_left_all", "ctrl+k": "delete_right_all", "ctrl+w": "delete_left_word"}  # fmt: skip


@runtime_checkable
class Form(Protocol):
    """A dialog with fields that says what follows when one of them is done with."""

    def entered(self, field: Input) -> None:
        """Go on after a field."""


async def typed(app: Stage, field: Input, event: Key) -> bool:
    """Take a key into a field of the line or of a form, at once, so that the next one finds it there; tell whether it was taken."""
    edits = _LINE_EDITS if field.id == "line" else _EDITS
    if event.key == "enter":
        if field.id == "line":
            await done(app)
        elif isinstance(app.screen, Form):
            app.screen.entered(field)
    elif event.is_printable and event.character:
        field.insert_text_at_cursor(event.character)
        _suggest(app, field)
    elif event.key in edits:
        getattr(field, f"action_{edits[event.key]}")()
        _suggest(app, field)
    else:
        return _recalled(app, field, event.key)
    return True


def _suggest(app: Stage, field: Input) -> None:
    """Show behind the cursor what the line is likely to become; the arrow to the right takes it."""
    text = line_text(field.value)
    if text is None or not isinstance(field, Entry):
        return
    app.lines.rest()
    found = suggestion(app, text)
    field.suggest(f":{found}" if found else "")


def _recalled(app: Stage, field: Input, key: str) -> bool:
    """Complete the line, or go back and forth in the lines before; tell whether the key meant that."""
    text = line_text(field.value)
    if text is None or key not in ("tab", "shift+tab", "up", "down"):
        return False
    if key in ("up", "down"):
        found = app.lines.step(-1 if key == "up" else 1, text)
    else:
        found = _completed(app, text, 1 if key == "tab" else -1)
    if found is not None:
        field.value = f":{found}"
        field.action_end()
    return True


def _completed(app: Stage, text: str, by: int) -> str | None:
    """Return the line with its last word completed; pressed again, with the next completion. None where nothing fits."""
    before, index = app.lines.offered
    if not (before and text == before[index]):
        before, index = completions(app, text), -1 if by > 0 else 0
    if not before:
        app.say(f"nothing begins with `{text.rpartition(' ')[2]}`", "yellow")
        return None
    index = (index + by) % len(before)
    app.lines.offered = (before, index)
    app.say(said_of(before, index) if len(before) > 1 else "")
    return before[index]


async def done(app: Stage) -> None:
    """Do what was typed."""
    text = app.query_one("#line", Input).value
    if text.startswith("/"):
        changed(app)
        close_line(app)
        return
    close_line(app)
    app.lines.add(text.removeprefix(":"))
    await run_line(app, text.removeprefix(":"))


async def run_line(app: Stage, text: str) -> None:
    """Do what a command line says; what cannot be understood is said."""
    command = understand(text, app.settings.aliases, app.settings.own.plugins)
    if command.problem:
        app.say(command.problem, "yellow")
        return
    try:
        await _run(app, command.verb, command.word, command.rest)
    except EngineError as error:
        app.say(sentence(error), "yellow")


async def _run(app: Stage, verb: str, word: str, rest: str) -> None:
    match verb:
        case "go":
            app.go(word, rest or None)
        case "ctx" if rest:
            app.go(rest)
            choices.go_to_context(app, word)
        case "quit":
            app.exit()
        case "help":
            await perform_named(app, "help")
        case "theme":
            app.theme = theme_name(theme_named(word.strip()))
        case "plugin":
            await perform_named(app, plugin_id(word))
        case "view":
            open_view(app, word)
        case "write":
            unlock(app)
        case "readonly":
            lock(app)
        case "explain" if not word.strip():
            app.go("explain")
        case "explain":
            await call("details.explain_object", app, *subject_of(word))
        case _:
            _choose(app, verb, word)


def _choose(app: Stage, verb: str, word: str) -> None:
    """Look at another namespace, context or instant, or keep what is looked at as a view."""
    match verb:
        case "ns" if word:
            set_namespace(app, "" if word == "all" else word)
        case "ctx" | "contexts" if word:
            choices.go_to_context(app, word)
        case "ns" | "ctx" | "contexts":
            (choices.namespaces if verb == "ns" else choices.contexts)(app)
        case "at":
            at(app, word)
        case "save":
            choices.save(app, word)


def unlock(app: Stage) -> None:
    """Allow changes for a quarter of an hour."""
    app.read_only = False
    app.set_timer(UNLOCKED_FOR, lambda: lock(app) if app.settings.read_only else None)
    app.say("changes are unlocked for 15 min")
    app.draw_frame()


def lock(app: Stage) -> None:
    """Allow no changes."""
    app.read_only = True
    app.say("read-only")
    app.draw_frame()


def toggle_lock(app: Stage) -> None:
    """Lock changes, or unlock them for 15 minutes."""
    (unlock if app.read_only else lock)(app)


def back(app: Stage) -> None:
    """Close what is open; else take back the filter; else go where one came from."""
    line = app.query_one("#line", Input)
    if line.has_class("-open"):
        if app.view is not None and line.value.startswith("/"):
            app.view.state.where("")
            app.draw()
        close_line(app)
        return
    if app.view is not None and app.view.state.filter.text:
        app.view.state.where("")
        app.draw()
        return
    place = app.history.step(-1)
    if place is not None:
        app.go(place.screen, place.where or None, remember=False)


def palette(app: Stage) -> None:
    """Search everything that can be done."""
    app.action_command_palette()


def leave(app: Stage) -> None:
    """Leave the console."""
    app.exit()


def follow_labels(app: Stage) -> None:
    """Let the cluster be asked for labels, where the filter speaks of those that the rows of this screen do not bring along."""
    view = app.view
    if view is None or view.asked_for_labels or not view.state.filter.asks_for_labels:
        return
    if app.current == "blocks":
        app.say("denied requests have no labels", "yellow")
    elif app.current == "violations" and isinstance(app.source, LiveSource):
        view.asked_for_labels = True
        app.run_worker(_learn_labels(app, view.state, app.source), group="labels", exclusive=True)
    elif app.current == "violations":
        why = "labels of objects are asked of one cluster: `:ctx NAME`"
        if len(app.clusters) == 1:
            why = "a recording holds no labels of objects"
        app.say(why, "yellow")


async def _learn_labels(app: Stage, state: ListState, source: LiveSource) -> None:
    """Read the labels of the objects that violations are about, which reports do not hold, and filter by them."""
    from kubectl_kpolicy.cluster.owners import Owners

    owners = Owners()
    await owners.learn(source.client, source.world)
    state.listing = owners.listing(shows_owners=False)
    state.outdate()
    app.draw()


# Moving through the time of a recording: change by change, by minutes, to an instant.

_FAR = timedelta(minutes=5)
_LIVE = (
    "time moves by itself here; a recording lets you move it: `kubectl kpolicy tui --replay FILE`"
)


def _past(app: Stage) -> ReplaySource | None:
    """Return the recording that is looked at; say so where it is a live cluster."""
    if isinstance(app.source, ReplaySource):
        return app.source
    app.say(_LIVE, "yellow")
    return None


def _moved(app: Stage, past: ReplaySource) -> None:
    """Draw what was there at the new instant; what depends on the time is made anew."""
    for view in app.views.values():
        view.state.outdate()
    app.say(_said(past))
    app.draw()


def _said(past: ReplaySource) -> str:
    made = past.recording
    since, length = past.now() - made.began_at, made.ended_at - made.began_at
    return (
        f"{absolute(past.now())}, {span(since.total_seconds())} of {span(length.total_seconds())}"
    )


def step(by: int, app: Stage) -> None:
    """Go to the change before or after."""
    past = _past(app)
    if past is None:
        return
    if past.step(by):
        _moved(app, past)
    else:
        app.say("nothing was recorded after this" if by > 0 else "the recording begins here")


def move(sign: int, app: Stage) -> None:
    """Go five minutes back or on."""
    past = _past(app)
    if past is not None:
        past.move(sign * _FAR)
        _moved(app, past)


def at(app: Stage, word: str) -> None:
    """Look at an instant: `start`, `end`, `12:04`, RFC 3339, or a length from now such as `+5m`; raises EngineError."""
    past = _past(app)
    if past is not None:
        past.move_to(meant(word.strip(), past))
        _moved(app, past)


def meant(word: str, past: ReplaySource) -> datetime:
    """Return the instant that a word means in a recording; raises EngineError."""
    made = past.recording
    if word in ("start", "end"):
        return made.began_at if word == "start" else made.ended_at
    length = duration.length(word[1:]) if word[:1] in ("+", "-") else None
    if length is not None:
        return past.now() + (length if word.startswith("+") else -length)
    found = instant(word) or _clock(word, past.now())
    if found is None:
        raise EngineError(f"cannot read `{word}` as an instant", help="write start, end, +5m, -30s, 12:04:31 or 2026-11-21T10:18:00Z")  # fmt: skip
    return found


def _clock(word: str, now: datetime) -> datetime | None:
    """Return a time of the day (UTC) on the day that is looked at."""
    parts = word.split(":")
    if len(parts) not in (2, 3) or not all(one.isascii() and one.isdigit() for one in parts):
        return None
    hour, minute, second = (*map(int, parts), 0)[:3]
    if hour > 23 or minute > 59 or second > 59:
        return None
    return now.astimezone(UTC).replace(hour=hour, minute=minute, second=second, microsecond=0)
