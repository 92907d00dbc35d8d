"""A screen, a command and an action are each added by one declaration; everything that tells of them follows."""

from __future__ import annotations

import json
import sys
import types

import pytest

from kubectl_kpolicy import cli, entry
from kubectl_kpolicy.actions.catalog import ALL
from kubectl_kpolicy.actions.executor import ActionExecutor
from kubectl_kpolicy.actions.prompt import understand
from kubectl_kpolicy.actions.registry import Action, Danger, Field, Registry
from kubectl_kpolicy.actions.screens import SCREENS, Screen, listing_named
from kubectl_kpolicy.cli.reading import Read
from kubectl_kpolicy.cli.spec import specification
from kubectl_kpolicy.cluster.cache import ClusterCache
from kubectl_kpolicy.output.rows import Column, Listing, Row
from kubectl_kpolicy.session.identity import Right
from kubectl_kpolicy.tui.app import Everything
from kubectl_kpolicy.tui.commands import line_of
from tests.clock import ManualClock
from tests.controllers.kube.fake import FakeClient
from tests.plugin.scene import NOW
from tests.plugin.tui.stage import console, on_stage, press, text_of

TOYS = Screen(
    "toys", "y", "toys list", "toys describe {name}", called="toy", is_named=True,
    listing=Listing(
        "toys", "Toys", ("ty",), (Column("name", "NAME"), Column("made", "MADE OF")),
        lambda _world, _now: [Row("bear", {"name": "bear", "made": "plush"}, {"kind": "Toy", "metadata": {"name": "bear"}})], (),
    ),
)  # fmt: skip


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCREENS, "toys", TOYS)


def test_a_screen_is_shown_reached_and_told(toys) -> None:
    async def look(app, pilot) -> None:
        await press(pilot, "colon", *"ty", "enter")
        assert app.current == "toys"
        assert "MADE OF" in text_of(app)
        assert "plush" in text_of(app)
        describe = app.registry.get("describe")
        assert line_of(app, describe, app.rows) == "kubectl kpolicy toys describe bear"
        entries = list(Everything(app.screen)._entries())
        assert any(title == "Go to toys" for title, _, _ in entries)
        await press(pilot, "greater_than_sign", "less_than_sign")
        assert app.current == "toys"
        await press(pilot, "ctrl+o")
        assert "toys" in text_of(app)

    assert understand("toys").word == "toys"
    assert listing_named("ty") is TOYS.listing
    on_stage(look)


def test_a_screen_has_a_command_that_lists_its_rows(toys, capsys, monkeypatch) -> None:
    monkeypatch.setattr("kubectl_kpolicy.cli.lists.read", lambda *_: Read(ClusterCache(), NOW))

    assert entry.main(["toys", "list"]) == 0
    assert capsys.readouterr().out.split() == ["NAME", "MADE", "OF", "bear", "plush"]
    assert entry.main(["toys", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["items"] == [{"kind": "Toy", "metadata": {"name": "bear"}}]  # fmt: skip
    assert entry.main(["toys", "list", "rabbit"]) == 6
    assert "there is no toy called `rabbit`" in capsys.readouterr().err
    assert specification()["listings"]["toys"] == {"aliases": ["ty"], "columns": ["name", "made"]}


def test_an_action_is_offered_asked_about_done_and_told() -> None:
    seen: list[tuple[str, str]] = []

    async def polish(doer, row, form) -> str:
        seen.append((row.text("name"), form["wax"]))
        return f"polished {row.text('name')}"

    action = Action(
        "polish", "Polish", "Make it shine.", ("ctrl+y",), Danger.CHANGES, "kubectl kpolicy grant polish {name} --wax {wax}",
        (Right("patch", "grants", "kpolicy.io"),), ("grants",), needs_row=True, footer=1,
        fields=(Field("wax", "wax", "which wax"),), work=polish,
    )  # fmt: skip
    app = console(screen="grants", doer=ActionExecutor(FakeClient(clock=ManualClock(NOW)), lambda: NOW))  # fmt: skip
    app.registry = Registry((*ALL, action))

    async def look(made, pilot) -> None:
        assert "^y Polish" in text_of(made)
        name = made.row.text("name")
        offered = [(title, told) for title, told, _ in Everything(made.screen)._entries()]
        assert ("Polish  [ctrl+y]", "Make it shine.") in offered
        await press(pilot, "ctrl+y", *"bees", "enter", "enter")
        assert seen == [(name, "bees")]
        assert made.command_log[-1] == f"kubectl kpolicy grant polish {name} --wax bees"

    on_stage(look, app)


def test_a_row_that_an_action_is_not_for_is_told_so() -> None:
    action = Action(
        "polish", "Polish", "Make it shine.", ("ctrl+y",), Danger.CHANGES, "kubectl kpolicy grant polish {name}",
        (Right("patch", "grants", "kpolicy.io"),), ("grants",), needs_row=True, unfit=lambda _row: "it shines already",
    )  # fmt: skip
    app = console(screen="grants")
    app.registry = Registry((*ALL, action))

    async def look(made, pilot) -> None:
        await press(pilot, "ctrl+y")
        assert made.said[0] == "it shines already"

    on_stage(look, app)


def test_a_command_is_listed_helped_and_run(monkeypatch, capsys) -> None:
    module = types.ModuleType("kubectl_kpolicy.cli.juggle")
    module.add_arguments = lambda flags: flags.add("--balls", "how many", type=int, default=3)
    module.run = lambda args: print(f"{args.balls} in the air") or 0
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(cli.COMMANDS, "juggle", "keep things in the air")

    assert entry.main(["juggle", "--balls", "5"]) == 0
    assert entry.main(["--help"]) == 0
    assert entry.main(["juggle", "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("5 in the air")
    assert "keep things in the air" in out
    assert "--balls" in out
    assert specification()["commands"]["juggle"]["flags"]["--balls"]["default"] == 3
