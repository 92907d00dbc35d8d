"""One history on the server of memory, from its seed: people, two replicas, what breaks, and the end when all is settled."""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from controllers.kube.kinds import (
    AUDIT_SEGMENTS,
    CLUSTER_POLICIES,
    CODE_CLAIMS,
    CODE_USES,
    CONFIG_MAPS,
    GRANT_POLICIES,
    GRANTS,
    NAMESPACES,
    ONE_TIME_CODES,
    PODS,
    POLICY_EXCEPTIONS,
)

from .checking import broken
from .people import Board, Person, Place, config, pod
from .record import History, Version
from .replica import KEY, Replica
from .server import ApiServer, Mood
from .virtual import VirtualClock, run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

SECONDS = 15.0
SETTLED = 400.0
WATCHED = (PODS, CONFIG_MAPS, POLICY_EXCEPTIONS, GRANTS, CODE_USES, ONE_TIME_CODES, AUDIT_SEGMENTS)
KINDS = (*WATCHED, CLUSTER_POLICIES, CODE_CLAIMS, GRANT_POLICIES, NAMESPACES)


@dataclass(frozen=True, slots=True)
class Told:
    """What a history came to: what does not hold, and how much happened."""

    history: History
    broken: tuple[str, ...]
    stored: int
    uses: int
    deaths: int

    def __str__(self) -> str:
        return "\n".join([f"seed {self.history.seed}:", *self.broken])


def play(seed: int) -> Told:
    """Play the history of a seed."""
    return run(_play(seed), seed)


def figures_of(seeds: range) -> list[tuple[int, int, int, int, str, str]]:
    """Play some histories; return of each how much was asked, stored and used, deaths, what is broken, and all that happened."""
    logging.disable(logging.CRITICAL)
    return [_figures(play(seed)) for seed in seeds]


def _figures(told: Told) -> tuple[int, int, int, int, str, str]:
    said = str(told) if told.broken else ""
    return len(told.history.attempts), told.stored, told.uses, told.deaths, said, "\n".join(told.history.lines())  # fmt: skip


async def _play(seed: int) -> Told:
    chance = random.Random(seed)
    clock, history = VirtualClock(), History(seed)
    server = ApiServer(chance, clock, KINDS)
    furnish(server)
    observers = [asyncio.create_task(_observe(server, kind, clock, history)) for kind in WATCHED]
    await asyncio.sleep(0.01)
    history.older = frozenset(one.uid for plural in ("pods", "configmaps") for one in history.versions.get(plural, ()))  # fmt: skip
    server.replicas = [Replica(number, server, chance) for number in range(2)]
    for one in server.replicas:
        await one.start()
    server.mood = _mood(chance)
    await _live(server, clock, history, chance)
    await _settle(server, chance)
    for one in observers:
        one.cancel()
    deaths = sum("dies" in note for note in history.notes)
    uses = len(history.last("codeuses"))
    stored = sum(one.outcome == "stored" and one.what in ("create", "patch") for one in history.attempts)  # fmt: skip
    return Told(history, tuple(broken(history, KEY)), stored, uses, deaths)


async def _live(server: ApiServer, clock: Any, history: History, chance: random.Random) -> None:
    loop = asyncio.get_running_loop()
    place = Place(lambda name: server.person(name, ("people",)), loop.time, clock.now, history, Board())  # fmt: skip
    people = [Person(name, place, random.Random(chance.random())) for name in ("ada", "eve", "bob", "cyd")]  # fmt: skip
    tasks = [asyncio.create_task(one.act()) for one in people]
    nemesis = asyncio.create_task(_break(server, history, random.Random(chance.random())))
    await asyncio.sleep(SECONDS)
    for one in people:
        one.over.set()
    nemesis.cancel()
    await asyncio.gather(*tasks, nemesis, return_exceptions=True)
    for task in tasks:
        task.result()


async def _settle(server: ApiServer, chance: random.Random) -> None:
    """Let everything come to an end: one replica is left, which is as it should be, and the server is in no mood."""
    server.mood = Mood()
    left = chance.choice(server.replicas)
    for one in server.replicas:
        if one is not left or one.line.is_dead or not one.is_up or one.line.dies_at >= 0:
            await one.kill()
    if not left.is_up:
        await left.start()
    left.line.fault, left.line.slowness, left.clock.ahead = 0.0, 0.004, 0.0
    left.line.goes_on.set()
    await asyncio.sleep(SETTLED)
    await left.kill()


async def _break(server: ApiServer, history: History, chance: random.Random) -> None:
    """Break something every few seconds, and mend it."""
    while True:
        await asyncio.sleep(chance.uniform(0.5, 4.0))
        replica = chance.choice(server.replicas)
        name, break_ = chance.choice(_BREAKS)
        at = asyncio.get_running_loop().time()
        history.notes.append(f"{at:7.2f} nemesis: replica {replica.number}{' (leads)' if replica.is_leading else ''} {name}")  # fmt: skip
        await break_(replica, chance, history)


async def _dies(replica: Replica, chance: random.Random, _: History) -> None:
    """Die at one of the next calls to the server, and be started again."""
    replica.line.dies_at = chance.randrange(12)
    await asyncio.sleep(chance.uniform(0.5, 4.0))
    await replica.kill()
    await replica.start()


async def _is_stopped(replica: Replica, chance: random.Random, _: History) -> None:
    replica.line.goes_on.clear()
    await asyncio.sleep(chance.uniform(0.5, 25.0))
    replica.line.goes_on.set()


async def _loses_calls(replica: Replica, chance: random.Random, _: History) -> None:
    replica.line.fault = chance.uniform(0.05, 0.5)
    await asyncio.sleep(chance.uniform(1.0, 6.0))
    replica.line.fault = 0.0


async def _is_slow(replica: Replica, chance: random.Random, _: History) -> None:
    replica.line.slowness = chance.uniform(0.1, 1.5)
    await asyncio.sleep(chance.uniform(1.0, 6.0))
    replica.line.slowness = 0.004


async def _is_ahead(replica: Replica, chance: random.Random, history: History) -> None:
    history.steps_clock = True
    replica.clock.ahead = chance.choice((5.0, 25.0, 120.0))
    await asyncio.sleep(chance.uniform(2.0, 10.0))
    replica.clock.ahead = 0.0


_BREAKS: tuple[tuple[str, Callable[[Replica, random.Random, History], Awaitable[None]]], ...] = (
    ("dies", _dies),
    ("dies", _dies),
    ("is stopped", _is_stopped),
    ("loses calls", _loses_calls),
    ("is slow", _is_slow),
    ("has a clock ahead", _is_ahead),
)


def _mood(chance: random.Random) -> Mood:
    """Draw what this server is like; half of the servers do each thing."""
    fields = ("sibling", "conflict", "stale", "again", "twice", "late", "collision")
    return Mood(**{name: chance.uniform(0.0, 0.4) if chance.random() < 0.5 else 0.0 for name in fields})  # fmt: skip


async def _observe(server: ApiServer, kind: Any, clock: Any, history: History) -> None:
    """Note every version of every object of a kind."""
    loop = asyncio.get_running_loop()
    async for event in server.etcd.watch(kind, "0"):
        obj = {"apiVersion": kind.api_version, "kind": kind.kind, **event.object}
        history.stored(kind.plural, Version(loop.time(), clock.now(), event.type, obj))


def furnish(server: ApiServer) -> None:
    """Store what a cluster has: namespaces, what is enforced, who may have what, and an object from before."""
    for name in ("kube-system", "kyverno", "ack", "appr", "strict"):
        server.etcd.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": f"uid-of-{name}"}})  # fmt: skip
    server.etcd.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kyverno", "namespace": "kyverno"}, "data": {}})  # fmt: skip
    server.etcd.put(pod("old", "ack"))
    server.etcd.put(config("old", "ack", debug=True))
    for obj in (*policies(), *grant_policies()):
        server.etcd.put(obj)


def policies() -> list[dict[str, Any]]:
    """Return the two policies that are enforced."""
    rules = {
        "no-host": ("host-pid", "Pod", {"spec": {"=(hostPID)": False}}),
        "no-debug": ("debug-off", "ConfigMap", {"=(data)": {"=(debug)": "!true"}}),
    }
    return [
        {
            "apiVersion": "kyverno.io/v1",
            "kind": "ClusterPolicy",
            "metadata": {"name": name, "uid": f"uid-of-{name}", "annotations": {"pod-policies.kyverno.io/autogen-controllers": "none"}},
            "spec": {
                "background": False,
                "rules": [
                    {
                        "name": rule,
                        "match": {"any": [{"resources": {"kinds": [kind], "namespaces": ["ack", "appr", "strict"]}}]},
                        "validate": {"failureAction": "Enforce", "message": f"{rule} is asked for", "pattern": pattern},
                    }
                ],
            },
        }
        for name, (rule, kind, pattern) in rules.items()
    ]  # fmt: skip


def grant_policies(code_for: str = "30s") -> list[dict[str, Any]]:
    """Return who may ask for what, with codes in three ways."""
    ways: dict[str, dict[str, Any]] = {
        "ack": {"mode": "acknowledge"},
        "appr": {"mode": "approve"},
        "strict": {"mode": "acknowledge", "strict": True},
    }
    return [
        {
            "apiVersion": "kpolicy.io/v1alpha1",
            "kind": "GrantPolicy",
            "metadata": {"name": name},
            "spec": {
                "namespaces": [name],
                "maxDuration": "5m",
                "approvalTimeout": "2m",
                "approvers": [{"users": ["bob", "cyd"]}],
                "limits": {"openPerUser": 20},
                "codes": {"duration": code_for, **codes},
            },
        }
        for name, codes in ways.items()
    ]
