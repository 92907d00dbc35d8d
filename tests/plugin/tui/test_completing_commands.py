"""The line after `:`: what tab completes, what is suggested, the lines of before, and words of somebody's own."""

from __future__ import annotations

import pytest

from kubectl_kpolicy.actions.prompt import understand
from kubectl_kpolicy.session.kept import lines_path, load_lines, save_lines
from kubectl_kpolicy.tui.completing import completions
from kubectl_kpolicy.tui.stage import CommandHistory
from kubectl_kpolicy.tui.widgets.frame import Entry

from .stage import console, lines_of, on_stage, press


def value(app) -> str:
    return app.query_one("#line", Entry).value


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("gr", "grants"),
        ("exc", "exceptions"),
        ("ns pay", "ns payments"),
        ("theme cvd-l", "theme cvd-light"),
        ("view mi", "view mine"),
        ("ctx pr", "ctx prod-eu"),
        ("explain payments/Dep", "explain payments/Deployment/web"),
        ("v led", "v ledger"),
        ("at st", "at start"),
        ("cri", "crit"),
    ],
)
def test_a_word_is_completed_by_what_there_is_for_it_to_name(line: str, first: str) -> None:
    async def look(app, _pilot) -> None:
        app.contexts = lambda: ["prod-eu", "test"]
        assert completions(app, line)[0] == first
        assert completions(app, f"{line}zzz") == []

    on_stage(look, console(views={"mine": "violations: sev>=high"}, aliases={"crit": "violations"}))


def test_tab_takes_one_completion_after_the_other_and_the_frame_names_them() -> None:
    async def look(app, pilot) -> None:
        await press(pilot, ":", *"ex", "tab")
        assert value(app) == ":explain"
        assert "[explain]  exceptions" in lines_of(app)[1]
        await press(pilot, "tab")
        assert value(app) == ":exceptions"
        await press(pilot, "shift+tab")
        assert value(app) == ":explain"
        await press(pilot, *"zz", "tab")
        assert value(app) == ":explainzz"
        assert "nothing begins with `explainzz`" in lines_of(app)[1]

    on_stage(look)


def test_the_likely_rest_stands_behind_the_cursor_until_the_arrow_takes_it() -> None:
    async def look(app, pilot) -> None:
        await press(pilot, ":", *"gran")
        assert any(line.strip().startswith(":grants") for line in lines_of(app))
        assert value(app) == ":gran"
        await press(pilot, "right", "enter")
        assert app.current == "grants"

    on_stage(look)


def test_arrows_go_back_to_lines_that_begin_as_what_was_typed() -> None:
    async def look(app, pilot) -> None:
        for line in ("grants", "ns payments", "ns all"):
            await press(pilot, ":", *line, "enter")
        await press(pilot, ":", *"ns", "up", "up", "up")
        assert value(app) == ":ns payments"
        await press(pilot, "down", "down")
        assert value(app) == ":ns"
        await press(pilot, "escape", ":", "up")
        assert value(app) == ":ns all"

    on_stage(look)


def test_a_history_holds_each_line_once_and_not_without_end() -> None:
    found = CommandHistory(f"ns n{number}" for number in range(500))
    found.add("ns n499")
    found.add("  ")

    assert len(found.lines) == 200
    assert found.last("ns n49") == "ns n499"
    assert found.last("grants") == ""


def test_lines_are_kept_for_the_next_sitting_and_for_nobody_else(tmp_path) -> None:
    place = {"XDG_STATE_HOME": str(tmp_path)}
    assert load_lines(place) == []

    save_lines(["grants", "ns payments"], place)

    assert load_lines(place) == ["grants", "ns payments"]
    assert lines_path(place).stat().st_mode & 0o077 == 0


def test_a_word_of_ones_own_stands_for_the_beginning_of_a_line() -> None:
    aliases = {"crit": ":violations sev=critical", "v": "grants"}

    assert understand("crit", aliases) == understand("violations sev=critical")
    assert understand("v payments", aliases) == understand("grants payments")
    assert "did you mean `crit`?" in understand("crt", aliases).problem
