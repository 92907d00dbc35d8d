"""Builds wheels and source archives of both distributions. The same tree gives the same bytes, wherever and whenever it is built."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SANDBOX = Path("controllers/sandbox")
"""Where in a tree the distribution of the sandbox lies."""
NO_HISTORY = 1_767_225_600
"""The instant that files carry where there is neither SOURCE_DATE_EPOCH nor a commit: the first of 2026."""


def project(tree: Path = ROOT) -> dict[str, Any]:
    """Return what pyproject.toml says about the distribution of a folder."""
    return tomllib.loads((tree / "pyproject.toml").read_text())["project"]


def version() -> str:
    """Return the version of what is built."""
    return str(project()["version"])


def epoch() -> int:
    """Return the instant that all files of a release carry: SOURCE_DATE_EPOCH, or that of the last commit."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    command = ["git", "log", "-1", "--format=%ct"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return NO_HISTORY
    return int(done.stdout.strip() or NO_HISTORY)


def built(out: Path, tree: Path = ROOT) -> Path:
    """Build the wheel of a distribution's folder into a folder and return its path."""
    return _made("wheel", out, tree)


def source(out: Path, tree: Path = ROOT) -> Path:
    """Build the source archive of a distribution's folder into a folder and return its path."""
    return _made("sdist", out, tree)


def _made(target: str, out: Path, tree: Path) -> Path:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)],
        cwd=tree,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch())},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    ending = "-py3-none-any.whl" if target == "wheel" else ".tar.gz"
    made = project(tree)
    return out / f"{made['name'].replace('-', '_')}-{made['version']}{ending}"
