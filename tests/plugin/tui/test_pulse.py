"""Pulse: tiles, hours, places and frameworks; every figure a door, and a question mark where nobody knows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kubectl_kpolicy.cluster.cache import ClusterCache, Trouble
from kubectl_kpolicy.cluster.charts import Sample
from kubectl_kpolicy.tui.widgets.gauges import PulseView
from tests.plugin.scene import NOW, hindered, world

from .stage import LARGE, console, on_stage, press, text_of


def test_the_large_screen_shows_all_four_parts() -> None:
    async def look(app, _pilot) -> None:
        text = text_of(app)
        assert "7 failures" in text
        assert "█ critical  ▓ high" in text
        assert "PSS  ━─────────  12 %  1 of 8" in text
        assert "require-run-as-nonroot  ▓▓    2" in text

    on_stage(look, console(screen="pulse"), size=LARGE)


def test_a_place_of_the_map_is_a_door_to_its_failures() -> None:
    async def look(app, pilot) -> None:
        view = app.query_one(PulseView)
        view.index = next(
            number for number, door in enumerate(view.doors) if "disallow-host" in door.said
        )
        await press(pilot, "enter")
        assert app.current == "violations"
        assert app.view.state.filter.text == 'policy="disallow-host-namespaces" ns="payments"'
        assert len(app.table.lines) == 1

    on_stage(look, console(screen="pulse"), size=LARGE)


def test_a_framework_is_a_door_to_its_policies() -> None:
    async def look(app, pilot) -> None:
        view = app.query_one(PulseView)
        view.index = next(
            number for number, door in enumerate(view.doors) if door.said == "policies of PSS"
        )
        await press(pilot, "enter")
        assert app.current == "policies"
        assert len(app.table.lines) == 6

    on_stage(look, console(screen="pulse"), size=LARGE)


@pytest.mark.parametrize("size", [(60, 20), (80, 24), LARGE])
def test_the_arrows_reach_every_part_and_what_is_under_the_cursor_is_on_the_screen(size) -> None:
    async def look(app, pilot) -> None:
        view = app.query_one(PulseView)
        reached = set()
        for _ in range(40):
            assert "▌" in text_of(app)
            reached.add(view.door.screen)
            await press(pilot, "down")
        assert view.index >= 12
        assert "▌" in text_of(app)
        await press(pilot, "g")
        assert view.index == 0
        await press(pilot, "right")
        assert view.door.where == "sev=critical"

    on_stage(look, console(screen="pulse"), size=size)


@pytest.mark.parametrize("there", [ClusterCache, lambda: hindered(Trouble.FORBIDDEN)])
def test_what_was_not_read_is_a_question_mark_everywhere(there) -> None:
    async def look(app, _pilot) -> None:
        text = text_of(app)
        for word in ("0 ", " %", "nowhere", "none reported"):
            assert word not in text.split("│", 1)[1], word
        assert "? failures" in text

    on_stage(look, console(there(), screen="pulse"), size=LARGE)


def test_a_tile_tells_the_difference_to_a_day_ago_and_a_framework_its_way() -> None:
    at = (NOW - timedelta(hours=24)).timestamp()
    past = [Sample(at, {"failures": 5, "framework PSS": 20})]

    async def look(app, _pilot) -> None:
        assert "+2 in 24h" in text_of(app)
        assert "-8 in 24h" in text_of(app)

    on_stage(look, console(world(), screen="pulse", past=past), size=LARGE)


def test_without_earlier_numbers_no_difference_is_told() -> None:
    async def look(app, _pilot) -> None:
        assert " in 24h" not in text_of(app)
        assert "as 2" not in text_of(app)

    on_stage(look, console(screen="pulse"), size=LARGE)


def test_a_click_goes_through_a_door() -> None:
    async def look(app, pilot) -> None:
        await pilot.click(PulseView, offset=(30, 1))
        assert app.current == "violations"
        assert app.view.state.filter.text == "sev=critical"

    on_stage(look, console(screen="pulse"), size=LARGE)
