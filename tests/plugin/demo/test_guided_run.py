"""The guided run, as somebody without a terminal sees it: everything comes back as it must, and nothing is left behind."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.contracts.source import ROOT
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
    done = run("--offline", PATH="/nowhere")

    assert done.returncode == 0
    assert "FAIL disallow-host-namespaces-otp/host-namespaces-otp (blocks)" in done.stdout
