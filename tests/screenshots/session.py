"""Plays a working day on a sandbox with the engine beside it, and records what the console sees of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from controllers.kube import connect, load_access
from controllers.kube.clock import SystemClock
from kubectl_kpolicy.cluster.recording import Recorder
from kubectl_kpolicy.cluster.sources import LiveSource
from tests.demo import activity

CONTEXT = "prod-eu"
_SETTLES = 8.0


def record(path: Path) -> None:
    """Record a session into a file; raises EngineError, CalledProcessError."""
    with tempfile.TemporaryDirectory(prefix="kpolicy-screenshots-") as work:
        folder = Path(work) / "sandbox"
        _sandbox(folder, "up", "--engine")
        try:
            raw = Path(work) / "raw.jsonl"
            asyncio.run(_record(folder, raw))
            lines = [json.loads(line) for line in raw.read_text().splitlines()]
        finally:
            _sandbox(folder, "down")
    path.write_text("".join(f"{json.dumps(trimmed(line), separators=(',', ':'))}\n" for line in lines))  # fmt: skip


def _sandbox(folder: Path, *words: str) -> None:
    environment = {**os.environ, "KPOLICY_SANDBOX_DIR": str(folder)}
    subprocess.run(
        [sys.executable, "-m", "kubectl_kpolicy", "sandbox", *words],
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )


async def _record(folder: Path, path: Path) -> None:
    client = connect(load_access(str(folder / "kubeconfig")))
    source = LiveSource(client, SystemClock(), name=CONTEXT)
    with path.open("w") as out:
        Recorder(source.world, out, source.now, source.name)
        await source.start()
        await asyncio.to_thread(activity.furnish, folder)
        await source.refresh()
        await asyncio.sleep(_SETTLES)
        await source.close()
    await client.close()


def trimmed(line: dict[str, Any]) -> dict[str, Any]:
    """Return a step without what no screen shows: who manages which field, and the schemas of kinds."""
    obj = line.get("object")
    if not obj:
        return line
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    kept = {**obj, "metadata": metadata}
    if line["resource"] == "crds":
        spec = obj["spec"]
        versions = [{key: one[key] for key in ("name", "served", "storage")} for one in spec["versions"]]  # fmt: skip
        kept["spec"] = {"group": spec["group"], "names": spec["names"], "scope": spec["scope"], "versions": versions}  # fmt: skip
        with contextlib.suppress(KeyError):
            kept["metadata"] = {"name": metadata["name"], "creationTimestamp": metadata["creationTimestamp"]}  # fmt: skip
    return {**line, "object": kept}
