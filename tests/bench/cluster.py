"""The real API server that benchmarks run on, with everything installed but the engine."""

from __future__ import annotations

import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.e2e import engine, tiers
from tests.e2e.report_store import stored
from tests.e2e.server import binaries

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from tests.e2e.tiers import Tier


def add_reports(parser: argparse.ArgumentParser, default: str) -> None:
    """Let the command line say where reports are kept."""
    parser.add_argument("--reports", choices=("crd", "store"), default=default)


@contextmanager
def cluster() -> Iterator[Tier]:
    """Run a cluster until the end of the block; the process ends where the programs of one cannot be had."""
    try:
        programs = binaries.ready()
    except binaries.ToolMissingError as reason:
        sys.exit(f"error: {reason}")
    with (
        tempfile.TemporaryDirectory(prefix="kpolicy-bench-") as folder,
        tiers.real_tier(Path(folder), programs) as tier,
    ):
        yield tier


@contextmanager
def installed(reports: str) -> Iterator[Tier]:
    """Run a cluster with everything installed; for `store`, with the report store beside it."""
    with cluster() as tier:
        if reports != "store":
            engine.install(tier)
            yield tier
            return
        with stored(tier):
            yield tier
