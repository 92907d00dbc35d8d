"""`whoami` tells who one is, and what one may ask for and approve under each grant policy."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from kubectl_kpolicy import entry
from kubectl_kpolicy.output.diagnostics import ExitCode
from tests.plugin.grants.staging import Stage, play

if TYPE_CHECKING:
    import pytest


def test_grant_policies_tell_who_may_ask_and_who_may_approve(
    tmp_path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(stage: Stage) -> None:
        empty = await stage.run("root", "whoami", groups=("system:masters",))
        assert "grant policies: none, so nobody can ask for an exception" in empty.out
        hidden = await stage.run("ada", "whoami")
        assert "grant policies: unknown: " in hidden.out
        await stage.grant_policy("shop", requesters={"users": ["ada"]}, namespaces=["shop-*"])
        for user in ("ada", "bob"):
            await stage.allow(user, ["list"], "grantpolicies")
        for user, answers in (("ada", (True, False)), ("bob", (False, True))):
            said = await stage.run(user, "whoami", "-o", "json")
            (found,) = json.loads(said.out)["grantPolicies"]
            assert (found["mayRequest"], found["mayApprove"]) == answers
            assert (found["namespaces"], found["maxDuration"]) == (["shop-*"], "4h")
        told = (await stage.run("ada", "whoami")).out.splitlines()
        assert told[-2].split() == ["GRANTPOLICY", "REQUEST", "APPROVE", "POLICIES", "NAMESPACES", "AT", "MOST"]  # fmt: skip
        assert told[-1].split() == ["shop", "yes", "no", "*", "shop-*", "4h"]

    play(tmp_path, capsys, monkeypatch, act)


def test_a_server_that_does_not_answer_knows_nobody(
    tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = {"name": "a", "cluster": {"server": "https://127.0.0.1:1"}, "context": {"cluster": "a"}}
    file = tmp_path / "config"
    file.write_text(json.dumps({"current-context": "a", "clusters": [one], "contexts": [one]}))

    assert entry.main(["whoami", "--kubeconfig", str(file)]) == ExitCode.UNREACHABLE
    said = capsys.readouterr()
    assert (said.out, "cannot be reached" in said.err) == ("", True)
