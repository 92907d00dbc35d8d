"""Histories on kube-apiserver and etcd: the same people and the same checks, replicas as processes that are killed and stopped.

One server, two replicas behind one address, another webhook that refuses now and then, somebody who writes in between; one
history after the other in namespaces of its own. At the end a replica is started some minutes ahead, so that everything that
was begun is over, and each history is checked.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import random
import signal
import tempfile
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from controllers.kube import KubeError
from controllers.kube.kinds import CONFIG_MAPS, PODS
from controllers.runtime.entropy import shared_key
from controllers.webhook.server import Routes
from tests.controllers.webhook.staging import made_certificates, serving
from tests.e2e import tiers
from tests.e2e.proofs.stage import furniture_of_rights, staged
from tests.e2e.server import binaries

from .checking import broken
from .people import SPACES, Board, Person, Place
from .play import WATCHED, grant_policies, policies
from .record import History, Version

if TYPE_CHECKING:
    from tests.e2e.proofs.stage import Stage
    from tests.e2e.tiers import Tier

SECONDS, PEOPLE = 12.0, ("ada", "eve", "bob", "cyd")
AHEAD = "15m"
SETTLED = 60.0


def main(count: int, seed: int) -> int:
    """Play and print what does not hold; return 1 where anything does not."""
    logging.disable(logging.WARNING)
    folder, began = Path(tempfile.mkdtemp(prefix="kpolicy-histories-")), time.monotonic()
    with tiers.real_tier(folder, binaries.ready()) as tier, staged(tier) as stage:
        furniture_of_rights(tier)
        _furnish(tier, count)
        histories, key = asyncio.run(_play(stage, count, seed))
    failing = [(one.seed, found) for one in histories if (found := broken(one, key))]
    for one, found in failing:
        print(f"seed {one}:", *found, sep="\n", flush=True)
    tried = sum(len(one.attempts) for one in histories)
    stored = sum(each.outcome == "stored" for one in histories for each in one.attempts)
    uses = sum(len(one.last("codeuses")) for one in histories)
    broke = sum(len(one.notes) for one in histories)
    print(
        f"{count} histories on kube-apiserver and etcd from seed {seed}: {tried} requests, {stored} stored, {uses} uses of codes and grants, "
        f"{broke} kills, stops and disturbances; {len(failing)} histories broken; {time.monotonic() - began:.0f} s; logs in {folder}"
    )
    return int(bool(failing))


def _furnish(tier: Tier, count: int) -> None:
    """Apply what is enforced and who may have what, and make the namespaces of all histories."""
    tier.kubectl("delete", "clusterpolicy", "no-host")
    tier.kubectl("delete", "grantpolicy", "default")
    objects: list[Any] = [*policies(), *grant_policies()]
    for obj in objects:
        obj["metadata"].pop("uid", None)
        for rule in obj["spec"].get("rules") or ():
            [block] = rule["match"]["any"]
            block["resources"]["namespaces"] = [f"{name}-*" for name in SPACES]
        if "namespaces" in obj["spec"]:
            obj["spec"]["namespaces"] = [f"{name}-*" for name in obj["spec"]["namespaces"]]
    names = [f"{name}-{number}" for number in range(count) for name in SPACES]
    objects += [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]  # fmt: skip
    tier.kubectl("apply", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))  # fmt: skip
    tier.kubectl("wait", "--for=condition=Ready", "clusterpolicy", "--all", "--timeout=60s")
    for name in names:
        tier.kubectl("wait", "--for=create", "serviceaccount/default", "-n", name, "--timeout=60s")


async def _play(stage: Stage, count: int, seed: int) -> tuple[list[History], bytes]:
    """Play all histories; return them with the versions that are theirs, and the key that replicas share."""
    everything, histories = History(seed), []
    admin = stage.client()
    observers = [asyncio.create_task(_observe(stage, kind, everything)) for kind in WATCHED]
    async with Sibling(stage, random.Random(seed)):
        for number in range(count):
            history = History(seed + number, steps_clock=True)
            history.attempts, history.notes = await _live(stage, number, history)
            histories.append(history)
            print(f"seed {seed + number}: {len(history.attempts)} requests, {len(history.notes)} times something broke", flush=True)  # fmt: skip
    await asyncio.to_thread(stage.stop)
    await asyncio.to_thread(stage.start, 0, f"--clock-ahead={AHEAD}")
    await asyncio.sleep(SETTLED)
    key = await shared_key(admin, "kyverno")
    for one in observers:
        one.cancel()
    await asyncio.gather(*observers, return_exceptions=True)
    await admin.close()
    return [_own(everything, one, f"-{number}") for number, one in enumerate(histories)], key


def _own(everything: History, history: History, end: str) -> History:
    """Return a history with what was stored in its namespaces, and with the whole trail."""
    for plural, versions in everything.versions.items():
        history.versions[plural] = [one for one in versions if plural == "auditsegments" or _space_of(one.object).endswith(end)]  # fmt: skip
    return history


def _space_of(obj: dict[str, Any]) -> str:
    spec = obj.get("spec") or {}
    target = spec.get("object") or (spec.get("binding") or {}).get("object") or {}
    return str(target.get("namespace") or obj["metadata"].get("namespace") or "")


async def _live(stage: Stage, number: int, history: History) -> tuple[list[Any], list[str]]:
    loop = asyncio.get_running_loop()
    chance = random.Random(history.seed)
    place = Place(
        stage.client, loop.time, lambda: datetime.now(UTC), history, Board(), pace=0.3, spaces=f"-{number}", changes_lists=False
    )  # fmt: skip
    people = [Person(name, place, random.Random(chance.random())) for name in PEOPLE]
    tasks = [asyncio.create_task(one.act()) for one in people]
    over = asyncio.Event()
    nemesis = asyncio.create_task(_break(stage, number, history, chance, over))
    await asyncio.sleep(SECONDS)
    over.set()
    for one in people:
        one.over.set()
    # what is being started is waited for: two processes of one replica are none that anybody would run
    await asyncio.gather(*tasks, nemesis, return_exceptions=True)
    await _mend(stage)
    return history.attempts, history.notes


async def _break(
    stage: Stage, number: int, history: History, chance: random.Random, over: asyncio.Event
) -> None:
    """Kill a replica or its worker, stop one for a while, or write in between, every few seconds."""
    admin = stage.client()
    try:
        while not over.is_set():
            await _break_once(stage, number, history, chance, admin)
    finally:
        await admin.close()


async def _break_once(
    stage: Stage, number: int, history: History, chance: random.Random, admin: Any
) -> None:
    await asyncio.sleep(chance.uniform(0.5, 3.0))
    replica = chance.randrange(2)
    what, work = chance.choice((("is killed", _kill), ("loses its worker", _kill_worker), ("is stopped", _stop), ("", _disturb), ("", _disturb)))  # fmt: skip
    told = f"replica {replica} {what}" if what else "somebody writes in between"
    history.notes.append(f"{asyncio.get_running_loop().time():7.2f} nemesis: {told}")
    with suppress(KubeError, ProcessLookupError, FileNotFoundError):
        await work(stage, replica, f"-{number}", admin, chance)


async def _kill(stage: Stage, replica: int, *_: Any) -> None:
    await asyncio.to_thread(stage.replicas[replica].kill)
    await asyncio.to_thread(stage.start, replica)


async def _kill_worker(stage: Stage, replica: int, *_: Any) -> None:
    for worker in _children(stage.replicas[replica].pid):
        os.kill(worker, signal.SIGKILL)


async def _stop(stage: Stage, replica: int, _end: str, _admin: Any, chance: random.Random) -> None:
    """Stop a replica with its workers, so that a leader goes on later with what it knew."""
    pid = stage.replicas[replica].pid
    pids = [pid, *_children(pid)]
    for one in pids:
        os.kill(one, signal.SIGSTOP)
    try:
        await asyncio.sleep(chance.uniform(0.5, 20.0))
    finally:
        for one in pids:
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGCONT)


async def _disturb(
    _stage: Stage, _replica: int, end: str, admin: Any, chance: random.Random
) -> None:
    """Write labels to what people write, so that the server has to run their requests again (A3)."""
    for _ in range(20):
        for kind in (PODS, CONFIG_MAPS):
            for one in (await admin.list(kind, f"ack{end}")).items[:6]:
                with suppress(KubeError):
                    await admin.patch(kind, one["metadata"]["name"], f"ack{end}", {"metadata": {"labels": {"proxy": str(chance.randrange(10**6))}}})  # fmt: skip


async def _mend(stage: Stage) -> None:
    """Have both replicas run again."""
    for number, process in stage.replicas.items():
        if not Path(f"/proc/{process.pid}").exists() or not process.is_running:
            await asyncio.to_thread(stage.start, number)


def _children(parent: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


class Sibling:
    """Another webhook beside ours, which refuses some Pods and ConfigMaps after ours may have agreed (A2)."""

    def __init__(self, stage: Stage, chance: random.Random) -> None:
        self._stage, self._chance = stage, chance
        certificates = made_certificates()
        self._authority = base64.b64encode(certificates.bundle).decode()
        self._serving = serving(Routes(reviews={"sibling": self._answer}), certificates)

    async def _answer(self, _rest: str, body: bytes, _budget: float) -> bytes:
        request = orjson.loads(body)["request"]
        refuses = self._chance.random() < 0.1 and request["userInfo"]["username"] in PEOPLE
        said = {"status": {"message": "another webhook denied it"}} if refuses else {}
        response = {"uid": request["uid"], "allowed": not refuses, **said}
        return orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})  # fmt: skip

    async def __aenter__(self) -> None:
        server, _, _ = await self._serving.__aenter__()
        webhook = {
            "name": "sibling.example.com",
            "clientConfig": {"url": f"https://127.0.0.1:{server.port}/sibling", "caBundle": self._authority},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods", "configmaps"]}],
            "namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kyverno", "kube-system"]}]},
            "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
        }  # fmt: skip
        made = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "sibling"}, "webhooks": [webhook]}  # fmt: skip
        await asyncio.to_thread(self._stage.tier.kubectl, "apply", "-f", "-", given=json.dumps(made))  # fmt: skip

    async def __aexit__(self, *error: object) -> None:
        await asyncio.to_thread(self._stage.tier.kubectl, "delete", "validatingwebhookconfiguration", "sibling")  # fmt: skip
        await self._serving.__aexit__(None, None, None)


async def _observe(stage: Stage, kind: Any, history: History) -> None:
    """Note every version of every object of a kind, from now on."""
    loop, client = asyncio.get_running_loop(), stage.client()
    version = (await client.list(kind)).resource_version
    try:
        while True:
            with suppress(KubeError):
                async for event in client.watch(kind, version):
                    version = event.object["metadata"]["resourceVersion"]
                    if event.type != "BOOKMARK":
                        obj = {"apiVersion": kind.api_version, "kind": kind.kind, **event.object}
                        history.stored(kind.plural, Version(loop.time(), datetime.now(UTC), event.type, obj))  # fmt: skip
    finally:
        await client.close()
