"""`python -m tests.bench.reports [--objects N] [--reports crd|store]`: what the report of a Pod costs, all programs together.

Pods that are there already are judged by 16 policies that are new, on a real kube-apiserver; what everything spends at rest is taken
off. Where reports are kept in the report store, it runs beside the server as it ships, with SQLite.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING

from tests.e2e import engine
from tests.e2e.server.real import AUDIT_LOG

from .accounts import asked, spent
from .cluster import add_reports, installed
from .pod_creation import NAMESPACE, REPORTS, count_at, pod
from .webhook_server import policies

if TYPE_CHECKING:
    from tests.e2e.tiers import Tier

AT_ONCE = 200
REST, PATIENCE = 5.0, 900.0


def main() -> int:
    """Measure and print; returns 1 where not every Pod has a report in time."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.reports", description=__doc__)
    parser.add_argument("--objects", type=int, default=2_000, help="Pods (%(default)s)")
    add_reports(parser, "store")
    given = parser.parse_args()
    with installed(given.reports) as tier:
        _create(tier, given.objects)
        with engine.engine(tier, f"--reports={given.reports}"):
            time.sleep(REST)
            return _measured(tier, given.objects)


def _create(tier: Tier, count: int) -> None:
    metadata = pod()["metadata"]
    items = [{**pod(), "metadata": {**metadata, "name": f"pod-{n:06}"}} for n in range(count)]
    for start in range(0, count, AT_ONCE):
        document = {"apiVersion": "v1", "kind": "List", "items": items[start : start + AT_ONCE]}
        tier.kubectl("create", "-n", NAMESPACE, "-f", "-", given=json.dumps(document))


def _measured(tier: Tier, count: int) -> int:
    before = spent()
    time.sleep(REST)
    idle = spent() - before
    log = tier.folder / AUDIT_LOG
    size, before, began = log.stat().st_size, spent(), time.monotonic()
    document = {"apiVersion": "v1", "kind": "List", "items": policies("16 validate")}
    tier.kubectl("apply", "-f", "-", given=json.dumps(document))
    while (there := count_at(tier, REPORTS)) < count and time.monotonic() - began < PATIENCE:
        time.sleep(1)
    taken = time.monotonic() - began
    costs = spent() - before
    for name, seconds in idle.items():
        costs[name] -= seconds * taken / REST
    each = {name: f"{value / there * 1e3:.2f}" for name, value in costs.most_common() if value > 0}
    print(f"{there} reports of {count} Pods in {taken:.0f} s ({there / taken:.0f}/s)")
    print(f"{sum(costs.values()) / there * 1e3:.2f} ms of processor time each")
    print("    ms:", ", ".join(f"{name} {value}" for name, value in each.items()))
    most = asked(log, size).most_common(3)
    print("    requests of ours:", ", ".join(f"{name} {number}" for name, number in most))
    return int(there < count)


if __name__ == "__main__":
    sys.exit(main())
