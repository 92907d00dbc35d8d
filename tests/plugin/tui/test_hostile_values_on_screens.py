"""Whatever objects hold, the console only draws: 363 payloads on every list screen, in details, windows, dialogs and messages."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

from kubectl_kpolicy.cluster.details import sections
from kubectl_kpolicy.tui.handlers.choices import compared
from kubectl_kpolicy.tui.state import Heading
from kubectl_kpolicy.tui.widgets.detail import text_of as details_text
from kubectl_kpolicy.tui.widgets.frame import Crumbs
from tests.plugin.cli.test_hostile_values_in_lists import hostile_world
from tests.plugin.hostile import GENERATORS, is_harmless, payloads
from tests.plugin.scene import NOW

from .stage import LARGE, Stage, console, lines_of, on_stage, press, settled, text_of

if TYPE_CHECKING:
    from kubectl_kpolicy.tui.views import ListView

SCREENS = (
    "violations",
    "blocks",
    "policies",
    "exceptions",
    "grants",
    "inbox",
    "codes",
    "cleanup",
    "audit",
)
FEW = (
    "a\x00b",
    "x\x1b[2Jy",
    "\x9d0;owned\x9c",
    "a\u202eb",
    "ad\u200bmin",
    "[@click=app.quit]x[/]",
    "first\r\nsecond",
    "A" * 5_000,
)


def unharmed(text: str) -> bool:
    return all(is_harmless(char) or char == "\n" for char in text)


@pytest.mark.parametrize("screen", SCREENS)
def test_every_row_is_drawn_harmless_and_in_its_line(screen: str) -> None:
    """Draws each line of the table, its details and its crumbs, without waiting for the screen each time."""

    async def look(app, _pilot) -> None:
        view: ListView = app.view
        view.state.failures = False
        app.draw()
        await settled(app)
        table, listing = app.table, view.state.listing
        rows = [one for one in table.lines if not isinstance(one, Heading)]
        assert len(rows) >= 250, "some texts are no denial, the others may not get lost"
        width = table.scrollable_content_region.width
        for index, row in enumerate(rows):
            strip = table._line(index)
            assert unharmed(strip.text), row.key
            shown = table.render_line(1) if index == 0 else None
            assert shown is None or shown.cell_length == width
            detail = details_text(sections(row, listing, app.source.world, NOW))
            assert unharmed(detail.plain), row.key
            assert not any("link" in str(span.style) or "@" in str(span.style) for span in detail.spans)  # fmt: skip

    on_stage(look, console(source=Stage(hostile_world(payloads())), screen=screen), size=LARGE)


def test_text_that_looks_like_markup_stays_text() -> None:
    texts = list(GENERATORS["markup"]())

    async def look(app, pilot) -> None:
        seen = ""
        for _ in range(4):
            seen += text_of(app)
            await press(pilot, "pagedown")
        for text in texts:
            assert text.strip()[:9] in seen, text

    on_stage(look, console(hostile_world(texts)), size=LARGE)


@pytest.mark.parametrize("evil", FEW, ids=lambda one: ascii(one)[:20])
def test_windows_and_dialogs_are_harmless(evil: str) -> None:
    """Opens everything that shows a name: details, YAML, actions, copying, columns, filters, explaining, requests, dialogs."""
    there = hostile_world([evil, "plain"])

    async def look(app, pilot) -> None:
        for keys in (
            ("enter",),
            ("y",),
            ("x",),
            ("c",),
            ("=",),
            ("f",),
            ("r",),
            ("/", "x"),
            ("ctrl+n",),
        ):
            await press(pilot, *keys)
            assert unharmed(text_of(app)), keys
            assert {cell_len(line) <= LARGE[0] for line in lines_of(app)} == {True}, keys
            await press(pilot, "escape")
            while len(app.screen_stack) > 1:
                app.pop_screen()
                await settled(app)
        for screen in ("exceptions", "grants"):
            app.go(screen, "")
            await settled(app)
            await press(pilot, "ctrl+d")
            assert unharmed(text_of(app)), screen
            while len(app.screen_stack) > 1:
                app.pop_screen()
                await settled(app)
        app.say(evil)
        await settled(app)
        assert unharmed(text_of(app))
        assert app.return_value is None, "nothing in a value may press a key"

    on_stage(look, console(there), size=LARGE)


def test_what_is_said_and_compared_is_harmless_too() -> None:
    there = hostile_world(payloads())

    async def look(app, _pilot) -> None:
        listing = app.view.state.listing
        crumbs = app.query_one(Crumbs)
        rows = [one for one in app.table.lines if not isinstance(one, Heading)]
        for one, other in itertools.pairwise(rows):
            crumbs.show([one.text("policy"), one.text("resource")], one.text("message"))
            assert unharmed(crumbs.visual.plain if hasattr(crumbs.visual, "plain") else str(crumbs.render()))  # fmt: skip
            left, right = (sections(row, listing, there, NOW) for row in (one, other))
            both = compared(left, right, 120).plain
            assert unharmed(both)
            assert max(map(cell_len, both.splitlines())) <= 120

    on_stage(look, console(there), size=LARGE)
