"""Layers: the contracts hold, and each of them notices a breach."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .source import PACKAGES, ROOT

SANDBOX = ROOT / "controllers" / "sandbox"
LINTER = str(Path(sys.executable).parent / "lint-imports")
BREACHES = {
    "engine/errors.py": "from engine.model import Policy",
    "engine/model/json.py": "import os",
    "engine/lang/chance.py": "import kubectl_kpolicy",
    "controllers/lookups/__init__.py": "import kpolicy_sandbox.clock",
    "kubectl_kpolicy/cli/version.py": "import textual",
    "controllers/kube/errors.py": "import controllers.lookups.errors",
    "controllers/lookups/errors.py": "import kubernetes",
    "controllers/runtime/queues.py": "import aiohttp",
}
NOTICED = (
    "people's tools stand on the cluster parts",
    "the sandbox is another distribution",
    "the engine's rooms",
    "the engine does no I/O",
    "only the console knows textual",
    "the cluster parts' rooms",
    "only the client knows the kubernetes package",
    "only what speaks or serves knows HTTP",
)


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LINTER, "--no-cache"], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("folder", [ROOT, SANDBOX], ids=["kpolicy", "sandbox"])
def test_every_contract_holds(folder: Path) -> None:
    done = lint(folder)

    assert done.returncode == 0, done.stdout


def test_an_import_of_ours_in_the_sandbox_is_noticed(tmp_path: Path) -> None:
    shutil.copytree(SANDBOX, tmp_path / "sandbox", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "sandbox" / "kpolicy_sandbox" / "errors.py").open("a") as file:
        file.write("\nimport engine.errors\n")

    assert "the sandbox stands alone BROKEN" in lint(tmp_path / "sandbox").stdout


def test_planted_breaches_are_each_noticed(tmp_path: Path) -> None:
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name, line in BREACHES.items():
        with (tmp_path / name).open("a") as file:
            file.write(f"\n{line}\n")

    printed = lint(tmp_path).stdout

    broken = [line for line in printed.splitlines() if "BROKEN" in line]
    assert all(any(line.startswith(text) for line in broken) for text in NOTICED), printed
