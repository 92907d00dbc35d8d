"""Layers: the contracts hold, and each of them notices a breach."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from .source import PACKAGES, ROOT

LINTER = str(Path(sys.executable).parent / "lint-imports")
BREACHES = {
    "engine/errors.py": "from engine.model import Policy",
    "engine/model/json.py": "import os",
    "engine/lang/chance.py": "import kubectl_kpolicy",
    "kubectl_kpolicy/cli/version.py": "import textual",
    "controllers/kube/errors.py": "import controllers.lookups.errors",
    "controllers/lookups/errors.py": "import kubernetes",
    "controllers/runtime/queues.py": "import aiohttp",
}
NOTICED = (
    "people's tools stand on the cluster parts",
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


def test_every_contract_holds() -> None:
    done = lint(ROOT)

    assert done.returncode == 0, done.stdout


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
