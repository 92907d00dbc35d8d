"""`otp approve` and `otp rotate`: somebody else agrees by the id of a denial, and the keys of codes are asked to be replaced."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any

import pytest

from controllers.kube.kinds import CODE_CLAIMS, NAMESPACES, ONE_TIME_CODES, SECRETS
from controllers.store.code_keys import ROTATE, SECRET_NAME
from engine.codes import use_name
from engine.codes.requests import CodeRequest, approval_name, request_id
from kubectl_kpolicy.output.diagnostics import ExitCode
from tests.plugin.grants.staging import Stage, play

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ADMIN: Any = {"groups": ("system:masters",)}
ASKED = CodeRequest("ada", "no-host", ("host-pid",), "Pod", "default", "debug", "d1")
ID = request_id(ASKED, b"any")
SECRET = {
    "apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET_NAME, "namespace": "kyverno"}, "data": {},
}  # fmt: skip


@pytest.fixture
def on_stage(tmp_path, capsys, monkeypatch):
    def run(act: Callable[[Stage], Awaitable[None]]) -> None:
        async def furnished(stage: Stage) -> None:
            await stage.admin.create(NAMESPACES, {"metadata": {"name": "kyverno"}})
            await stage.allow("bob", ["get", "list", "create", "patch"], "onetimecodes")
            await act(stage)

        play(tmp_path, capsys, monkeypatch, furnished)

    return run


def test_somebody_else_agrees_and_it_is_said_to_what(on_stage: Any):
    async def act(stage: Stage) -> None:
        said = await stage.run("bob", "otp", "approve", ID, "--reason", "for tonight")
        name = approval_name("d1")
        assert (said.code, said.out.strip()) == (0, f"onetimecode.kpolicy.io/{name} approved"), (
            said.err
        )
        assert "ada may pass no-host/host-pid once with Pod/debug in default, until " in said.err
        spec = (await stage.admin.get(ONE_TIME_CODES, name, "kyverno"))["spec"]
        assert (spec["user"], spec["issuedBy"], spec["request"], spec["reason"]) == (
            "ada",
            "bob",
            ID,
            "for tonight",
        )

    on_stage(act)


def test_nobody_agrees_to_an_own_request_and_to_no_other_word(on_stage: Any):
    async def act(stage: Stage) -> None:
        own = request_id(CodeRequest("bob", "no-host", (), "Pod", "default", "debug", "d2"), b"any")
        said = await stage.run("bob", "otp", "approve", own)
        assert (said.code, "nobody approves an own request" in said.err) == (ExitCode.REFUSED, True)
        for word in ("x", "kb1.a.b", "cr1.", "ABCD-EFGH-JKMN-PQRS-TVWX"):
            assert (await stage.run("bob", "otp", "approve", word)).code == ExitCode.USAGE
        assert (await stage.admin.list_all(ONE_TIME_CODES)).items == []

    on_stage(act)


@pytest.mark.parametrize("tried", ["client", "server"])
def test_a_dry_run_agrees_to_nothing(tried: str, on_stage: Any):
    async def act(stage: Stage) -> None:
        said = await stage.run("bob", "otp", "approve", ID, f"--dry-run={tried}")
        assert (said.code, f"approved ({tried} dry run)" in said.out) == (0, True), said.err
        assert (await stage.admin.list_all(ONE_TIME_CODES)).items == []

    on_stage(act)


def test_a_code_is_claimed_in_one_s_own_name_and_not_to_be_found_in_the_claim(
    on_stage: Any, monkeypatch: pytest.MonkeyPatch
):
    code = "ABCD-EFGH-JKMN-PQRS-TVWX"

    async def act(stage: Stage) -> None:
        await stage.allow("ada", ["create"], "codeclaims")
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{code}\n"))
        said = await stage.run("ada", "otp", "claim", "-n", "default")
        assert (said.code, "codeclaim.kpolicy.io/claim-" in said.out) == (0, True), said.err
        [made] = (await stage.admin.list_all(CODE_CLAIMS)).items
        plain = code.replace("-", "")
        assert made["spec"]["user"] == "ada"
        assert made["spec"]["uses"] == [use_name(plain)]
        assert "system:authenticated" in made["spec"]["groups"]
        assert plain not in repr(made) + said.out + said.err

    on_stage(act)


def test_a_use_that_a_denial_named_is_claimed_without_any_code(on_stage: Any):
    use = use_name("ABCDEFGHJKMNPQRSTVWX")

    async def act(stage: Stage) -> None:
        await stage.allow("ada", ["create"], "codeclaims")
        said = await stage.run("ada", "otp", "claim", use, "-n", "default")
        assert said.code == 0, said.err
        [made] = (await stage.admin.list_all(CODE_CLAIMS)).items
        assert made["spec"]["uses"] == [use]
        said = await stage.run("ada", "otp", "claim", "ABCD-EFGH-JKMN-PQRS-TVWX", "-n", "default")
        assert said.code == 2
        assert "ABCD" not in said.out + said.err

    on_stage(act)


@pytest.mark.parametrize(("flag", "how"), [((), "rotate"), (("--revoke",), "revoke")])
def test_the_engine_is_asked_for_another_key(flag: tuple[str, ...], how: str, on_stage: Any):
    async def act(stage: Stage) -> None:
        await stage.admin.create(SECRETS, SECRET)
        said = await stage.run("root", "otp", "rotate", *flag, "--reason", "they leaked", **ADMIN)
        assert said.code == 0, said.err
        stored = await stage.admin.get(SECRETS, SECRET_NAME, "kyverno")
        assert stored["metadata"]["annotations"][ROTATE] == f"{how} root: they leaked"

    on_stage(act)
