"""What a line typed after `:` means: a screen with a filter, a namespace, a view, a theme, write access, or nonsense."""

from __future__ import annotations

from difflib import get_close_matches
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from engine.record import record
from kubectl_kpolicy.actions.screens import LISTINGS, SCREENS, listing_named

from .handlers.navigation import open_view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from .app import Console

_EXTRA = {"q": "quit", "q!": "quit", "quit": "quit", "exit": "quit", "help": "help", "h": "help"}
COMMAND_WORDS = {
    "ns": "a namespace, or all",
    "view": "a saved view",
    "theme": "colours",
    "write": "unlock changes for 15 minutes",
    "readonly": "lock changes",
    "ctx": "another context of the kubeconfig",
    "explain": "why policies decide so about KIND/NAME",
    "at": "an instant of a recording",
    "save": "keep what is shown as a view",
}
"""The words of the command line that are no screens, with what follows or happens."""

VERBS = tuple(COMMAND_WORDS)


@record
class Command:
    """What is to be done (`go`, `ns`, `view`, …), with its words; `problem` says why it cannot be understood."""

    verb: str
    word: str = ""
    rest: str = ""
    problem: str = ""


def understand(line: str, aliases: Mapping[str, str] = MappingProxyType({})) -> Command:
    """Return what a line means; `aliases` are words of somebody's own, each for the beginning of a line."""
    first, _, rest = line.strip().partition(" ")
    if first in aliases:
        first, _, rest = f"{aliases[first].removeprefix(':')} {rest}".strip().partition(" ")
    name = first.lower()
    if name in _EXTRA:
        return Command(_EXTRA[name])
    if name in VERBS:
        return Command(name, rest.strip())
    if name == "pulse":
        return Command("go", "pulse")
    listing = listing_named(name)
    if listing is None:
        return Command("", name, problem=_unknown(name, aliases))
    return Command("go", listing.noun, _filter(rest.strip()))


def _filter(rest: str) -> str:
    """Return what follows a screen as a filter: k9s' `/text`, a bare word as a namespace, else as it is."""
    if rest.startswith("/"):
        return rest[1:]
    if rest and rest.replace("-", "").isalnum() and " " not in rest:
        return f"ns={rest}"
    return rest


def _unknown(name: str, aliases: Iterable[str]) -> str:
    words = [*aliases, *VERBS, *_EXTRA, *SCREENS, *(alias for one in LISTINGS.values() for alias in one.aliases)]  # fmt: skip
    near = get_close_matches(name, words, 1)
    return f"`{name}` is no screen" + (f"; did you mean `{near[0]}`?" if near else "; ? lists them")


# The palette: every action, screen and saved view, found by any letters of its words.

_Entry = tuple[str, str, "Callable[[], object]"]


class Everything(Provider):
    """Offers what the registry and the console know."""

    @property
    def _console(self) -> Console:
        return cast("Console", self.app)

    def _entries(self) -> Iterator[_Entry]:
        app = self._console
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
