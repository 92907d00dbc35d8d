"""What a list has room for: the part of a text that tells rows apart, in the width that there is, and the whole of it below."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

from kubectl_kpolicy.actions.screens import LISTINGS
from kubectl_kpolicy.cluster.recording import ReplaySource, read_recording
from kubectl_kpolicy.output.rows import Column
from kubectl_kpolicy.tui.widgets.detail import LEAST, Detail
from kubectl_kpolicy.tui.widgets.lanes import LanesPanel
from kubectl_kpolicy.tui.widgets.widths import GAP, columns_for, shared
from tests.plugin.scene import report, result, world
from tests.screenshots.screens import RECORDING

from .stage import console, drawn, lines_of, on_stage, press, text_of, window_of

if TYPE_CHECKING:
    from kubectl_kpolicy.tui.app import Console
    from kubectl_kpolicy.tui.widgets.table import PolicyTable

ROOT = "validation error: Containers do not run as root. rule non-root failed at path /spec/"
NORMAL = (120, 34)


def of_pods(count: int) -> dict:
    found = (result("require-run-as-nonroot", "autogen-run-as-non-root", "fail", "critical", ROOT),)
    return {
        "reports": [
            report("Pod", f"web-with-a-long-name-{n}", "payments", *found) for n in range(count)
        ]
    }


def test_a_message_begins_in_the_list_with_what_is_wrong_and_stands_whole_below_it() -> None:
    async def look(app, _pilot) -> None:
        region = app.table.region
        lines = lines_of(app)
        rows = "\n".join(lines[region.y : region.bottom])
        assert "Containers do not run" in rows
        assert "validation error" not in rows
        assert ROOT in lines[region.bottom + 1]
        assert app.row.object["message"] == ROOT

    on_stage(look, console(world(of_pods(1))), size=NORMAL)


def test_a_list_uses_the_whole_width_and_needs_no_bar_to_scroll_sideways() -> None:
    async def look(app, _pilot) -> None:
        head = lines_of(app)[app.table.region.y]
        assert head.rstrip("│").rstrip().endswith("AGE")
        assert not app.table.show_horizontal_scrollbar
        assert app.table.show_vertical_scrollbar == (len(app.table.lines) > 100)

    for count in (1, 200):
        on_stage(look, console(world(of_pods(count))), size=NORMAL)


def test_names_give_way_to_a_message_down_to_a_width_that_still_tells_them_apart() -> None:
    async def look(app, _pilot) -> None:
        widths = {column.id: width for column, width in app.table._widths}
        assert widths["policy"] == widths["rule"] == widths["resource"] == 18
        assert 18 < widths["message"] <= 24

    on_stage(look, console(world(of_pods(1))), size=NORMAL)


def recorded(screen: str) -> Console:
    source = ReplaySource(read_recording(RECORDING))
    return console(source=source, screen=screen, user="bob")


def cut_though_there_is_room(table: PolicyTable) -> list[str]:
    """Return cells that are cut although the table has blanks to give: behind its last column, or beside what is shorter."""
    rows = list(table._sample())
    needed = {column.id: table._natural(column) for column, _ in table._widths}
    width = sum(width + GAP for _, width in table._widths)
    spare = (
        table._room - width + sum(max(0, width - needed[one.id]) for one, width in table._widths)
    )
    cut = [
        table._text(column, row)
        for column, width in table._widths
        for row in rows
        if cell_len(table._text(column, row)) > width
    ]
    return cut if spare > 0 else []


def cut_though_details_could_give_way(app: Console) -> list[str]:
    """Return cells that are cut or left out although the list would stand whole beside details that can still be read."""
    table = app.table
    usual = [one for one in table.state.listing.columns if not one.wide]
    whole = sum(table._natural(one) + GAP for one in usual)
    shown = dict(table._widths)
    lost = [one.id for one in usual if shown.get(one, 0) < table._natural(one)]
    frame = app.query_one("#views").region.width - table._room
    return lost if app.size.width - frame - whole >= LEAST else []


@pytest.mark.parametrize("size", [(80, 24), (140, 40), (200, 50)])
def test_no_cell_of_the_furnished_demo_is_cut_that_would_fit(size: tuple[int, int]) -> None:
    async def look(app, _pilot) -> None:
        for screen in LISTINGS:
            app.go(screen)
            await drawn(app)
            assert app.table.lines, screen
            assert not cut_though_there_is_room(app.table), screen
            assert not cut_though_details_could_give_way(app), screen

    on_stage(look, recorded("violations"), size=size)


def test_beside_a_list_that_would_be_cut_details_are_narrower_until_somebody_says_how_wide() -> (
    None
):
    async def look(app, pilot) -> None:
        pane = app.query_one(Detail)
        assert LEAST <= pane.region.width < 70
        assert "reason" in {one.id for one in app.table.columns}
        app.go("policies")
        await drawn(app)
        assert pane.region.width == 70
        app.go("grants")
        await drawn(app)
        await press(pilot, "_", "+")
        assert pane.region.width == 70

    on_stage(look, recorded("grants"), size=(200, 50))


@pytest.mark.parametrize("size", [(80, 24), (140, 40), (200, 50)])
def test_frameworks_and_namespaces_of_pulse_stand_whole_where_there_is_room(
    size: tuple[int, int],
) -> None:
    async def look(app, _pilot) -> None:
        await drawn(app)
        assert "Best Practices" in text_of(app)

    on_stage(look, recorded("pulse"), size=size)


def test_a_long_namespace_stands_whole_above_its_column_of_the_map() -> None:
    there = {
        "reports": [
            report("Pod", "a", "team-with-a-long-name", result("p", "r", "fail", "high", ROOT))
        ]
    }

    async def look(app, _pilot) -> None:
        assert "team-with-a-long-name" in text_of(app)

    on_stage(look, console(world(there), screen="pulse"), size=(140, 40))


def test_the_dialog_about_a_policy_that_cleans_up_names_the_policy_and_not_what_it_matches() -> (
    None
):
    async def look(app, pilot) -> None:
        await drawn(app)
        app.table.move_to(
            [row.text("by") for row in app.table.lines].index("CleanupPolicy/scratch-pods")
        )
        await press(pilot, "ctrl+t")
        said = window_of(app)
        assert "batch/CleanupPolicy/scratch-pods" in said
        assert "(all that match)" not in said

    on_stage(look, recorded("cleanup"))


def test_lanes_are_named_in_full_where_there_is_room() -> None:
    async def look(app, _pilot) -> None:
        await drawn(app)
        panel = app.query_one(LanesPanel).region
        named = "\n".join(lines_of(app)[panel.y : panel.bottom])
        assert "carol Deployment/crawler " in named

    on_stage(look, recorded("grants"), size=(140, 40))


def test_on_a_very_large_screen_every_name_and_message_of_a_violation_stands_whole() -> None:
    async def look(app, _pilot) -> None:
        await drawn(app)
        shown = {column.id for column, _ in app.table._widths}
        assert {"severity", "namespace", "resource", "policy", "rule", "message", "age"} <= shown
        for column, width in app.table._widths:
            if column.id != "message":
                assert width >= app.table._natural(column), column.id

    on_stage(look, recorded("violations"), size=(200, 50))


def test_details_take_a_third_of_the_width_until_keys_or_the_mouse_give_them_more() -> None:
    async def look(app, pilot) -> None:
        pane = app.query_one(Detail)
        assert pane.region.width == 49
        await press(pilot, "_", "_")
        assert (pane.share, app.table.size.width) == (25, 140 - 35 - 2)
        await press(pilot, *"++++")
        assert pane.share == 45
        await pilot.mouse_down(Detail, offset=(0, 5))
        await pilot.hover(offset=(70, 10))
        await pilot.mouse_up(offset=(70, 10))
        assert pane.share == 50
        await press(pilot, *"++++++++")
        assert pane.share == 75

    on_stage(look, console(), size=(140, 40))


def column(name: str, **more: object) -> Column:
    return Column(name, name.upper(), **more)


def test_columns_that_fit_whole_are_added_and_those_that_do_not_are_left_out() -> None:
    columns = (
        column("a"),
        column("b", narrow=False),
        column("text", narrow=False, grows=True),
        column("c", wide=True),
    )
    natural = {"a": 20, "b": 40, "text": 90, "c": 10}

    def chosen(room: int) -> str:
        return " ".join(one.id for one in columns_for(columns, room, lambda one: natural[one.id]))

    assert chosen(60) == "a text"
    assert chosen(70) == "a b"
    assert chosen(99) == "a b text"
    assert chosen(120) == "a b text"
    assert chosen(190) == "a b text c"


def test_running_text_gives_way_before_names_do() -> None:
    found = [(column("name", most=40), 30), (column("text", grows=True), 80)]

    assert [width for _, width in shared(found, 100)] == [30, 66]
    assert [width for _, width in shared(found, 58)] == [30, 24]
    assert [width for _, width in shared(found, 54)] == [30, 20]
    assert [width for _, width in shared(found, 50)] == [22, 24]
    assert [width for _, width in shared(found, 140)] == [30, 106]


def test_a_list_goes_without_a_message_before_names_are_too_short_to_tell_them_apart() -> None:
    columns = LISTINGS["violations"].columns
    needs = {
        "severity": 8,
        "result": 6,
        "namespace": 8,
        "resource": 30,
        "policy": 30,
        "rule": 30,
        "message": 90,
        "age": 5,
    }

    def natural(column: Column) -> int:
        return needs.get(column.id, 10)

    for room in range(97, 140):
        taken = columns_for(columns, room, natural)
        widths = shared([(one, natural(one)) for one in taken], room)
        assert all(width >= min(needs.get(one.id, 10), 18) for one, width in widths), room
    assert "message" not in {one.id for one in columns_for(columns, 94, natural)}
    assert {"message", "rule"} <= {one.id for one in columns_for(columns, 139, natural)}


def shown_in(screen: str, room: int, **needs: int) -> set[str]:
    columns = LISTINGS[screen].columns
    return {one.id for one in columns_for(columns, room, lambda one: needs.get(one.id, 10))}


def test_why_something_was_done_is_shown_longer_than_who_did_it_when() -> None:
    long = {"rules": 24, "target": 18, "left": 15, "reason": 60}
    assert {"reason", "requester"} <= shown_in("grants", 117, **long)
    assert "approver" not in shown_in("grants", 117, **long)
    assert "reason" in shown_in("inbox", 117, **long)
    violation = {"resource": 30, "policy": 30, "rule": 30, "message": 90}
    assert "message" in shown_in("violations", 112, **violation)
    assert "rule" not in shown_in("violations", 112, **violation)


@pytest.mark.parametrize("screen", LISTINGS)
def test_no_wide_column_takes_the_place_of_one_that_is_shown_without_being_asked_for(
    screen: str,
) -> None:
    columns = LISTINGS[screen].columns
    usual = {one.id for one in columns if not one.wide}
    for text in (12, 20, 40):
        for room in range(97, 260):
            taken = columns_for(
                columns, room, lambda one, text=text: text if one.shape == "text" else 9
            )
            shown = {one.id for one in taken}
            assert shown <= usual or usual <= shown, (room, text)


@pytest.mark.parametrize("screen", LISTINGS)
def test_no_row_runs_past_the_right_edge_however_long_its_names_are(screen: str) -> None:
    columns = LISTINGS[screen].columns
    longest = {"time": 16, "left": 9, "state": 17, "severity": 8, "number": 6, "age": 4}
    for room in range(57, 200):
        taken = columns_for(columns, room, lambda one: longest.get(one.shape, 253))
        found = shared([(one, longest.get(one.shape, 253)) for one in taken], room)
        assert sum(width + GAP for _, width in found) <= room, room
        assert len(found) > 2


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (120, 36)])
def test_no_row_of_the_furnished_demo_runs_past_the_right_edge(size: tuple[int, int]) -> None:
    async def look(app, _pilot) -> None:
        for screen in LISTINGS:
            app.go(screen)
            await drawn(app)
            assert not app.table.show_horizontal_scrollbar, screen
            assert app.table.virtual_size.width <= app.table.size.width, screen

    on_stage(look, recorded("cleanup"), size=size)


def test_two_grants_side_by_side_keep_their_columns_in_the_smallest_window() -> None:
    async def look(app, _pilot) -> None:
        await drawn(app)
        lines = [line.strip("│ ") for line in window_of(app).splitlines()[1:-1]]
        assert any(line.startswith("≠ state") and line.endswith("denied") for line in lines)
        assert not [line for line in lines if line == "like this"], "a value went on at the left"

    on_stage(look, recorded("grants"), keys=("space", "j", "space", "D"), size=(80, 24))


def test_a_timeline_says_what_was_decided() -> None:
    async def look(app, _pilot) -> None:
        assert "approved by bob: as agreed with both teams" in window_of(app)

    on_stage(look, recorded("grants"), keys=("enter",), size=(140, 48))


def test_a_long_value_of_the_details_goes_on_below_itself_and_not_below_its_label() -> None:
    async def look(app, _pilot) -> None:
        await drawn(app)
        lines = lines_of(app)
        first = next(line for line in lines if "reason" in line and "ownership" in line)
        assert lines[lines.index(first) + 1].index("this week") == first.index("ownership")

    on_stage(look, recorded("grants"), size=(140, 40))


def test_the_way_to_a_policy_names_it_once() -> None:
    async def look(app, _pilot) -> None:
        await drawn(app)
        assert lines_of(app)[1].split() == ["policies", "›", app.row.text("name")]

    on_stage(look, recorded("policies"), size=(140, 40))


def test_a_message_of_explain_takes_the_width_that_there_is() -> None:
    async def look(app, _pilot) -> None:
        await drawn(app)
        assert "not shared. rule host-pid failed at path /spec/hostPID/" in text_of(app)

    on_stage(look, recorded("violations"), keys=("down", "e"), size=(140, 40))


def test_a_word_in_place_of_a_lane_leaves_the_line_of_the_present_whole() -> None:
    async def look(app, _pilot) -> None:
        await drawn(app)
        (line,) = [line for line in lines_of(app) if "old-imports" in line and "paused" in line]
        assert "│paused" in line.replace(" ", "")

    on_stage(look, recorded("cleanup"), size=(140, 40))


def test_details_stay_where_somebody_scrolled_to_until_they_are_of_another_row() -> None:
    async def look(app, pilot) -> None:
        pane = app.query_one(Detail)
        assert pane.max_scroll_y > 2
        pane.scroll_to(y=2, animate=False)
        await drawn(app)
        app.draw()
        await drawn(app)
        assert pane.scroll_offset.y == 2
        await press(pilot, "j")
        app.draw()
        await drawn(app)
        assert pane.scroll_offset.y == 0

    on_stage(look, recorded("violations"), size=(140, 16))
