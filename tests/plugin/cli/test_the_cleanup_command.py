"""`kubectl kpolicy cleanup`: previews with conditions, owners and what goes along; runs by hand; holding back, with a reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from controllers.kube.kinds import CLUSTER_CLEANUP_POLICIES, CONFIG_MAPS, PODS, VALIDATING_WEBHOOKS
from engine import vocabulary
from kubectl_kpolicy.output.diagnostics import ExitCode
from tests.plugin.grants.staging import Stage, play

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

HOLDS = (vocabulary.CLEANUP_PAUSE, vocabulary.CLEANUP_SKIP, vocabulary.CLEANUP_AFTER)
ADMIN: Any = {"groups": ("system:masters",)}
POLICY = {
    "apiVersion": "kyverno.io/v2", "kind": "ClusterCleanupPolicy", "metadata": {"name": "old"},
    "spec": {
        "schedule": "0 3 * * *", "deletionPropagationPolicy": "Foreground",
        "match": {"any": [{"resources": {"kinds": ["ConfigMap"], "namespaces": ["default"]}}]},
        "context": [{"name": "wanted", "configMap": {"name": "settings", "namespace": "default"}}],
        "conditions": {"all": [{"key": "{{ target.data.age || '' }}", "operator": "Equals", "value": "{{ wanted.data.gone }}"}]},
    },
}  # fmt: skip


def config_map(name: str, owner: dict[str, Any] | None = None, **data: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "default"}
    if owner is not None:
        metadata["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": True}]  # fmt: skip
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@pytest.fixture
def on_stage(tmp_path, capsys, monkeypatch):
    def run(act: Callable[[Stage], Awaitable[None]]) -> None:
        async def furnished(stage: Stage) -> None:
            await stage.admin.create(CONFIG_MAPS, config_map("settings", gone="yes"))
            top = await stage.admin.create(CONFIG_MAPS, config_map("top"))
            middle = await stage.admin.create(CONFIG_MAPS, config_map("middle", top))
            bottom = await stage.admin.create(CONFIG_MAPS, config_map("bottom", middle, age="yes"))
            pod = {"apiVersion": "v1", "kind": "Pod", **config_map("below", bottom), "spec": {"containers": [{"name": "a", "image": "b"}]}}  # fmt: skip
            await stage.admin.create(PODS, {**pod, "kind": "Pod"})
            await stage.admin.create(CLUSTER_CLEANUP_POLICIES, POLICY)
            await act(stage)

        play(tmp_path, capsys, monkeypatch, furnished)

    return run


def test_a_preview_evaluates_conditions_and_names_owners_and_what_goes_along(on_stage):
    async def act(stage: Stage) -> None:
        said = await stage.run("root", "cleanup", "preview", "old", "-o", "json", **ADMIN)
        assert said.code == 0, said.err
        plans = {one["metadata"]["name"]: one for one in json.loads(said.out)["items"]}
        assert [name for name, one in plans.items() if one["goes"]] == ["bottom"]
        assert plans["bottom"]["owners"] == ["ConfigMap/middle", "ConfigMap/top"]
        assert plans["bottom"]["takes"] == ["Pod/below"]
        assert (plans["bottom"]["propagation"], plans["bottom"]["kind"]) == ("Foreground", "PlannedDeletion")  # fmt: skip
        assert plans["top"]["reason"] == "the conditions do not hold"
        table = await stage.run("root", "cleanup", "preview", "ClusterCleanupPolicy/old", **ADMIN)
        assert "ConfigMap/middle < ConfigMap/top" in table.out

    on_stage(act)


def test_a_run_by_hand_deletes_what_the_preview_said_and_notes_who_and_why(on_stage):
    async def act(stage: Stage) -> None:
        words = ("cleanup", "run", "old", "--reason", "quota is full")
        for tried in ((), ("--dry-run=client", "--yes"), ("--dry-run=server", "--yes")):
            said = await stage.run("root", *words, *tried, **ADMIN)
            assert (said.code, "ConfigMap/bottom in default and 1 that belong to it" in said.out) == (0, True), said.err  # fmt: skip
        assert len((await stage.admin.list_all(CONFIG_MAPS, "default")).items) >= 4
        policy = await stage.admin.get(CLUSTER_CLEANUP_POLICIES, "old")
        assert not policy["metadata"].get("annotations")
        said = await stage.run("root", *words, "--yes", **ADMIN)
        assert (said.code, said.out) == (0, "ConfigMap/bottom in default and 1 that belong to it deleted\n")  # fmt: skip
        policy = await stage.admin.get(CLUSTER_CLEANUP_POLICIES, "old")
        assert policy["metadata"]["annotations"]["kpolicy.io/cleanup-run"].endswith(" root: quota is full")  # fmt: skip

    on_stage(act)


def test_who_may_not_delete_deletes_nothing_and_gets_the_exit_code_of_rights(on_stage):
    async def act(stage: Stage) -> None:
        reader = ["get", "list", "patch"]
        await stage.create("rbac.authorization.k8s.io/v1", "clusterroles", {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": reader}]})  # fmt: skip
        await stage.create("rbac.authorization.k8s.io/v1", "clusterrolebindings", {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "r"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"}]})  # fmt: skip
        said = await stage.run("eve", "cleanup", "run", "old", "--reason", "x", "--yes")
        assert (said.code, said.out) == (ExitCode.FORBIDDEN, "")
        assert await stage.admin.get(CONFIG_MAPS, "bottom", "default")

    on_stage(act)


def test_holding_back_says_who_and_why_and_dry_runs_change_nothing(on_stage):
    async def act(stage: Stage) -> None:
        for tried in ("client", "server"):
            said = await stage.run("root", "cleanup", "pause", "old", "--reason", "audit", f"--dry-run={tried}", **ADMIN)  # fmt: skip
            assert (said.code, f"({tried} dry run)" in said.out) == (0, True), said.err
            policy = await stage.admin.get(CLUSTER_CLEANUP_POLICIES, "old")
            assert not policy["metadata"].get("annotations")
        for tried in ((), ("--dry-run=client",)):
            words = ("cleanup", "postpone", "old", "--for", "soon", "--reason", "audit", *tried)
            said = await stage.run("root", *words, **ADMIN)
            assert (said.code, "`soon` is no length of time" in said.err) == (ExitCode.USAGE, True)
        for verb, key, more in (("pause", "pause", ()), ("postpone", "after", ("--for", "2h")), ("skip", "skip", ())):  # fmt: skip
            said = await stage.run("root", "cleanup", verb, "old", "--reason", "audit", *more, **ADMIN)  # fmt: skip
            assert said.code == 0, said.err
            annotations = (await stage.admin.get(CLUSTER_CLEANUP_POLICIES, "old"))["metadata"]["annotations"]  # fmt: skip
            assert annotations[f"kpolicy.io/cleanup-{key}"].endswith(" root: audit")
        again = await stage.run("root", "cleanup", "pause", "old", "--reason", "audit", **ADMIN)
        assert (again.code, "paused already" in again.err) == (ExitCode.CONFLICT, True)
        assert (await stage.run("root", "cleanup", "resume", "old", "--reason", "over", **ADMIN)).code == 0  # fmt: skip

    on_stage(act)


def test_a_name_that_no_clean_up_has_changes_none(on_stage):
    async def act(stage: Stage) -> None:
        for verb in ("skip", "pause", "run"):
            said = await stage.run("root", "cleanup", verb, "old", "absent", "--reason", "x", **ADMIN)  # fmt: skip
            assert (said.code, "absent" in said.err) == (ExitCode.GONE, True)
        assert not (await stage.admin.get(CLUSTER_CLEANUP_POLICIES, "old"))["metadata"].get("annotations")  # fmt: skip

    on_stage(act)


def test_on_kyverno_holding_back_is_refused_with_the_command_that_does_it_there(on_stage):
    async def act(stage: Stage) -> None:
        hook = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "kyverno-cleanup-validating-webhook-cfg"}, "webhooks": []}  # fmt: skip
        await stage.admin.create(VALIDATING_WEBHOOKS, hook)
        said = await stage.run("root", "cleanup", "pause", "old", "--reason", "x", **ADMIN)
        assert (said.code, said.out) == (1, "")
        assert "Kyverno knows no way to pause" in said.err
        assert "kubectl patch clustercleanuppolicy.kyverno.io/old --type merge" in said.err
        assert (await stage.run("root", "cleanup", "preview", "old", **ADMIN)).code == 0

    on_stage(act)


def test_who_resumes_a_clean_up_lifts_everything_that_holds_it(on_stage):
    async def act(stage: Stage) -> None:
        for verb in (["postpone", "--for", "2h"], ["skip"], ["pause"]):
            assert (
                await stage.run(
                    "root", "cleanup", verb[0], "old", *verb[1:], "--reason", "x", **ADMIN
                )
            ).code == 0
        assert (
            await stage.run("root", "cleanup", "resume", "old", "--reason", "x", **ADMIN)
        ).code == 0
        policy = await stage.admin.get(CLUSTER_CLEANUP_POLICIES, "old", "")
        assert not [name for name in policy["metadata"]["annotations"] if name in HOLDS]

    on_stage(act)


def test_a_policy_that_is_held_back_is_not_run_by_hand_until_that_is_lifted(on_stage):
    async def act(stage: Stage) -> None:
        words = ("cleanup", "run", "old", "--reason", "x", "--yes")
        held = {"pause": "x", "skip": "9999-01-01T00:00:00Z x", "after": "tomorrow x"}
        for key, value in held.items():
            patch = {"metadata": {"annotations": {f"kpolicy.io/cleanup-{key}": value}}}
            await stage.admin.patch(CLUSTER_CLEANUP_POLICIES, "old", "", patch)
            said = await stage.run("root", *words, **ADMIN)
            assert (said.code, said.out) == (ExitCode.CONFLICT, "")
            assert "nothing was deleted" in said.err
            lifted = await stage.run("root", "cleanup", "resume", "old", "--reason", "x", **ADMIN)
            assert lifted.code == 0, lifted.err
        assert (await stage.run("root", "cleanup", "resume", "old", "--reason", "x", **ADMIN)).code == ExitCode.CONFLICT  # fmt: skip
        assert "bottom" in (await stage.run("root", *words, **ADMIN)).out

    on_stage(act)


def test_an_object_that_the_leader_keeps_is_not_deleted_by_hand(on_stage):
    async def act(stage: Stage) -> None:
        patch = {"metadata": {"annotations": {"kpolicy.io/cleanup-after": "tomorrow bob: wait"}}}
        await stage.admin.patch(CONFIG_MAPS, "bottom", "default", patch)
        said = await stage.run("root", "cleanup", "run", "old", "--reason", "x", "--yes", **ADMIN)
        assert (said.code, said.out, said.err) == (0, "", "nothing would go\n")
        assert await stage.admin.get(CONFIG_MAPS, "bottom", "default")

    on_stage(act)


def test_a_deleting_policy_is_listed_previewed_held_back_and_run_like_any_clean_up(on_stage):
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    head = {"apiVersion": "policies.kyverno.io/v1beta1", "kind": "DeletingPolicy"}
    condition = {"name": "gone", "expression": "object.?data.age.orValue('') == resource.Get('v1', 'configmaps', 'default', 'settings').data.gone"}  # fmt: skip
    spec = {"schedule": "0 3 * * *", "matchConstraints": {"resourceRules": [rule], "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, "conditions": [condition]}  # fmt: skip
    keep = {
        "apiVersion": "policies.kyverno.io/v1beta1", "kind": "PolicyException", "metadata": {"name": "keep", "namespace": "default"},
        "spec": {"policyRefs": [{"name": "dated", "kind": "DeletingPolicy"}], "matchConditions": [{"name": "n", "expression": "object.metadata.name == 'kept'"}]},
    }  # fmt: skip

    async def act(stage: Stage) -> None:
        group = "policies.kyverno.io/v1beta1"
        await stage.create(group, "deletingpolicies", {**head, "metadata": {"name": "dated"}, "spec": spec})  # fmt: skip
        await stage.create(group, "policyexceptions", keep, "default")
        await stage.admin.create(CONFIG_MAPS, config_map("kept", age="yes"))
        listed = await stage.run("root", "cleanup", "list", "-A", **ADMIN)
        assert "DeletingPolicy/dated" in listed.out, listed.err
        said = await stage.run("root", "cleanup", "preview", "DeletingPolicy/dated", "-o", "json", **ADMIN)  # fmt: skip
        assert said.code == 0, said.err
        plans = {one["metadata"]["name"]: one for one in json.loads(said.out)["items"]}
        assert [name for name, one in plans.items() if one["goes"]] == ["bottom"]
        assert plans["kept"]["reason"] == "protected by exception `default/keep`"
        assert plans["top"]["reason"] == "condition `gone` does not hold"
        words = ("cleanup", "run", "DeletingPolicy/dated", "--reason", "quota is full", "--yes")
        paused = await stage.run("root", "cleanup", "pause", "DeletingPolicy/dated", "--reason", "audit", **ADMIN)  # fmt: skip
        assert paused.code == 0, paused.err
        assert (await stage.run("root", *words, **ADMIN)).code == ExitCode.CONFLICT
        lifted = await stage.run("root", "cleanup", "resume", "DeletingPolicy/dated", "--reason", "over", **ADMIN)  # fmt: skip
        assert lifted.code == 0, lifted.err
        ran = await stage.run("root", *words, **ADMIN)
        assert ran.out == "ConfigMap/bottom in default and 1 that belong to it deleted\n", ran.err

    on_stage(act)
