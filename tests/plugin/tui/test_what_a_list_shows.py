"""What a list has room for: the part of a text that tells rows apart, in the width that there is, and the whole of it below."""

from __future__ import annotations

from tests.plugin.scene import report, result, world

from .stage import console, lines_of, on_stage

ROOT = "validation error: Containers do not run as root. rule non-root failed at path /spec/"
NORMAL = (120, 34)


def of_pods(count: int) -> dict:
    found = (result("require-run-as-nonroot", "autogen-run-as-non-root", "fail", "critical", ROOT),)
    return {"reports": [report("Pod", f"web-with-a-long-name-{n}", "payments", *found) for n in range(count)]}  # fmt: skip


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
