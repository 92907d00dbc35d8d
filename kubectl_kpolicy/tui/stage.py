"""What a console offers to whatever acts on it: where one is, what is looked at and marked, whose rights count; not how it is drawn.

Handlers, the frame and command lines know this class and not the console itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from textual.app import App

from engine.errors import EngineError
from engine.fields import word
from engine.record import record
from kubectl_kpolicy.actions.catalog import registry
from kubectl_kpolicy.actions.executor import ActionExecutor
from kubectl_kpolicy.actions.registry import Action, refusal
from kubectl_kpolicy.actions.screens import SCREENS
from kubectl_kpolicy.cluster.sources import LiveSource
from kubectl_kpolicy.grants.form import GrantForm
from kubectl_kpolicy.output.diagnostics import sentence
from kubectl_kpolicy.output.rows import CLUSTER
from kubectl_kpolicy.session.identity import Identity, KnownRights

from .modals.picker import Choice, Picker

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from textual.screen import Screen
    from textual.widget import AwaitMount

    from controllers.kube import Client
    from kubectl_kpolicy.actions.codes import CodeActions
    from kubectl_kpolicy.cluster.charts import Sample
    from kubectl_kpolicy.cluster.sources import Source
    from kubectl_kpolicy.output.rows import Row
    from kubectl_kpolicy.session.identity import Right

    from .settings import Settings
    from .views import ListView
    from .widgets.table import PolicyTable

T = TypeVar("T")

_MOST_LINES = 200


class OneCluster:
    """One cluster: where its rows come from, and by whom and how it is changed. `name` is its context, empty where there is no other."""

    def __init__(
        self,
        source: Source,
        doer: ActionExecutor | None = None,
        grant_form: GrantForm | None = None,
        rights: Mapping[Right, bool] | None = None,
        *,
        user: str = "",
        name: str = "",
    ) -> None:
        self.name, self.source = name, source
        self.doer = doer or ActionExecutor(None, source.now, Identity(user))
        self.grant_form = grant_form or GrantForm(source.world, source.now)
        self.rights = KnownRights(rights)
        self.codes: CodeActions | None = None

    @property
    def client(self) -> Client | None:
        """The connection to it; None where it is a recording, or where there is no way to it."""
        return self.source.client if isinstance(self.source, LiveSource) else None


def cluster_of(row: Row | None, clusters: Mapping[str, OneCluster]) -> OneCluster:
    """Return the cluster of a row; the first one where a row has none."""
    name = row.text(CLUSTER.id) if row is not None else ""
    return clusters.get(name) or next(iter(clusters.values()))


def by_cluster(
    rows: Iterable[Row], clusters: Mapping[str, OneCluster]
) -> list[tuple[OneCluster, Sequence[Row]]]:
    """Return rows by their clusters."""
    found: dict[str, tuple[OneCluster, list[Row]]] = {}
    for row in rows:
        one = cluster_of(row, clusters)
        found.setdefault(one.name, (one, []))[1].append(row)
    return list(found.values())


# Where one has been: screens with their filters, back and forth, and the one before this.


@record
class Place:
    """A screen and the filter it had."""

    screen: str
    where: str = ""


class History:
    """The places of one sitting; going somewhere new forgets what was ahead."""

    def __init__(self) -> None:
        self._places: list[Place] = []
        self._index = -1

    def visit(self, place: Place) -> None:
        """Note that somebody went to a place."""
        if self._index >= 0 and self._places[self._index] == place:
            return
        self._places = [*self._places[: self._index + 1][-99:], place]
        self._index = len(self._places) - 1

    def step(self, by: int) -> Place | None:
        """Go back (-1) or forth (1); None where there is nothing."""
        if not 0 <= self._index + by < len(self._places):
            return None
        self._index += by
        return self._places[self._index]

    def before(self) -> Place | None:
        """Return the last place on another screen."""
        here = self._places[self._index].screen if self._places else ""
        return next((one for one in reversed(self._places[: self._index]) if one.screen != here), None)  # fmt: skip


class CommandHistory:
    """The lines that were given after `:`, the last one at the end, each once."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self.lines: list[str] = list(lines)[-_MOST_LINES:]
        self.offered: tuple[list[str], int] = ([], 0)
        """The completions that the line has gone through, and which of them stands there."""
        self._at: int | None = None
        self._typed = ""

    def add(self, line: str) -> None:
        """Note a line; the next look back begins behind it."""
        text = line.strip()
        if text:
            self.lines = [*(one for one in self.lines if one != text), text][-_MOST_LINES:]
        self.rest()

    def rest(self) -> None:
        """Begin anew with the next look back."""
        self._at = None

    def step(self, by: int, typed: str) -> str | None:
        """Return the line before (-1) or after (1) that begins as what was typed; None where there is none further."""
        if self._at is None:
            self._at, self._typed = len(self.lines), typed
        at = self._at + by
        while 0 <= at < len(self.lines):
            if self.lines[at].startswith(self._typed):
                self._at = at
                return self.lines[at]
            at += by
        if by > 0 and self._at < len(self.lines):
            self._at = len(self.lines)
            return self._typed
        return None

    def last(self, typed: str) -> str:
        """Return the last line that begins as what was typed and goes on, empty for none."""
        return next(
            (one for one in reversed(self.lines) if one.startswith(typed) and one != typed), ""
        )


class Stage(App[str]):
    """A console as handlers know it, on one cluster or on `clusters` by context."""

    def __init__(
        self,
        source: Source,
        settings: Settings,
        *,
        doer: ActionExecutor | None = None,
        grant_form: GrantForm | None = None,
        rights: Mapping[Right, bool] | None = None,
        clusters: Mapping[str, OneCluster] | None = None,
    ) -> None:
        super().__init__()
        self.source, self.settings = source, settings
        self.registry = registry(settings.keymap, settings.own.actions)
        one = OneCluster(source, doer, grant_form, rights, user=settings.user)
        self.clusters = clusters or {"": one}
        self.contexts: Callable[[], Sequence[str]] = tuple
        self.past: Sequence[Sample] = settings.past
        self.read_only, self.history = settings.read_only, History()
        self.command_log: list[str] = []
        self.lines = CommandHistory()
        self.explained: Row | None = None
        self.current = settings.screen if settings.screen in SCREENS else "violations"
        self.said: tuple[str, str] = ("", "")
        self.views: dict[str, ListView] = {}

    @property
    def view(self) -> ListView | None:
        """The list on the screen; None on Pulse and Explain."""
        return self.views.get(self.current)

    @property
    def table(self) -> PolicyTable | None:
        """The table on the screen."""
        return self.view.table if self.view is not None else None

    @property
    def row(self) -> Row | None:
        """The row under the cursor."""
        return self.table.row if self.table is not None else None

    @property
    def subject(self) -> Row | None:
        """The row that a request is for: the one under the cursor, or the one that is being explained."""
        return self.explained if self.current == "explain" else self.row

    @property
    def here(self) -> OneCluster:
        """The cluster that is acted on: that of the row."""
        return cluster_of(self.subject, self.clusters)

    @property
    def rows(self) -> list[Row]:
        """The marked rows, or the one under the cursor."""
        return self.table.chosen if self.table is not None else []

    def refusal(self, action: Action) -> str:
        """Return why an action is not possible now, empty when it is."""
        on_heading = action.id == "open" and self.table is not None and self.table.line is not None
        has_row = self.row is not None or on_heading or self.current in ("pulse", "explain")
        kind = word(self.row.object, "kind") if self.row is not None else ""
        rights = self.here.rights.at(self.row.text("namespace") if self.row is not None else "")
        return refusal(action, read_only=self.read_only, rights=rights, has_row=has_row, kind=kind)

    def log_command(self, line: str) -> None:
        """Note a command line for the command log."""
        if line not in self.command_log[-1:]:
            self.command_log = [*self.command_log[-199:], line]

    def pick(self, title: str, choices: Sequence[Choice], then: Callable[[str], Any]) -> None:
        """Let somebody choose from a list; what was chosen is handed on, and nothing happens where nothing was."""
        self.push_screen(Picker(title, choices), lambda name: None if name is None else then(name))

    def ask(
        self, dialog: Screen[T | None], then: Callable[[T], Awaitable[object]], otherwise: str
    ) -> AwaitMount:
        """Let somebody fill in a dialog; what was filled in is handed on, `otherwise` is said where the dialog was closed.

        What is in the way of what is done then is said as well.
        """

        async def answered(given: T | None) -> None:
            if given is None:
                self.say(otherwise)
                return
            try:
                await then(given)
            except EngineError as error:
                self.say(sentence(error), "red")

        return self.push_screen(dialog, answered)

    def go(self, screen: str, where: str | None = None, *, remember: bool = True) -> None:
        """Open a screen, with a filter where one is given."""
        raise NotImplementedError

    def draw(self) -> None:
        """Show what the cluster cache holds now."""
        raise NotImplementedError

    def draw_frame(self) -> None:
        """Draw header, crumbs, details and footer."""
        raise NotImplementedError

    def say(self, text: str, role: str = "") -> None:
        """Show a sentence beside the crumbs until something else is said."""
        raise NotImplementedError

    async def perform(self, action: Action) -> None:
        """Do an action, or say why not."""
        raise NotImplementedError
