"""`--contexts`: one table of several clusters, in which a cluster that cannot be asked is unknown and never empty."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from controllers.kube.kinds import CLUSTER_POLICIES
from engine.lang import yaml
from kpolicy_sandbox.call import User
from kubectl_kpolicy import entry
from kubectl_kpolicy.output.diagnostics import ExitCode
from tests.plugin.grants.staging import Stage, play

if TYPE_CHECKING:
    from collections.abc import Callable

GRANT = {
    "apiVersion": "kpolicy.io/v1alpha1", "kind": "Grant", "metadata": {"name": "web", "namespace": "default"},
    "spec": {"requester": "root", "policy": "no-root", "rules": ["r"], "duration": "30m", "reason": "the image is built tonight", "target": {"kind": "Pod", "name": "web"}},
}  # fmt: skip
POLICY = {
    "apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "no-root"},
    "spec": {"rules": [{"name": "r", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}, "validate": {"message": "m", "pattern": {"kind": "?*"}}}]},
}  # fmt: skip
BESIDE = ("--contexts", "prod-*,shut,gone", "-A")


def contexts(stage: Stage, folder: Path) -> str:
    """Write a kubeconfig with two contexts that may read, one that may not, and one whose server is away."""
    made: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [],
        "users": [],
        "contexts": [],
    }
    people = {
        "prod-a": ("root", "system:masters"),
        "prod-b": ("root", "system:masters"),
        "shut": ("eve",),
        "gone": ("eve",),
    }
    for name, (user, *groups) in people.items():
        file = stage.sandbox.kubeconfig_of(User(user, (*groups, "system:authenticated")))
        read = yaml.load(Path(file).read_text())
        for part in ("clusters", "users"):
            made[part].append({**read[part][0], "name": name})
        made["contexts"].append({"name": name, "context": {"cluster": name, "user": name}})
    made["clusters"][-1]["cluster"] = {"server": "https://127.0.0.1:1"}
    file = folder / "contexts"
    file.write_text(json.dumps(made))
    return str(file)


@pytest.fixture
def beside(tmp_path, capsys, monkeypatch):
    def run(look: Callable[[Callable[..., Any]], Any]) -> None:
        async def act(stage: Stage) -> None:
            await stage.admin.create(CLUSTER_POLICIES, POLICY)
            await stage.create("kpolicy.io/v1alpha1", "grants", GRANT, "default")
            file = contexts(stage, tmp_path)

            async def call(*words: str) -> Any:
                return await stage.run("root", *words, f"--kubeconfig={file}")

            await look(call)

        play(tmp_path, capsys, monkeypatch, act)

    return run


def test_lists_of_several_clusters_are_one_table_in_which_those_that_cannot_be_asked_are_unknown(
    beside,
) -> None:
    async def look(call) -> None:
        said = await call("policies", *BESIDE)
        lines = [line.split() for line in said.out.splitlines()]
        assert lines[0][:2] == ["CLUSTER", "NAME"]
        assert [line[:2] for line in lines[1:]] == [
            ["prod-a", "no-root"],
            ["prod-b", "no-root"],
            ["shut", "unknown"],
            ["gone", "unknown"],
        ]
        assert "error: shut is unknown: " in said.err
        assert "error: gone is unknown: `https://127.0.0.1:1` cannot be reached" in said.err
        assert said.code == ExitCode.FORBIDDEN
        counted = await call("policies", *BESIDE, "--group-by", "cluster", "-o", "json")
        assert {one["cluster"]: one["count"] for one in json.loads(counted.out)} == {
            "prod-a": 1,
            "prod-b": 1,
            "shut": None,
            "gone": None,
        }
        counts = await call("policies", *BESIDE, "--group-by", "cluster", "--no-headers")
        assert ["gone", "unknown"] in [line.split() for line in counts.out.splitlines()]

    beside(look)


def test_each_row_says_where_it_is_from_in_tables_filters_and_data(beside) -> None:
    async def look(call) -> None:
        both = ("--contexts", "prod-a,prod-b,prod-a", "-A")
        said = await call("grant", "list", *both, "--where", "cluster=prod-b")
        assert [line.split()[:2] for line in said.out.splitlines()] == [
            ["CLUSTER", "NAME"],
            ["prod-b", "web"],
        ]
        assert (said.code, said.err) == (0, "")
        data = json.loads((await call("grant", "list", *both, "-o", "json")).out)
        assert [one["metadata"]["annotations"]["kpolicy.io/context"] for one in data["items"]] == [
            "prod-a",
            "prod-b",
        ]
        lost = await call("policies", "nothing", *both)
        assert (lost.code, "no policy called `nothing`" in lost.err) == (ExitCode.GONE, True)
        unsure = await call("policies", "nothing", *BESIDE)
        assert "no policy called" not in unsure.err

    beside(look)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("policies", "--contexts", "nowhere"), "there is no context `nowhere`"),
        (("policies", "--contexts", "a", "--token", "t"), "--token is about one cluster"),
        (("policies", "--contexts", "a", "-w"), "neither watched nor replayed"),
        (("grant", "list", "--contexts", "a", "--mine"), "ask one cluster who you are"),
    ],
)
def test_what_is_about_one_cluster_is_refused_for_several(
    words: tuple[str, ...], told: str, tmp_path: Path, capsys
) -> None:
    file = tmp_path / "config"
    file.write_text('{"contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}]}')

    assert entry.main([*words, f"--kubeconfig={file}"]) == ExitCode.USAGE
    assert told in capsys.readouterr().err


def test_one_flag_with_two_contexts_leads_to_the_flag_that_takes_several(capsys) -> None:
    assert entry.main(["policies", "--context", "a", "--context=b"]) == ExitCode.USAGE
    assert "`a` and `b` are two contexts; lists take --contexts a,b" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("--contexts", "prod-*"), ("--context", "prod")])
def test_without_a_kubeconfig_it_says_where_one_was_looked_for(
    words: tuple[str, ...], tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert entry.main(["policies", *words]) == ExitCode.UNREACHABLE
    said = capsys.readouterr().err
    assert f"there is no kubeconfig: `{tmp_path}/.kube/config` is not there" in said
    assert "name one with --kubeconfig or KUBECONFIG" in said

    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/lost")
    assert entry.main(["policies", *words]) == ExitCode.UNREACHABLE
    assert f"`{tmp_path}/lost`, which KUBECONFIG names, is not there" in capsys.readouterr().err
