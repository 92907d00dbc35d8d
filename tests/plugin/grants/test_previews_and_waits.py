"""How far a grant would reach, by labels and for what is only in a file; and waiting for what a decision brings about."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from controllers.kube.kinds import CEL_POLICIES, CLUSTER_POLICIES, GRANTS, PODS, POLICY_REPORTS
from kubectl_kpolicy.output.diagnostics import ExitCode

from .staging import Stage, play

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

ADMIN: Any = {"groups": ("system:masters",)}
POLICY = {
    "apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "teams"},
    "spec": {"rules": [{"name": "label", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
                        "validate": {"failureAction": "Enforce", "message": "say whose", "pattern": {"metadata": {"labels": {"team": "?*"}}}}}]},
}  # fmt: skip


def pod(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", "labels": labels}, "spec": {"containers": [{"name": "a", "image": "b"}]}}  # fmt: skip


def failing(name: str) -> dict[str, Any]:
    return {"apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "PolicyReport", "metadata": {"name": name, "namespace": "default"},
            "scope": {"apiVersion": "v1", "kind": "Pod", "name": name, "namespace": "default"}, "results": [{"policy": "teams", "rule": "label", "result": "fail"}]}  # fmt: skip


@pytest.fixture
def on_stage(tmp_path, capsys, monkeypatch):
    def run(act: Callable[[Stage], Awaitable[None]]) -> None:
        async def furnished(stage: Stage) -> None:
            await stage.grant_policy()
            await stage.admin.create(CLUSTER_POLICIES, POLICY)
            for name, app in (("a", "x"), ("b", "x"), ("c", "y")):
                await stage.admin.create(PODS, pod(name, app=app))
                await stage.admin.create(POLICY_REPORTS, failing(name))
            await act(stage)

        play(tmp_path, capsys, monkeypatch, furnished)

    return run


def test_labels_mean_the_objects_that_have_them(on_stage):
    async def act(stage: Stage) -> None:
        said = await stage.run("root", "grant", "preview", "teams", "pod", "-l", "app=x", "-o", "json", **ADMIN)  # fmt: skip
        found = json.loads(said.out)
        assert [one["resource"] for one in found["flips"]] == ["Pod/a", "Pod/b"]
        assert (found["stays"], found["matchesLater"]) == (1, True)

    on_stage(act)


def test_what_is_only_in_a_file_is_judged_by_the_policies_in_force(on_stage, tmp_path: Path):
    file = tmp_path / "pods.json"
    file.write_text(json.dumps(pod("new")))

    async def act(stage: Stage) -> None:
        said = await stage.run("root", "grant", "preview", "teams/label", "-f", str(file), **ADMIN)
        assert said.code == 0, said.err
        assert "would be let through: default/Pod/new teams/label" in said.out
        assert "1 of the file" in said.out
        other = await stage.run("root", "grant", "request", "--preview", "teams/other", "-f", str(file), **ADMIN)  # fmt: skip
        assert "of the file" not in other.out

    on_stage(act)


def test_a_policy_written_in_cel_is_previewed_by_its_name_alone(on_stage):
    async def act(stage: Stage) -> None:
        policy = {
            "apiVersion": "policies.kyverno.io/v1",
            "kind": "ValidatingPolicy",
            "metadata": {"name": "owners"},
            "spec": {"validations": [{"expression": "true"}]},
        }
        await stage.admin.create(CEL_POLICIES[0], policy)
        report = failing("d")
        report["results"] = [
            {"policy": "owners", "source": "KyvernoValidatingPolicy", "result": "fail"}
        ]
        await stage.admin.create(POLICY_REPORTS, report)
        for named in ("owners", "vpol:owners"):
            said = await stage.run(
                "root", "grant", "preview", named, "pod/d", "-o", "json", **ADMIN
            )
            assert [one["resource"] for one in json.loads(said.out)["flips"]] == ["Pod/d"], said.err

    on_stage(act)


def test_a_denial_s_id_says_everything_itself(on_stage):
    async def act(stage: Stage) -> None:
        for more in (("teams",), ("-l", "a=b"), ("-f", "x")):
            said = await stage.run("root", "grant", "request", "--block", "kb1.x", *more, "--reason", "x", **ADMIN)  # fmt: skip
            assert (said.code, "a denial says itself" in said.err) == (ExitCode.USAGE, True)

    on_stage(act)


def grant(state: str) -> dict[str, Any]:
    spec = {"requester": "ada", "policy": "teams", "rules": ["label"], "target": {"kind": "Pod", "name": "a"}, "duration": "1h", "reason": "x"}  # fmt: skip
    return {"apiVersion": "kpolicy.io/v1alpha1", "kind": "Grant", "metadata": {"name": "g", "namespace": "default"}, "spec": spec, "status": {"state": state}}  # fmt: skip


@pytest.mark.parametrize(
    ("verdict", "word", "before", "after"),
    [("approve", "comment", "pending", "active"), ("deny", "comment", "pending", "denied"), ("revoke", "reason", "active", "revoked")],
)  # fmt: skip
def test_a_decision_is_waited_for_until_it_has_its_effect(on_stage, verdict, word, before, after):
    async def act(stage: Stage) -> None:
        await stage.allow("bob", ["get", "list", "watch", "patch"], "grants")
        await stage.admin.create(GRANTS, grant(before))
        await stage.admin.patch(GRANTS, "g", "default", {"status": {"state": before}}, subresource="status")  # fmt: skip

        async def controller() -> None:
            while not (await stage.admin.get(GRANTS, "g", "default"))["spec"].get("decisions"):
                await asyncio.sleep(0.02)
            await stage.admin.patch(GRANTS, "g", "default", {"status": {"state": after}}, subresource="status")  # fmt: skip

        acting = asyncio.create_task(controller())
        said = await stage.run("bob", "grant", verdict, "g", f"--{word}", "fine", "--wait", "--timeout", "25s")  # fmt: skip
        await acting
        assert said.code == 0, said.err
        assert f"state: {after}" in said.err

    on_stage(act)


def test_what_is_waited_for_in_vain_ends_with_124_and_the_decision_stays(on_stage):
    async def act(stage: Stage) -> None:
        await stage.allow("bob", ["get", "list", "watch", "patch"], "grants")
        await stage.admin.create(GRANTS, grant("active"))
        await stage.admin.patch(GRANTS, "g", "default", {"status": {"state": "active"}}, subresource="status")  # fmt: skip
        said = await stage.run("bob", "grant", "revoke", "g", "--reason", "over", "--wait", "--timeout", "1s")  # fmt: skip
        assert (said.code, "was not settled in time" in said.err) == (ExitCode.TIMEOUT, True)
        [made] = (await stage.admin.get(GRANTS, "g", "default"))["spec"]["decisions"]
        assert made["verdict"] == "revoke"

    on_stage(act)
