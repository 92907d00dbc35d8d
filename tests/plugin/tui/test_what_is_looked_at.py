"""Choosing what is looked at: time in a recording, contexts, namespaces, columns, filters step by step, two grants, views, doors."""

from __future__ import annotations

import asyncio
import tomllib
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from textual.color import Color
from textual.events import Resize

from engine.errors import DocumentError, EngineError
from kubectl_kpolicy.actions.prompt import understand
from kubectl_kpolicy.cluster.cache import ClusterCache
from kubectl_kpolicy.cluster.recording import Recorder, ReplaySource, read_recording
from kubectl_kpolicy.filter import compile_filter, parts_of
from kubectl_kpolicy.session.cluster import ClusterFlags
from kubectl_kpolicy.session.config import load_config, save_view
from kubectl_kpolicy.session.identity import Identity
from kubectl_kpolicy.session.kept import columns_path, load_columns, save_columns
from kubectl_kpolicy.tui import start
from kubectl_kpolicy.tui.handlers.input_line import meant
from kubectl_kpolicy.tui.handlers.navigation import open_view
from kubectl_kpolicy.tui.start import ConsoleRequest, elsewhere
from tests.plugin.scene import NOW, report, result, world

from .stage import (
    LARGE,
    console,
    drawn,
    leave,
    lines_of,
    on_stage,
    press,
    settled,
    text_of,
    window_of,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("KPOLICY_CONFIG", raising=False)
    return tmp_path


def recording(folder: Path) -> ReplaySource:
    """Return a recording of ten minutes: a violation comes after two, is mended after seven."""
    path, made = folder / "r.jsonl", ClusterCache()
    at = [NOW]
    with path.open("w") as out:
        Recorder(made, out, lambda: at[0], "prod-eu")
        made.replace("reports", (), NOW)
        at[0] = NOW + timedelta(minutes=2)
        made.put("reports", report("Pod", "web", "a", result("p", "r", "fail", "high", "no")))
        for minute in (3, 4, 5):
            at[0] = NOW + timedelta(minutes=minute)
            made.put("leases", {"kind": "Lease", "metadata": {"name": f"beat-{minute}"}})
        at[0] = NOW + timedelta(minutes=7)
        made.put("reports", report("Pod", "web", "a", result("p", "r", "pass", "high", "yes")))
        at[0] = NOW + timedelta(minutes=10)
        made.synced("reports", at[0])
    return ReplaySource(read_recording(path))


# Export.


def test_an_export_writes_what_is_shown_and_says_where(home, monkeypatch) -> None:
    monkeypatch.chdir(home)

    async def look(app, pilot) -> None:
        await press(pilot, "ctrl+s", *"csv", "enter")
        (path,) = home.glob("kpolicy-violations-*.csv")
        assert path.name in text_of(app)
        assert len(path.read_text().splitlines()) == len(app.table.lines) + 1

    on_stage(look, size=LARGE)


def test_where_nothing_can_be_written_an_export_says_so(home, monkeypatch) -> None:
    gone = home / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    async def look(app, pilot) -> None:
        await press(pilot, "ctrl+s", *"csv", "enter")
        assert "cannot write kpolicy-violations-" in text_of(app)

    on_stage(look, size=LARGE)


# Time.


def test_keys_move_through_a_recording_change_by_change(home) -> None:
    seen: list[tuple[str, int]] = []

    async def look(app, pilot) -> None:
        def note() -> None:
            seen.append((f"{app.source.now():%M:%S}", len(app.table.lines)))

        note()
        for key in ("comma", "comma", "comma", "comma", "full_stop", "full_stop"):
            await press(pilot, {"comma": ",", "full_stop": "."}[key])
            note()
        assert "REPLAY 12:07:00 ──────●──" in lines_of(app)[0]

    on_stage(look, console(source=recording(home)), size=(120, 24))
    assert seen == [("10:00", 0), ("07:00", 0), ("02:00", 1), ("00:00", 0), ("00:00", 0), ("02:00", 1), ("07:00", 0)]  # fmt: skip


def test_braces_move_by_five_minutes_and_not_beyond_the_ends(home) -> None:
    async def look(app, pilot) -> None:
        await press(pilot, "{")
        assert app.source.now() == NOW + timedelta(minutes=5)
        assert "Pod/web" in text_of(app)
        await press(pilot, "{", "{")
        assert app.source.now() == NOW
        await press(pilot, "}", "}", "}")
        assert app.source.now() == NOW + timedelta(minutes=10)

    on_stage(look, console(source=recording(home)))


def test_a_command_looks_at_an_instant(home) -> None:
    async def look(app, pilot) -> None:
        await press(pilot, "colon", *"at 12:03", "enter")
        assert app.source.now() == NOW + timedelta(minutes=3)
        assert "Pod/web" in text_of(app)
        await press(pilot, "colon", *"at never", "enter")
        assert "cannot read `never` as an instant" in text_of(app)

    on_stage(look, console(source=recording(home)))


@pytest.mark.parametrize(
    ("word", "minutes"),
    [("start", 0), ("end", 10), ("+90s", 11.5), ("-4m", 6), ("12:03:30", 3.5), ("12:04", 4), ("2026-03-14T12:01:00Z", 1)],
)  # fmt: skip
def test_instants_are_read_in_many_ways(home, word: str, minutes: float) -> None:
    assert meant(word, recording(home)) == NOW + timedelta(minutes=minutes)


@pytest.mark.parametrize("word", ["", "25:00", "12:61", "1:2:3:4", "+", "+x", "12:", "²:00"])
def test_nonsense_is_no_instant(home, word: str) -> None:
    with pytest.raises(EngineError, match="as an instant"):
        meant(word, recording(home))


def test_going_back_before_anything_was_read_shows_a_console_that_waits(home) -> None:
    source = recording(home)
    asyncio.run(source.start())
    source.move_to(NOW - timedelta(days=1))
    assert source.now() == NOW
    assert source.world.is_synced("reports"), "read in the very second in which it began"
    assert source.world.objects("reports") == []
    source.world.clear()
    assert not source.world.is_synced("reports")


def test_live_time_does_not_let_itself_be_moved() -> None:
    async def look(app, pilot) -> None:
        for key in (",", ".", "{", "}"):
            await press(pilot, key)
            assert "time moves by itself" in app.said[0]

    on_stage(look)


# Contexts and namespaces.


def test_a_context_is_chosen_from_those_there_are() -> None:
    app = console()
    app.contexts = lambda: ["prod-eu", "dev-us"]

    async def look(made, pilot) -> None:
        await press(pilot, "colon", *"ctx nowhere", "enter")
        assert "there is no context `nowhere`; there are prod-eu, dev-us" in made.said[0]
        await press(pilot, "colon", *"ctx prod-eu", "enter")
        assert made.said[0] == "this is prod-eu already"
        await press(pilot, "colon", *"ctx", "enter")
        assert "dev-us" in window_of(made)
        await press(pilot, "down")
        await leave(made)

    on_stage(look, app)
    assert app.return_value == "dev-us"


def test_what_was_said_of_one_context_does_not_hold_in_another() -> None:
    there = ClusterFlags(context="dev", server="https://dev", token="t", insecure_skip_tls_verify=True, namespace="a", as_user="bob",
                         kubeconfig="/k", journal="a/b", cluster="c", user="u")  # fmt: skip
    asked = ConsoleRequest(there, screen="v", where="x", theme="light", write=True, record="f")

    made = elsewhere(asked, "prod", "grants")

    kept = ClusterFlags(context="prod", as_user="bob", kubeconfig="/k")
    assert made == ConsoleRequest(kept, screen="grants", theme="light")


def test_the_console_opens_again_on_the_context_that_was_chosen(monkeypatch) -> None:
    seen: list[tuple[str, str]] = []
    answers = [("prod", "grants"), None]

    async def run(asked, settings):
        seen.append((asked.connection.context, settings.screen))
        return answers.pop(0)

    monkeypatch.setattr(start, "_run", run)
    monkeypatch.setattr(start, "settle", lambda *_: None)
    asked = ConsoleRequest(ClusterFlags(context="dev"), screen="violations")
    assert start.start(asked, lambda given: {"screen": given.screen}) == 0
    assert seen == [("dev", "violations"), ("prod", "grants")]


def test_a_colour_that_there_is_not_is_named() -> None:
    assert start._color("teal") == "teal"
    assert start._color("") == ""
    with pytest.raises(EngineError, match="`mauvish` is no colour"):
        start._color("mauvish")


def test_a_recording_has_no_other_context(home) -> None:
    async def look(app, pilot) -> None:
        await press(pilot, "ctrl+g")
        assert app.said[0] == "a recording has one context"

    on_stage(look, console(source=recording(home)))


def test_namespaces_are_offered_with_their_rows() -> None:
    async def look(app, pilot) -> None:
        await press(pilot, "ctrl+n")
        assert "payments" in window_of(app)
        assert "empty-one" in window_of(app), "favourites are offered even without rows"
        await press(pilot, *"payments", "enter")
        assert app.view.state.namespace == "payments"
        await press(pilot, "colon", *"ns all", "enter")
        assert app.view.state.namespace == ""

    on_stage(look, console(favourites=("empty-one",)))


def test_a_layout_whose_turn_a_dialog_takes_away_comes_although_no_time_passes(monkeypatch) -> None:
    monkeypatch.setattr("kubectl_kpolicy.tui.app._TICK", 3600)

    async def look(app, pilot) -> None:
        await press(pilot, "ctrl+n")
        below = app.screen_stack[0]
        # As it is when a key has changed what is below, and the dialog comes before the next drawing.
        below._layout_required = True
        app.screen.post_message(Resize(app.size, app.size))
        await settled(app)
        assert not below._layout_required

    on_stage(look)


@pytest.mark.parametrize("word", ["ns", "ctx", "at", "save", "view", "theme", "write", "readonly", "explain"])  # fmt: skip
def test_every_verb_of_the_command_line_is_understood_and_done(word: str, home) -> None:
    assert not understand(word).problem

    async def look(app, pilot) -> None:
        await press(pilot, "colon", *word, "enter")
        await settled(app)

    on_stage(look)


def test_production_paints_header_and_border_and_says_so() -> None:
    async def look(app, _pilot) -> None:
        assert "PROD prod-eu" in lines_of(app)[0]
        painted, wanted = app.view.styles.border_top[1], Color.parse(app.current_theme.error)
        assert max(abs(one - other) for one, other in zip(painted.rgb, wanted.rgb, strict=True)) < 4

    on_stage(look, console(is_production=True))


def test_a_context_has_its_colour() -> None:
    async def look(app, _pilot) -> None:
        assert app.query_one("#header").styles.background.hex == "#008080"

    on_stage(look, console(color="#008080"))


def test_a_click_on_the_header_opens_what_it_names() -> None:
    async def look(app, pilot) -> None:
        header = app.query_one("#header")
        assert header.door_at(header.place_of("namespaces")) == "namespaces"
        assert header.place_of("nothing") is None
        assert header.door_at(79) == ""
        await pilot.click("#header", offset=(header.place_of("namespaces"), 0))
        await settled(app)
        assert "all namespaces" in window_of(app)
        await press(pilot, "escape")
        await pilot.click("#header", offset=(header.place_of("inbox"), 0))
        await settled(app)
        assert app.current == "inbox"

    on_stage(look, size=LARGE)


def test_the_inbox_begins_with_what_is_ones_own_to_decide() -> None:
    async def look(app, pilot) -> None:
        assert "debug-shell" in text_of(app)
        app.looks_as(Identity("carol"), app.here)
        await drawn(app)
        assert "the only row does not fit: yours to decide" in text_of(app)
        await press(pilot, "!")
        assert "debug-shell" in text_of(app)
        await press(pilot, "ctrl+a")
        assert "you cannot decide about this: an own request" in text_of(app)
        assert len(app.screen_stack) == 1

    on_stage(look, console(screen="inbox"), size=LARGE)


def test_letters_jump_to_the_parts_of_the_screen() -> None:
    async def look(app, pilot) -> None:
        await press(pilot, "ctrl+o")
        shown = app.screen.places
        assert {"context", "namespaces", "inbox", "table"} <= set(shown.values())
        letter = next(key for key, door in shown.items() if door == "inbox")
        await press(pilot, letter)
        assert app.current == "inbox"
        await press(pilot, "ctrl+o", "escape")
        assert app.current == "inbox"
        await press(pilot, "ctrl+o")
        screens = {door: key for key, door in app.screen.places.items()}
        await press(pilot, screens["policies"])
        assert app.current == "policies"

    on_stage(look, size=LARGE)


# Columns.


def test_columns_are_chosen_and_kept_for_the_next_time(home) -> None:
    async def choose(app, pilot) -> None:
        await press(pilot, "C", "space", "enter")
        assert "SEV" not in lines_of(app)[3]
        assert "RES" in lines_of(app)[3]

    on_stage(choose, console(columns=load_columns()))
    assert "severity" not in load_columns()["violations"]

    async def look(app, pilot) -> None:
        assert "SEV" not in lines_of(app)[3]
        await press(pilot, "C", "r")
        assert "SEV" in lines_of(app)[3]

    on_stage(look, console(columns=load_columns()))
    assert load_columns() == {}


def test_a_saved_view_has_columns_of_its_own(home) -> None:
    views = {"mine": "violations: sev>=high"}

    async def choose(app, pilot) -> None:
        open_view(app, "mine")
        await settled(app)
        await press(pilot, "C", "j", "j", "space", "enter")
        app.go("grants")
        await settled(app)

    on_stage(choose, console(views=views, columns=load_columns()))
    assert list(load_columns()) == ["view mine"]


def test_what_is_kept_survives_nonsense(home) -> None:
    assert load_columns() == {}
    assert save_columns({"violations": ("policy",), "grants": ()})
    assert load_columns() == {"violations": ("policy",)}
    for text in ("{", "[]", '{"violations": 3}'):
        columns_path().write_text(text)
        assert load_columns() == {}
    assert not save_columns({"a": ("b",)}, {"HOME": "/proc/nowhere"})


# Filters.


def test_a_filter_is_put_together_from_what_is_there() -> None:
    async def look(app, pilot) -> None:
        every = len(app.table.lines)
        await press(pilot, "=", *"policy", "enter", "enter")
        assert "require-run-as-nonroot" in window_of(app)
        await press(pilot, *"nonroot", "enter")
        assert app.view.state.filter.text == "policy=require-run-as-nonroot"
        assert 0 < len(app.table.lines) < every
        await press(pilot, "=", *"sev", "enter", "enter", *"high", "enter")
        assert app.view.state.filter.text == "policy=require-run-as-nonroot severity>=high"
        await press(pilot, "=", *"without policy", "enter")
        assert app.view.state.filter.text == "severity>=high"

    on_stage(look)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("sev>=high", ["sev>=high"]),
        ('sev>=high ns="a b" word', ["sev>=high", 'ns="a b"', "word"]),
        ("-l app=x -f web", ["-l app=x", "-f web"]),
        ("a or b", ["a or b"]),
        ("(a b) c", ["(a b) c"]),
        ("!a b", ["!a b"]),
        ("a and b", ["a and b"]),
        ('"unfinished', ['"unfinished']),
    ],
)
def test_a_filter_comes_apart_where_its_parts_stand_side_by_side(text: str, parts: list[str]) -> None:  # fmt: skip
    assert parts_of(text) == parts


@pytest.mark.parametrize("value", ["plain", "two words", 'a"b', "back\\slash", "(x)", "", "tab\there"])  # fmt: skip
def test_any_value_can_be_filtered_by(value: str) -> None:
    from kubectl_kpolicy.cluster.violations import LISTING
    from kubectl_kpolicy.output.rows import Row
    from kubectl_kpolicy.tui.handlers.choices import _quoted

    made = compile_filter(f"policy={_quoted(value)}", LISTING)
    assert made.keeps(Row("a", {"policy": value}), NOW)
    assert not made.keeps(Row("b", {"policy": "something else"}), NOW)


# Views and grants.


def test_a_list_with_its_filter_is_saved_as_a_view(home) -> None:
    async def look(app, pilot) -> None:
        await press(pilot, "slash", *"sev>=high", "enter", "colon", *"save worst", "enter")
        assert "kept as `:view worst`" in text_of(app)
        await press(pilot, "escape", "colon", *"view worst", "enter")
        assert app.view.state.filter.text == "sev>=high"

    on_stage(look)
    assert load_config().views() == {"worst": "violations: sev>=high"}


def test_saving_a_view_leaves_the_rest_of_the_file_as_it_is(home) -> None:
    path = home / ".config" / "kpolicy" / "kpolicy.toml"
    path.parent.mkdir(parents=True)
    before = '# mine\n[tui]\ntheme = "light" # bright\n\n[views]\nold = "grants: state=active"\n\n[keymap]\nwide = "W"\n'
    path.write_text(before)
    save_view("new one", 'violations: message~"a b"')
    assert path.read_text() == before.replace("[views]\n", '[views]\n"new one" = "violations: message~\\"a b\\""\n')  # fmt: skip
    save_view("old", "grants: state=pending")
    assert load_config().views() == {"new one": 'violations: message~"a b"', "old": "grants: state=pending"}  # fmt: skip
    assert "# bright" in path.read_text()


def test_a_file_that_cannot_take_a_view_is_left_alone(home, monkeypatch) -> None:
    path = home / "odd.toml"
    monkeypatch.setenv("KPOLICY_CONFIG", str(path))
    path.write_text('views = { a = "violations:" }\n')
    with pytest.raises(DocumentError, match="cannot be put"):
        save_view("b", "violations: x")
    assert tomllib.loads(path.read_text()) == {"views": {"a": "violations:"}}


def test_two_grants_are_shown_side_by_side_with_what_differs() -> None:
    async def look(app, pilot) -> None:
        await press(pilot, "D")
        assert "mark one grant" in app.said[0]
        await press(pilot, "space", "D")
        text = window_of(app)
        assert "≠" in text
        assert len([line for line in text.splitlines() if "≠" in line]) >= 3

    on_stage(look, console(world(), screen="grants"), size=LARGE)


def test_keys_that_clash_are_told_when_the_console_opens() -> None:
    async def look(app, _pilot) -> None:
        assert "`e` is both" in text_of(app)

    on_stage(look, console(keymap={"request": ["e"]}), size=LARGE)


def test_what_came_since_the_last_sitting_is_counted_in_the_title() -> None:
    async def told(app, _pilot) -> None:
        assert "2 new" in lines_of(app)[2]

    async def keys_of(app, _pilot) -> None:
        assert "new" not in lines_of(app)[2]
        every.extend(row.key for row in app.table.lines)

    every: list[str] = []
    on_stage(keys_of)
    on_stage(told, console(seen=frozenset(every[2:])))


def test_what_is_copied_goes_through_the_terminal(monkeypatch) -> None:
    copied: list[str] = []

    async def look(app, pilot) -> None:
        monkeypatch.setattr(app, "copy_to_clipboard", copied.append)
        row = app.row
        await press(pilot, "c", "enter")
        assert copied == [row.text("resource")]
        assert app.said[0] == "copied name"
        await press(pilot, "c", "down", "enter")
        assert copied[1:] == [row.text("message")]

    on_stage(look)


def test_the_details_of_an_exception_say_what_turns_red_when_it_ends() -> None:
    async def look(app, pilot) -> None:
        told = []
        for _ in app.table.lines:
            await press(pilot, "enter")
            told.append(window_of(app).split("turns red when it ends")[1])
            await press(pilot, "escape", "j")
        assert any("Deployment/" in one for one in told)
        assert any("nothing that reports know of" in one for one in told)

    on_stage(look, console(screen="exceptions"), size=(140, 40))
