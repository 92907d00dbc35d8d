"""Lists what a release is made of, in CycloneDX's form, from the lock files: one list for the image, one for the archives."""

from __future__ import annotations

import json
import re
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from .wheel import ROOT, epoch, project, version

if TYPE_CHECKING:
    from pathlib import Path

LOCKS = {"image": ROOT / "requirements.lock", "console": ROOT / "requirements-console.lock"}
_PINNED = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def pinned(lock: Path) -> dict[str, tuple[str, list[str]]]:
    """Return the packages of a lock file: name to version and hashes."""
    text = lock.read_text()
    starts = [*_PINNED.finditer(text)]
    ends = [*(found.start() for found in starts[1:]), len(text)]
    return {
        found["name"]: (found["version"], _HASH.findall(text, found.end(), end))
        for found, end in zip(starts, ends, strict=True)
    }


def lists(out: Path) -> list[Path]:
    """Write one list for each lock file into a folder and return their paths."""
    return [_written(out, name, lock) for name, lock in LOCKS.items()]


def _written(out: Path, name: str, lock: Path) -> Path:
    path = out / f"kpolicy-v{version()}-{name}.cdx.json"
    path.write_text(json.dumps(_document(lock), indent=2) + "\n")
    return path


def _document(lock: Path) -> dict[str, Any]:
    own = _component("kubectl-kpolicy", version())
    found = [_component(name, number) for name, (number, _) in pinned(lock).items()]
    seed = f"{own['purl']} {' '.join(one['purl'] for one in found)}"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, seed)}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {**own, "type": "application", "licenses": [{"license": {"id": project()["license"]}}]},
        },
        "components": found,
    }  # fmt: skip


def _component(name: str, number: str) -> dict[str, Any]:
    purl = f"pkg:pypi/{name.lower().replace('_', '-')}@{number}"
    return {"type": "library", "name": name, "version": number, "purl": purl, "bom-ref": purl}
