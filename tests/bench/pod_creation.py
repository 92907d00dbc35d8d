"""`python -m tests.bench.pod_creation [FLAGS OF THE ENGINE]`: Pods created through a real kube-apiserver, without policies and with 16 of them.

The limit is a webhook that answers without looking: what a call takes from the API server no engine gives back. Everything shares
the machine's cores: etcd, API server, controller manager, engine and the client with its 8 connections. Each kind has a namespace of
its own, and Pods are created for a second in one after the other, in turning order: a host whose speed changes is as fast for each, and ratios are those
of neighbouring seconds. Beside the rate stands the processor time of one creation, that of all these processes together, without what they spend at
rest. Reports that were not written during the rush are waited for, and what they cost stands in a line of its own. So does what it
costs to refuse Pods that violate a policy, beside the webhook that refuses them without looking at more.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tests.e2e import engine
from tests.e2e.server.real import AUDIT_LOG

from . import subjects
from .accounts import asked, spent
from .cluster import cluster
from .webhook_server import policies

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.e2e.tiers import Tier

CONNECTIONS = 8
WARM_UP, SECONDS, ROUNDS = 0.25, 1.0, 40
IDLE_SECONDS = 10.0
PATIENCE = 60.0
NAMESPACE = "default"
KINDS = ("no webhook", "a webhook that only allows", "16 Pod Security policies")
NONE, NO_OP, POLICIES = KINDS
PLACES = {NONE: "bare", NO_OP: "asked", POLICIES: "judged"}
"""The namespace in which Pods of each kind are created."""
REFUSALS = {NO_OP: "refused by that webhook", POLICIES: "refused by the policies"}
"""What is measured besides where a kind refuses Pods that violate a policy."""

CREATED, REFUSED = b"HTTP/1.1 201", b"HTTP/1.1 400"
_NO_OP = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "no-op"},
}
LATER = "their reports, after the rush"
LEAST_CREATED, LEAST_REFUSED = 0.92, 0.85
"""Parts of the rate with the webhook that does not look, below which neither may fall."""
LONGEST = 600.0
_NAME_OF = "kubernetes.io/metadata.name"


def pods_of(namespace: str) -> str:
    """Return the path of the Pods of a namespace."""
    return f"/api/v1/namespaces/{namespace}/pods"


PODS = pods_of(NAMESPACE)
REPORTS = f"/apis/wgpolicyk8s.io/v1alpha2/namespaces/{NAMESPACE}/policyreports"
EVERY_POD, EVERY_REPORT = "/api/v1/pods", "/apis/wgpolicyk8s.io/v1alpha2/policyreports"


@dataclass(frozen=True, slots=True)
class Round:
    """Creations a second; seconds of processor time by program, and requests of ours, for each creation."""

    rate: float
    costs: Mapping[str, float]
    requests: Mapping[str, float]

    @property
    def cost(self) -> float:
        """Seconds of processor time of all programs for one creation."""
        return sum(self.costs.values())


def main(*flags: str) -> int:
    """Measure an engine with `flags`, print, and return 1 when more is lost than may be."""
    with cluster() as tier:
        others = [PLACES[NONE], PLACES[NO_OP], "kube-system"]
        unasked = {"matchExpressions": [{"key": _NAME_OF, "operator": "NotIn", "values": others}]}
        settings = {"webhooks": json.dumps({"namespaceSelector": unasked})}
        engine.install(tier, settings=settings)
        with engine.engine(tier, *flags), _no_op() as webhook:
            _settle(tier, webhook)
            idle = _idle()
            found = _compared(tier, {kind: kind for kind in KINDS}, pod(), CREATED, idle)
            if _reports_are_written(flags):
                found[LATER] = [_reports(tier)]
            _wait_for_events(tier)
            found |= _compared(tier, REFUSALS, _violating(), REFUSED, idle)
    return _verdict(found)


def _compared(
    tier: Tier, kinds: Mapping[str, str], made: dict[str, Any], answer: bytes, idle: Counter[str]
) -> dict[str, list[Round]]:
    """Create Pods where each kind is asked, by turns; `kinds` says by which name its rounds are returned."""
    found: dict[str, list[Round]] = {name: [] for name in kinds.values()}
    for number in range(ROUNDS):
        for kind, name in list(kinds.items())[:: -1 if number % 2 else 1]:
            found[name].append(_rush(tier, PLACES[kind], made, answer, idle))
    return found


def _wait_for_events(tier: Tier) -> None:
    """Return when no Events are written any more, which would be counted in the next round."""
    log = tier.folder / AUDIT_LOG
    end = time.monotonic() + LONGEST
    while time.monotonic() < end:
        size = log.stat().st_size
        time.sleep(2)
        if not asked(log, size)["create events"]:
            return
    raise TimeoutError("Events are written without end")


def _verdict(found: dict[str, list[Round]]) -> int:
    print(f"medians of {ROUNDS} rounds of {SECONDS:.0f} s, for one Pod")
    for kind, rounds in found.items():
        one = _middle(rounds)
        print(
            f"  {kind:<34} {one.rate:6.0f}/s {one.cost * 1e3:6.2f} ms of processor time each",
            flush=True,
        )
        print(f"    ms: {_listed(one.costs, 1e3)}")
        print(f"    requests of ours: {_listed(one.requests, 1.0) or 'none'}")
    _beside("with policies, of no webhook", found[POLICIES], found[NONE])
    created = _beside("of the webhook that only allows", found[POLICIES], found[NO_OP])
    refused = _beside("refused, of the same webhook", *(found[REFUSALS[one]] for one in (POLICIES, NO_OP)))  # fmt: skip
    return int(created < LEAST_CREATED or refused < LEAST_REFUSED)


def _beside(name: str, rounds: Sequence[Round], yardsticks: Sequence[Round]) -> float:
    """Print and return the median of the ratios of neighbouring rounds; beside it their quartiles, and the ratio of all rounds together."""
    ratios = [one.rate / other.rate for one, other in zip(rounds, yardsticks, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    cost = statistics.median(
        other.cost / one.cost for one, other in zip(rounds, yardsticks, strict=True)
    )
    together = sum(one.rate for one in rounds) / sum(one.rate for one in yardsticks)
    print(
        f"{name}: {middle:.2f} x the rate ({low:.2f} to {high:.2f}, {together:.2f} over all rounds), {cost:.2f} x by processor time"
    )
    return middle


@contextmanager
def _no_op() -> Iterator[dict[str, Any]]:
    """Run a webhook that only allows; yields the configuration that has it asked about Pods."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.webhook_server", "no-op"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port, bundle = process.stdout.readline().split()
        place = {"url": f"https://127.0.0.1:{port}/validate/fail", "caBundle": bundle}
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["pods"],
        }
        here = {"matchLabels": {_NAME_OF: PLACES[NO_OP]}}
        webhook = {
            "name": "no-op.kpolicy.io",
            "clientConfig": place,
            "rules": [rule],
            "namespaceSelector": here,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        yield {**_NO_OP, "webhooks": [webhook]}
    finally:
        process.stdin.close()
        process.wait(20)


def _middle(rounds: Sequence[Round]) -> Round:
    programs = {name for one in rounds for name in one.costs}
    requests = {name for one in rounds for name in one.requests}
    return Round(
        statistics.median(one.rate for one in rounds),
        {name: statistics.median(one.costs.get(name, 0.0) for one in rounds) for name in programs},
        {name: statistics.median(one.requests.get(name, 0.0) for one in rounds) for name in requests},
    )  # fmt: skip


def _listed(figures: Mapping[str, float], factor: float) -> str:
    shown = sorted(figures.items(), key=lambda pair: -pair[1])
    return ", ".join(f"{name} {value * factor:.2f}" for name, value in shown if value * factor >= 0.005)  # fmt: skip


def _idle() -> Counter[str]:
    """Return the seconds of processor time that everything takes in a second at rest, once it has come to rest."""
    time.sleep(IDLE_SECONDS)
    before = spent()
    time.sleep(IDLE_SECONDS)
    after = spent()
    return type(after)({name: (after[name] - before[name]) / IDLE_SECONDS for name in after})


def _rush(
    tier: Tier, namespace: str, made: dict[str, Any], answer: bytes, idle: Counter[str]
) -> Round:
    """Create Pods as fast as that goes; what everything spends at rest is taken off."""
    log = tier.folder / AUDIT_LOG
    there = _in(namespace, made)
    (before, size, after), count = asyncio.run(
        creations(tier, log, there, answer, SECONDS, pods_of(namespace))
    )
    costs = after - before
    for name, seconds in idle.items():
        costs[name] -= seconds * SECONDS
    return Round(count / SECONDS, _each(+costs, count), _each(asked(log, size), count))


def _reports(tier: Tier) -> Round:
    """Wait until each Pod has its report; what that costs comes on top of the rush."""
    log = tier.folder / AUDIT_LOG
    before, size, began = spent(), log.stat().st_size, time.monotonic()
    there = count_at(tier, EVERY_REPORT)
    wanted, end = count_at(tier, EVERY_POD), began + LONGEST
    left = wanted - there
    while (reports := count_at(tier, EVERY_REPORT)) < wanted:
        if time.monotonic() > end:
            raise TimeoutError(f"{reports} reports of {wanted} Pods after {LONGEST:.0f} s")
        time.sleep(0.5)
    taken = time.monotonic() - began
    print(f"{there} of {wanted} reports were there after the rush, all {taken:.0f} s later")
    return Round(left / taken, _each(spent() - before, left), _each(asked(log, size), left))


def _each(figures: Counter[str], count: int) -> dict[str, float]:
    return {name: value / max(count, 1) for name, value in figures.items()}


def count_at(tier: Tier, path: str) -> int:
    """Return how many objects there are at the path of a kind."""
    page = json.loads(tier.kubectl("get", "--raw", f"{path}?limit=1"))
    return len(page["items"]) + int(page["metadata"].get("remainingItemCount") or 0)


def _reports_are_written(flags: Sequence[str]) -> bool:
    return not any(flag.startswith(("--roles=webhook", "--backgroundScan=false")) for flag in flags)


def _settle(tier: Tier, webhook: dict[str, Any]) -> None:
    """Have the API server ask each webhook about the Pods of its namespace, and wait until it does."""
    named = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in PLACES.values()
    ]
    items = [*named, webhook, *policies("16 validate")]
    document = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    tier.kubectl("apply", "-f", "-", given=document)
    for kind, namespace in PLACES.items():
        _wait(tier, namespace, refused=kind in REFUSALS)


def _in(namespace: str, made: dict[str, Any]) -> dict[str, Any]:
    return {**made, "metadata": {**made["metadata"], "namespace": namespace}}


def _wait(tier: Tier, namespace: str, *, refused: bool) -> None:
    end = time.monotonic() + PATIENCE
    good, bad = (_in(namespace, one) for one in (pod(), _violating()))
    while _refusal(tier, good) or bool(_refusal(tier, bad)) is not refused:
        if time.monotonic() > end:
            raise TimeoutError(f"the API server does not go by the policies: {_refusal(tier, good)}")  # fmt: skip
        time.sleep(0.2)


def _refusal(tier: Tier, pod: dict[str, Any]) -> str:
    try:
        tier.kubectl("create", "--dry-run=server", "-f", "-", given=json.dumps(pod))
    except RuntimeError as error:
        return str(error)
    return ""


def pod() -> dict[str, Any]:
    """Return the Pod of the other benchmarks under names that the server gives."""
    made = subjects.pod()
    metadata = {key: made["metadata"][key] for key in ("labels", "annotations")}
    made["metadata"] = {**metadata, "generateName": "checkout-", "namespace": NAMESPACE}
    made["spec"]["serviceAccountName"] = "default"
    for container in made["spec"]["initContainers"]:
        for probe in ("livenessProbe", "readinessProbe"):
            del container[probe]
    return made


def _violating() -> dict[str, Any]:
    """Return a Pod that a policy refuses, and the webhook that otherwise only allows."""
    made = pod()
    made["spec"]["hostPID"] = True
    return made


def access(tier: Tier) -> tuple[str, ssl.SSLContext]:
    """Return the API server's address, and what to trust and to show there."""
    config = json.loads(tier.kubectl("config", "view", "--raw", "--flatten=false", "-o", "json"))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    trusted = ssl.create_default_context(cafile=cluster["certificate-authority"])
    trusted.load_cert_chain(user["client-certificate"], user["client-key"])
    return cluster["server"], trusted


async def creations(
    tier: Tier, log: Path, made: dict[str, Any], answer: bytes, seconds: float, path: str = PODS
) -> tuple[tuple[Counter[str], int, Counter[str]], int]:
    """Create Pods over all connections; return what was spent before, the size of the audit log, what after, and how many."""
    server, trusted = access(tier)
    body = json.dumps(made, separators=(",", ":")).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    begin = time.perf_counter() + WARM_UP
    place = urlsplit(server)
    senders = [
        asyncio.create_task(
            _sender(
                place.hostname or "",
                place.port or 443,
                trusted,
                head.encode() + body,
                answer,
                begin,
                begin + seconds,
            )
        )
        for _ in range(CONNECTIONS)
    ]
    await asyncio.sleep(begin - time.perf_counter())
    before, size = spent(), log.stat().st_size
    counts = await asyncio.gather(*senders)
    return (before, size, spent()), sum(counts)


async def _sender(
    host: str,
    port: int,
    trusted: ssl.SSLContext,
    request: bytes,
    answer: bytes,
    begin: float,
    end: float,
) -> int:
    reader, writer = await asyncio.open_connection(host, port, ssl=trusted)
    count = 0
    while (sent := time.perf_counter()) < end:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(answer), head
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        if length:
            await reader.readexactly(int(length))
        else:
            await reader.readuntil(b"\r\n0\r\n\r\n")
        count += sent >= begin
    writer.close()
    return count


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
