"""The command log: what was done, as commands that the plugin's own parsers take, with the values that were filled in."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from controllers.kube.kinds import GRANTS, POLICY_EXCEPTIONS
from engine.record import replace
from kubectl_kpolicy.actions.catalog import ALL
from kubectl_kpolicy.actions.executor import ActionExecutor
from kubectl_kpolicy.actions.registry import TUI, Danger, Registry
from kubectl_kpolicy.actions.screens import SCREENS
from kubectl_kpolicy.cli import COMMANDS, parser_of
from kubectl_kpolicy.grants.form import Draft, command
from kubectl_kpolicy.session.identity import Identity
from kubectl_kpolicy.tui.commands import is_told, line_of
from tests.clock import ManualClock
from tests.controllers.kube.fake import FakeClient
from tests.plugin.scene import NOW, objects

from .stage import console, on_stage, press

if TYPE_CHECKING:
    import argparse

FILLED = {"comment": "agreed on the phone", "reason": "it's needed", "for": "90m", "user": "carol", "ttl": "15m",
          "bind": "disallow-host-namespaces/host-namespaces:Pod/debug-shell", "file": "/tmp/a pod.yaml"}  # fmt: skip


def parsed(line: str) -> list[argparse.Namespace]:
    """Parse each command of a line as the program does; an error of argparse ends the test."""
    found = []
    for one in line.split(" && "):
        words = shlex.split(one)
        assert words[:2] == ["kubectl", "kpolicy"], line
        assert words[2] in COMMANDS, line
        found.append(parser_of(words[2])[0].parse_args(words[3:]))
    return found


@pytest.mark.parametrize("screen", SCREENS)
def test_the_command_of_every_action_on_every_row_can_be_pasted(screen: str) -> None:
    tried: list[str] = []

    async def look(app, _pilot) -> None:
        table = app.table
        for index in range(len(table.lines) if table else 1):
            if table:
                table.move_to(index)
            for action in app.registry.on(screen):
                if (action.needs_row and app.subject is None) or not (
                    action.is_guarded or is_told(app, action)
                ):
                    continue
                line = line_of(app, action, app.rows, **FILLED)
                for one in parsed(line):
                    assert getattr(one, "run", None) or one, line
                tried.append(line)

    on_stage(look, console(screen=screen))
    assert tried or screen in ("pulse", "explain")
    assert not [line for line in tried if "{" in line or "<" in line]


@pytest.mark.parametrize(
    "action", [one for one in ALL if one.danger >= Danger.ASKS], ids=lambda one: one.id
)
def test_every_action_that_leads_to_a_change_has_a_command_of_its_own(action) -> None:
    assert not action.command.startswith(TUI)


def test_the_command_of_a_draft_can_be_pasted() -> None:
    draft = Draft(
        "p", "r", "Pod", "x; y", "a b", reason="it's down", ticket="OPS-1", uses="2", emergency=True
    )
    [made] = parsed(command(draft))
    assert (made.rule, made.targets, made.namespace, made.reason) == (
        "p/r",
        ["Pod/x; y"],
        "a b",
        "it's down",
    )
    assert (made.uses, made.emergency, made.ticket) == (2, True, "OPS-1")


def test_what_was_filled_in_stands_in_the_log_and_what_was_refused_does_not() -> None:
    client = FakeClient(*objects()["exceptions"], *objects()["grants"], clock=ManualClock(NOW))
    doer = ActionExecutor(client, lambda: NOW, Identity("bob"))
    logs: list[list[str]] = []

    async def approve(_doer, _row, form) -> str:
        assert form["comment"] == "agreed, go"
        return "approved"

    async def look(app, pilot) -> None:
        await press(pilot, "ctrl+a", *"agreed, go", "enter", "enter")
        logs.append(app.command_log[-1:])
        await press(pilot, "ctrl+d", "escape")
        logs.append(app.command_log[-1:])

    app = console(screen="inbox", doer=doer)
    app.registry = Registry(
        replace(one, work=approve) if one.id == "approve" else one for one in ALL
    )
    on_stage(look, app)
    line = "kubectl kpolicy grant approve debug-shell -n payments --comment 'agreed, go'"
    assert logs == [[line], [line]]
    assert len(client.stored(POLICY_EXCEPTIONS)) == 3
    assert len(client.stored(GRANTS)) == 5


def test_a_dialog_shows_no_reason_of_the_row_as_if_it_were_the_one_to_be_typed() -> None:
    async def look(app, pilot) -> None:
        assert app.row.text("reason")
        await press(pilot, "E")
        assert app.screen.question.command.endswith("--for FOR --reason REASON")

    on_stage(look, console(screen="grants"))


def test_looking_in_another_way_is_told_with_the_order_and_the_filter() -> None:
    async def look(app, _pilot) -> None:
        line = app.command_log[-1]
        assert line == "kubectl kpolicy violations list -A --where sev=high --group-by=policy"
        parsed(line)

    on_stage(look, keys=("slash", *"sev=high", "enter", "b"))


def test_moving_about_is_not_told() -> None:
    async def look(app, _pilot) -> None:
        assert app.command_log == []

    on_stage(
        look, keys=("down", "g", ">", "<", "colon", *"grants", "enter", "question_mark", "escape")
    )
