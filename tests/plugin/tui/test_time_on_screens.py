"""Time on the screens: lanes below grants and clean-ups, the line of the present, bars that drain."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from kubectl_kpolicy.tui.widgets.lanes import LanesPanel
from kubectl_kpolicy.tui.widgets.table import PolicyTable
from tests.plugin.scene import NOW

from .stage import LARGE, console, lines_of, on_stage, press, settled, text_of

if TYPE_CHECKING:
    from textual.geometry import Region


def lane(app, name: str) -> str:
    return next(line for line in reversed(lines_of(app)) if name in line)


def test_a_tall_screen_shows_lanes_below_its_grants() -> None:
    async def look(app, _pilot) -> None:
        text = text_of(app)
        assert "│now" in text
        assert "◇ asked  ✓ approved" in text
        assert "✓" in lane(app, "● alice")
        assert "╌╌" in lane(app, "◌ dave")
        assert "ended 24h ago" in lane(app, "■ alice")

    on_stage(look, console(screen="grants"), size=LARGE)


def test_a_key_shows_lanes_on_a_low_screen_and_hides_them() -> None:
    async def look(app, pilot) -> None:
        assert "│now" not in text_of(app)
        await press(pilot, "t")
        assert "│now" in text_of(app)
        await press(pilot, "t")
        assert "│now" not in text_of(app)

    on_stage(look, console(screen="grants"))


def test_lanes_follow_the_cursor_and_a_click_moves_it() -> None:
    async def look(app, pilot) -> None:
        await press(pilot, "t", "G")
        assert "erin" in lane(app, "⊘ erin")
        await pilot.click(LanesPanel, offset=(10, 2))
        assert app.table.index == 0

    on_stage(look, console(screen="grants"))


def test_the_next_day_of_clean_ups_is_a_line_of_runs() -> None:
    async def look(app, _pilot) -> None:
        assert lane(app, "bare-pods").count("▼") >= 20
        assert "━" in lane(app, "env-volee")
        assert "unreadable label" in lane(app, "batch/broken")

    on_stage(look, console(screen="cleanup"), size=(200, 50))


def test_lanes_are_not_drawn_again_before_they_look_otherwise() -> None:
    async def look(app, _pilot) -> None:
        panel = app.view.lanes
        before = panel._lines
        app.source.at = NOW + timedelta(seconds=30)
        app.view.tick(app.source.at)
        assert panel._lines is before
        app.source.at = NOW + timedelta(hours=2)
        app.view.tick(app.source.at)
        assert panel._lines is not before

    on_stage(look, console(screen="grants"), size=LARGE)


def test_a_wide_list_has_a_draining_bar_beside_each_countdown() -> None:
    async def look(app, _pilot) -> None:
        assert "━───── 00:12:41" in text_of(app)

    on_stage(look, console(screen="grants"), size=(200, 50))


def test_lanes_are_drawn_in_ascii_where_that_is_wanted() -> None:
    async def look(app, _pilot) -> None:
        assert "? asked  + approved  # denied  * used" in text_of(app)
        assert text_of(app).isascii()

    on_stage(look, console(screen="grants", ascii=True), size=LARGE)


def test_a_second_draws_those_rows_alone_that_read_otherwise_after_it(monkeypatch) -> None:
    asked: list[Region | None] = []
    monkeypatch.setattr(
        PolicyTable, "refresh", lambda _table, region=None, **_more: asked.append(region)
    )

    async def look(app, _pilot) -> None:
        for screen, lines in (("policies", set()), ("grants", {1, 2})):
            app.go(screen)
            await settled(app)
            asked.clear()
            for _ in range(5):
                app.source.at = app.source.at + timedelta(seconds=1)
                app._tick()
            assert {region and region.y for region in asked} == lines, screen

    on_stage(look)
