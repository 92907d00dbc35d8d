"""Pipes and shells, in processes of their own: clean streams, no complaint when a reader leaves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kubectl_kpolicy.cli.completion import SCRIPTS

ROOT = Path(__file__).parents[3]


def test_a_reader_that_leaves_early_causes_no_complaint() -> None:
    reading, writing = os.pipe()
    os.close(reading)

    done = subprocess.run(
        [sys.executable, "-m", "kubectl_kpolicy", "--help"],
        cwd=ROOT,
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)

    assert done.stderr == b""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_accepted_by_their_shells(shell: str) -> None:
    try:
        done = subprocess.run(
            [shell, "-n"], input=SCRIPTS[shell].encode(), capture_output=True, check=False
        )
    except FileNotFoundError:
        pytest.skip(f"{shell} is not installed")

    assert (done.returncode, done.stderr) == (0, b"")


def test_bash_completes_commands_through_the_script(tmp_path: Path) -> None:
    program = tmp_path / "kubectl_complete-kpolicy"
    program.write_text(
        f"#!/bin/sh\ncd {ROOT} && exec {sys.executable} -c 'import sys; from kubectl_kpolicy.complete import main; sys.exit(main())' \"$@\"\n"
    )
    program.chmod(0o755)
    script = (
        SCRIPTS["bash"]
        + 'COMP_WORDS=(kubectl-kpolicy ver); COMP_CWORD=1; _kubectl_kpolicy; echo "${COMPREPLY[@]}"'
    )

    done = subprocess.run(
        ["bash", "-c", script],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}, capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert done.stdout == "verify version\n"
