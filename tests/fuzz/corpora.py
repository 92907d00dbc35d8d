"""The seeds of a target: small inputs of our own, one a file, replayed in every test run."""

from __future__ import annotations

from functools import cache
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"


@cache
def seeds_of(name: str) -> tuple[bytes, ...]:
    """Return the seeds of a target, sorted by file name."""
    return tuple(path.read_bytes() for path in sorted((CORPUS / name).iterdir()))
