"""The console by its keys: what is on the screen after each, and what never happens."""

from __future__ import annotations

import pytest

from controllers.kube.clock import ServerClock
from controllers.kube.kinds import POLICY_EXCEPTIONS
from kubectl_kpolicy.actions.catalog import registry
from kubectl_kpolicy.actions.executor import ActionExecutor
from kubectl_kpolicy.actions.screens import SCREENS
from kubectl_kpolicy.cluster.cache import ClusterCache, Trouble
from kubectl_kpolicy.cluster.sources import LiveSource
from kubectl_kpolicy.grants.form import GrantForm, draft_of
from kubectl_kpolicy.tui.chrome import header_parts
from kubectl_kpolicy.tui.modals.danger import Danger
from kubectl_kpolicy.tui.modals.reveal import Reveal
from kubectl_kpolicy.tui.modals.wizard import GrantWizard
from tests.clock import ManualClock
from tests.controllers.kube.fake import FakeClient
from tests.plugin.scene import NOW, hindered, objects, report, result, world

from .stage import (
    LARGE,
    SMALL,
    Stage,
    console,
    drawn,
    key_event,
    lines_of,
    on_stage,
    press,
    settled,
    text_of,
    window_of,
)


def screen_after(*keys: str, size=(80, 24), app=None) -> str:
    seen: list[str] = []

    async def look(made, _pilot) -> None:
        seen.append(text_of(made))

    on_stage(look, app, keys=keys, size=size)
    return seen[0]


def test_the_first_screen_shows_failures_the_worst_first() -> None:
    text = screen_after()

    assert "Violations (7 of 9, failures)" in text
    lines = [line for line in text.splitlines() if "fail" in line and "│" in line]
    assert "critical" in lines[0]
    assert "watch ok" in text
    assert "next expiry 00:12:41" in text
    assert "inbox 1" in text


def test_the_failures_key_shows_everything() -> None:
    assert "Violations (9)" in screen_after("!")


def test_a_filter_narrows_while_it_is_typed_and_esc_takes_it_back() -> None:
    assert "Violations (3 of 9, failures, sev>=high)" in screen_after("slash", *"sev>=high")
    assert "Violations (3 of 9, failures, sev>=high)" in screen_after(
        "slash", *"sev>=high", "enter"
    )
    assert "Violations (7 of 9, failures)" in screen_after("slash", *"sev>=high", "enter", "escape")


def test_half_a_filter_is_said_not_thrown() -> None:
    text = screen_after("slash", *"sevv=high")

    assert "there is no column `sevv`; did you mean `sev`?" in text
    assert "Violations (7 of 9" in text


@pytest.mark.parametrize("screen", SCREENS)
def test_every_screen_opens_by_its_name(screen: str) -> None:
    async def look(app, _pilot) -> None:
        assert app.current == screen

    on_stage(look, keys=("colon", *screen, "enter"))


def test_screens_follow_each_other() -> None:
    async def look(app, pilot) -> None:
        seen = [app.current]
        for _ in SCREENS:
            await press(pilot, "greater_than_sign")
            seen.append(app.current)
        assert seen[0] == seen[-1]
        assert set(seen) == set(SCREENS)
        await press(pilot, "less_than_sign")
        assert app.current == "pulse" or app.current in SCREENS

    on_stage(look)


def test_a_command_with_a_namespace_filters_as_k9s_does() -> None:
    assert "ns=payments" in screen_after("colon", *"v payments", "enter")
    assert "3 of 9, failures, ns=payments" in screen_after(
        "colon", *"ns payments", "enter"
    ).replace("4 of", "3 of")


def test_nonsense_gets_the_nearest_word() -> None:
    assert "`grnts` is no screen; did you mean `grants`?" in screen_after(
        "colon", *"grnts", "enter"
    )


def test_the_history_goes_back_and_forth() -> None:
    async def look(app, pilot) -> None:
        await press(pilot, "colon", *"grants", "enter", "colon", *"codes", "enter")
        assert app.current == "codes"
        await press(pilot, "left_square_bracket")
        assert app.current == "grants"
        await press(pilot, "right_square_bracket")
        assert app.current == "codes"
        await press(pilot, "minus")
        assert app.current == "grants"

    on_stage(look)


def test_the_cursor_stays_on_its_row_when_others_come() -> None:
    async def look(app, pilot) -> None:
        await press(pilot, "j", "j")
        row = app.row
        new = report(
            "Pod",
            "new",
            "payments",
            *[result("p", f"r{n}", "fail", "critical", "no", minutes=1) for n in range(5)],
        )
        app.source.world.put("reports", new)
        await drawn(app)
        assert len(app.table.lines) == 12
        assert app.row.key == row.key

    on_stage(look)


def test_sorting_grouping_and_folding() -> None:
    async def look(app, pilot) -> None:
        await press(pilot, "A")
        ages = [row.moment("age") for row in app.table.lines]
        assert ages == sorted(ages, reverse=True)
        await press(pilot, "O")
        assert [row.moment("age") for row in app.table.lines] == sorted(ages)
        await press(pilot, "b", "g")
        headings = [line for line in app.table.lines if not hasattr(line, "cells")]
        assert len(headings) == 6
        before = len(app.table.lines)
        await press(pilot, "enter")
        assert len(app.table.lines) == before - headings[0].count

    on_stage(look)


def test_a_request_is_for_what_is_marked_and_not_for_the_row_under_the_cursor() -> None:
    async def look(app, pilot) -> None:
        marked = app.row
        await press(pilot, "space", "j", "r")
        assert app.screen.draft == draft_of(marked)

    on_stage(look)


def test_a_request_begins_with_what_was_denied() -> None:
    async def look(app, pilot) -> None:
        denied = app.row
        assert denied.text("resource") in ("Deployment/indexer", "Pod/debug-shell")
        await press(pilot, "r")
        assert app.screen.draft == draft_of(denied)
        assert (app.screen.draft.kind, app.screen.draft.name) == tuple(denied.text("resource").split("/"))  # fmt: skip

    on_stage(look, console(screen="blocks"))


def test_marks_are_kept_and_counted() -> None:
    async def look(app, pilot) -> None:
        await press(pilot, "space", "space")
        assert len(app.rows) == 2
        assert "2 marked" in text_of(app)
        await press(pilot, "j", "v")
        assert len(app.rows) == 4
        await press(pilot, "ctrl+backslash")
        assert len(app.rows) == 1

    on_stage(look)


def test_details_say_everything_and_show_the_rule() -> None:
    text = screen_after("enter", size=LARGE)

    assert "Sharing the host namespaces is disallowed." in text
    assert "2026-03-14T11:58:00Z" in text


def test_wide_screens_have_the_details_beside_the_list() -> None:
    assert "other results of this object" in screen_after(size=LARGE)
    assert "other results of this object" not in screen_after()


def test_explaining_shows_policy_rule_and_exceptions() -> None:
    text = screen_after("down", "e")

    assert "Explain payments/Pod/debug-shell" in text
    assert "require-run-as-nonroot" in text
    assert "exception payments/web-hotfix" in text


def test_help_lists_every_key_of_the_screen() -> None:
    async def look(app, _pilot) -> None:
        text = text_of(app)
        for action in app.registry.on("violations"):
            assert action.title in text

    on_stage(look, keys=("question_mark",), size=(140, 120))


def test_help_has_two_columns_and_keeps_what_has_all_typed_words() -> None:
    async def look(app, pilot) -> None:
        assert any("Request" in line and "Sort by" in line for line in lines_of(app))
        await press(pilot, *"sort newest")
        found = window_of(app)
        assert "Sort by the" not in found
        assert "newest first" in found
        await press(pilot, *"zz")
        assert "nothing here has `sort newestzz`" in window_of(app)
        await press(pilot, "escape")
        assert not app.screen.query(".window")

    on_stage(look, keys=("question_mark",))


def test_help_tells_the_words_of_the_command_line_and_those_of_ones_own() -> None:
    async def look(app, pilot) -> None:
        await press(pilot, *"command line")
        assert ":readonly" in window_of(app)
        assert "violations sev=critical" in window_of(app)

    on_stage(look, console(aliases={"crit": "violations sev=critical"}), keys=("question_mark",))


@pytest.mark.parametrize("screen", SCREENS)
def test_the_footer_has_at_most_six_keys_and_fits(screen: str) -> None:
    last = screen_after(app=console(screen=screen)).splitlines()[-1]

    assert len(last) <= 80
    assert "^p Palette" in last


def test_the_command_log_holds_what_was_done_as_commands() -> None:
    async def look(app, _pilot) -> None:
        assert app.command_log == ["kubectl kpolicy explain Pod/debug-shell -n payments"]

    on_stage(look, keys=("down", "e"))


# Waiting, missing, stale.


def test_waiting_says_for_what() -> None:
    assert "waiting for the API server: results of policies in namespaces" in screen_after(
        app=console(ClusterCache())
    )


@pytest.mark.parametrize(
    ("trouble", "words"),
    [(Trouble.FORBIDDEN, "forbidden: you may not list"), (Trouble.MISSING, "not installed: the server has no"),
     (Trouble.UNREACHABLE, "cluster unreachable"), (Trouble.UNAUTHORIZED, "not logged in")],
)  # fmt: skip
def test_what_is_in_the_way_is_named_with_its_remedy(trouble: Trouble, words: str) -> None:
    text = screen_after(app=console(hindered(trouble)))

    assert words in text
    assert "kubectl auth can-i --list" in text


def test_stale_rows_stay_and_say_how_old_they_are() -> None:
    there = world()
    there.hindered("reports", hindered(Trouble.UNREACHABLE).problem("reports"))
    source = Stage(there, at=NOW.replace(minute=7))

    text = screen_after(app=console(source=source))

    assert "stale: as it was 7m ago; cluster unreachable" in text
    assert "debug-shell" in text
    assert "offline" in text


@pytest.mark.parametrize(
    "screen", [one for one in SCREENS if one not in ("pulse", "explain", "health")]
)
def test_every_empty_screen_says_why_and_what_next(screen: str) -> None:
    from kubectl_kpolicy.actions.screens import LISTINGS

    text = " ".join(screen_after(app=console(world({}), screen=screen)).replace("│", " ").split())
    listing = LISTINGS[screen]

    assert listing.empty in text
    assert listing.next_step[:40] in text


def test_a_list_without_rows_leaves_the_focus_to_nobody_until_there_are_some() -> None:
    there = world({})

    async def look(app, _pilot) -> None:
        app.go("violations")
        await settled(app)
        assert app.focused is None
        there.put("reports", objects()["reports"][0])
        await drawn(app)
        assert app.focused is app.table

    on_stage(look, console(there))


def test_a_filter_that_fits_nothing_names_the_way_out() -> None:
    text = screen_after("slash", *"nothing-like-it", "enter")

    assert "none of 9 rows fits: `nothing-like-it`, failures" in text
    assert "esc clears the filter" in text


# Changing.


def test_read_only_leaves_nothing_but_looking() -> None:
    async def look(app, pilot) -> None:
        await press(pilot, "r")
        assert len(app.screen_stack) == 1
        assert "read-only: `:write` unlocks for 15 min" in text_of(app)
        await press(pilot, "colon", *"write", "enter", "r")
        assert isinstance(app.screen, GrantWizard)

    on_stage(look, console(read_only=True))


def test_revoking_asks_wants_the_name_typed_and_deletes() -> None:
    client = FakeClient(*objects()["exceptions"], clock=ManualClock(NOW))
    app = console(screen="exceptions", doer=ActionExecutor(client, lambda: NOW))

    async def look(made, pilot) -> None:
        await press(pilot, "ctrl+d")
        assert isinstance(made.screen, Danger)
        assert made.focused.id == "cancel"
        assert made.screen.query_one("#go").disabled
        await press(pilot, "shift+tab", *"old-migration", "enter", "enter")
        await settled(pilot.app)
        assert "revoked ledger/old-migration" in text_of(made)

    on_stage(look, app)
    assert len(client.stored(POLICY_EXCEPTIONS)) == 2


def test_cancelling_changes_nothing() -> None:
    client = FakeClient(*objects()["exceptions"], clock=ManualClock(NOW))

    async def look(made, pilot) -> None:
        await press(pilot, "ctrl+d", "enter")
        assert "nothing was changed" in text_of(made)

    on_stage(look, console(screen="exceptions", doer=ActionExecutor(client, lambda: NOW)))
    assert len(client.stored(POLICY_EXCEPTIONS)) == 3


def test_a_request_goes_through_four_pages() -> None:
    handed: list[dict] = []

    async def hand_in(obj, dry_run: bool) -> str:
        handed.append(obj)
        return "requested: waits for 2 of group:sre until 13:00"

    there = world()
    app = console(there, grant_form=GrantForm(there, lambda: NOW, hand_in=hand_in))

    async def look(made, pilot) -> None:
        await press(pilot, "down", "r")
        assert "1 Requirements" in text_of(made)
        await press(pilot, "ctrl+j")
        assert "flips 1, leaves 1, may match later: no" in text_of(made)
        await press(pilot, "ctrl+j", *"image_rebuilt_on_Monday")
        assert "━━━━━━━━━━ 23 of at least 10 characters" in text_of(made)
        await press(pilot, "ctrl+j", "ctrl+j")
        assert "requested: waits for 2 of group:sre" in text_of(made)

    on_stage(look, app)
    assert handed[0]["spec"]["reason"] == "image_rebuilt_on_Monday"
    assert handed[0]["metadata"]["namespace"] == "payments"


def test_a_request_that_would_be_refused_cannot_be_handed_in() -> None:
    async def look(made, pilot) -> None:
        await press(pilot, "down", "r", "ctrl+j", "ctrl+j", "ctrl+j", "ctrl+j")
        assert isinstance(made.screen, GrantWizard)
        assert "the reason has 0 of at least 10 characters" in text_of(made)

    on_stage(look)


def test_the_review_of_a_request_scrolls_by_keys_where_it_does_not_fit() -> None:
    async def look(made, pilot) -> None:
        await press(pilot, "down", "r", "ctrl+j", "ctrl+j", *"it_is_rebuilt", "ctrl+j")
        page = made.screen.query_one("#pages")
        assert "apiVersion: kpolicy.io/v1alpha1" in text_of(made)
        assert "$ kubectl kpolicy grant" not in text_of(made)
        seen = []
        for key in ("up", "down", "down", "up", "pagedown", "pageup"):
            await press(pilot, key)
            seen.append(page.scroll_y)
        assert seen == [0, 1, 2, 1, page.max_scroll_y, 0]
        assert page.max_scroll_y >= 3
        await press(pilot, "pagedown", "ctrl+k", "ctrl+j")
        assert page.scroll_y == 0

    on_stage(look)


def test_the_length_of_a_reason_is_drawn_in_ascii_where_that_is_wanted() -> None:
    async def look(made, pilot) -> None:
        await press(pilot, "down", "r", "ctrl+j", "ctrl+j", *"so_it")
        assert "=====----- 5 of at least 10 characters" in text_of(made)

    on_stage(look, console(ascii=True))


# Codes.


CODE = "7GQ2-K9XD-PM4T-WZ81-VN30"


def test_a_code_is_masked_shown_for_five_seconds_and_forgotten() -> None:
    async def look(app, pilot) -> None:
        noted: list[bool | None] = []
        app.push_screen(Reveal("Code", CODE, "for carol"), noted.append)
        await settled(pilot.app)
        assert CODE not in text_of(app)
        await press(pilot, "space")
        assert CODE in text_of(app)
        await press(pilot, "escape", "y")
        assert noted == [True]
        assert CODE not in text_of(app)

    on_stage(look)


def test_no_picture_of_the_screen_holds_a_code() -> None:
    async def look(app, pilot) -> None:
        app.push_screen(Reveal("Code", CODE, "for carol"))
        await press(pilot, "space")
        assert CODE in text_of(app)
        assert CODE not in app.export_screenshot()
        assert "•" in app.export_screenshot()
        assert CODE in text_of(app)

    on_stage(look)


def test_a_code_is_in_no_text_of_the_widget() -> None:
    from kubectl_kpolicy.tui.modals.reveal import Secret

    assert CODE not in repr(Secret(CODE))


# Hostile values.


@pytest.mark.parametrize(
    "evil",
    [
        "\x1b[31mred",
        "\x1b]0;title\x07",
        "\x9b2J",
        "a\rb",
        "\u202egnp.exe",
        "\x08\x08",
        "[bold]x[/bold]",
        "\x1b]52;c;eA==\x07",
        "\ud800x",
    ],
)
def test_what_an_object_holds_cannot_steer_the_terminal(evil: str) -> None:
    there = world({"reports": [report("Pod", evil, evil, result(evil, evil, "fail", "high", evil))],
                   "clusterpolicies": [], "exceptions": []})  # fmt: skip

    async def look(app, pilot) -> None:
        for keys in ((), ("enter",), ("escape", "y"), ("escape", "e"), ("x",)):
            await press(pilot, *keys)
            text = text_of(app)
            assert all(char.isprintable() or char == "\n" for char in text), keys

    on_stage(look, console(there), size=LARGE)


def test_keys_can_be_remapped() -> None:
    async def look(app, pilot) -> None:
        await press(pilot, "r")
        assert len(app.screen_stack) == 1
        await press(pilot, "K")
        assert isinstance(app.screen, GrantWizard)

    on_stage(look, console(keymap={"request": ["K"]}))


def test_saved_views_open_by_name() -> None:
    app = console(views={"mine": "violations: sev>=high ns=payments", "odd": "nowhere: x"})

    async def look(made, pilot) -> None:
        await press(pilot, "colon", *"view mine", "enter")
        assert made.view.state.filter.text == "sev>=high ns=payments"
        await press(pilot, "colon", *"view odd", "enter")
        assert "there is no view `odd`; there are: mine, odd" in text_of(made)

    on_stage(look, app)


@pytest.mark.parametrize("keys", [(), ("question_mark",), ("ctrl+p",), ("down", "r"), ("greater_than_sign",), ("enter",)])  # fmt: skip
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_ascii_draws_no_other_letters_in_windows(keys: tuple[str, ...], size) -> None:
    async def look(app, _pilot) -> None:
        assert {char for char in text_of(app) if not char.isascii()} <= set("検索")

    on_stage(look, console(ascii=True), keys=keys, size=size)


@pytest.mark.parametrize("screen", SCREENS)
def test_ascii_draws_no_other_letters_on_any_screen(screen: str) -> None:
    async def look(app, _pilot) -> None:
        assert {char for char in text_of(app) if not char.isascii()} <= set("検索")

    on_stage(look, console(ascii=True, screen=screen), size=LARGE)


@pytest.mark.parametrize("screen", SCREENS)
def test_every_action_can_be_pressed_on_every_screen_without_an_error(screen: str) -> None:
    everywhere = screen in ("violations", "pulse", "explain")

    async def look(app, _pilot) -> None:
        for action in registry().on(screen):
            if action.id in ("quit", "export") or not (action.screens or everywhere):
                continue
            await app.perform(action)
            await settled(app)
            while len(app.screen_stack) > 1:
                app.pop_screen()
                await settled(app)
            app.go(screen, "")
            await settled(app)

    on_stage(look, console(screen=screen))


def test_fifty_thousand_rows_stay_usable() -> None:
    import time

    reports = [
        report(
            "Pod",
            f"pod-{n}",
            f"ns-{n % 50}",
            *[
                result(f"policy-{m}", "rule", "fail", "high", "no", minutes=n % 999)
                for m in range(5)
            ],
        )
        for n in range(10_000)
    ]
    app = console(world({"reports": reports}))

    async def look(made, pilot) -> None:
        assert len(made.table.lines) == 50_000
        began = time.perf_counter()
        await press(pilot, *"jjjjjjjjjj", "G", "g")
        bare = time.perf_counter() - began
        assert made.table.index == 0
        assert bare < 10, "thirteen keys"
        await press(pilot, "slash", *"ns=ns-7", "enter")
        assert len(made.table.lines) == 1_000

    on_stage(look, app)


def test_what_is_typed_ahead_meets_the_state_that_the_key_before_left() -> None:
    async def look(app, pilot) -> None:
        for key in (
            "colon",
            *"grants",
            "enter",
            "slash",
            *"state=pending",
            "backspace",
            *"g",
            "enter",
            "enter",
        ):
            app.post_message(key_event(app, key))
        await settled(app)
        text = text_of(app)
        assert "debug-shell" in text
        assert "requested by carol" in text
        await press(pilot, "escape")
        assert app.view.state.filter.text == "state=pending"

    on_stage(look)


def test_a_dialog_takes_what_is_typed_before_it_is_drawn() -> None:
    async def look(app, _pilot) -> None:
        for key in ("r", "ctrl+j", "ctrl+j", *"image is rebuilt"):
            app.post_message(key_event(app, key))
        await settled(app)
        assert app.screen.draft.reason == "image is rebuilt"

    on_stage(look)


def test_what_is_allowed_in_one_namespace_only_is_offered_there_and_not_elsewhere() -> None:
    delete = registry().get("exception-revoke").rights[0]

    async def ask(place: str) -> dict:
        return {delete: place == "payments"}

    async def look(app, pilot) -> None:
        app.here.rights.ask = ask
        offered = {}
        for index in range(len(app.table.lines)):
            app.table.move_to(index)
            await drawn(app)
            await app._learn_rights(app.row.text("namespace")).wait()
            offered[app.row.text("namespace")] = app.refusal(app.registry.get("exception-revoke"))
        assert offered["payments"] == ""
        assert offered["ledger"] == "you may not delete policyexceptions.kyverno.io"

    on_stage(look, console(screen="exceptions", rights={delete: False}))


def test_a_list_has_the_focus_once_its_rows_are_there() -> None:
    async def look(app, _pilot) -> None:
        app.source.world = world()
        app.draw()
        await settled(app)
        assert app.row is not None
        assert app.screen.focused is app.table

    on_stage(look, console(ClusterCache()))


def test_a_list_that_is_late_takes_no_focus_from_a_dialog() -> None:
    async def look(app, pilot) -> None:
        await press(pilot, "e", "r")
        focused = app.screen.focused
        app._focus()
        assert app.screen.focused is focused

    on_stage(look)


@pytest.mark.parametrize(("ahead", "said"), [(1800.0, ["clock +30m"]), (-1800.0, ["clock -30m"]), (0.0, [])])  # fmt: skip
def test_a_clock_that_differs_from_the_servers_is_told_of(ahead: float, said: list[str]) -> None:
    async def look(app, _pilot) -> None:
        parts = [part.text for part in header_parts(app)]
        assert [text for text in parts if text.startswith("clock")] == said

    clock = ServerClock()
    clock.skew = ahead
    on_stage(look, console(source=LiveSource(FakeClient(), clock)))
