"""Scenarios as files: commands that a person would type, and what must come back. The same files for every server.

A step has `says` and one of `run`, `forward`, `write`, `cron`. With `run` come `as` (a user name) and `groups`; `prints` (all of standard
output), `fails` (all of standard error, and a code that is not 0), `exit` (which code), `has` and `hasnt` (parts of either); `within`
seconds for what becomes true by and by; `stays` seconds for what must not change. ` | ` in `run` hands what one command prints to the
next; who asks is said to the first, and the last code that is not 0 counts. `cron` compares a cron line with an instant and hours;
`into` names a file that takes standard output; `keys` makes key pairs `NAME.key` and remembers the public halves.
A scenario with `tier: node` is played where Pods run, and nowhere else. One with `engine: false` is played without one, on a server that has the kinds of the groups in `kinds` and nothing else.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from cryptography.hazmat.primitives.asymmetric import ec

from controllers.manifests import SAMPLES

from . import texts
from .server.keys import private_pem, public_pem

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(__file__).parent / "scenarios"
ROOT = Path(__file__).parents[2]
_KEYS = {
    "says", "run", "forward", "write", "as", "groups", "prints", "fails", "exit", "has", "hasnt", "within", "stays", "stdin", "only", "cron", "into", "keys",
}  # fmt: skip


class ScenarioError(AssertionError):
    """A step did not do what it must; the text says which, what was run, and what came back."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One file: where its samples are, how the cluster is prepared, and its steps."""

    name: str
    title: str
    samples: str
    steps: tuple[dict[str, Any], ...]
    unfiltered: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
    takes_rights: bool = False
    has_sigstore: bool = False
    has_engine: bool = True
    kinds: tuple[str, ...] = ()
    tier: str = ""


def names() -> list[str]:
    """Return the names of all scenarios that any server can play."""
    return [
        name for name in sorted(path.stem for path in FOLDER.glob("*.yaml")) if not load(name).tier
    ]


def load(name: str) -> Scenario:
    """Read a scenario; raises ScenarioError for steps with words that mean nothing."""
    raw = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    for step in raw["steps"]:
        if unknown := set(step) - _KEYS:
            raise ScenarioError(f"{name}: `{step.get('says')}` has unknown words {sorted(unknown)}")
    return Scenario(
        name=name,
        title=raw["scenario"],
        samples=raw.get("samples", ""),
        steps=tuple(raw["steps"]),
        unfiltered=tuple(raw.get("unfiltered", ())),
        settings=dict(raw.get("settings", {})),
        takes_rights=bool(raw.get("takes_rights", False)),
        has_sigstore=bool(raw.get("sigstore", False)),
        has_engine=bool(raw.get("engine", True)),
        kinds=tuple(raw.get("kinds", ())),
        tier=str(raw.get("tier", "")),
    )


@dataclass(slots=True)
class Runner:
    """Runs one scenario against one cluster. `forward` moves the cluster's clock by a duration."""

    tier: str
    kubeconfig: Path
    folder: Path
    forward: Callable[[str], None]
    say: Callable[[str], None] = print
    known: dict[str, str] = field(default_factory=dict)

    def run(self, scenario: Scenario) -> None:
        """Run every step in order; raises ScenarioError at the first that is not as it must be."""
        work = self.folder / "work"
        work.mkdir(exist_ok=True)
        if scenario.samples:
            shutil.copytree(SAMPLES / scenario.samples, work, dirs_exist_ok=True)
        for number, step in enumerate(scenario.steps, 1):
            if step.get("only", self.tier) != self.tier:
                continue
            began = time.monotonic()
            self._step(step, work, f"{scenario.name} ({self.tier}), step {number}: {step['says']}")
            self.say(f"{time.monotonic() - began:6.1f} s  {step['says']}")

    def _step(self, step: dict[str, Any], work: Path, place: str) -> None:
        if "forward" in step:
            self.forward(str(step["forward"]))
        if "write" in step:
            self._write(work, step["write"])
        for name in step.get("keys", ()):
            self.known[name] = self._key(work / f"{name}.key")
        if "cron" in step:
            self._cron(step["cron"], place)
        if "run" in step:
            self._expect(step, work, place)

    def _write(self, work: Path, wanted: dict[str, Any]) -> None:
        """Write a file as another with texts replaced, or as given."""
        if "from" in wanted:
            text = (work / wanted["from"]).read_text()
        else:
            text = texts.filled(wanted["text"], self.known)
        for named, after in wanted.get("replace", {}).items():
            before = texts.filled(named, self.known)
            if before not in text:
                raise ScenarioError(f"`{before}` is not in {wanted['from']}")
            text = text.replace(before, texts.filled(str(after), self.known))
        (work / wanted["to"]).write_text(text)

    def _key(self, path: Path) -> str:
        """Write a private key; return the public one as it stands between quotes in YAML."""
        key = ec.generate_private_key(ec.SECP256R1())
        path.write_bytes(private_pem(key))
        return public_pem(key).decode().replace("\n", "\\n")

    def _cron(self, wanted: dict[str, Any], place: str) -> None:
        """Compare a cron line with an instant, which may lie just before a minute's end."""
        line = texts.filled(wanted["line"], self.known)
        of = datetime.fromisoformat(texts.filled(wanted["of"], self.known))
        due = [of + timedelta(hours=wanted["after_hours"], seconds=late) for late in (0, 5)]
        lines = {f"{at:%-M %-H %-d %-m} {at.isoweekday() % 7}" for at in due}
        if line not in lines:
            raise ScenarioError(f"{place}: the line is `{line}`, not one of {sorted(lines)}")

    def _expect(self, step: dict[str, Any], work: Path, place: str) -> None:
        end = time.monotonic() + float(step.get("within", 0))
        while True:
            reason = self._attempt(step, work)
            if not reason:
                break
            if time.monotonic() >= end:
                raise ScenarioError(f"{place}\n{reason}")
            time.sleep(0.25)
        calm = time.monotonic() + float(step.get("stays", 0))
        while time.monotonic() < calm:
            time.sleep(0.5)
            if reason := self._attempt(step, work):
                raise ScenarioError(f"{place}: it did not stay so\n{reason}")

    def _attempt(self, step: dict[str, Any], work: Path) -> str:
        """Run the command once; return why it is not as it must be, or nothing."""
        commands = self._commands(step)
        done = self._piped(commands, texts.filled(step.get("stdin", ""), self.known), work)
        if "into" in step:
            (work / step["into"]).write_text(done.stdout)
        wrong = self._compare(step, done)
        if not wrong:
            return ""
        line = " | ".join(map(shlex.join, commands))
        return f"{wrong}\n$ {line}\n{done.stdout}{done.stderr}(exit {done.returncode})"

    def _piped(self, commands: list[list[str]], given: str, work: Path) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Run commands, each on what the one before printed; return how the whole ended and what was said on the way."""
        environment = {
            **os.environ,
            "KUBECONFIG": str(self.kubeconfig),
            "PYTHONPATH": str(ROOT),
            "NO_COLOR": "1",
        }
        code, said = 0, ""
        for command in commands:
            done = subprocess.run(
                command, cwd=work, env=environment, input=given, capture_output=True, text=True, check=False, timeout=120
            )  # fmt: skip
            code, said, given = done.returncode or code, said + done.stderr, done.stdout
        return subprocess.CompletedProcess(commands[-1], code, given, said)

    def _commands(self, step: dict[str, Any]) -> list[list[str]]:
        words = shlex.split(texts.filled(step["run"], self.known))
        found: list[list[str]] = [[]]
        for word in words:
            if word == "|":
                found.append([])
            else:
                found[-1].append(word)
        found[0] += [f"--as={step['as']}"] if "as" in step else []
        found[0] += [f"--as-group={group}" for group in step.get("groups", ())]
        return [_ours(command) for command in found]

    def _compare(self, step: dict[str, Any], done: subprocess.CompletedProcess[str]) -> str:
        must_fail = "fails" in step
        if done.returncode != step.get("exit", done.returncode):
            return f"it must end with {step['exit']}"
        if bool(done.returncode) != must_fail and "exit" not in step:
            return "it must fail" if must_fail else "it must not fail"
        both = done.stdout + done.stderr
        checks: list[tuple[str, Any, Callable[..., dict[str, str] | None]]] = []
        if must_fail and step["fails"] is not True:
            checks.append((step["fails"], done.stderr, texts.whole))
        if "prints" in step:
            checks.append((step["prints"], done.stdout, texts.whole))
        checks += [(one, both, texts.part) for one in _list(step.get("has"))]
        known = dict(self.known)
        for pattern, text, compare in checks:
            more = compare(pattern, text, known)
            if more is None:
                return f"this must come back:\n{pattern}\nand this came:"
            known = more
        for pattern in _list(step.get("hasnt")):
            if texts.part(pattern, both, known) is not None:
                return f"this must not come back:\n{pattern}\nand this came:"
        self.known = known
        return ""


def _ours(words: list[str]) -> list[str]:
    """Return a command as it is run here: the plugin from this tree, and Python as the one that runs this."""
    if words[:2] == ["kubectl", "kpolicy"]:
        return [sys.executable, "-m", "kubectl_kpolicy", *words[2:]]
    return [sys.executable, *words[1:]] if words[0] == "python" else words


def _list(value: Any) -> list[str]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
