"""The guided run, as somebody without a terminal sees it: everything comes back as it must, and nothing is left behind."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from tests.contracts.source import ROOT
from tests.demo import folding
from tests.demo.scenarios import PLAYS, Act

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not here")


def run(*words, **environment):
    return subprocess.run(
        [sys.executable, "-m", "tests.demo", *words],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@needs_kubectl
@pytest.mark.timeout(300)
def test_the_guided_run_plays_all_scenarios_and_removes_everything(tmp_path):
    done = run("--dir", str(tmp_path / "sandbox"))

    assert done.returncode == 0, done.stdout + done.stderr
    assert [line for line in done.stdout.splitlines() if re.match(r"\d\. ", line)] == [
        f"{number}. {play.title}" for number, play in enumerate(PLAYS, 1)
    ]
    acts = [step for play in PLAYS for step in play.acts if isinstance(step, Act)]
    assert done.stdout.count("     $ kubectl ") == len(acts)
    assert "everything is stopped and removed again" in done.stdout
    assert not (tmp_path / "sandbox").exists()


def test_without_kubectl_it_says_so(tmp_path):
    done = run("--dir", str(tmp_path / "sandbox"), PATH="/nowhere")

    assert done.returncode == 1
    assert done.stderr.startswith("error: kubectl is not on the path")
    assert "--offline" in done.stderr


def test_without_a_server_the_policies_are_asked_alone():
    done = run("--offline", PATH="/nowhere", COLUMNS="80")

    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []
    assert "FAIL disallow-host-namespaces-otp/host-namespaces-otp (blocks)" in done.stdout


def test_no_word_of_a_played_command_or_its_answer_is_broken_by_a_narrow_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for act in (one for play in PLAYS for one in play.acts if isinstance(one, Act)):
        words = shlex.split(act.run)
        lines = folding.typed(words)
        assert max(len(line) for line in lines if " " in line.strip(" \\")) <= 75, act.run
        assert shlex.split("\n".join(lines).replace("\\\n", ""))[1:] == words
    said = "error: the server refused what was asked for because nobody may do so in this namespace, and told why at length"
    assert max(map(len, folding.answered(said))) <= 75
    assert folding.answered(f"NAME   {'x' * 100}") == [f"NAME   {'x' * 100}"]
