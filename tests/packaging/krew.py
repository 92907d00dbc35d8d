"""Writes krew's manifest: where the archives lie, what they hash to, and which of their files is the plugin."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from kubectl_kpolicy.output.structured import yaml_text

from .wheel import project, version

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

RELEASES = "https://github.com/kpolicy/kpolicy/releases/download"
SHORT = "Console and engine for Kyverno's classic policies"
LONG = """\
Keeps Kyverno's classic policies alive: evaluates, tests and lints them in files
and pipelines, and shows what a cluster says to them in a console: violations,
time-boxed exceptions with reason and approval, one-time codes, clean-ups, audit.
"""
CAVEATS = """\
Needs Python 3.11, 3.12 or 3.13 on the path. For completion put a link to the
second executable on the path, too:
  ln -s "$(dirname "$(realpath "$(command -v kubectl-kpolicy)")")"/kubectl_complete-kpolicy ~/.local/bin/
"""


def manifest(out: Path, archives: Mapping[str, Path]) -> Path:
    """Write the manifest of these archives, by platform, into a folder and return its path."""
    path = out / "kpolicy.yaml"
    value = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "kpolicy"},
        "spec": {
            "version": f"v{version()}",
            "homepage": project()["urls"]["Homepage"],
            "shortDescription": SHORT,
            "description": LONG,
            "caveats": CAVEATS,
            "platforms": [_platform(name, file) for name, file in archives.items()],
        },
    }
    path.write_text(yaml_text(value))
    return path


def _platform(name: str, file: Path) -> dict[str, object]:
    system, _, cpu = name.partition("-")
    return {
        "selector": {"matchLabels": {"os": system, "arch": cpu}},
        "uri": f"{RELEASES}/v{version()}/{file.name}",
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "bin": "kubectl-kpolicy",
    }
