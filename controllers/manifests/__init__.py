"""Manifests that ship with kpolicy: data only, found by name.

`samples/` holds the scenarios that the demo, the documentation and the end-to-end tests run.
"""

from __future__ import annotations

from pathlib import Path

SAMPLES = Path(__file__).parent / "samples"


def sample(name: str) -> Path:
    """Return the path of a sample such as `jobs/1-ttl.yaml`; raises FileNotFoundError when there is none."""
    path = SAMPLES / name
    if not path.exists():
        raise FileNotFoundError(path)
    return path
