"""`kubectl kpolicy otp` on a sandbox: where a code may go and where not, what is stored of it, journals, and bringing it along."""

from __future__ import annotations

import io
import json
import re
import sys
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from controllers.kube.kinds import CONFIG_MAPS, NAMESPACES, ONE_TIME_CODES, PODS
from engine.codes import canonical, is_code, issued_name
from tests.plugin.grants.staging import Stage, play

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

BIND = ("--for-user", "ada", "--bind", "no-host/host-namespaces:Pod/debug", "-n", "default")


@pytest.fixture
def on_stage(tmp_path, capsys, monkeypatch):
    def run(act: Callable[[Stage], Awaitable[None]]) -> None:
        async def furnished(stage: Stage) -> None:
            await stage.admin.create(NAMESPACES, {"metadata": {"name": "kyverno"}})
            await stage.allow("bob", ["get", "list", "watch", "create", "patch"], "onetimecodes", "onetimecodes/status", "grants")  # fmt: skip
            await act(stage)

        play(tmp_path, capsys, monkeypatch, furnished)

    return run


def test_an_issued_code_goes_into_a_private_file_and_the_cluster_holds_no_code(on_stage, tmp_path: Path):  # fmt: skip
    file = tmp_path / "code"

    async def act(stage: Stage) -> None:
        said = await stage.run("bob", "otp", "issue", *BIND, "--reason", "debugging", "--out-file", str(file))  # fmt: skip
        assert said.code == 0, said.err
        assert (file.stat().st_mode & 0o777) == 0o600
        code = canonical(file.read_text().strip())
        assert code is not None
        [stored] = (await stage.admin.list_all(ONE_TIME_CODES)).items
        assert stored["metadata"]["name"] == issued_name(code)
        assert is_code(code, stored["spec"]["verifier"])
        assert (stored["spec"]["user"], stored["spec"]["issuedBy"]) == ("ada", "bob")
        assert stored["spec"]["binding"] == {
            "policy": "no-host", "rules": ["host-namespaces"], "object": {"kind": "Pod", "namespace": "default", "name": "debug"},
        }  # fmt: skip
        spoken = said.out + said.err + json.dumps(stored)
        for form in (code, file.read_text().strip()):
            assert form not in spoken

    on_stage(act)


def test_a_code_is_not_shown_where_no_terminal_is_and_then_none_is_made(on_stage):
    async def act(stage: Stage) -> None:
        for flags, code in ((("--show",), 1), ((), 2), (("--show", "--out-file", "x"), 2)):
            said = await stage.run("bob", "otp", "issue", *BIND, *flags)
            assert (said.code, "help: " in said.err) == (code, True)
        assert not (await stage.admin.list_all(ONE_TIME_CODES)).items

    on_stage(act)


def test_a_file_that_exists_is_not_written_over(on_stage, tmp_path: Path):
    file = tmp_path / "there"
    file.write_text("mine")

    async def act(stage: Stage) -> None:
        assert (await stage.run("bob", "otp", "issue", *BIND, "--out-file", str(file))).code == 1
        assert file.read_text() == "mine"
        assert not (await stage.admin.list_all(ONE_TIME_CODES)).items

    on_stage(act)


def test_nobody_issues_a_code_for_oneself_or_for_a_robot(on_stage, tmp_path: Path):
    async def act(stage: Stage) -> None:
        for user in ("bob", "system:serviceaccount:ci:bot"):
            words = ("otp", "issue", "--for-user", user, *BIND[2:], "--out-file", str(tmp_path / "c"))  # fmt: skip
            said = await stage.run("bob", *words)
            assert (said.code, said.err.startswith("refused: ")) == (5, True)
        forbidden = await stage.run("eve", "otp", "issue", *BIND, "--out-file", str(tmp_path / "c"))
        assert forbidden.code == 4
        assert not (tmp_path / "c").exists()

    on_stage(act)


@pytest.mark.parametrize("bind", ["no-host", "no-host:Pod/x", "no-host/r:Pod", "no-host/*:Pod/x", "no-host/r:Pod/*", ""])  # fmt: skip
def test_a_code_says_exactly_what_it_is_for(bind: str, capsys):
    from engine.errors import EngineError
    from kubectl_kpolicy.codes.issuing import read_binding

    with pytest.raises(EngineError):
        read_binding(bind)


def test_dry_runs_store_nothing_and_make_no_code(on_stage):
    async def act(stage: Stage) -> None:
        for where in ("client", "server"):
            said = await stage.run("bob", "otp", "issue", *BIND, f"--dry-run={where}", "-o", "name")
            assert (said.code, said.out.startswith("onetimecode.kpolicy.io/code-")) == (0, True), said.err  # fmt: skip
        assert not (await stage.admin.list_all(ONE_TIME_CODES)).items

    on_stage(act)


def test_a_code_is_made_void_and_one_that_was_used_is_not(on_stage, tmp_path: Path):
    async def act(stage: Stage) -> None:
        await stage.run("bob", "otp", "issue", *BIND, "--out-file", str(tmp_path / "code"))
        [stored] = (await stage.admin.list_all(ONE_TIME_CODES)).items
        name = stored["metadata"]["name"]
        said = await stage.run("bob", "otp", "void", name)
        assert (said.code, said.out) == (0, f"onetimecode.kpolicy.io/{name} void\n")
        status = (await stage.admin.get(ONE_TIME_CODES, name, "kyverno"))["status"]
        assert (status["state"], status["voidedBy"]) == ("void", "bob")
        await stage.admin.patch(ONE_TIME_CODES, name, "kyverno", {"status": {"state": "used"}}, subresource="status")  # fmt: skip
        assert (await stage.run("bob", "otp", "void", name)).code == 5
        assert (await stage.run("bob", "otp", "void", "code-nosuch")).code == 6

    on_stage(act)


def test_the_list_shows_codes_by_their_objects(on_stage, tmp_path: Path):
    async def act(stage: Stage) -> None:
        await stage.run("bob", "otp", "issue", *BIND, "--out-file", str(tmp_path / "code"))
        said = await stage.run("bob", "otp", "list", "ada")
        assert (said.code, "no-host/host-namespaces" in said.out) == (0, True), said.err
        assert (await stage.run("bob", "otp", "list", "-o", "json")).out.count("OneTimeCode") == 1

    on_stage(act)


def test_a_code_is_added_to_a_journal_which_shows_it_masked(on_stage, tmp_path: Path):
    file = tmp_path / "code"

    async def act(stage: Stage) -> None:
        await stage.admin.create(NAMESPACES, {"metadata": {"name": "platform"}})
        await stage.admin.create(CONFIG_MAPS, {"metadata": {"name": "otp", "namespace": "platform"}, "data": {"codes": "- ua8v92pg"}})  # fmt: skip
        words = ("--journal", "platform/otp")
        admin: Any = {"groups": ("system:masters",)}
        said = await stage.run("root", "otp", "issue", *words, "--out-file", str(file), **admin)
        assert said.code == 0, said.err
        code = file.read_text().strip()
        journal = await stage.admin.get(CONFIG_MAPS, "otp", "platform")
        assert journal["data"]["codes"] == f"- ua8v92pg\n- {code}"
        listed = await stage.run("root", "otp", "list", *words, **admin)
        assert (listed.code, "unused" in listed.out) == (0, True), listed.err
        assert code not in listed.out + said.out + said.err
        shown = await stage.run("root", "otp", "list", *words, "-o", "json", **admin)
        assert code not in shown.out

    on_stage(act)


def test_a_code_from_standard_input_is_brought_along_with_the_object(on_stage, tmp_path: Path, monkeypatch):  # fmt: skip
    file = tmp_path / "pod.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "debug"}, "spec": {"containers": [{"name": "c", "image": "busybox"}]}}))  # fmt: skip

    async def act(stage: Stage) -> None:
        admin: Any = {"groups": ("system:masters",)}
        monkeypatch.setattr(sys, "stdin", io.StringIO("abcd-efgh-jkmn-pqrs-tvwx\n"))
        tried = await stage.run("root", "otp", "redeem", "-f", str(file), "--dry-run=server", **admin)  # fmt: skip
        assert tried.code == 0, tried.err
        assert not (await stage.admin.list_all(PODS)).items
        monkeypatch.setattr(sys, "stdin", io.StringIO("abcd-efgh-jkmn-pqrs-tvwx\n"))
        said = await stage.run("root", "otp", "redeem", "-f", str(file), **admin)
        assert (said.code, said.out) == (0, "pod/debug applied\n")
        stored = await stage.admin.get(PODS, "debug", "default")
        assert stored["metadata"]["annotations"]["kpolicy.io/code"] == "ABCD-EFGH-JKMN-PQRS-TVWX"
        assert "ABCD" not in said.out + said.err
        monkeypatch.setattr(sys, "stdin", io.StringIO("not a code\n"))
        wrong = await stage.run("root", "otp", "redeem", "-f", str(file), **admin)
        assert (wrong.code, "not a code" in wrong.err) == (1, False)

    on_stage(act)


def test_a_code_for_what_a_grant_asks_for(on_stage, tmp_path: Path):
    async def act(stage: Stage) -> None:
        grant = {
            "apiVersion": "kpolicy.io/v1alpha1", "kind": "Grant", "metadata": {"name": "g"},
            "spec": {"requester": "ada", "policy": "no-host", "rules": ["r"], "target": {"kind": "Pod", "name": "debug"}, "duration": "1h", "reason": "x"},
        }  # fmt: skip
        await stage.create("kpolicy.io/v1alpha1", "grants", grant, "default")
        said = await stage.run("bob", "otp", "issue", "g", "--out-file", str(tmp_path / "c"))
        assert said.code == 0, said.err
        [stored] = (await stage.admin.list_all(ONE_TIME_CODES)).items
        assert (stored["spec"]["user"], stored["spec"]["grant"], stored["spec"]["binding"]["rules"]) == ("ada", "g", ["r"])  # fmt: skip

    on_stage(act)


def test_a_code_is_good_from_the_server_s_now_on_whatever_the_machine_s_clock_says(on_stage, tmp_path: Path):  # fmt: skip
    async def act(stage: Stage) -> None:
        await stage.admin.raw("POST", "/sandbox/clock", {"forward": "3h"})
        said = await stage.run("bob", "otp", "issue", *BIND, "--ttl", "15m", "--out-file", str(tmp_path / "code"))  # fmt: skip
        assert said.code == 0, said.err
        [stored] = (await stage.admin.list_all(ONE_TIME_CODES)).items
        made, ends = (
            datetime.fromisoformat(text)
            for text in (stored["metadata"]["creationTimestamp"], stored["spec"]["expiresAt"])
        )
        assert timedelta(minutes=14) < ends - made < timedelta(minutes=16)
        listed = await stage.run("bob", "otp", "list", "--no-headers")
        assert re.search(r"\s00:1[45]:\d\d\s", listed.out), listed.out

    on_stage(act)
