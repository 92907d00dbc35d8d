"""Start-up: what a command imports, seen from inside the process; exact where a timer is not."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from .source import ROOT

if TYPE_CHECKING:
    from pathlib import Path

HEAVY = (
    "textual",
    "kubernetes",
    "aiohttp",
    "sigstore",
    "cryptography",
    "rich",
    "jsonschema",
    "pydantic",
    "requests",
    "asyncio",
)
NEEDLESS = (
    "engine",
    "yaml",
    "orjson",
    "jmespath",
    "re2",
    "dataclasses",
    "importlib.metadata",
    "logging",
    "json",
    "inspect",
)
UNUSED_BY_A_PATTERN = (
    "importlib.metadata",
    "difflib",
    "fractions",
    "inspect",
    "jmespath",
    "json",
    "pathlib",
    "weakref",
    "croniter",
    "engine.generate",
    "engine.lang.cel",
    "engine.lang.semver",
    "engine.manifests",
    "engine.mutate",
    "engine.podsecurity",
)
PROBE = """
import io, sys, contextlib
from kubectl_kpolicy.{module} import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    main({words!r})
print(*sys.modules)
"""
POLICY = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: labels}
spec:
  rules:
  - name: team
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: a team is needed, pattern: {metadata: {labels: {team: "?*"}}}}
"""


def loaded(words: list[str], module: str = "entry") -> set[str]:
    """Return the modules that a command line has loaded when it ends, beyond those of a bare interpreter."""
    code = PROBE.format(module=module, words=words)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "words", [["version"], ["--help"], ["completion", "bash"], ["apply", "--help"]], ids=" ".join
)
def test_small_commands_load_nothing_heavy(words: list[str]) -> None:
    assert loaded(words) & {*HEAVY, *NEEDLESS} == set()


def test_help_loads_no_command() -> None:
    commands = {name for name in loaded(["--help"]) if name.startswith("kubectl_kpolicy.cli.")}

    assert commands == set()


@pytest.mark.parametrize(
    "words", [["ver"], ["create", "exception", "--"], ["apply", "--"]], ids=" ".join
)
def test_completion_loads_nothing_heavy(words: list[str]) -> None:
    assert loaded(words, "complete") & set(HEAVY) == set()


@pytest.mark.skipif(
    not (ROOT / "kubectl_kpolicy/cli/apply.py").exists(), reason="there is no `apply` yet"
)
def test_apply_on_one_file_loads_nothing_heavy(tmp_path: Path) -> None:
    policy, pod = tmp_path / "policy.yaml", tmp_path / "pod.yaml"
    policy.write_text(POLICY)
    pod.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: x, labels: {team: a}}\n")

    found = loaded(["apply", str(policy), "-r", str(pod)])

    assert found & {*HEAVY, *UNUSED_BY_A_PATTERN} == set()


def test_commands_of_the_cluster_do_not_load_the_languages_that_policies_are_written_in() -> None:
    found = loaded(["violations", "-A", "--server", "http://127.0.0.1:9"])

    assert "kubectl_kpolicy.cluster.exceptions" in found
    assert found & {"textual", "engine.lang.cel", "engine.lang.jmes", "engine.evaluate"} == set()


def test_the_console_is_there_without_the_languages_that_policies_are_written_in() -> None:
    code = "import sys, kubectl_kpolicy.tui.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)  # fmt: skip

    assert set(done.stdout.split()) & {"engine.lang.cel", "engine.evaluate"} == set()
