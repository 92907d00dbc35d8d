"""`python -m tests.bench.pod_creation [FLAGS OF THE ENGINE]`: Pods created through a real kube-apiserver, without policies and with 16 of them.

Everything shares the machine's cores: etcd, API server, controller manager, engine and the client with its 8 connections. Beside
the rate stands the processor time of one creation, that of all these processes together, which other work on the host does not
change: where the cores are full, the rate follows from it.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tests.e2e import engine, tiers
from tests.e2e.server import binaries

from . import subjects
from .webhook_server import policies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.tiers import Tier

CONNECTIONS = 8
WARM_UP, SECONDS, ROUNDS = 1.0, 4.0, 3
PATIENCE = 60.0
NAMESPACE = "default"
KINDS = ("no webhook", "16 Pod Security policies")
MOST_LOST = 0.2


class Figures:
    """Of one kind of round: creations a second, and seconds of processor time of each."""

    def __init__(self) -> None:
        self.rates: list[float] = []
        self.costs: list[float] = []


def main(*flags: str) -> int:
    """Measure an engine with `flags`, print, and return 1 when a creation costs more than may be lost."""
    try:
        programs = binaries.ready()
    except binaries.ToolMissingError as reason:
        sys.exit(f"error: {reason}")
    found = {kind: Figures() for kind in KINDS}
    with (
        tempfile.TemporaryDirectory(prefix="kpolicy-bench-") as folder,
        tiers.real_tier(Path(folder), programs) as tier,
    ):
        engine.install(tier)
        with engine.engine(tier, *flags):
            for _ in range(ROUNDS):
                for kind, figures in found.items():
                    _settle(tier, with_policies=kind != KINDS[0])
                    rate, cost = asyncio.run(_creations(tier))
                    figures.rates.append(rate)
                    figures.costs.append(cost)
                    _line(kind, rate, cost)
    return _verdict(found)


def _verdict(found: dict[str, Figures]) -> int:
    rates, costs = [], []
    for kind, figures in found.items():
        rates.append(statistics.median(figures.rates))
        costs.append(statistics.median(figures.costs))
        _line(f"{kind}, median", rates[-1], costs[-1])
    lost = 1 - costs[0] / costs[1]
    print(f"lost: {1 - rates[1] / rates[0]:.0%} of the rate, {lost:.0%} by processor time")
    return int(lost > MOST_LOST)


def _line(name: str, rate: float, cost: float) -> None:
    print(f"  {name:<34} {rate:6.0f}/s {cost * 1e3:6.2f} ms of processor time each", flush=True)


def _settle(tier: Tier, *, with_policies: bool) -> None:
    """Install or remove the policies, and wait until the API server goes by that."""
    items = policies("16 validate")
    document = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    if with_policies:
        tier.kubectl("apply", "-f", "-", given=document)
    else:
        tier.kubectl("delete", "--ignore-not-found", "-f", "-", given=document)
    bad = _pod()
    bad["spec"]["hostPID"] = True
    end = time.monotonic() + PATIENCE
    while bool(said := _refusal(tier, bad)) is not with_policies:
        if time.monotonic() > end:
            raise TimeoutError(f"the API server does not go by the policies: {said}")
        time.sleep(0.2)


def _refusal(tier: Tier, pod: dict[str, Any]) -> str:
    try:
        tier.kubectl("create", "--dry-run=server", "-f", "-", given=json.dumps(pod))
    except RuntimeError as error:
        return str(error)
    return ""


def _pod() -> dict[str, Any]:
    """Return the Pod of the other benchmarks under names that the server gives."""
    made = subjects.pod()
    metadata = {key: made["metadata"][key] for key in ("labels", "annotations")}
    made["metadata"] = {**metadata, "generateName": "checkout-", "namespace": NAMESPACE}
    made["spec"]["serviceAccountName"] = "default"
    for container in made["spec"]["initContainers"]:
        for probe in ("livenessProbe", "readinessProbe"):
            del container[probe]
    return made


async def _creations(tier: Tier) -> tuple[float, float]:
    """Create Pods over all connections; return how many a second, and the processor time of each."""
    config = json.loads(tier.kubectl("config", "view", "--raw", "--flatten=false", "-o", "json"))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    trusted = ssl.create_default_context(cafile=cluster["certificate-authority"])
    trusted.load_cert_chain(user["client-certificate"], user["client-key"])
    body = json.dumps(_pod()).encode()
    head = f"POST /api/v1/namespaces/{NAMESPACE}/pods HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"  # fmt: skip
    begin = time.perf_counter() + WARM_UP
    place = urlsplit(cluster["server"])
    senders = [
        asyncio.create_task(
            _sender(place.hostname or "", place.port or 443, trusted, head.encode() + body, begin)
        )
        for _ in range(CONNECTIONS)
    ]
    await asyncio.sleep(begin - time.perf_counter())
    before = _spent()
    counts = await asyncio.gather(*senders)
    return sum(counts) / SECONDS, (_spent() - before) / sum(counts)


async def _sender(
    host: str, port: int, trusted: ssl.SSLContext, request: bytes, begin: float
) -> int:
    reader, writer = await asyncio.open_connection(host, port, ssl=trusted)
    count, end = 0, begin + SECONDS
    while (sent := time.perf_counter()) < end:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 201"), head
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        if length:
            await reader.readexactly(int(length))
        else:
            await reader.readuntil(b"\r\n0\r\n\r\n")
        count += sent >= begin
    writer.close()
    return count


def _spent() -> float:
    """Return the seconds of processor time so far of this process and all below it."""
    ticks = sum(ticks for _, ticks in _family())
    return ticks / os.sysconf("SC_CLK_TCK")


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


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
