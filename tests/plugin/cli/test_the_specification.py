"""`spec -o json` against the parsers themselves: nothing in one that is not in the other; and every exit code, provoked."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kubectl_kpolicy import cli, entry
from kubectl_kpolicy.output.diagnostics import ExitCode
from tests.plugin.grants.staging import Stage, play

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
ADMIN: Any = {"groups": ("system:masters",)}


@pytest.fixture(scope="module")
def spec() -> dict[str, Any]:
    from kubectl_kpolicy.cli.spec import specification

    return json.loads(json.dumps(specification()))


def parsers(parser: argparse.ArgumentParser, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:  # fmt: skip
    yield place, parser
    for action in parser._actions:
        if isinstance(action.choices, dict):
            for name, below in action.choices.items():
                yield from parsers(below, (*place, name))


def described(spec: dict[str, Any], place: tuple[str, ...]) -> dict[str, Any]:
    found = spec["commands"][place[0]]
    for name in place[1:]:
        found = found["verbs"][name]
    return found


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_flag_and_word_of_a_parser_is_in_the_specification_and_nothing_else(spec, command: str):  # fmt: skip
    for place, parser in parsers(cli.parser_of(command)[0], (command,)):
        told = described(spec, place)
        actions = parser._actions
        flags = {text for one in actions for text in one.option_strings if one.help != argparse.SUPPRESS}  # fmt: skip
        shown = {*told["flags"], *(alias for flag in told["flags"].values() for alias in flag.get("aliases", ())), *(flag["short"] for flag in told["flags"].values() if "short" in flag)}  # fmt: skip
        assert shown == flags, place
        words = [one for one in actions if not one.option_strings and not isinstance(one.choices, dict)]  # fmt: skip
        assert [one["name"] for one in told.get("arguments", [])] == [str(one.metavar or one.dest) for one in words]  # fmt: skip
        assert all(flag["help"] for flag in told["flags"].values()), place


def test_every_command_and_verb_says_what_it_is_and_shows_an_example(spec):
    for name, told in spec["commands"].items():
        assert told["help"], name
        assert "example" in told or name == "completion", name
        assert all(verb["help"] for verb in told.get("verbs", {}).values()), name


@pytest.mark.parametrize("command", [name for name in cli.COMMANDS if name != "version"])
def test_every_command_has_the_flags_of_every_command(spec, command: str):
    told = spec["commands"][command]
    for one in (told, *told.get("verbs", {}).values()) if "verbs" not in told else (told,):
        assert {"--color", "--quiet", "--verbose", "--non-interactive", "--help"} <= set(one["flags"])  # fmt: skip


KUBECTL = {"--namespace", "--all-namespaces", "--context", "--cluster", "--user", "--kubeconfig", "--as", "--as-group", "--as-uid", "--token",
           "--server", "--certificate-authority", "--client-certificate", "--client-key", "--tls-server-name", "--insecure-skip-tls-verify", "--request-timeout"}  # fmt: skip
LISTS = {"--output", "--no-headers", "--show-labels", "--selector", "--field-selector", "--sort-by", "--where", "--limit", "--chunk-size", "--watch",
         "--watch-only", "--output-watch-events"}  # fmt: skip


@pytest.mark.parametrize("command", ["violations", "policies", "exceptions", "grant", "otp", "cleanup", "audit", "check", "explain", "status", "report", "whoami", "doctor", "break-glass"])  # fmt: skip
def test_commands_of_clusters_have_kubectl_s_own_flags(spec, command: str):
    told = spec["commands"][command]
    for name, one in told.get("verbs", {"": told}).items():
        assert set(one["flags"]) >= KUBECTL, (command, name)


@pytest.mark.parametrize(("command", "verb"), [("violations", "list"), ("policies", "list"), ("exceptions", "list"), ("exceptions", "audit"), ("grant", "list"), ("otp", "list"), ("cleanup", "list"), ("audit", "log")])  # fmt: skip
def test_lists_have_the_flags_of_lists(spec, command: str, verb: str):
    assert set(spec["commands"][command]["verbs"][verb]["flags"]) >= LISTS


def run(*words: str) -> int:
    return entry.main(list(words))


def test_done_is_0_and_usage_is_2_and_a_verdict_is_1(tmp_path: Path, capsys):
    file = tmp_path / "policy.yaml"
    file.write_text("apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec: {rules: [{name: r, match: {any: [{resources: {kinds: [ConfigMap]}}]}, validate: {message: m, pattern: {data: {a: b}}}}]}\n")  # fmt: skip
    obj = tmp_path / "obj.yaml"
    obj.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: c}\n")
    assert run("version") == ExitCode.DONE == 0
    assert run("check", "-f", str(obj), "--policies", str(file)) == ExitCode.FAILED == 1
    assert run("violations", "--nosuch") == run("nosuch") == ExitCode.USAGE == 2


def test_a_cluster_that_is_away_or_does_not_know_us_is_3(tmp_path: Path, capsys, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    assert run("violations", "--server", "http://127.0.0.1:9") == ExitCode.UNREACHABLE == 3

    async def act(stage: Stage) -> None:
        said = await stage.run("root", "violations", "--token", "wrong", "--kubeconfig", str(anonymous(stage, tmp_path)))  # fmt: skip
        assert said.code == ExitCode.UNREACHABLE, said.err

    play(tmp_path, capsys, monkeypatch, act)


def anonymous(stage: Stage, folder: Path) -> Path:
    from controllers.kube.kubeconfig import read_kubeconfig

    known = read_kubeconfig([stage.sandbox.kubeconfig])
    (server,) = known.clusters.values()
    file = folder / "anonymous"
    file.write_text(json.dumps({"current-context": "x", "clusters": [{"name": "x", "cluster": dict(server.value)}], "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}], "users": [{"name": "x", "user": {"token": "wrong"}}]}))  # fmt: skip
    return file


def test_rights_are_4_grant_policies_5_what_is_gone_6_and_conflicts_7(tmp_path: Path, capsys, monkeypatch):  # fmt: skip
    async def act(stage: Stage) -> None:
        await stage.grant_policy()
        ask = ("grant", "p/r", "Pod/web", "--reason", "it is needed today")
        assert (await stage.run("nobody", "violations")).code == ExitCode.FORBIDDEN == 4
        refused = await stage.run("root", *ask, "--for", "9h", **ADMIN)
        assert refused.code == ExitCode.REFUSED == 5
        assert refused.err == "refused: duration 9h exceeds maximum 4h of grantpolicy/default; try --for 4h\n"  # fmt: skip
        gone = await stage.run("root", "grant", "approve", "absent", "--comment", "x", **ADMIN)
        assert gone.code == ExitCode.GONE == 6
        made = (await stage.run("root", *ask, "-o", "name", **ADMIN)).out.strip()
        early = await stage.run("root", "grant", "drop", made, "--reason", "x", **ADMIN)
        assert early.code == ExitCode.CONFLICT == 7, early.err
        waited = await stage.run("root", *ask, "--wait", "--timeout", "1s", **ADMIN)
        assert waited.code == ExitCode.TIMEOUT == 124

    play(tmp_path, capsys, monkeypatch, act)


def test_an_interrupt_is_130(tmp_path: Path, capsys, monkeypatch):
    async def act(stage: Stage) -> None:
        import asyncio

        watching = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "kubectl_kpolicy", "policies", "-w", "--kubeconfig", str(stage.sandbox.kubeconfig),
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            # a shell that puts us in the background lets us ignore interrupts, and what we start with us
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        try:
            policy = {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "p"}, "spec": {"rules": []}}  # fmt: skip
            await stage.create("kyverno.io/v1", "clusterpolicies", policy)
            assert watching.stdout is not None
            assert await asyncio.wait_for(watching.stdout.readline(), 30)
            watching.send_signal(signal.SIGINT)
            _, said = await asyncio.wait_for(watching.communicate(), 30)
            assert (watching.returncode, b"Traceback" in said) == (ExitCode.INTERRUPTED, False)
            assert ExitCode.INTERRUPTED == 130
        finally:
            if watching.returncode is None:
                watching.kill()
                await watching.wait()

    play(tmp_path, capsys, monkeypatch, act)
