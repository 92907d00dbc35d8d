"""The sandbox that the console of the guided run opens on: every screen has something to show, and all of it really happened."""

from __future__ import annotations

import asyncio
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from controllers.kube import connect, load_access
from controllers.kube.clock import ServerClock
from kubectl_kpolicy import entry
from kubectl_kpolicy.actions.screens import LISTINGS
from kubectl_kpolicy.cli.sandbox import process_of
from kubectl_kpolicy.cluster.fetching import fetch
from kubectl_kpolicy.cluster.resources import RESOURCES, TTL_OBJECTS
from tests.contracts.source import ROOT
from tests.demo import activity, showing

if TYPE_CHECKING:
    from pathlib import Path

    from kubectl_kpolicy.output.rows import Row

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not here")


def sandbox(folder: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-m", "kubectl_kpolicy", "sandbox", *words, "--dir", str(folder)], cwd=ROOT, check=True, capture_output=True)  # fmt: skip


async def rows_as(folder: Path, name: str) -> dict[str, list[Row]]:
    clock = ServerClock()
    client = connect(load_access(str(activity.kubeconfig_of(folder, name))), clock=clock)
    try:
        world = await fetch(client, (*RESOURCES, TTL_OBJECTS), clock.now())
    finally:
        await client.close()
    return {noun: list(one.rows(world, clock.now())) for noun, one in LISTINGS.items()}


@pytest.fixture(scope="module")
def furnished(tmp_path_factory):
    """A sandbox as the console of the guided run opens on it, stopped at the end."""
    folder = tmp_path_factory.mktemp("demo") / "sandbox"
    sandbox(folder, "up", "--engine")
    try:
        activity.furnish(folder)
        yield folder
    finally:
        sandbox(folder, "down")
    assert process_of(folder) is None


def test_every_screen_has_something_to_show_for_the_requester_and_the_approver(furnished):
    for person in ("alice", "bob"):
        rows = asyncio.run(rows_as(furnished, person))
        assert not [noun for noun, found in rows.items() if not found], person
        assert {"critical", "high", "medium", "low"} <= {
            one.text("severity") for one in rows["violations"]
        }
        assert len({one.text("namespace") for one in rows["violations"]}) >= 3
        assert Counter(one.text("state") for one in rows["grants"]) == {
            "active": 1,
            "pending": 1,
            "denied": 1,
        }
        assert Counter(one.text("state") for one in rows["codes"]) == {
            "issued": 1,
            "used": 1,
            "void": 1,
        }
        assert {"active", "unlimited"} <= {one.text("state") for one in rows["exceptions"]}
        assert {"paused", "postponed", "scheduled"} <= {
            one.text("state") for one in rows["cleanup"]
        }


SUGGESTED = re.compile(r"(?:`|(?:^|  +)|: )((?:kubectl|\. /)[^`\n]*[^`\n.,;:\s])", re.MULTILINE)
"""A command in what a program prints: between backticks, behind a colon or spaces, or a line of its own."""
TO_FILL_IN = re.compile(r"\b[A-Z]{3,}\b|[…<]")
LISTS = (
    "violations -A",
    "policies",
    "exceptions list -A",
    "exceptions audit -A",
    "grant list -A",
    "otp list -A",
    "cleanup list -A",
    "audit log",
    "audit verify",
    "whoami",
    "doctor",
    "sandbox status",
    "version",
)
ASKED_WRONGLY = (
    "tui",
    "check",
    "grant request",
    "grant approve x",
    "violations",
    "vilations",
    "fix",
    "grant list --otput",
    "violations -A --where 'svv=high'",
    "grant describe nobody -n payments",
    "exceptions list -o no",
)


def _suggested(said: str) -> list[str]:
    if said.startswith("usage: "):
        return []
    return [line for line in SUGGESTED.findall(said) if not TO_FILL_IN.search(line)]


def _in_a_shell(folder: Path, line: str) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-c", f". {folder / 'env'}\n{line}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd=folder,
        timeout=60,
    )
    return done.returncode, done.stdout


def test_every_command_that_any_output_suggests_works_as_printed(furnished, monkeypatch, capsys):
    """The plugin is found by kubectl in a shell that read the file; what it then prints is what it prints in process."""
    monkeypatch.setenv("KUBECONFIG", str(furnished / "kubeconfig"))
    monkeypatch.setenv("KPOLICY_SANDBOX_DIR", str(furnished))
    monkeypatch.chdir(furnished)

    def typed(line: str) -> tuple[int, str]:
        words = shlex.split(line)
        if words[:2] != ["kubectl", "kpolicy"] or words == ["kubectl", "kpolicy", "status"]:
            return _in_a_shell(furnished, line)
        code = entry.main([*words[2:], "--help"] if words[2] == "tui" else words[2:])
        return code, "".join(capsys.readouterr())

    waiting = _suggested(showing._before(furnished) + showing._after(furnished))
    assert {"kubectl kpolicy status", "kubectl get clusterpolicy,policyreport -A"} <= {*waiting}
    for asked in ASKED_WRONGLY:
        entry.main(shlex.split(asked))
        waiting += _suggested("".join(capsys.readouterr()))
    waiting += [f"kubectl kpolicy {one}" for one in LISTS]
    wrong: dict[str, str] = {}
    seen: set[str] = set()
    while waiting:
        line = waiting.pop()
        if line in seen:
            continue
        seen.add(line)
        code, said = typed(line)
        if code:
            wrong[line] = said
        waiting += _suggested(said)
    assert wrong == {}
    assert len(seen) > 25
