"""The GitHub Action and the hooks of pre-commit, run by what they name as their entry points."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from unittest import mock

import pytest

from engine.lang import yaml

ROOT = Path(__file__).parents[3]
HOOKS = {hook["id"]: hook for hook in yaml.load((ROOT / ".pre-commit-hooks.yaml").read_text())}
ACTION = yaml.load((ROOT / "action.yml").read_text())
POLICY = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: team}
spec:
  rules:
  - name: has-team
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate:
      failureAction: Enforce
      mesage: The label team says who is asked.
      pattern: {metadata: {labels: {team: "?*"}}}
"""
OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\n"
TEST = """\
apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: team}
policies: [policy.yaml]
resources: [object.yaml]
results:
- {policy: team, rule: has-team, kind: ConfigMap, resources: [settings], result: fail}
"""


@pytest.fixture
def repository(tmp_path, monkeypatch):
    for name, text in {
        "policy.yaml": POLICY,
        "object.yaml": OBJECT,
        "kyverno-test.yaml": TEST,
    }.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def hook(name: str, *files: str) -> int:
    """Run a hook on files as pre-commit does, through the script that its installation brings; return its exit code."""
    program, *words = shlex.split(HOOKS[name]["entry"])
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts[program].partition(":")
    given = files if HOOKS[name].get("pass_filenames", True) else ()
    with mock.patch("sys.argv", [program, *words, *given]), pytest.raises(SystemExit) as ended:
        getattr(importlib.import_module(module), function)()
    return int(ended.value.code or 0)


def test_the_hooks_find_mend_and_test(repository, capsys):
    assert hook("kpolicy-lint", "policy.yaml", "object.yaml") == 1
    assert "policy.yaml:10" in capsys.readouterr().out
    assert hook("kpolicy-test") == 1
    assert hook("kpolicy-fix", "policy.yaml", "object.yaml") == 0
    assert "      message: The label" in (repository / "policy.yaml").read_text()
    assert hook("kpolicy-lint", "policy.yaml", "object.yaml") == 0
    assert hook("kpolicy-test") == 0


def test_a_commit_without_any_policy_is_let_through(repository):
    assert hook("kpolicy-lint", "object.yaml", "kyverno-test.yaml") == 0


def act(folder: Path, **inputs: str) -> tuple[int, str]:
    """Run the last step of the action as a runner does, with the plugin of this tree; return exit code and output."""
    step = ACTION["runs"]["steps"][-1]
    given = {name: one["default"] for name, one in ACTION["inputs"].items()} | inputs
    values = {f"inputs.{name}": text for name, text in given.items()}
    environment = {
        name: re.sub(r"\$\{\{ (.*?) \}\}", lambda found: values.get(found[1], ""), text)
        for name, text in step["env"].items()
    }
    environment["PYTHON"] = sys.executable
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env={**os.environ, **environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout


def test_the_action_marks_lines_and_ends_as_the_command_does(repository):
    code, said = act(repository, paths="policy.yaml\nobject.yaml")
    assert code == 1
    assert said.startswith("::error file=policy.yaml,line=10,")
    (repository / "policy.yaml").write_text(POLICY.replace("mesage", "message"))
    code, said = act(
        repository, command="apply", paths="policy.yaml", flags="--resource\nobject.yaml"
    )
    assert code == 1
    assert "::error file=object.yaml,line=1,title=team/has-team::" in said
    assert act(repository, command="test")[0] == 0


def test_an_input_is_a_word_and_never_a_command(repository):
    code, _ = act(repository, paths="$(touch made); `touch made`")
    assert code == 1
    assert not (repository / "made").exists()
    code, said = act(repository, command="lint; touch made")
    assert (code, (repository / "made").exists()) == (2, False)
    assert "must be lint, test, apply or check" in said
    texts = [step["run"] for step in ACTION["runs"]["steps"]]
    assert not [text for text in texts if "${{" in text]


def test_the_action_installs_what_is_locked():
    run = ACTION["runs"]["steps"][0]["run"]
    assert "--require-hashes" in run
    assert (ROOT / re.search(r'\$PLACE/([\w.]+)"', run)[1]).exists()
