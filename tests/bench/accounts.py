"""What a benchmark on a real API server has cost: processor time and memory by program, and requests of ours by verb and resource.

Apart from the benchmark because it only reads: /proc for the time, which other work on the host does not change, and for memory, and
the server's audit log, which holds whatever our service accounts ask for.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

CLIENT = "client"
LOOPS, WEBHOOK = "our loops", "our webhook"
_MODULES = {
    "controllers": LOOPS,
    "controllers.worker": WEBHOOK,
    "controllers.report_store": "our store",
    "tests.bench.webhook_server": "no-op",
}


def spent() -> Counter[str]:
    """Return the seconds of processor time so far of this process and all below it, by program."""
    tick = os.sysconf("SC_CLK_TCK")
    found: Counter[str] = Counter()
    for process, ticks in _family():
        found[_program(process)] += ticks / tick
    return found


def held() -> Counter[str]:
    """Return the MiB that this process and all below it hold, by program; pages that several share are divided among them."""
    found: Counter[str] = Counter()
    for process, _ in _family():
        try:
            text = Path(f"/proc/{process}/smaps_rollup").read_text()
        except OSError:
            continue  # it ended meanwhile
        kib = next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
        found[_program(process)] += kib / 1024
    return found


def asked(audit_log: Path, since: int) -> Counter[str]:
    """Return how often we asked for what since a size of the audit log."""
    with audit_log.open("rb") as log:
        log.seek(since)
        entries = [json.loads(line) for line in log if line.endswith(b"\n")]
    found: Counter[str] = Counter()
    for entry in entries:
        about = entry.get("objectRef") or {}
        found[f"{entry['verb']} {about.get('resource', entry.get('requestURI'))}"] += 1
    return found


def _program(process: int) -> str:
    if process == os.getpid():
        return CLIENT
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().decode().split("\0")
    except OSError:
        return "ended"
    if "-m" in words:
        return _MODULES.get(words[words.index("-m") + 1], "other")
    return Path(words[0]).name or "other"


def _family() -> Iterator[tuple[int, int]]:
    """Yield this process and all below it, with the ticks of a processor that each has spent."""
    parents: dict[int, tuple[int, int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        parents[int(path.parent.name)] = (int(fields[1]), int(fields[11]) + int(fields[12]))
    for process, (_, ticks) in parents.items():
        above = process
        while above not in (0, os.getpid()):
            above = parents.get(above, (0, 0))[0]
        if above:
            yield process, ticks
