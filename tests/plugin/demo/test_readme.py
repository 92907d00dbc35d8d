"""The README: its incident is played as it is printed, its commands are those that there are, its pictures exist."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

from controllers.manifests import SAMPLES
from kubectl_kpolicy import entry
from tests.contracts.source import ROOT

TEXT = (ROOT / "README.md").read_text()
INCIDENT = "An incident, from the denial to the record"
needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not here")


def section(title: str) -> str:
    return TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]


def lines_of(title: str) -> list[str]:
    """Return the commands of a section's `sh` blocks."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", section(title), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


def played(lines: list[str], place, home) -> list[tuple[str, int, str]]:
    """Type lines into one shell; return each with the exit code and what it printed."""
    shims = home / "bin"
    shims.mkdir()
    plugin = shims / "kubectl-kpolicy"
    plugin.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kubectl_kpolicy "$@"\n')
    plugin.chmod(0o755)
    script = "".join(f"echo '@@{number}'\n{line}\necho \"@@rc $?\"\n" for number, line in enumerate(lines))  # fmt: skip
    environment = {**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT), "PATH": f"{shims}{os.pathsep}{os.environ['PATH']}",
                   "KPOLICY_SANDBOX_DIR": str(home / "sandbox")}  # fmt: skip
    try:
        done = subprocess.run(["bash", "-c", script], cwd=place, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=280)  # fmt: skip
    finally:
        subprocess.run([str(plugin), "sandbox", "down"], env=environment, capture_output=True, check=False)  # fmt: skip
    parts = re.split(r"^@@\d+\n", done.stdout, flags=re.MULTILINE)[1:]
    found = [re.fullmatch(r"(.*?)@@rc (\d+)\n", part, re.DOTALL) for part in parts]
    assert all(found), done.stdout
    return [(line, int(one[2]), one[1]) for line, one in zip(lines, found, strict=True) if one]


@needs_kubectl
@pytest.mark.timeout(300)
def test_the_incident_goes_as_it_is_printed(tmp_path):
    place = tmp_path / "clone" / SAMPLES.relative_to(ROOT) / "incident"
    shutil.copytree(SAMPLES / "incident", place)

    said = played(lines_of(INCIDENT), tmp_path / "clone", tmp_path)

    wrong = [one for one in said if bool(one[1]) is not one[0].endswith("# refused")]
    assert wrong == []
    told = {line.split("  #")[0].strip(): text for line, _, text in said}
    assert re.search(r"\bactive +0:?0?0?:?5\d:\d\d", told["kubectl kpolicy grant list -n shop"])
    assert "PolicyException" in told["kubectl kpolicy cleanup list -n shop"]
    assert "No resources found" in told["kubectl get policyexceptions -n shop"]
    log = told["kubectl kpolicy audit log"]
    assert all(re.search(rf"\b{verb}\b", log) for verb in ("request", "approve", "active", "expired", "use"))  # fmt: skip
    assert "whole" in told["kubectl kpolicy audit verify"]


def test_the_table_of_commands_is_complete(capsys):
    assert entry.main(["--help"]) == 0
    there = set(re.findall(r"^  ([a-z-]+)  ", capsys.readouterr().out.split("commands:")[1], re.MULTILINE))  # fmt: skip

    assert set(re.findall(r"`([a-z][a-z-]*)`", section("Commands"))) == there


def test_commands_that_are_shown_exist_with_their_flags(capsys):
    shown = re.findall(r"^kubectl kpolicy ([a-z-]+)([^#|\n]*)", TEXT, re.MULTILINE)
    for command, rest in shown:
        assert entry.main([command, *_verb(rest), "--help"]) == 0
        told = capsys.readouterr().out
        for flag in re.findall(r"(?<!\S)--[a-z-]+", rest):
            assert flag in told, f"{command} has no {flag}"
    assert len(shown) > 20


def _verb(rest: str) -> list[str]:
    words = re.match(r" ([a-z-]+)(?= |$)", rest)
    return [words[1]] if words and words[1] in VERBS else []


VERBS = {"list", "approve", "verify", "export", "log", "audit", "up", "clock", "down", "reset", "redeem", "exception", "query"}  # fmt: skip


def test_pictures_and_files_that_are_named_exist():
    for name in re.findall(r"\]\(((?!http)[^)]+)\)", TEXT):
        assert (ROOT / name).exists(), name
    for target in re.findall(r"`?make ([a-z0-9]+)", TEXT):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), target


def test_figures_of_packages_are_those_of_the_lock_files():
    from tests.packaging.parts import LOCKS, pinned

    there = {name: len(pinned(lock)) for name, lock in LOCKS.items()}
    assert f"time {there['image']} packages are needed, {there['console']} with the console" in " ".join(TEXT.split())  # fmt: skip
