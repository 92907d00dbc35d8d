"""The sandbox that the console of the guided run opens on: every screen has something to show, and all of it really happened."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from controllers.kube.access import connect, load_access
from controllers.kube.clock import ServerClock
from kubectl_kpolicy.actions.screens import LISTINGS
from kubectl_kpolicy.cli.sandbox import process_of
from kubectl_kpolicy.cluster.fetching import fetch
from kubectl_kpolicy.cluster.resources import RESOURCES, TTL_OBJECTS
from tests.contracts.source import ROOT
from tests.demo import activity

if TYPE_CHECKING:
    from pathlib import Path

    from kubectl_kpolicy.output.rows import Row

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not here")


def sandbox(folder: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-m", "kubectl_kpolicy", "sandbox", *words, "--dir", str(folder)], cwd=ROOT, check=True, capture_output=True)  # fmt: skip


async def rows_as(folder: Path, name: str) -> dict[str, list[Row]]:
    clock = ServerClock()
    client = connect(load_access(str(activity.kubeconfig_of(folder, name))), clock=clock)
    try:
        world = await fetch(client, (*RESOURCES, TTL_OBJECTS), clock.now())
    finally:
        await client.close()
    return {noun: list(one.rows(world, clock.now())) for noun, one in LISTINGS.items()}


def test_every_screen_has_something_to_show_for_the_requester_and_the_approver(tmp_path):
    folder = tmp_path / "sandbox"
    sandbox(folder, "up", "--engine")
    try:
        activity.furnish(folder)
        for person in ("alice", "bob"):
            rows = asyncio.run(rows_as(folder, person))
            assert not [noun for noun, found in rows.items() if not found], person
            assert {"critical", "high", "medium", "low"} <= {
                one.text("severity") for one in rows["violations"]
            }
            assert len({one.text("namespace") for one in rows["violations"]}) >= 3
            assert Counter(one.text("state") for one in rows["grants"]) == {
                "active": 1,
                "pending": 1,
                "denied": 1,
            }
            assert Counter(one.text("state") for one in rows["codes"]) == {
                "issued": 1,
                "used": 1,
                "void": 1,
            }
            assert {"active", "unlimited"} <= {one.text("state") for one in rows["exceptions"]}
            assert {"paused", "postponed", "scheduled"} <= {
                one.text("state") for one in rows["cleanup"]
            }
    finally:
        sandbox(folder, "down")
    assert process_of(folder) is None
