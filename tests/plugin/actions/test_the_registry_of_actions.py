"""Actions: each is complete, no key means two things, and each has a command line that can be pasted."""

from __future__ import annotations

import asyncio
import shlex

import pytest

from controllers.kube.errors import Conflict, Forbidden
from controllers.kube.kinds import CLEANUP_POLICIES, CLUSTER_CLEANUP_POLICIES, POLICY_EXCEPTIONS
from engine import vocabulary
from engine.record import replace
from kubectl_kpolicy.actions.catalog import ALL, GLOBAL, action_of, registry
from kubectl_kpolicy.actions.executor import ActionExecutor, work_of
from kubectl_kpolicy.actions.registry import READ_ONLY, Danger, command_line, refusal
from kubectl_kpolicy.actions.screens import SCREENS
from kubectl_kpolicy.cluster import cleanup, exceptions
from kubectl_kpolicy.output.rows import Row
from kubectl_kpolicy.session.identity import Identity
from kubectl_kpolicy.tui.handlers import function_of
from tests.clock import ManualClock
from tests.controllers.kube.fake import FakeClient
from tests.plugin.scene import NOW, objects, world


@pytest.mark.parametrize("action", ALL, ids=lambda one: one.id)
def test_every_action_is_complete(action) -> None:
    assert action.title
    assert action.title[0].isupper()
    assert action.help.endswith(".") or ":" in action.help
    assert action.command
    assert action.keys
    assert set(action.screens) <= set(SCREENS)
    if action.danger >= Danger.CHANGES:
        assert action.rights, "what changes the cluster needs a right"
        assert action.screens


def test_ids_are_unique_and_all_are_done_by_something() -> None:
    ids = [one.id for one in ALL]
    assert len(ids) == len(set(ids))
    for one in ALL:
        assert callable(function_of(one.handler)) if one.handler else callable(work_of(one.work)), (
            one.id
        )


def test_no_key_means_two_things_on_one_screen() -> None:
    assert registry().clashes() == []


def test_a_key_that_was_given_twice_is_told() -> None:
    assert any("`r` is both" in one for one in registry({"explain": ["r"]}).clashes())


def test_a_lower_case_letter_never_changes_the_cluster() -> None:
    for action in ALL:
        if action.changes:
            assert not any(len(key) == 1 and key.islower() for key in action.keys), action.id


def test_ctrl_d_always_destroys_and_nothing_else_does() -> None:
    for action in ALL:
        assert ("ctrl+d" in action.keys) == (action.danger is Danger.DESTROYS), action.id


def test_keys_that_terminals_cannot_tell_apart_are_not_used() -> None:
    keys = {key for one in ALL for key in one.keys}
    assert not keys & {"ctrl+i", "ctrl+m", "tab", "ctrl+@", "ctrl+space"}


def test_keys_of_every_screen_are_reserved() -> None:
    reserved = {key for one in GLOBAL for key in one.keys}
    own = {key for one in ALL if one.screens for key in one.keys}
    assert not reserved & own


def test_remapped_keys_take_the_place_of_the_old_ones() -> None:
    made = registry({"request": ["ctrl+r2"]})

    assert made.of_key("violations", "ctrl+r2").id == "request"
    assert made.of_key("violations", "r") is None


def test_a_command_line_quotes_what_a_row_holds() -> None:
    row = Row(
        "k",
        {
            "policy": "p",
            "rule": "r",
            "resource": "Pod/x; rm -rf /",
            "namespace": "a b",
            "reason": "",
        },
    )
    line = command_line(registry().get("request"), [row])

    words = shlex.split(line)
    assert words[words.index("-n") + 1] == "a b"
    assert "Pod/x; rm -rf /" in words
    assert words[-1] == "REASON"


def test_parts_of_a_command_line_without_a_value_go() -> None:
    row = Row("k", {"policy": "p", "rule": "r", "resource": "Node/x", "namespace": ""})

    assert command_line(registry().get("explain"), [row]) == "kubectl kpolicy explain Node/x"


def test_read_only_refuses_what_leads_to_a_change_and_nothing_else() -> None:
    for action in ALL:
        found = refusal(action, read_only=True, rights={}, has_row=True)
        assert found == (READ_ONLY if action.is_guarded else ""), action.id


def test_a_missing_right_is_named() -> None:
    action = registry().get("approve")

    assert (
        refusal(action, read_only=False, rights={action.rights[0]: False})
        == "you may not patch grants.kpolicy.io"
    )
    assert refusal(action, read_only=False, rights={}) == ""


def row_of(listing_rows, name: str) -> Row:
    return next(row for row in listing_rows if row.text("name") == name)


def test_revoking_deletes_just_that_exception() -> None:
    client = FakeClient(*objects()["exceptions"], clock=ManualClock(NOW))
    row = row_of(exceptions.exception_rows(world(), NOW), "web-hotfix")

    (outcome,) = asyncio.run(
        ActionExecutor(client, lambda: NOW).perform(action_of("exception-revoke"), [row], {})
    )

    assert outcome.done
    names = [one["metadata"]["name"] for one in client.stored(POLICY_EXCEPTIONS)]
    assert names == ["old-migration", "search-legacy"]


def test_a_namesake_that_was_made_meanwhile_survives() -> None:
    client = FakeClient(*objects()["exceptions"], clock=ManualClock(NOW))
    row = row_of(exceptions.exception_rows(world(), NOW), "web-hotfix")
    other = replace(
        row, object={**row.object, "metadata": {**row.object["metadata"], "uid": "another"}}
    )

    (outcome,) = asyncio.run(
        ActionExecutor(client, lambda: NOW).perform(action_of("exception-revoke"), [other], {})
    )

    assert not outcome.done
    assert len(client.stored(POLICY_EXCEPTIONS)) == 3


def test_postponing_writes_who_why_and_until_when() -> None:
    there = objects()
    client = FakeClient(*there["clustercleanuppolicies"], clock=ManualClock(NOW))
    row = next(
        one for one in cleanup.cleanup_rows(world(), NOW) if one.text("by").endswith("/bare-pods")
    )

    form = {"for": "2h", "reason": "migration runs"}
    (outcome,) = asyncio.run(
        ActionExecutor(client, lambda: NOW, Identity("alice")).perform(
            action_of("cleanup-postpone"), [row], form
        )
    )

    assert outcome.text == "not before 2026-03-14T14:00:00Z"
    from controllers.kube.kinds import CLUSTER_CLEANUP_POLICIES

    annotations = client.stored(CLUSTER_CLEANUP_POLICIES)[0]["metadata"]["annotations"]
    assert annotations[vocabulary.CLEANUP_AFTER] == "2026-03-14T14:00:00Z alice: migration runs"
    assert annotations["kpolicy.io/cleanup-reason"] == "migration runs"
    assert annotations["kpolicy.io/cleanup-changed-by"] == "alice"


def test_a_failure_on_one_row_does_not_keep_others_from_theirs() -> None:
    client = FakeClient(*objects()["exceptions"], clock=ManualClock(NOW))
    client.fail("delete", Forbidden("you may not", status=403))
    rows = exceptions.exception_rows(world(), NOW)

    outcomes = asyncio.run(
        ActionExecutor(client, lambda: NOW).perform(action_of("exception-revoke"), rows, {})
    )

    assert [one.done for one in outcomes] == [False, True, True]
    assert outcomes[0].text == "you may not"


def test_what_cannot_be_done_is_refused_with_a_reason() -> None:
    client = FakeClient(clock=ManualClock(NOW))
    row = Row("k", {})

    (without,) = asyncio.run(ActionExecutor(None, lambda: NOW).perform(action_of("approve"), [row], {}))  # fmt: skip
    (unknown,) = asyncio.run(ActionExecutor(client, lambda: NOW).perform(action_of("approve"), [row], {}))  # fmt: skip
    (idle,) = asyncio.run(ActionExecutor(client, lambda: NOW).perform(action_of("help"), [row], {}))

    assert without.text == "a recording cannot be changed"
    assert unknown.text == "the server has not said who you are"
    assert idle.text == "`help` changes nothing by itself"


def test_work_is_done_and_its_errors_are_outcomes() -> None:
    doer = ActionExecutor(FakeClient(clock=ManualClock(NOW)), lambda: NOW)

    async def approve(_doer, row: Row, form) -> str:
        if not form["comment"]:
            raise Conflict("somebody was quicker", status=409)
        return f"approved {row.key}"

    action, row = replace(action_of("approve"), work=approve), Row("g", {})

    assert asyncio.run(doer.perform(action, [row], {"comment": "yes"}))[0].text == "approved g"
    assert asyncio.run(doer.perform(action, [row], {"comment": ""}))[0].done is False


@pytest.mark.parametrize("action", ["cleanup-postpone", "cleanup-skip", "cleanup-pause"])
def test_what_kyverno_would_not_honour_is_refused_before_anything_is_written(action: str) -> None:
    hook = {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "kyverno-cleanup-validating-webhook-cfg"}, "webhooks": []}  # fmt: skip
    there = world({**objects(), "validatingwebhooks": [hook], "mutatingwebhooks": []})
    row = next(one for one in cleanup.LISTING.rows(there, NOW) if one.text("kind") == "Pod")
    before = dict(row.object["metadata"].get("annotations") or {})
    kind = CLUSTER_CLEANUP_POLICIES if row.object["kind"].startswith("Cluster") else CLEANUP_POLICIES  # fmt: skip
    client = FakeClient(row.object, clock=ManualClock(NOW))
    doer = ActionExecutor(client, lambda: NOW, Identity("bob"), there)

    (outcome,) = asyncio.run(
        doer.perform(action_of(action), [row], {"for": "1h", "reason": "wait"})
    )

    assert not outcome.done
    assert "Kyverno knows no way to" in outcome.text
    (stored,) = client.stored(kind)
    assert (stored["metadata"].get("annotations") or {}) == before
