"""`check` and `explain` with the policies in force in a cluster, `install` in parts, and the way out when nothing else works."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from controllers.kube.kinds import CLUSTER_POLICIES, PODS, POLICY_EXCEPTIONS, VALIDATING_WEBHOOKS
from engine.lang.yaml import load_all
from kubectl_kpolicy import entry
from kubectl_kpolicy.output.diagnostics import ExitCode
from tests.plugin.grants.staging import Stage, play

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

ADMIN: Any = {"groups": ("system:masters",)}
POLICY = {
    "apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy",
    "metadata": {"name": "teams", "annotations": {"policies.kyverno.io/severity": "medium"}},
    "spec": {"rules": [{
        "name": "label", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
        "validate": {"failureAction": "Audit", "message": "say whose it is", "pattern": {"metadata": {"labels": {"team": "?*"}}}},
    }]},
}  # fmt: skip
EXCEPTION = {
    "apiVersion": "kyverno.io/v2", "kind": "PolicyException",
    "metadata": {"name": "old", "namespace": "default", "annotations": {"kpolicy.io/expires-at": "2030-01-01T00:00:00Z"}},
    "spec": {"exceptions": [{"policyName": "teams", "ruleNames": ["label"]}], "match": {"any": [{"resources": {"kinds": ["Pod"], "names": ["old-*"]}}]}},
}  # fmt: skip


def pod(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", "labels": labels}, "spec": {"containers": [{"name": "a", "image": "b"}]}}  # fmt: skip


@pytest.fixture
def on_stage(tmp_path, capsys, monkeypatch):
    def run(act: Callable[[Stage], Awaitable[None]]) -> None:
        async def furnished(stage: Stage) -> None:
            await stage.admin.create(CLUSTER_POLICIES, POLICY)
            await stage.admin.create(POLICY_EXCEPTIONS, EXCEPTION)
            await act(stage)

        play(tmp_path, capsys, monkeypatch, furnished)

    return run


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "pods.json"
    found = [pod("web"), pod("good", team="a"), pod("old-one")]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": found}))
    return str(path)


def test_files_are_checked_with_what_is_in_force(on_stage, file: str):
    async def act(stage: Stage) -> None:
        said = await stage.run("root", "check", "-f", file, "-o", "json", **ADMIN)
        assert said.code == 1, said.err
        [found] = json.loads(said.out)["items"]
        assert (found["kind"], found["policy"], found["resource"]["name"]) == ("Violation", "teams", "web")  # fmt: skip
        assert "1 of 2 results fail" in said.err, "the excepted one is neither"
        assert (await stage.run("root", "check", "-f", file, "--fail-on", "high", **ADMIN)).code == 0  # fmt: skip
        assert (await stage.run("root", "check", "-f", file, "--policy", "other*", **ADMIN)).code == 0  # fmt: skip
        later = await stage.run("root", "check", "-f", file, "--as-of", "2031-01-01T00:00:00Z", "-o", "name", **ADMIN)  # fmt: skip
        assert len(later.out.splitlines()) == 2, "the exception has ended by then"

    on_stage(act)


def test_what_a_baseline_knows_fails_nothing(on_stage, file: str, tmp_path: Path):
    known = tmp_path / "known.json"

    async def act(stage: Stage) -> None:
        known.write_text((await stage.run("root", "check", "-f", file, "-o", "json", **ADMIN)).out)
        said = await stage.run("root", "check", "-f", file, "--baseline", str(known), **ADMIN)
        assert (said.code, said.out) == (0, "")
        assert "1 are in the baseline, 0 are new, 0 of the baseline are gone" in said.err
        other = json.loads(known.read_text())
        other["items"][0]["resource"]["name"] = "another"
        known.write_text(json.dumps(other))
        said = await stage.run("root", "check", "-f", file, "--baseline", str(known), **ADMIN)
        assert (said.code, "0 are in the baseline, 1 are new, 1 of the baseline are gone" in said.err) == (1, True)  # fmt: skip

    on_stage(act)


def test_who_may_not_list_policies_gets_no_verdict(on_stage, file: str):
    async def act(stage: Stage) -> None:
        for words in (("check", "-f", file), ("explain", "-f", file)):
            said = await stage.run("nobody", *words)
            assert (said.code, said.out) == (ExitCode.FORBIDDEN, "")
            assert "--policies PATH" in said.err

    on_stage(act)


def test_a_live_object_is_explained_at_any_instant(on_stage):
    async def act(stage: Stage) -> None:
        await stage.admin.create(PODS, pod("old-two"))
        now = await stage.run("root", "explain", "pod/old-two", **ADMIN)
        assert now.code == 0, now.err
        assert "yes exception    default/old" in now.out
        assert "=> skip" in now.out
        later = await stage.run("root", "explain", "po/old-two", "--as-of", "2031-01-01T00:00:00Z", "--policy", "teams", **ADMIN)  # fmt: skip
        assert "=> fail: validation error: say whose it is" in later.out
        assert (await stage.run("root", "explain", "pod/absent", **ADMIN)).code == ExitCode.GONE
        assert (await stage.run("root", "explain", "gizmo/absent", **ADMIN)).code == 1
        assert (await stage.run("root", "explain", "pod", **ADMIN)).code == ExitCode.USAGE

    on_stage(act)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check"], "say which files to check"),
        (["explain"], "say which object to explain"),
        (["check", "-f", "FILE", "--policies", "FILE", "--as-of", "soon"], "cannot read `soon` as an instant"),
        (["check", "-f", "FILE", "--policies", "FILE", "--sort-by", "no"], "there is no column `no`"),
        (["install", "crds", "more"], "unexpected argument `more`"),
    ],
)  # fmt: skip
def test_words_that_cannot_be_meant_so_are_a_usage_error(words, message: str, file: str, capsys, monkeypatch):  # fmt: skip
    monkeypatch.setenv("KUBECONFIG", "/nonexistent")
    code = entry.main([word.replace("FILE", file) for word in words])
    printed = capsys.readouterr()

    assert (code, message in printed.err) == (ExitCode.USAGE, True), printed.err


def test_a_baseline_that_is_none_is_named(file: str, tmp_path: Path, capsys):
    other = tmp_path / "other.yaml"
    other.write_text("a: 1\n")
    assert entry.main(["check", "-f", file, "--policies", file, "--baseline", str(other)]) == 1
    assert f"{other}: this is no list of findings" in capsys.readouterr().err
    assert entry.main(["check", "-f", file, "--policies", file, "--baseline", f"{other}x"]) == 1


def test_parts_are_printed_by_themselves_and_samples_by_name(capsys):
    def kinds(*words: str) -> set[str]:
        assert entry.main(["install", *words]) == 0
        return {one.value["kind"] for one in load_all(capsys.readouterr().out)}

    assert kinds("crds") == {"CustomResourceDefinition"}
    assert "CustomResourceDefinition" not in kinds("controllers", "--dry-run=client")
    assert {"CustomResourceDefinition", "Deployment"} < kinds("engine", "-o", "yaml")
    assert "ClusterPolicy" in kinds("samples", "best-practices")
    assert entry.main(["install", "samples"]) == 0
    assert "jobs" in capsys.readouterr().out.splitlines()
    assert entry.main(["install", "samples", "nosuch"]) == ExitCode.GONE


def webhook(name: str, **annotations: str) -> dict[str, Any]:
    metadata = {"name": name, "annotations": {key.replace("__", "/"): value for key, value in annotations.items()}}  # fmt: skip
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": metadata, "webhooks": []}  # fmt: skip


def test_breaking_the_glass_takes_only_our_webhooks_keeps_them_in_a_file_and_says_who_and_why(on_stage, tmp_path: Path):  # fmt: skip
    backup = tmp_path / "backup.yaml"

    async def act(stage: Stage) -> None:
        await stage.create("v1", "namespaces", {"metadata": {"name": "kyverno"}})
        ours, theirs = (
            webhook("kyverno-x", **{"kpolicy.io__owner": "kpolicy"}),
            webhook("kyverno-y"),
        )
        await stage.admin.create(VALIDATING_WEBHOOKS, ours)
        await stage.admin.create(VALIDATING_WEBHOOKS, theirs)
        words = ("break-glass", "--reason", "nodes cannot join", "--backup", str(backup))
        tried = await stage.run("root", *words, **ADMIN)
        assert (tried.code, "would delete" in tried.out, backup.exists()) == (0, True, False)
        assert len((await stage.admin.list_all(VALIDATING_WEBHOOKS)).items) == 2
        said = await stage.run("root", *words, "--yes", **ADMIN)
        assert said.code == 0, said.err
        assert [one["metadata"]["name"] for one in (await stage.admin.list_all(VALIDATING_WEBHOOKS)).items] == ["kyverno-y"]  # fmt: skip
        [kept] = [one.value for one in load_all(backup.read_text())]
        assert (kept["kind"], kept["metadata"]["name"], "uid" in kept["metadata"]) == (ours["kind"], "kyverno-x", False)  # fmt: skip
        assert backup.stat().st_mode & 0o777 == 0o600
        events = await stage.admin.raw("GET", "/api/v1/namespaces/kyverno/events")
        [event] = [one for one in events["items"] if one["reason"] == "BreakGlass"]
        assert (
            event["message"] == "root took 1 objects of kpolicy's webhooks away: nodes cannot join"
        )
        again = await stage.run("root", *words, "--yes", **ADMIN)
        assert (again.code, "no webhook of kpolicy is in the way" in again.err) == (0, True)

    on_stage(act)


def test_nothing_is_taken_away_where_it_cannot_be_kept(on_stage, tmp_path: Path):
    async def act(stage: Stage) -> None:
        await stage.admin.create(VALIDATING_WEBHOOKS, webhook("kyverno-x", **{"kpolicy.io__owner": "kpolicy"}))  # fmt: skip
        said = await stage.run("root", "break-glass", "--reason", "x", "--yes", "--backup", str(tmp_path), **ADMIN)  # fmt: skip
        assert (said.code, "nothing was taken away" in said.err) == (1, True)
        assert (await stage.admin.list_all(VALIDATING_WEBHOOKS)).items
        denied = await stage.run("nobody", "break-glass", "--reason", "x", "--yes")
        assert denied.code == ExitCode.FORBIDDEN

    on_stage(act)


def test_one_policy_in_force_is_tried_on_files(on_stage, file: str):
    async def act(stage: Stage) -> None:
        said = await stage.run("root", "policies", "test", "teams", "-f", file, "-o", "json", **ADMIN)  # fmt: skip
        found = {one["resource"]["name"]: one["result"] for one in json.loads(said.out)["items"]}
        assert (said.code, found) == (1, {"web": "fail", "good": "pass", "old-one": "skip"})
        none = await stage.run("root", "policies", "test", "absent", "-f", file, **ADMIN)
        assert (none.code, none.out) == (ExitCode.GONE, "")

    on_stage(act)
