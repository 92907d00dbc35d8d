"""The console itself: puts source, screens, keys and dialogs together. What actions do stands in `handlers`."""

from __future__ import annotations

from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, cast

from rich.cells import cell_len
from textual import work
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.containers import Container, Horizontal
from textual.events import Key
from textual.screen import Screen
from textual.widgets import Input

from kubectl_kpolicy.actions.screens import LISTINGS, SCREENS
from kubectl_kpolicy.cluster import charts
from kubectl_kpolicy.output.cells import plain

from . import chrome
from .commands import is_told, line_of
from .handlers import handle, perform_named
from .handlers.input_line import Form, changed, done, follow_labels, typed
from .handlers.jump import open_door
from .handlers.navigation import open_view
from .modals.reveal import pictured
from .stage import OneCluster, Place, Stage
from .themes import THEMES, AsciiLines, theme_name
from .views import ExplainView, ListView, Pace, list_view
from .widgets.detail import Detail
from .widgets.frame import Crumbs, Entry, Footer, Header, SteadyText
from .widgets.gauges import PulseView
from .widgets.notices import NoticeLine

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from textual import events
    from textual.app import ComposeResult
    from textual.timer import Timer
    from textual.widget import Widget

    from kubectl_kpolicy.actions.registry import Action
    from kubectl_kpolicy.cluster.sources import Source
    from kubectl_kpolicy.session.identity import Identity

    from .settings import Settings

_SHORTEST_CRUMB, _READ = 16, 8
_TICK, _FLUSH, _SLOW_TICK, _REST = 1.0, 0.1, 15, 0.1
_SAMPLED = 600
"""Ticks between two samples of the numbers."""


class Everything(Provider):
    """The palette: every action, screen and saved view, found by any letters of its words."""

    def _entries(self) -> Iterator[tuple[str, str, Callable[[], object]]]:
        app = cast("Stage", self.app)
        for action in app.registry.on(app.current):
            refused = app.refusal(action)
            keys = ", ".join(app.registry.keys(action))
            if not refused:
                yield f"{action.title}  [{keys}]", action.help, partial(app.perform, action)
        for screen in SCREENS:
            yield f"Go to {screen}", "Open this screen.", partial(app.go, screen)
        for name, text in app.settings.views.items():
            yield f"View {name}", text, partial(open_view, app, name)

    async def discover(self) -> Hits:
        """Offer everything before anything was typed."""
        for title, help_text, run in self._entries():
            yield DiscoveryHit(title.replace("[", r"\["), run, text=title, help=help_text)

    async def search(self, query: str) -> Hits:
        """Offer what fits."""
        matcher = self.matcher(query)
        for title, help_text, run in self._entries():
            score = matcher.match(f"{title} {help_text}")
            if score > 0:
                yield Hit(score, matcher.highlight(title), run, text=title, help=help_text)


class Console(Stage):
    """`kubectl kpolicy tui`; returns the context to go on with, where one was chosen."""

    CSS_PATH = "styles/console.tcss"
    COMMANDS: ClassVar = {Everything}
    TITLE = "kpolicy"

    def __init__(self, source: Source, settings: Settings, **given: Any) -> None:
        super().__init__(source, settings, **given)
        self.identify: Callable[[], Coroutine[None, None, None]] | None = None
        self._detail_timer: Timer | None = None
        self._pace, self._dirty, self._ticks = Pace(), True, 0
        for theme in THEMES:
            self.register_theme(theme)
        if settings.ascii:
            self._filters.append(AsciiLines())
        self.theme = theme_name(settings.theme)
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (140, "-wide")]

    # Frame.

    def compose(self) -> ComposeResult:
        """Make the frame with the first screen; other lists are made when they are first looked at."""
        yield Header(id="header", markup=False)
        yield Crumbs(id="crumbs", markup=False)
        with Horizontal(id="body"):
            with Container(id="views"):
                yield PulseView(marks="ascii" if self.settings.ascii else "glyph")
                yield ExplainView()
                if self.current in LISTINGS:
                    yield self._made(self.current)
            yield Detail(self.settings.detail)
        yield SteadyText(id="message", markup=False)
        marks = "ascii" if self.settings.ascii else "glyph"
        yield NoticeLine(marks=marks, key=self.registry.key_of("notice"))
        yield Entry(id="line", compact=True, select_on_focus=False)
        yield Footer(id="footer", markup=False)

    async def on_mount(self) -> None:
        """Open the first screen; the source begins when that is drawn."""
        self._flushing = self.set_interval(_FLUSH, self._flush_changes)
        self.source.world.on_change(lambda _change: self._changed())
        self.go(self.current, self.settings.where)
        self.draw()
        self.call_after_refresh(self._read)
        self.set_interval(_TICK, self._tick)
        # A dialog that comes lays out what is below it, whose own turn that takes away from whatever waits for it.
        self.screen.screen_layout_refresh_signal.subscribe(self, Screen.check_idle, immediate=True)
        for clash in self.registry.clashes()[:1]:
            self.call_after_refresh(self.say, f"keymap: {clash}", "yellow")

    def looks_as(self, me: Identity, at: OneCluster) -> None:
        """Take over who looks at a cluster; what rows say may depend on it."""
        at.source.world.viewer = me if me.user else None
        for view in self.views.values():
            view.state.outdate()
        self._changed()

    @work
    async def _read(self) -> None:
        """Let the source begin; who looks is found out when it has."""
        await self.source.start()
        if self.identify is not None:
            self.run_worker(self.identify(), exit_on_error=False)

    async def on_unmount(self) -> None:
        """Let the source stop."""
        await self.source.close()

    # Where one is.

    def go(self, screen: str, where: str | None = None, *, remember: bool = True) -> None:
        """Open a screen, with a filter where one is given."""
        places = self.query_one("#views", Container)
        if screen in LISTINGS and screen not in self.views:
            places.mount(self._made(screen))
        self.current = screen
        for place in places.children:
            place.display = place.id == screen
        view = self.view
        if view is not None and where is not None:
            view.state.where(where)
        if remember:
            self.history.visit(Place(screen, view.state.filter.text if view is not None else ""))
        self.said = ("", "")
        self.call_after_refresh(self.draw)
        self.call_after_refresh(self._focus)

    def _made(self, screen: str) -> ListView:
        """Return a list that was not looked at before."""
        world, now = self.source.world, self.source.now()
        made = self.views[screen] = list_view(screen, self.settings, world, now)
        made.table.flashes.is_on = self.settings.motion and self.animation_level != "none"
        return made

    def _focus(self) -> None:
        # A dialog may have come meanwhile, and has its own.
        if len(self.screen_stack) > 1 or self.query_one("#line").has_class("-open"):
            return
        target: Widget = self.table or self.query_one(f"#{self.current}")
        if isinstance(target, ExplainView):
            target = target.reasons
        self.screen.set_focus(target if target.display else None)

    # Drawing.

    def draw(self) -> None:
        """Show what the cluster cache holds now."""
        world, now = self.source.world, self.source.now()
        if self.view is not None:
            follow_labels(self)
            self.view.update_from(world, now)
            if not self.view.table.has_focus:
                # A table loses the focus while it has no rows to show, and cannot take it before it is mounted.
                self.call_after_refresh(self._focus)
        elif self.current == "pulse":
            self.query_one(PulseView).put(chrome.board(self, now))
        self._dirty = False
        self.draw_frame()

    def draw_frame(self) -> None:
        """Draw header, crumbs, details and footer."""
        chrome.draw_header(self)
        chrome.draw_line(self)
        self._draw_detail()

    def _draw_detail(self) -> None:
        """Draw the details of the row, and ask what may be done with it."""
        self._detail_timer = None
        if self._is_up and self.row is not None:
            self._learn_rights(self.row.text("namespace"))
            chrome.draw_detail(self, self.row)

    @work(exit_on_error=False)
    async def _learn_rights(self, place: str) -> None:
        if await self.here.rights.learn(place):
            chrome.draw_line(self)

    @property
    def _is_up(self) -> bool:
        """Whether there is anything to draw on: timers go on for a moment after the end."""
        return not self._exit and bool(self.screen_stack) and bool(self.query(Header))

    @property
    def is_outdated(self) -> bool:
        """Whether the cluster cache holds something that is not drawn yet."""
        return self._dirty

    def _changed(self) -> None:
        if not self._dirty:
            self._dirty = True
            self._flushing.resume()
            self.call_later(self._flush_changes)

    def _flush_changes(self) -> None:
        """Draw what has changed, as often as that is cheap; nobody looks again before more has."""
        began = monotonic()
        if self._dirty and self._is_up and self._pace.is_due(began):
            self.draw()
            self._pace.drew(began, monotonic())
        if not self._dirty:
            self._flushing.pause()

    def _tick(self) -> None:
        """Let a second pass: countdowns go on; now and then rows that depend on the time are made anew."""
        if not self._is_up:
            return
        self._ticks += 1
        if self._ticks % _SAMPLED == 0:
            self.sample()
        if self._ticks % _SLOW_TICK == 0 and self.view is not None:
            self.view.asked_for_labels = False
        if self._ticks % _SLOW_TICK == 0 and (self.table is None or len(self.table.lines) < 5_000):
            if self.view is not None:
                self.view.state.outdate()
            self._changed()
        if self.view is not None:
            self.view.tick(self.source.now())
        if self.settings.notices:
            self.query_one(NoticeLine).look(self.source.world, self.source.now())
        chrome.draw_header(self)

    def sample(self) -> None:
        """Keep the numbers of now, so that Pulse can tell how they change."""
        now = self.source.now()
        self.past = charts.sampled(self.past, charts.numbers_of(self.source.world, now), now)

    def export_screenshot(self, *, title: str | None = None, simplify: bool = False) -> str:
        """Return a picture of the screen; codes are dots in it, whatever the screen shows."""
        with pictured(self.screen):
            return super().export_screenshot(title=title, simplify=simplify)

    def say(self, text: str, role: str = "") -> None:
        """Show a sentence beside the crumbs until something else is said; a long one as a note over the screen."""
        if cell_len(text) > self.size.width - _SHORTEST_CRUMB:
            self.notify(plain(text), markup=False, timeout=_READ)
        self.said = (text, role)
        chrome.draw_crumbs(self)

    # Keys and actions.

    async def on_event(self, event: events.Event) -> None:
        """Do what a key means before anything else sees it.

        INVARIANT: the next key of somebody who types fast meets the state that this one left, such as an open line.
        """
        if not (isinstance(event, Key) and await self._is_done(event)):
            await super().on_event(event)

    async def _is_done(self, event: Key) -> bool:
        """Do what a key means on this screen, unless a dialog is open or somebody types; tell whether it meant anything."""
        if event.is_forwarded:
            return False
        if len(self.screen_stack) > 1:
            field = self.focused if isinstance(self.screen, Form) else None
            return isinstance(field, Input) and await typed(self, field, event)
        if isinstance(self.focused, Input) and event.key != "escape":
            return self.focused.id == "line" and await typed(self, self.focused, event)
        key = event.character if event.is_printable and event.character not in (None, " ") else event.key  # fmt: skip
        action = self.registry.of_key(self.current, str(key))
        if action is None:
            return False
        self._pace.pressed(monotonic())
        await self.perform(action)
        return True

    async def perform(self, action: Action) -> None:
        """Do an action, or say why not; what it does as a command line goes into the log."""
        if refused := self.refusal(action):
            self.say(refused, "yellow")
            return
        told = is_told(self, action)
        before = line_of(self, action, self.rows) if told and action.needs_row else ""
        result = handle(self, action)
        if result is not None:
            await result
        if told:
            self.log_command(before or line_of(self, action, ()))
        if not action.cheap:
            self.draw_frame()

    # What widgets tell.

    async def on_header_opened(self, event: Header.Opened) -> None:
        """Open what the header names."""
        await open_door(self, event.door)

    def on_policy_table_moved(self) -> None:
        """Follow the cursor: at once with what is cheap, with the details when it rests."""
        chrome.draw_line(self)
        if self._detail_timer is None:
            self._detail_timer = self.set_timer(_REST, self._draw_detail)

    def on_policy_table_sorted(self) -> None:
        """Draw the new order."""
        self.draw()

    async def on_policy_table_chosen(self) -> None:
        """Open the row, or go through the door that was clicked."""
        await perform_named(self, "open")

    on_pulse_view_pressed = on_policy_table_chosen

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while somebody types."""
        if event.input.id == "line":
            changed(self)

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        """Do what was typed."""
        if event.input.id == "line":
            await done(self)
