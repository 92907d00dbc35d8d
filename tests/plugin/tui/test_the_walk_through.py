"""An incident from the first look to the sealed record, by the keys of two consoles on a sandbox with the engine beside it.

Nothing here knows how the console is made: programs on terminals, keys, and what stands on the screen. Hours pass because the
sandbox's clock is moved.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import pytest

from kubectl_kpolicy.cli.sandbox import process_of
from tests.contracts.source import ROOT
from tests.demo import activity, showing
from tests.demo.showing import command

from .terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    alice.gone(r"kubectl kpolicy otp redeem -f")


def seen_in_the_audit(alice: Terminal) -> None:
    told(alice, "a", "/", *"actor=alice verb=use tracer", "enter")
    alice.until(r"alice +use +Pod/payments/tracer +. ok")
    alice.press("escape", "V")
    alice.until(r"\d+ records in \d+ segments?: whole")
    alice.press("escape")


# What a screen or a command says where somebody decides by it: one console and one shell on terminals, one thing after the other.

RULE = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: no-root, annotations: {policies.kyverno.io/severity: medium}}
spec: {rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {message: m, pattern: {metadata: {labels: {a: "?*"}}}}}]}
"""
TEST = """\
apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: no-root}
policies: [policies/no-root.yaml]
resources: [pod.yaml]
results: [{policy: no-root, rule: r, kind: Pod, resources: [probe], result: fail}]
"""
GRANT = """\
apiVersion: kpolicy.io/v1alpha1
kind: Grant
metadata: {name: nothing, namespace: payments}
spec: {requester: alice, policy: run-as-nonroot, rules: [no-rule], duration: 30m, target: {kind: Pod, name: nobody}, reason: the image is built tonight}
"""
SIZE = (160, 50)
_MARKS = count(1)


@contextmanager
def shell(folder: Path, at: Path) -> Iterator[Terminal]:
    """A shell on a terminal in a folder of files, set up as the guided run tells people to."""
    (at / "policies").mkdir()
    (at / "policies" / "no-root.yaml").write_text(RULE)
    (at / "policies" / "artifacthub-pkg.yml").write_text("version: 1\n")
    (at / "kyverno-test.yaml").write_text(TEST)
    (at / "pod.yaml").write_text(POD.replace("NAME", "probe").replace("{NOTE}", "{}"))
    (at / "grant.yaml").write_text(GRANT)
    (at / "urgent.yaml").write_text(GRANT.replace("duration", "emergency: true, duration"))
    environment = {**os.environ, "XDG_STATE_HOME": str(at), "XDG_CONFIG_HOME": str(at), "PS1": ""}
    with Terminal(["bash", "--norc", "--noprofile"], environment, SIZE) as terminal:
        terminal.press(f". {showing.environment(folder)}; cd {at}", "enter")
        yield terminal


def typed(terminal: Terminal, line: str, code: int = 0, whose: str = "") -> str:
    """Type a line, wait for its exit code, and return what stands on the screen."""
    as_whom = f"KUBECONFIG=$KUBECONFIG-{whose} " if whose else ""
    mark = f"@{next(_MARKS)}@"
    terminal.press(f"clear; {as_whom}{line}; echo {mark} $?", "enter")
    found = terminal.until(rf"{mark} (\d+)")
    assert int(found[1]) == code, terminal.text()
    return terminal.text()


def test_what_somebody_decides_by_is_true_on_the_console(place: Path) -> None:
    with console(place, "alice", "--ascii", size=SIZE) as alice:
        assert alice.text().isascii()
        alice.until("Deployment/web")
        for name in ("deploy/web", "payments/Deployment/web"):
            alice.press(":", *f"explain {name}", "enter")
            alice.until("Explain payments/Deployment/web")
            alice.until("autogen-non-root")
        alice.press(":", *"explain deploy/nothing", "enter")
        alice.until("there is no deployments.apps `nothing`")
        alice.press(":", "v", "enter")
        alice.until(r"- Violations \(")
        alice.press("/", *"-l app=web", "enter")
        alice.until(r"Violations \([1-9] of \d+, failures, -l app=web\)")
        alice.press("escape", "/", *"-f dplymntweb", "enter")
        alice.until(r"Violations \([1-9] of \d+, failures, -f dplymntweb\)")
        assert len(re.findall("Deployment/web", alice.text())) > 1
        alice.press("escape", "/", *"-f dq9x7", "enter")
        alice.until(r"Violations \(0 of")
        alice.press("escape", "/", *"run-as-nonroot", "enter")
        alice.until(r"Violations \([2-9] of")
        alice.press("g", "space", "space", "r")
        alice.until("what is marked differs in ")
        alice.press(":", *"in", "enter")
        alice.until(r"- Inbox \(")
        assert "Deployment/ledger" not in alice.text()


@pytest.mark.parametrize(
    ("flag", "why"), [("--as=nobody", "forbidden"), ("--server=https://127.0.0.1:9", "offline")]
)
def test_what_cannot_be_read_is_not_called_zero_on_the_console(
    place: Path, flag: str, why: str
) -> None:
    words = ("pulse", flag, f"--kubeconfig={place / 'kubeconfig'}")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(place / "nobody")}
    program = [sys.executable, "-m", "kubectl_kpolicy", "tui", *words]
    with Terminal(program, environment, SIZE) as nobody:
        nobody.until(r"\? failures")
        nobody.until(why)
        assert not re.search(r"\b0 (failures|critical|active)", nobody.text())


def test_what_commands_say_is_true_and_what_they_suggest_works(place: Path, tmp_path: Path) -> None:
    with shell(place, tmp_path) as one:
        listed = typed(one, "kubectl kpolicy status")
        suggested = re.search(r"critical +(\d+) +(kubectl kpolicy .+)", listed)
        assert suggested is not None
        rows = typed(one, f"{suggested[2].strip()} --no-headers | wc -l")
        assert re.search(rf"^ *{suggested[1]}$", rows, re.MULTILINE)
        assert "Deployment/" in typed(one, "kubectl kpolicy violations -A --where 'sev>=high'")
        assert "may not list" in typed(one, "kubectl kpolicy status --as=nobody", 4)
        assert "Pod/web" in typed(one, "kubectl kpolicy violations -A -l app=web --no-headers")
        assert "No resources found" in typed(
            one, "kubectl kpolicy grant list --to-approve -A", whose="alice"
        )
        assert "ledger" not in one.text()
        assert "grantpolicies.kpolicy.io" in typed(one, "kubectl kpolicy whoami", whose="alice")
        warned = typed(one, "kubectl create -f grant.yaml --dry-run=server", whose="alice")
        assert "has no rule `no-rule`" in warned
        urgent = typed(one, "kubectl create -f urgent.yaml --dry-run=server", 1, whose="alice")
        assert "denied the request" in urgent
        typed(
            one,
            """kubectl patch clusterpolicy no-latest-tag --type=merge -p '{"spec":{"background":false}}'""",
        )
        typed(
            one,
            "until kubectl kpolicy audit log | grep 'change.*no-latest-tag.*background'; do sleep 1; done",
        )
        typed(one, "kubectl create -f policies/no-root.yaml; kubectl delete clusterpolicy no-root")
        typed(one, "until kubectl kpolicy audit log | grep 'delete.*no-root'; do sleep 1; done")
        assert "managedFields" not in typed(one, "kubectl kpolicy audit log | tail -20")
        typed(
            one,
            "kubectl kpolicy audit export --format jsonl > records; kubectl kpolicy audit verify -f records",
        )
        one.press(
            "clear; timeout --foreground -s INT 5 kubectl kpolicy audit log -f --no-headers; echo @@ $?",
            "enter",
        )
        one.until(r"@@ \d+")
        seen = [
            int(found) for found in re.findall(r"^(\d+) +\d\d:\d\d:\d\d", one.text(), re.MULTILINE)
        ]
        assert seen == sorted(set(seen))
        assert len(seen) > 9


def test_commands_on_files_go_on_where_others_do_and_say_what_they_wrote(
    place: Path, tmp_path: Path
) -> None:
    with shell(place, tmp_path) as one:
        assert "left out" in typed(one, "kubectl kpolicy apply policies -r pod.yaml", 1)
        assert "fail: 1" in one.text()
        check = "kubectl kpolicy check -f pod.yaml --policies policies"
        assert "left out" in typed(one, check, 1)
        told_of = typed(one, "kubectl kpolicy apply policies/no-root.yaml -r pod.yaml -o csv", 1)
        assert "`-o csv` writes changed objects below `csv`" in told_of
        found = typed(one, f"{check} -o sarif | grep -A3 -e '\"uri\"' -e startLine -e '\"level\"'")
        assert "pod.yaml" in found
        assert "startLine" in found
        assert '"level": "warning"' in found
        junit = typed(one, f"{check} -o junit", 1)
        assert 'tests="1" failures="1"' in junit
        assert 'file="pod.yaml" line="1"' in junit
        flags = "--registry=false --table=true --audit-warn=false -v 4"
        assert "│ Fail" in typed(
            one, f"kubectl kpolicy apply policies/no-root.yaml -r pod.yaml {flags}", 1
        )
        rule = "kubectl kpolicy apply policies/no-root.yaml -r pod.yaml"
        assert "fail: 1" in typed(one, f"{rule} --crd-path policies", 1)
        assert "::warning file=pod.yaml,line=1" in typed(one, f"{rule} -o github", 1)
        for word, known in {
            "fix": "lint --fix",
            "migrate": "replace",
            "docs": "spec",
            "oci": "oras",
        }.items():
            assert known in typed(one, f"kubectl kpolicy {word} policies", 2)
        quiet = typed(one, "kubectl kpolicy test . -q --fail-only")
        assert "0 out of 1 tests failed" in quiet
        assert "probe" not in quiet
        latin = "LC_ALL=C PYTHONUTF8=0 PYTHONIOENCODING=iso-8859-1"
        assert "internal error" not in typed(one, f"{latin} kubectl kpolicy violations -A")
        assert "Deployment/web" in one.text()
        typed(one, "timeout --foreground -s TERM 6 kubectl kpolicy tui", 124)
        typed(one, "stty -a | grep -q ' echo '")


def wrapped(folder: Path, width: int) -> str:
    """Return what the guided run says on a terminal of a width, line by line."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder)}
    program = [sys.executable, "-m", "tests.demo", "--offline"]
    with Terminal(program, environment, (width, 400)) as one:
        one.until("on files of your own")
        return one.text().strip()


def test_the_guided_run_breaks_no_word_at_the_edge_of_a_small_terminal(tmp_path: Path) -> None:
    small, large = wrapped(tmp_path, 80), wrapped(tmp_path, 200)
    words = small.replace("\\\n", "\n").split()
    assert words == large.replace("\\\n", "\n").split()
    assert len(small.splitlines()) > len(large.splitlines())


def test_an_idle_console_takes_in_three_seconds_a_twelfth_of_what_opening_it_took(
    place: Path,
) -> None:
    """The faults were 4.5 % of a core and 88 %; opening it takes a second and more of one."""
    with console(place, "alice", size=SIZE) as alice:
        alice.until("Deployment/web")
        opening = alice.spent()
        idle: list[float] = []
        while not idle or (len(idle) < 5 and min(idle) > opening / 12):
            before = alice.spent()
            time.sleep(3.0)
            idle.append(alice.spent() - before)
        assert min(idle) <= opening / 12, (opening, idle)


def test_a_page_of_the_console_ends_with_its_server_and_fetches_nothing_from_elsewhere(
    place: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(place / "page")}
    program = showing.command(place, "alice", "--serve", f"127.0.0.1:{port}")
    with Terminal(program, environment, SIZE) as server:
        address = server.until(r"http://\S+")[0]
        asyncio.run(visited(address, server))


async def visited(address: str, server: Terminal) -> None:
    """Open the page as a browser does, wait for the console behind it, and end the server."""
    async with asyncio.timeout(60), aiohttp.ClientSession() as browser:
        while True:
            try:
                async with browser.get(address) as answer:
                    page = await answer.text()
                break
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0.05)
        assert not re.findall(r"(?:src|href)=\"?https?://(?!127\.0\.0\.1)", page)
        async with browser.ws_connect(f"{address}ws?width=120&height=40") as line:
            drawn = b""
            while b"Deployment/web" not in drawn:
                drawn += await line.receive_bytes()
            children = server.children()
            assert children
            server.end()
            while any(Path(f"/proc/{child}").exists() for child in children):
                await asyncio.sleep(0.05)


def test_what_pulse_knew_is_called_stale_once_the_server_is_away(place: Path) -> None:
    """The last walk: afterwards there is no server."""
    with console(place, "alice", "pulse", size=SIZE) as alice:
        alice.until(r"\d+ failures")
        sandbox(place, "down")
        alice.until(r"stale \d+s")
        alice.gone("watch ok")
