"""The palette: every action, screen and saved view, found by any letters of its words."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from kubectl_kpolicy.actions.screens import SCREENS

from .handlers.navigation import open_view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .stage import Stage

_Entry = tuple[str, str, "Callable[[], object]"]


class Everything(Provider):
    """Offers what the registry and the console know."""

    @property
    def _console(self) -> Stage:
        return cast("Stage", self.app)

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
