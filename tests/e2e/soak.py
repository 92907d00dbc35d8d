"""`python -m tests.e2e.soak --minutes N`: everything at once for a long time on a real API server, and what grows or goes wrong.

Three replicas; requests at ten times what a busy cluster sends (`--rate`), and beside them exceptions, grants, codes, clean-ups, TTLs
and policies that come and go, while two replicas are restarted by turns, told to end and killed. The first is left alone, so that
what it takes can be told: memory, open files and tasks, by a line through what was measured after the warm-up. Answers are held to
what is right: bad Pods are refused, good ones let in, and each change counts within seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Any

from controllers.kube import KubeError, Unreachable
from controllers.kube.kinds import (
    AUDIT_SEGMENTS,
    CLUSTER_POLICIES,
    CONFIG_MAPS,
    GRANTS,
    PODS,
    POLICY_EXCEPTIONS,
)

from . import tiers
from .growth import Seen, grows, report, scraped
from .proofs.stage import code_for, furniture_of_rights, pod, staged, tried
from .runs import parser_of, played
from .scenario import ScenarioError
from .server import binaries
from .server.processes import SLOWNESS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from controllers.kube import Client

    from .proofs.stage import Stage
    from .tiers import Tier

BUSY = 30.0
"""Requests a second that a busy cluster asks about."""
SENDERS = 24
REPLICAS = 3
COUNTS_WITHIN = 15.0 * SLOWNESS
"""Seconds within which a change counts at every replica."""
CUT_OFF = 2.0 * SLOWNESS
"""Seconds after a kill within which the API server hears that a connection is gone with the request that was on it."""
_NOBODY = "failed calling webhook"
MEASURED_EVERY = 10.0
_GAUGES = (
    "kpolicy_process_resident_memory_bytes",
    "kpolicy_process_open_files",
    "kpolicy_process_tasks",
)
_SPACE = "soak"
_OVER = 400.0
"""Seconds after which a grant of five minutes is over, and told of everywhere."""
_FURNITURE = """
apiVersion: v1
kind: Namespace
metadata: {name: soak}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: soak-clean-ups, labels: {rbac.kyverno.io/aggregate-to-cleanup-controller: "true"}}
rules:
- {apiGroups: [""], resources: [configmaps, pods], verbs: [get, list, watch, delete]}
---
apiVersion: kyverno.io/v2
kind: CleanupPolicy
metadata: {name: old-ones, namespace: soak}
spec:
  schedule: "* * * * *"
  match: {any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {soak: old}}}}]}
"""
_LATER = {
    "apiVersion": "kyverno.io/v1",
    "kind": "ClusterPolicy",
    "metadata": {
        "name": "no-host-ipc",
        "annotations": {"pod-policies.kyverno.io/autogen-controllers": "none"},
    },
    "spec": {
        "background": False,
        "rules": [
            {
                "name": "host-ipc",
                "match": {"any": [{"resources": {"kinds": ["Pod"], "namespaces": [_SPACE]}}]},
                "validate": {
                    "failureAction": "Enforce",
                    "message": "no host IPC",
                    "pattern": {"spec": {"=(hostIPC)": False}},
                },
            }
        ],
    },
}


class Others:
    """People who ask by turns, because one may have only so many grants and codes at once."""

    _MOST = 100

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._turn = count()
        self.known: dict[str, Client] = {}

    def next(self) -> tuple[str, Client]:
        """Return who is next, and a client that asks as him."""
        name = f"cyd-{next(self._turn) % self._MOST}"
        if name not in self.known:
            self.known[name] = self._stage.client(name)
        return name, self.known[name]


class Soak:
    """Everything that goes on, until the time is over."""

    def __init__(self, stage: Stage, minutes: float, rate: float) -> None:
        self.stage, self.rate = stage, rate
        self.seen = Seen()
        self.began = time.monotonic()
        self.end = self.began + minutes * 60
        self.killed_at = self.told_at = 0.0
        self.granted: deque[tuple[float, str]] = deque()

    async def run(self) -> None:
        """Do everything at once; raises ScenarioError where something never happens."""
        self.admin, self.ada, self.bob = (
            self.stage.client(),
            self.stage.client("ada"),
            self.stage.client("bob"),
        )
        self.others = Others(self.stage)
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(SENDERS):
                    group.create_task(self._send(number))
                for every, work in (
                    (15.0, self._except),
                    (20.0, self._grant),
                    (10.0, self._redeem),
                    (2.0, self._leave_something),
                    (20.0, self._change_policy),
                    (60.0, self._restart),
                    (MEASURED_EVERY, self._measure),
                ):
                    group.create_task(self._again(every, work))
        finally:
            for client in (self.admin, self.ada, self.bob, *self.others.known.values()):
                await client.close()

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self.end

    async def _again(self, every: float, work: Callable[[], Awaitable[None]]) -> None:
        """Do something again and again; what the API server does not answer is counted and tried later."""
        while not self.is_over:
            began = time.monotonic()
            try:
                await work()
            except KubeError as error:
                self.seen.problems[f"{work.__name__}: {error.message[:120]}"] += 1
            rest = every - (time.monotonic() - began)
            await asyncio.sleep(min(max(rest, 0.1), max(self.end - time.monotonic(), 0)))

    async def _send(self, number: int) -> None:
        is_bad = bool(number % 2)
        client = self.stage.client("ada")
        pause = SENDERS / self.rate
        try:
            while not self.is_over:
                began = time.monotonic()
                await self._ask(client, pod("load-", hostPID=is_bad), is_bad=is_bad)
                is_bad = not is_bad
                await asyncio.sleep(max(pause - (time.monotonic() - began), 0))
        finally:
            await client.close()

    async def _ask(self, client: Client, obj: dict[str, Any], *, is_bad: bool) -> None:
        began = time.monotonic()
        try:
            await client.create(PODS, obj, dry_run=True)
            said = ""
        except Unreachable as error:
            self.seen.problems[error.message[:120]] += 1
            return
        except KubeError as error:
            said = error.message or "refused"
        self.seen.times.append(time.monotonic() - began)
        self.seen.done["admissions"] += 1
        if is_bad and not said:
            self.seen.wrong.append("a bad Pod was let in")
        elif is_bad and "no host PID" not in said:
            # refused, though nobody could be asked
            self.seen.problems[said[:120]] += 1
        elif said and not is_bad and _NOBODY in said and began < self.killed_at + CUT_OFF:
            # INVARIANT: no answer of ours. What a killed process had in hand nobody answers, and the API server asks no one else.
            self.seen.cut_off += 1
        elif bool(said) is not is_bad:
            since = f"{began - self.killed_at:.1f} s after a kill, {began - self.told_at:.1f} s after one was told to end"
            self.seen.wrong.append(f"{'bad' if is_bad else 'good'}, {since}: {said[:300]}")

    async def _becomes(self, obj: dict[str, Any], *, refused: bool, what: str) -> None:
        """Wait until an object is refused or let in; that it is not in time is a wrong answer."""
        end = time.monotonic() + COUNTS_WITHIN
        # answered three times in a row, for there are three replicas
        right = 0
        while right < REPLICAS:
            is_right = bool(await tried(self.ada, PODS, obj, dry_run=True)) is refused
            right = right + 1 if is_right else 0
            if time.monotonic() > end and not is_right:
                self.seen.wrong.append(f"not within {COUNTS_WITHIN:.0f} s: {what}")
                return
            await asyncio.sleep(0.05)
        self.seen.done[what] += 1

    async def _except(self) -> None:
        rule = {"policyName": "no-host", "ruleNames": ["host-pid"]}
        match = {
            "any": [
                {"resources": {"kinds": ["Pod"], "names": ["excepted"], "namespaces": [_SPACE]}}
            ]
        }
        made = {
            "apiVersion": "kyverno.io/v2",
            "kind": "PolicyException",
            "metadata": {"name": "excepted", "namespace": _SPACE},
            "spec": {"exceptions": [rule], "match": match},
        }
        await self.admin.create(POLICY_EXCEPTIONS, made)
        await self._becomes(
            pod("excepted", namespace=_SPACE), refused=False, what="exceptions that count"
        )
        await self.admin.delete(POLICY_EXCEPTIONS, "excepted", _SPACE)
        await self._becomes(
            pod("excepted", namespace=_SPACE), refused=True, what="exceptions that are gone"
        )

    async def _grant(self) -> None:
        name = f"granted-{int(time.monotonic() - self.began)}"
        requester, client = self.others.next()
        spec = {
            "requester": requester,
            "policy": "no-host",
            "rules": ["host-pid"],
            "target": {"kind": "Pod", "name": name},
            "duration": "5m",
            "reason": "to soak the controllers",
        }
        metadata = {"name": name, "namespace": _SPACE}
        await client.create(
            GRANTS,
            {
                "apiVersion": "kpolicy.io/v1alpha1",
                "kind": "Grant",
                "metadata": metadata,
                "spec": spec,
            },
        )
        await self.bob.patch(
            GRANTS, name, _SPACE, {"spec": {"decisions": [{"by": "bob", "verdict": "approve"}]}}
        )
        await self._becomes(pod(name, namespace=_SPACE), refused=False, what="grants that count")
        self.granted.append((time.monotonic(), name))
        while time.monotonic() - self.granted[0][0] > _OVER:
            await self.admin.delete(GRANTS, self.granted.popleft()[1], _SPACE)
            self.seen.done["grants that were over and removed"] += 1

    async def _redeem(self) -> None:
        """Use a code that a denial offers; the object goes again by its TTL."""
        name = f"coded-{int(time.monotonic() - self.began)}"
        _name, client = self.others.next()
        try:
            code = await code_for(client, pod(name, namespace=_SPACE))
        except ScenarioError:
            # whoever asks too often is offered none for a while
            self.seen.problems["no code was offered"] += 1
            return
        obj = pod(name, code, namespace=_SPACE)
        obj["metadata"]["labels"] = {"cleanup.kyverno.io/ttl": "20s"}
        if said := await tried(client, PODS, obj):
            self.seen.problems[f"a code was not taken: {said[:120]}"] += 1
            return
        self.seen.done["codes used"] += 1
        again = pod(f"{name}-again", code, namespace=_SPACE)
        if not await tried(client, PODS, again, dry_run=True):
            self.seen.wrong.append("a code was taken twice")

    async def _leave_something(self) -> None:
        made = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"generateName": "old-", "namespace": _SPACE, "labels": {"soak": "old"}},
        }
        await self.admin.create(CONFIG_MAPS, made)
        self.seen.done["objects left for clean-ups"] += 1

    async def _change_policy(self) -> None:
        obj = pod("later-", namespace=_SPACE, hostPID=False, hostIPC=True)
        await self.admin.create(CLUSTER_POLICIES, _LATER)
        await self._becomes(obj, refused=True, what="policies that count")
        await self.admin.delete(CLUSTER_POLICIES, "no-host-ipc")
        await self._becomes(obj, refused=False, what="policies that are gone")

    async def _restart(self) -> None:
        """End one of the other replicas, by turns asked to and killed, and start it again."""
        turn = self.seen.done["replicas restarted"]
        number = 1 + turn % (REPLICAS - 1)
        if turn % 4 < 2:
            self.told_at = time.monotonic()
            await asyncio.to_thread(self.stage.end, number)
        else:
            process = self.stage.replicas[number]
            family = process.family()
            process.kill()
            for pid in family - {process.pid}:
                _kill(pid)
            self.killed_at = time.monotonic()
        await asyncio.to_thread(self.stage.start, number)
        self.seen.done["replicas restarted"] += 1

    async def _measure(self) -> None:
        at = time.monotonic() - self.began
        for name, value, labels in await asyncio.to_thread(scraped, self.stage.metrics[0]):
            if name in _GAUGES:
                self.seen.measured.setdefault((name, labels["process"]), []).append((at, value))
        problems = await asyncio.to_thread(self._problems_of_watches)
        self.seen.watch_problems = max(self.seen.watch_problems, problems)
        segments = (await self.admin.list_all(AUDIT_SEGMENTS)).items
        self.seen.audit.append((at, len(segments), sum(len(json.dumps(one)) for one in segments)))

    def _problems_of_watches(self) -> float:
        found = scraped(self.stage.metrics[0])
        return sum(value for name, value, _ in found if name == "kpolicy_watch_problems_total")

    async def leftovers(self) -> None:
        """Count what clean-ups and TTLs should have removed, after the time for that."""
        client = self.stage.client()
        try:
            for kind, selector, what in (
                (CONFIG_MAPS, "soak=old", "a clean-up policy"),
                (PODS, "cleanup.kyverno.io/ttl", "a TTL"),
            ):
                end = time.monotonic() + 150
                while left := (await client.list_all(kind, _SPACE, label_selector=selector)).items:
                    if time.monotonic() > end:
                        self.seen.wrong.append(f"{len(left)} objects stay that {what} deletes")
                        break
                    await asyncio.sleep(2)
        finally:
            await client.close()


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def main() -> int:
    """Soak and return 1 where an answer was wrong or memory grew."""
    parser = parser_of("soak", __doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long (60)")
    parser.add_argument(
        "--rate", type=float, default=10 * BUSY, help="requests a second that are tried (300)"
    )
    args = parser.parse_args()

    def play(folder: Path) -> int:
        with tiers.real_tier(folder, binaries.ready()) as tier:
            return _play(tier, args.minutes, args.rate)

    return played("soak", play, keep=args.keep)


def _play(tier: Tier, minutes: float, rate: float) -> int:
    with staged(tier, replicas=REPLICAS) as stage:
        furniture_of_rights(tier)
        tier.kubectl("apply", "-f", "-", given=_FURNITURE)
        tier.kubectl(
            "wait", "--for=create", "serviceaccount/default", "-n", _SPACE, "--timeout=60s"
        )
        soak = Soak(stage, minutes, rate)
        asyncio.run(soak.run())
        seconds = time.monotonic() - soak.began
        asyncio.run(soak.leftovers())
    print(*report(soak.seen, seconds), sep="\n", flush=True)
    return int(bool(soak.seen.wrong) or grows(soak.seen, seconds))


if __name__ == "__main__":
    sys.exit(main())
