"""`kubectl kpolicy grant` on a sandbox: who may ask and decide, what is said, and the exit codes that scripts rely on."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from controllers.kube.kinds import EVENTS, GRANTS
from controllers.store.events import ADMISSION, SCAN, SKIPPED

from .staging import Said, Stage, play

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Play = Callable[[Callable[[Stage], Awaitable[None]]], None]

REASON = "image is rebuilt on Monday"
ASK = ("grant", "no-root/run-as-nonroot", "Deployment/web", "--for", "2h", "--reason", REASON)


@pytest.fixture
def on_stage(tmp_path, capsys, monkeypatch) -> Play:
    def run(act: Callable[[Stage], Awaitable[None]], *, kinds: bool = True) -> None:
        async def furnished(stage: Stage) -> None:
            if kinds:
                await stage.grant_policy()
                for user in ("ada", "bob", "cyd"):
                    await stage.allow(user, ["get", "list", "watch", "create", "patch"], "grants")
                    await stage.allow(user, ["get", "list"], "grantpolicies")
            await act(stage)

        play(tmp_path, capsys, monkeypatch, furnished, kinds=kinds)

    return run


async def asked(stage: Stage, *more: str) -> str:
    """Ask as ada and return the grant's name."""
    said = await stage.run("ada", *ASK, *more, "-o", "name")
    assert said.code == 0, said.err
    return said.out.strip().removeprefix("grant.kpolicy.io/")


async def become(stage: Stage, name: str, **status: str) -> None:
    """Write what the controller would."""
    await stage.admin.patch(GRANTS, name, "default", {"status": status}, subresource="status")


def test_a_request_says_its_name_its_state_who_may_approve_and_what_to_watch(on_stage):
    async def act(stage: Stage) -> None:
        said = await stage.run("ada", *ASK)
        assert said.code == 0, said.err
        assert said.out.startswith("grant.kpolicy.io/web-no-root-")
        assert "state: draft" in said.out
        assert "may approve: 1 of bob, cyd (grantpolicy/default)" in said.out
        assert "watch: kubectl kpolicy grant list" in said.out
        [made] = (await stage.admin.list_all(GRANTS)).items
        assert made["spec"]["requester"] == "ada"
        assert made["spec"]["rules"] == ["run-as-nonroot"]

    on_stage(act)


def test_a_request_beyond_the_maximum_is_refused_with_the_next_step_and_exit_code_5(on_stage):
    async def act(stage: Stage) -> None:
        said = await stage.run("ada", *ASK, "--for", "8h")
        assert said.code == 5
        assert said.err == "refused: duration 8h exceeds maximum 4h of grantpolicy/default; try --for 4h\n"  # fmt: skip
        assert not (await stage.admin.list_all(GRANTS)).items

    on_stage(act)


def test_without_the_right_to_ask_the_exit_code_is_4(on_stage):
    async def act(stage: Stage) -> None:
        said = await stage.run("eve", *ASK)
        assert (said.code, "cannot create resource" in said.err) == (4, True)

    on_stage(act)


def test_on_a_cluster_without_our_kinds_the_exit_code_is_6_and_says_what_to_install(on_stage):
    async def act(stage: Stage) -> None:
        said = await stage.run("kubernetes-admin", *ASK, groups=("system:masters",))
        assert said.code == 6
        assert "kubectl kpolicy install --crds-only" in said.err

    on_stage(act, kinds=False)


def test_a_dry_run_writes_nothing_here_and_on_the_server(on_stage):
    async def act(stage: Stage) -> None:
        for where in ("client", "server"):
            said = await stage.run("ada", *ASK, f"--dry-run={where}", "-o", "json")
            assert (said.code, json.loads(said.out)["spec"]["requester"]) == (0, "ada")
        assert not (await stage.admin.list_all(GRANTS)).items

    on_stage(act)


def test_nobody_approves_an_own_request_and_others_can(on_stage):
    async def act(stage: Stage) -> None:
        name = await asked(stage)
        await become(stage, name, state="pending", grantPolicy="default")
        own = await stage.run("ada", "grant", "approve", name, "--comment", "fine")
        assert (own.code, "nobody can approve an own request" in own.err) == (5, True)
        stranger = await stage.run("kubernetes-admin", "grant", "approve", name, "--comment", "x", groups=("system:masters",))  # fmt: skip
        assert (stranger.code, "is no approver of grantpolicy/default; ask 1 of bob, cyd" in stranger.err) == (5, True)  # fmt: skip
        other = await stage.run("bob", "grant", "approve", name, "--comment", "agreed")
        assert (other.code, other.out) == (0, f"grant.kpolicy.io/{name}: approve by bob\n")
        stored = await stage.admin.get(GRANTS, name, "default")
        [decision] = stored["spec"]["decisions"]
        assert (decision["by"], decision["verdict"], decision["comment"]) == ("bob", "approve", "agreed")  # fmt: skip
        again = await stage.run("bob", "grant", "approve", name, "--comment", "agreed")
        assert again.code == 5

    on_stage(act)


def test_two_approvers_at_the_same_time_are_both_counted(on_stage):
    async def act(stage: Stage) -> None:
        name = await asked(stage)
        await become(stage, name, state="pending", grantPolicy="default")
        from kubectl_kpolicy.grants.decisions import decide
        from kubectl_kpolicy.session.identity import Identity

        place = ("default", name)
        await asyncio.gather(*(decide(stage.admin, place, "approve", Identity(user)) for user in ("bob", "cyd")))  # fmt: skip
        stored = await stage.admin.get(GRANTS, name, "default")
        assert sorted(one["by"] for one in stored["spec"]["decisions"]) == ["bob", "cyd"]

    on_stage(act)


def test_what_has_ended_takes_no_decision_and_the_exit_code_is_6(on_stage):
    async def act(stage: Stage) -> None:
        name = await asked(stage)
        await become(stage, name, state="expired", grantPolicy="default")
        for words in (("bob", "revoke", "--reason"), ("ada", "drop", "--reason")):
            said = await stage.run(words[0], "grant", words[1], name, words[2], "over")
            assert (said.code, "is expired, which is final" in said.err) == (6, True)
        missing = await stage.run("bob", "grant", "revoke", "nosuch", "--reason", "x")
        assert missing.code == 6

    on_stage(act)


def test_a_decision_in_the_wrong_state_is_a_conflict_and_names_the_states(on_stage):
    async def act(stage: Stage) -> None:
        name = await asked(stage)
        await become(stage, name, state="active", grantPolicy="default", expiresAt="2099-01-01T00:00:00Z")  # fmt: skip
        said = await stage.run("ada", "grant", "withdraw", name, "--reason", "mistake")
        assert (said.code, "is active" in said.err) == (7, True)

    on_stage(act)


def test_own_grants_are_dropped_and_those_of_others_revoked(on_stage):
    async def act(stage: Stage) -> None:
        name = await asked(stage)
        await become(stage, name, state="active", grantPolicy="default")
        wrong = await stage.run("bob", "grant", "drop", name, "--reason", "x")
        assert (wrong.code, "try revoke" in wrong.err) == (5, True)
        mine = await stage.run("ada", "grant", "revoke", name, "--reason", "x")
        assert (mine.code, "try drop" in mine.err) == (5, True)
        assert (await stage.run("ada", "grant", "drop", name, "--reason", "done")).code == 0

    on_stage(act)


def test_waiting_ends_when_the_grant_is_active(on_stage):
    async def act(stage: Stage) -> None:
        waiting = asyncio.create_task(stage.run("ada", *ASK, "--wait"))
        name = await made_by_now(stage)
        await become(stage, name, state="pending")
        await become(stage, name, state="active", expiresAt="2099-01-01T00:00:00Z")
        said: Said = await waiting
        assert (said.code, "active until 2099-01-01T00:00:00Z" in said.err) == (0, True)

    on_stage(act)


def test_waiting_for_a_request_that_is_denied_ends_with_exit_code_5(on_stage):
    async def act(stage: Stage) -> None:
        waiting = asyncio.create_task(stage.run("ada", *ASK, "--wait"))
        name = await made_by_now(stage)
        await become(stage, name, state="denied", endedBy="bob")
        said = await waiting
        assert (said.code, "denied by bob" in said.err) == (5, True)

    on_stage(act)


def test_waiting_for_too_long_ends_with_exit_code_124_and_takes_nothing_back(on_stage):
    async def act(stage: Stage) -> None:
        said = await stage.run("ada", *ASK, "--wait", "--timeout", "1s")
        assert said.code == 124
        assert len((await stage.admin.list_all(GRANTS)).items) == 1

    on_stage(act)


async def made_by_now(stage: Stage) -> str:
    """Return the name of the only grant, as soon as there is one."""
    async with asyncio.timeout(20):
        async with aclosing(stage.admin.watch(GRANTS, "")) as events:
            async for event in events:
                if event.type == "ADDED":
                    return str(event.object["metadata"]["name"])
    raise AssertionError


def test_more_time_is_a_new_grant_that_begins_when_the_old_one_ends(on_stage):
    async def act(stage: Stage) -> None:
        name = await asked(stage)
        await become(stage, name, state="active", expiresAt="2099-01-01T00:00:00Z", grantPolicy="default")  # fmt: skip
        said = await stage.run("ada", "grant", "extend", name, "--for", "1h", "--reason", "the build is late", "-o", "json")  # fmt: skip
        spec = json.loads(said.out)["spec"]
        assert (spec["extends"], spec["startAt"], spec["duration"]) == (name, "2099-01-01T00:00:00Z", "1h")  # fmt: skip
        assert spec["target"] == {"kind": "Deployment", "name": "web"}

    on_stage(act)


def test_the_list_tells_own_requests_from_those_that_wait_for_one(on_stage):
    async def act(stage: Stage) -> None:
        name = await asked(stage)
        await become(stage, name, state="pending", grantPolicy="default")
        await stage.allow("dan", ["list"], "grants", "grantpolicies")
        for user, flag, there in (("ada", "--mine", True), ("bob", "--mine", False), ("bob", "--to-approve", True), ("ada", "--to-approve", False), ("dan", "--to-approve", False)):  # fmt: skip
            said = await stage.run(user, "grant", "list", flag, "-A", "-o", "name")
            assert (said.code, name in said.out) == (0, there), (user, flag, said)
        shown = await stage.run("bob", "grant", "list", "-A")
        assert "no-root/run-as-nonroot" in shown.out

    on_stage(act)


def test_short_names_of_kinds_are_understood_and_labels_choose_many(on_stage):
    async def act(stage: Stage) -> None:
        said = await stage.run("ada", "grant", "no-root/r", "deploy/web", "--reason", REASON, "-o", "json")  # fmt: skip
        assert json.loads(said.out)["spec"]["target"] == {"kind": "Deployment", "name": "web"}
        by_labels = ("grant", "no-root/r", "Deployment", "-l", "app=web", "--reason", REASON, "-o", "json")  # fmt: skip
        assert "allows no wildcards" in (await stage.run("ada", *by_labels)).err
        await stage.grant_policy("wide", wildcards=True)
        many = await stage.run("ada", *by_labels)
        assert json.loads(many.out)["spec"]["target"]["selector"] == {"matchLabels": {"app": "web"}}

    on_stage(act)


def test_a_report_tells_the_story(on_stage):
    async def act(stage: Stage) -> None:
        name = await asked(stage)
        await become(stage, name, state="expired", startsAt="2026-01-01T00:00:00Z", endedAt="2026-01-01T02:00:00Z")  # fmt: skip
        said = await stage.run("ada", "grant", "report", name)
        assert f"# Grant default/{name}: expired" in said.out
        assert "2026-01-01T00:00:00Z to 2026-01-01T02:00:00Z, 2h asked for" in said.out
        data = json.loads((await stage.run("ada", "grant", "report", name, "-o", "json")).out)
        assert (data["reason"], data["admissions"]) == (REASON, [])
        await _let_through(stage, f"grant-{name}", ADMISSION)
        await _let_through(stage, f"grant-{name}", SCAN)
        await _let_through(stage, "another", ADMISSION)
        said = await stage.run("root", "grant", "report", name, groups=("system:masters",))
        through = [line for line in said.out.splitlines() if "was skipped" in line]
        assert through == [
            "| 2026-01-01T01:00:00Z | 2 | resource Deployment/default/web was skipped |"
        ]

    on_stage(act)


async def _let_through(stage: Stage, exception: str, source: str) -> None:
    about = {"kind": "PolicyException", "name": exception, "namespace": "default"}
    await stage.admin.create(
        EVENTS,
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{exception}.{source}", "namespace": "default"},
            "involvedObject": about,
            "reason": SKIPPED,
            "reportingComponent": source,
            "count": 2,
            "lastTimestamp": "2026-01-01T01:00:00Z",
            "message": "resource Deployment/default/web was skipped",
        },
    )


def test_a_grant_is_named_alone_or_as_commands_print_it(on_stage):
    async def act(stage: Stage) -> None:
        name = await asked(stage)
        said = await stage.run("ada", "grant", "report", f"grant.kpolicy.io/{name}")
        assert f"# Grant default/{name}: " in said.out
        assert said.out == (await stage.run("ada", "grant", "report", name)).out

    on_stage(act)


@pytest.mark.parametrize(
    "words",
    [("no-root",), ("no-root", "web"), ("no-root", "Deployment/web", "--for", "soon"), ("no-root", "Deployment/web", "--until", "2001-01-01T00:00:00Z"), ("--block", "kb1.x")],
)  # fmt: skip
def test_what_cannot_be_read_is_said_before_anything_is_asked(words, capsys):
    from kubectl_kpolicy import entry

    assert entry.main(["grant", "request", *words]) == 2
    assert "help: " in capsys.readouterr().err
