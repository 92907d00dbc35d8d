"""An incident from the first look to the sealed record, by the keys of two consoles on a sandbox with the engine beside it.

Nothing here knows how the console is made: programs on terminals, keys, and what stands on the screen. Hours pass because the
sandbox's clock is moved.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from kubectl_kpolicy.cli.sandbox import process_of
from tests.contracts.source import ROOT
from tests.demo import activity
from tests.demo.showing import command

from .terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not here"),
    pytest.mark.timeout(600),
]
CODE = r"(?:[0-9A-Z]{4}-){4}[0-9A-Z]{4}"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: payments, labels: {team: payments}, annotations: {NOTE}}
spec: {hostPID: true, securityContext: {runAsNonRoot: true}, containers: [{name: c, image: "registry.example.com/tools:3"}]}
"""


def sandbox(folder: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-m", "kubectl_kpolicy", "sandbox", *words, "--dir", str(folder)], cwd=ROOT, check=True, capture_output=True)  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A furnished sandbox with the engine."""
    folder = tmp_path_factory.mktemp("walk") / "sandbox"
    sandbox(folder, "up", "--engine")
    try:
        activity.furnish(folder)
        yield folder
    finally:
        sandbox(folder, "down")
        assert process_of(folder) is None


@contextmanager
def console(folder: Path, name: str, *words: str, size: tuple[int, int]) -> Iterator[Terminal]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder / name), "XDG_CONFIG_HOME": str(folder / name)}  # fmt: skip
    with Terminal(command(folder, name, *words), environment, size) as terminal:
        terminal.until("watch ok")
        yield terminal


def kubectl(
    folder: Path, name: str, *words: str, given: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["kubectl", f"--kubeconfig={activity.kubeconfig_of(folder, name)}", *words], input=given, capture_output=True, text=True, check=False, timeout=60)  # fmt: skip


TITLES = {"v": "Violations", "g": "Grants", "in": "Inbox", "o": "Codes", "a": "Audit"}


def told(terminal: Terminal, screen: str, *keys: str) -> None:
    """Go to a screen by the command line, and press keys there."""
    terminal.press(":", *screen, "enter")
    terminal.until(rf"╭─ {TITLES[screen]} \(")
    terminal.press(*keys)


@pytest.mark.parametrize("size", [(80, 24), (140, 40)], ids=lambda one: f"{one[0]}x{one[1]}")
def test_from_a_violation_over_grant_and_code_to_the_record(
    place: Path, tmp_path: Path, size: tuple[int, int]
) -> None:
    with (
        console(place, "alice", size=size) as alice,
        console(place, "bob", "inbox", size=size) as bob,
    ):
        find_and_explain(alice)
        ask(alice, in_pages=size[1] < 40)
        approve(bob)
        count_down_and_end(place, alice)
        first = issue(bob, "probe")
        redeem_with_kubectl(place, first)
        second = issue(bob, "tracer")
        redeem_here(alice, tmp_path, second)
        seen_in_the_audit(alice)
        for code in (first, second):
            assert code not in alice.text() + bob.text() + (place / "engine.log").read_text()
    for name in ("probe", "tracer"):
        kubectl(place, "alice", "delete", "pod", name, "-n", "payments", "--now")


def find_and_explain(alice: Terminal) -> None:
    alice.until("Deployment/web")
    alice.press("/", *"run-as-nonroot Deployment/web", "enter")
    alice.until(r"Violations \(1 of")
    alice.press("e")
    alice.until("autogen-non-root")
    alice.until("runAsNonRoot")


def ask(alice: Terminal, *, in_pages: bool) -> None:
    turn = ["ctrl+j"] if in_pages else []
    alice.press("r")
    alice.until("1 of bob")
    alice.press(*turn)
    alice.until("flips 1")
    alice.press(*turn, *"an image with a user is built tonight")
    alice.until(r"37 of at least 10")
    alice.press(*turn)
    alice.until("accepted")
    alice.press("ctrl+j")
    alice.until("requested: web-run-as-nonroot")
    told(alice, "g")
    alice.until(r"pending +(?:\S+ )?\S+ +payments +run-as-nonroot\S* +Deployment/web")


def approve(bob: Terminal) -> None:
    told(bob, "in")
    bob.press("/", *"Deployment/web", "enter")
    bob.until(r"Inbox \(1(?: of \d+)?, yours to decide, Deployment")
    bob.press("ctrl+a")
    bob.until("takes effect")
    bob.press(*"until tonight", "enter", "enter")
    bob.until("approved payments/web")
    bob.press("escape")


def count_down_and_end(place: Path, alice: Terminal) -> None:
    alice.press("/", *"Deployment/web", "enter")
    before = alice.until(r"active +(?:\S+ )?(00:5[89]:\d\d) +payments")[1]
    alice.gone(before)
    told(alice, "v")
    alice.until(r"Violations \(0 of")
    sandbox(place, "clock", "1h1m")
    alice.until(r"fail +payments +Deployment/web +run-as-nonroot")
    told(alice, "g")
    alice.until(r"expired +payments +run-as-nonroot\S* +Deployment/web")
    alice.press("escape")


def issue(bob: Terminal, name: str) -> str:
    """Issue a code as bob, and write it down as people do."""
    told(bob, "o", "n")
    bob.until("good for")
    bob.press(
        *"alice",
        "enter",
        *f"no-host-namespaces/host-pid:Pod/{name}",
        "enter",
        *"payments",
        "enter",
        *"probe the node",
        "enter",
    )
    bob.until("probe the node")
    bob.press("enter")
    bob.until("masked; space shows it")
    assert not re.search(CODE, bob.text())
    bob.press("space")
    code = bob.until(CODE)[0]
    bob.gone(CODE)
    bob.press("escape")
    bob.until("code noted")
    bob.press("y")
    bob.until("the code was noted")
    return code


def redeem_with_kubectl(place: Path, code: str) -> None:
    denied = kubectl(
        place,
        "alice",
        "apply",
        "-f",
        "-",
        given=POD.replace("NAME", "probe").replace("{NOTE}", "{}"),
    )
    assert denied.returncode == 1
    assert "no-host-namespaces" in denied.stderr
    noted = POD.replace("NAME", "probe").replace("NOTE", f"kpolicy.io/code: {code}")
    done = kubectl(place, "alice", "apply", "-f", "-", given=noted)
    assert "pod/probe created" in done.stdout, done.stderr
    kubectl(place, "alice", "delete", "pod", "probe", "-n", "payments", "--now")
    again = kubectl(place, "alice", "apply", "-f", "-", given=noted)
    assert "the code is not accepted" in again.stderr


def redeem_here(alice: Terminal, tmp_path: Path, code: str) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(POD.replace("NAME", "tracer").replace("{NOTE}", "{}"))
    told(alice, "o", "u")
    alice.until("Apply an object that was denied")
    alice.press(*str(file), "enter")
    alice.press(*code)
    alice.until("•{24}")
    alice.press("enter", "enter")
    alice.until("Pod/tracer passed with the code")
    alice.press("~")
    alice.until(r"kubectl kpolicy otp redeem -f")
    alice.press("escape")


def seen_in_the_audit(alice: Terminal) -> None:
    told(alice, "a", "/", *"actor=alice verb=use tracer", "enter")
    alice.until(r"alice +use +Pod/payments/tracer +. ok")
    alice.press("escape", "V")
    alice.until(r"\d+ records in \d+ segments?: whole")
    alice.press("escape")
