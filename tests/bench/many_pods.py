"""`python -m tests.bench.many_pods [--objects N] [--reports crd|store]`: reports of very many Pods on a real kube-apiserver.

Pods are there before 16 policies are: how long until each has its report, and what somebody loses meanwhile who creates Pods. Then the
controllers start anew: how many Pods they judge again. Last, one policy changes: how long until its results have changed in a sample
of all reports. Gates are the aims for 100,000 Pods on two cores with nothing else to do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
import urllib.request
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e import engine
from tests.e2e.server.processes import free_ports
from tests.e2e.server.real import AUDIT_LOG

from .cluster import add_reports, installed
from .pod_creation import CONNECTIONS, CREATED, PODS, REPORTS, access, count_at, creations, pod
from .webhook_server import policies

if TYPE_CHECKING:
    from tests.e2e.server.processes import Process
    from tests.e2e.tiers import Tier

COMPLETE_SECONDS, CHANGE_SECONDS = 600.0, 300.0
MOST_LOST, MOST_AGAIN = 0.1, 0.01
SAMPLE = 100
SEVERITY = "policies.kyverno.io/severity"
_JSON = {"Content-Type": "application/json"}
LOOKS = 5
"""How often Pods are created for some seconds while reports are written, and as often once they are."""
LOOK_SECONDS, APART_SECONDS = 4.0, 10.0
PATIENCE = 3.0
"""How many times what is wanted is waited for."""
SETTLED_SECONDS = 90.0
"""How long it takes until the controllers have written down what was judged, and until new ones have done what they will."""


def main() -> int:
    """Measure and print; returns 1 where an aim is not reached."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.many_pods", description=__doc__)
    parser.add_argument("--objects", type=int, default=100_000, help="Pods (%(default)s)")
    add_reports(parser, "store")
    given = parser.parse_args()
    with installed(given.reports) as tier:
        asyncio.run(filled(tier, given.objects))
        return _Measurement(tier, given.objects, f"--reports={given.reports}").run()


async def filled(tier: Tier, count: int) -> None:
    """Create Pods with numbers for names."""
    server, trusted = access(tier)
    numbers = iter(range(count))
    connector = aiohttp.TCPConnector(ssl=trusted, limit=CONNECTIONS)
    async with aiohttp.ClientSession(server, connector=connector) as session:

        async def some() -> None:
            for number in numbers:
                made = pod()
                del made["metadata"]["generateName"]
                made["metadata"]["name"] = _name(number)
                async with session.post(PODS, data=orjson.dumps(made), headers=_JSON) as answer:
                    assert answer.status == 201, await answer.text()

        await asyncio.gather(*(some() for _ in range(CONNECTIONS)))


def _name(number: int) -> str:
    return f"pod-{number:06}"


def _listed(rates: list[float]) -> str:
    return ", ".join(f"{one:.0f}" for one in rates)


class _Measurement:
    def __init__(self, tier: Tier, count: int, flag: str) -> None:
        self._tier, self._count, self._flag = tier, count, flag
        self._metrics_port = free_ports(1)[0]

    def run(self) -> int:
        """Measure one thing after the other, and return 1 where an aim is not reached."""
        replica = self._start()
        try:
            held = [self._reports(), self._change()]
            time.sleep(SETTLED_SECONDS)
            replica.stop()
            replica = self._start()
            held.append(self._again())
        finally:
            replica.stop()
        return int(not all(held))

    def _start(self) -> Process:
        return engine.start(self._tier, "engine", self._flag, metrics_port=self._metrics_port)

    def _reports(self) -> bool:
        before = self._rate()
        began = time.monotonic()
        self._apply(policies("16 validate"))
        during: list[float] = []
        while (there := count_at(self._tier, REPORTS)) < self._count:
            taken = time.monotonic() - began
            if taken > PATIENCE * COMPLETE_SECONDS:
                break
            if len(during) < LOOKS and there > len(during) * self._count / LOOKS:
                during.append(self._rate())
            time.sleep(1)
        taken = time.monotonic() - began
        after: list[float] = []
        while len(after) < LOOKS:
            time.sleep(APART_SECONDS)
            after.append(self._rate())
        print(
            f"{there:,} reports of {self._count:,} Pods in {taken:.0f} s (aim {COMPLETE_SECONDS:.0f})"
        )
        lost = 1 - statistics.mean(during) / statistics.mean(after)
        print(
            f"Pods created meanwhile: {before:.0f}/s without policies, {_listed(during)}/s"
            f" while reports are written, {_listed(after)}/s afterwards: {lost:.0%} lost (aim {MOST_LOST:.0%})"
        )
        return there >= self._count and taken <= COMPLETE_SECONDS and lost <= MOST_LOST

    def _change(self) -> bool:
        """Have one policy say something else, and wait until a sample of all reports has it."""
        changed = policies("16 validate")[0]
        annotations = changed["metadata"].setdefault("annotations", {})
        severity = "low" if annotations.get(SEVERITY) != "low" else "high"
        annotations[SEVERITY] = severity
        uids = {self._uid(_name(one)) for one in range(0, self._count, self._count // SAMPLE)}
        left, began = set(uids), time.monotonic()
        self._apply([changed])
        while left and time.monotonic() - began < PATIENCE * CHANGE_SECONDS:
            time.sleep(1)
            name = changed["metadata"]["name"]
            left = {uid for uid in left if self._severities(uid, name) != {severity}}
        taken = time.monotonic() - began
        print(
            f"a changed policy is in {len(uids) - len(left)} of {len(uids)} reports after {taken:.0f} s (aim {CHANGE_SECONDS:.0f})"
        )
        return not left and taken <= CHANGE_SECONDS

    def _again(self) -> bool:
        time.sleep(SETTLED_SECONDS)
        again = self._judged() / len(policies("16 validate"))
        print(
            f"judged again after a restart: {again:.0f} Pods (aim {MOST_AGAIN * self._count:.0f})"
        )
        return again <= MOST_AGAIN * self._count

    def _apply(self, documents: list[dict[str, Any]]) -> None:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
        self._tier.kubectl("apply", "-f", "-", given=text)

    def _rate(self) -> float:
        """Return how many Pods are created a second."""
        (_, count) = asyncio.run(
            creations(self._tier, self._tier.folder / AUDIT_LOG, pod(), CREATED, LOOK_SECONDS)
        )
        return count / LOOK_SECONDS

    def _uid(self, name: str) -> str:
        return str(
            json.loads(self._tier.kubectl("get", "--raw", f"{PODS}/{name}"))["metadata"]["uid"]
        )

    def _severities(self, uid: str, policy: str) -> set[str | None]:
        report = json.loads(self._tier.kubectl("get", "--raw", f"{REPORTS}/{uid}"))
        return {row.get("severity") for row in report["results"] if row["policy"] == policy}

    def _judged(self) -> float:
        """Return how many results of the background scan the controllers have counted since they started."""
        with urllib.request.urlopen(
            f"http://127.0.0.1:{self._metrics_port}/metrics", timeout=30
        ) as answer:
            text = answer.read().decode()
        return sum(
            one.value
            for family in text_string_to_metric_families(text)
            for one in family.samples
            if one.name == "kyverno_policy_results_total"
            and one.labels.get("rule_execution_cause") == "background_scan"
        )


if __name__ == "__main__":
    sys.exit(main())
