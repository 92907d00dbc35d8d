"""Completion of names: from a cluster in haste, kept for a moment, from a kubeconfig; never a failure; and installing it."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from controllers.kube.kinds import CEL_POLICIES, CLUSTER_POLICIES, NAMESPACES
from kubectl_kpolicy import complete, completing, entry
from kubectl_kpolicy.output.diagnostics import ExitCode
from kubectl_kpolicy.session.completions import COMPLETER, MARK
from tests.plugin.grants.staging import Stage, play

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


def names(*words: str) -> list[str]:
    return [name for name, _ in complete.candidates(words)[0]]


@pytest.fixture
def asked(monkeypatch) -> list[str]:
    """Stand in for the cluster; return what was asked for."""
    seen: list[str] = []

    def answer(what: str, _flags: Any) -> list[str]:
        seen.append(what)
        return ["alpha", "beta"]

    monkeypatch.setattr(completing, "_asked", answer)
    return seen


@pytest.mark.parametrize(
    ("words", "what"),
    [(["policies", "list", "a"], "policies"), (["violations", "describe", "a"], "violations"), (["exceptions", "describe", "a"], "exceptions"),
     (["grant", "approve", "a"], "grant"), (["grant", "request", "a"], "askable"), (["otp", "void", "a"], "otp"),
     (["cleanup", "skip", "a"], "cleanup"), (["cleanup", "list", "-n", "a"], "namespaces"), (["violations", "--namespace", "a"], "namespaces")],
)  # fmt: skip
def test_names_are_those_of_what_the_verb_is_about(asked: list[str], words, what: str) -> None:
    assert names(*words) == ["alpha"]
    assert asked == [what]


def test_what_was_found_is_asked_once_in_a_while(asked: list[str], home: Path) -> None:
    for _ in range(3):
        assert names("policies", "list", "") == ["alpha", "beta"]
    assert asked == ["policies"]
    names("policies", "list", "-n", "other", "")
    assert len(asked) == 2, "another namespace is another question"
    for file in (home / ".cache/kpolicy/completion").iterdir():
        os.utime(file, (time.time() - 2 * completing.KEPT,) * 2)
    names("policies", "list", "")
    assert len(asked) == 3


@pytest.mark.parametrize("words", [["apply", ""], ["version", "x"], ["config", "view", ""], ["policies", "list", "--"]])  # fmt: skip
def test_nothing_is_asked_where_no_name_can_stand(asked: list[str], words) -> None:
    complete.candidates(words)
    assert asked == []


def test_whatever_goes_wrong_is_nobody_s_concern(monkeypatch, capsys) -> None:
    for error in (OSError("no"), TimeoutError(), SystemExit(2)):

        def fail(*_: Any, error: BaseException = error) -> list[str]:
            raise error

        monkeypatch.setattr(completing, "_asked", fail)
        assert complete.main(["policies", "list", ""]) == 0
        printed = capsys.readouterr()
        assert (printed.out, printed.err) == (":0\n", "")


def test_a_server_that_does_not_answer_is_given_up(monkeypatch, tmp_path: Path, capsys) -> None:
    import socket

    monkeypatch.setattr(completing, "LONGEST", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = tmp_path / "config"
        config.write_text(f"current-context: x\nclusters: [{{name: x, cluster: {{server: 'http://127.0.0.1:{silent.getsockname()[1]}'}}}}]\ncontexts: [{{name: x, context: {{cluster: x, user: x}}}}]\nusers: [{{name: x, user: {{token: t}}}}]\n")  # fmt: skip
        assert complete.main(["policies", "list", "--kubeconfig", str(config), ""]) == 0
    assert capsys.readouterr().out == ":0\n"


def test_contexts_are_those_of_the_kubeconfig(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("contexts: [{name: prod, context: {}}, {name: test, context: {}}]\nusers: [{name: me, user: {}}]\n")  # fmt: skip
    assert names("violations", "list", "--kubeconfig", str(config), "--context", "p") == ["prod"]
    assert names("violations", "list", "--kubeconfig", str(config), "--user", "") == ["me"]


def test_names_come_from_a_live_cluster(tmp_path: Path, capsys, monkeypatch) -> None:
    async def act(stage: Stage) -> None:
        import asyncio

        await stage.admin.create(NAMESPACES, {"metadata": {"name": "shop"}})
        await stage.admin.create(CLUSTER_POLICIES, {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "teams"}, "spec": {"rules": []}})  # fmt: skip
        await stage.admin.create(
            CEL_POLICIES[0],
            {
                "apiVersion": "policies.kyverno.io/v1",
                "kind": "ValidatingPolicy",
                "metadata": {"name": "owners"},
                "spec": {"validations": [{"expression": "true"}]},
            },
        )
        monkeypatch.setattr(completing, "LONGEST", 30.0)
        monkeypatch.setattr(completing.signal, "signal", lambda *_: None)
        monkeypatch.setattr(completing.signal, "setitimer", lambda *_: None)
        monkeypatch.setenv("KUBECONFIG", str(stage.sandbox.kubeconfig))
        assert await asyncio.to_thread(names, "policies", "list", "") == ["owners", "teams"]
        assert await asyncio.to_thread(names, "grant", "request", "vp") == ["vpol:owners"]
        assert "shop" in await asyncio.to_thread(names, "policies", "list", "-n", "s")

    play(tmp_path, capsys, monkeypatch, act)


def test_everything_that_completion_needs_is_written_and_works(home: Path, monkeypatch, capsys) -> None:  # fmt: skip
    monkeypatch.setenv("PATH", f"{home}/.local/bin:{os.environ['PATH']}")
    monkeypatch.setattr("sys.argv", ["/nowhere/kubectl-kpolicy"])
    assert entry.main(["completion", "install", "bash", "--dry-run=client"]) == 0
    assert not home.exists()
    assert entry.main(["completion", "install", "bash"]) == 0
    assert "kubectl-kpolicy" in (home / ".local/share/bash-completion/completions/kubectl-kpolicy").read_text()  # fmt: skip
    done = subprocess.run([str(home / ".local/bin" / COMPLETER), "ver"], cwd=ROOT, capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout.splitlines()[-1] == ":4"
    assert "verify" in done.stdout
    assert entry.main(["completion", "install", "fish"]) == 0, "what we wrote ourselves is written again"  # fmt: skip


def test_a_file_of_somebody_else_stays(home: Path, monkeypatch, capsys) -> None:
    file = home / ".local/share/bash-completion/completions/kubectl-kpolicy"
    file.parent.mkdir(parents=True)
    file.write_text("mine\n")
    assert entry.main(["completion", "install", "bash"]) == 1
    assert file.read_text() == "mine\n"
    assert MARK not in file.read_text()
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert entry.main(["completion", "install"]) == ExitCode.USAGE
    assert "there is no completion for the shell `tcsh`" in capsys.readouterr().err
