"""What is played on a node: installed as people install it, used, disturbed while it is used, and removed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from controllers.manifests.deploy import CLIENT_CA_SECRET, SELECTOR
from tests.e2e import scenario
from tests.e2e.engine import NAMESPACE
from tests.e2e.load import Load
from tests.e2e.replicas import NO_HOST_IPC
from tests.e2e.scenario import ScenarioError
from tests.e2e.server.processes import SLOWNESS
from tests.e2e.tiers import ROOT
from tests.packaging import chart, helm

from .cluster import NODE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.tiers import Tier

DEPLOYMENT = "deployment/kyverno-admission-controller"
_EVICTED_WITHIN = 180.0
_EATS = "a = [b'x' * (1 << 24) for _ in range(64)]"
_PASSING = frozenset({"events", "events.events.k8s.io", "leases.coordination.k8s.io", "endpointslices.discovery.k8s.io", "endpoints"})  # fmt: skip
"""Kinds that the cluster writes by itself all the time."""


def plugin(tier: Tier, *words: str) -> str:
    """Run `kubectl kpolicy` as the administrator; returns what it printed, raises RuntimeError."""
    done = subprocess.run(
        [sys.executable, "-m", "kubectl_kpolicy", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "KUBECONFIG": str(tier.kubeconfig)},
    )
    if done.returncode:
        raise RuntimeError(f"kubectl kpolicy {' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


def install(tier: Tier, image: str) -> str:
    """Install the controllers and wait until all replicas are ready; returns by what: the chart, or without helm `install`.

    They get the authority by which they know the API server.
    """
    tier.kubectl("create", "namespace", NAMESPACE)
    tier.kubectl(
        "-n",
        NAMESPACE,
        "create",
        "secret",
        "generic",
        CLIENT_CA_SECRET,
        f"--from-file=ca.crt={tier.webhook_authority}",
    )
    if helm.program():
        _helm(
            tier,
            "install",
            str(chart.CHARTS / chart.CHART),
            f"--set=image={image},removeKinds=true",
        )
    else:
        manifests = plugin(tier, "install", "--image", image)
        tier.kubectl("apply", "--server-side", "-f", "-", given=manifests)
    rolled_out(tier)
    return "the chart" if helm.program() else "`install`"


def _helm(tier: Tier, what: str, *words: str) -> None:
    command = [
        str(helm.program()),
        what,
        "kpolicy",
        *words,
        "-n",
        NAMESPACE,
        f"--kubeconfig={tier.kubeconfig}",
        "--timeout=300s",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"helm {what}: {done.stdout}{done.stderr}")


def rolled_out(tier: Tier) -> None:
    """Wait until the Deployment is as it is written."""
    tier.kubectl(
        "-n", NAMESPACE, "rollout", "status", DEPLOYMENT, f"--timeout={120 * SLOWNESS:.0f}s"
    )


def uninstall(tier: Tier) -> None:
    """Remove everything, the kinds with it, and wait until the namespace and what was in it are gone."""
    if helm.program():
        _helm(tier, "uninstall")
        tier.kubectl("delete", "namespace", NAMESPACE)
    else:
        plugin(tier, "uninstall", "--apply", "--crds")
    tier.kubectl("wait", "--for=delete", f"namespace/{NAMESPACE}", "--timeout=120s")


def play(tier: Tier, name: str, known: dict[str, str], say: Callable[[str], None]) -> None:
    """Play a scenario against what is installed; the clock of controllers in Pods is moved by a flag of theirs."""
    played = scenario.load(name)

    def forward(duration: str) -> None:
        flag = json.dumps([{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": f"--clock-ahead={duration}"}])  # fmt: skip
        tier.kubectl("-n", NAMESPACE, "patch", DEPLOYMENT, "--type=json", "-p", flag)
        rolled_out(tier)

    scenario.Runner(NODE, tier.kubeconfig, tier.folder, forward, say=say, known=dict(known)).run(
        played
    )


def everything(tier: Tier) -> set[str]:
    """Return the names of all objects of the cluster but those that it writes by itself all the time.

    Asked again while kinds are still listed that have just been removed.
    """
    end = time.monotonic() + 30
    while True:
        listed = tier.kubectl(
            "api-resources", "--cached=false", "--verbs=list", "-o", "name"
        ).split()
        kinds = ",".join(one for one in listed if one not in _PASSING)
        try:
            return set(tier.kubectl("get", kinds, "-A", "-o", "name").split())
        except RuntimeError:
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


def disturb(tier: Tier, say: Callable[[str], None]) -> None:
    """Kill a replica, and roll all of them over, while Pods are created; raises ScenarioError for a wrong answer."""
    tier.kubectl("apply", "-f", "-", given=NO_HOST_IPC)
    tier.kubectl("wait", "--for=condition=Ready", "clusterpolicy/no-host-ipc", "--timeout=60s")
    rows = {
        "a replica of three is killed": _kill_one,
        "all Pods are evicted one after another, as by a drain": _evict_all,
        "a replica of three hits its limit of memory": _use_up_memory,
        "all replicas are rolled over": _roll_over,
    }
    for what, doing in rows.items():
        began = time.monotonic()
        with Load(tier.kubeconfig) as load:
            doing(tier)
            rolled_out(tier)
        say(f"{time.monotonic() - began:6.1f} s  {what}: {load.said()}")
        if load.let_in or load.wrongly_refused or not load.refused or not load.admitted:
            raise ScenarioError(f"{what}: {load.said()}\n" + "\n".join(load.wrongly_refused[:3]))
    tier.kubectl("delete", "clusterpolicy", "no-host-ipc")


def _kill_one(tier: Tier) -> None:
    name = tier.kubectl("-n", NAMESPACE, "get", "pods", "-o", "jsonpath={.items[0].metadata.name}")
    tier.kubectl("-n", NAMESPACE, "delete", "pod", name, "--grace-period=0", "--force")
    time.sleep(3)


def _pods(tier: Tier) -> list[str]:
    found = tier.read(
        "pods", "-n", NAMESPACE, "-l", ",".join(f"{key}={value}" for key, value in SELECTOR.items())
    )
    return [one["metadata"]["name"] for one in found["items"]]


def _evict_all(tier: Tier) -> None:
    """Have every Pod go as soon as the budget lets it; there is one node, so others come to the same place."""
    for name in _pods(tier):
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": NAMESPACE},
        }
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction"
        end = time.monotonic() + _EVICTED_WITHIN
        while True:
            try:
                tier.kubectl("create", "--raw", path, "-f", "-", given=json.dumps(eviction))
                break
            except RuntimeError as error:
                if "disruption budget" not in str(error) or time.monotonic() > end:
                    raise
            time.sleep(1)


def _use_up_memory(tier: Tier) -> None:
    """Take more memory within a replica's container than it may have: the kernel ends processes there until it has enough."""
    words = ["-n", NAMESPACE, "exec", _pods(tier)[0], "--", "/app/bin/python", "-c", _EATS]
    with suppress(RuntimeError):
        tier.kubectl(*words)
    time.sleep(3)


def _roll_over(tier: Tier) -> None:
    tier.kubectl("-n", NAMESPACE, "rollout", "restart", DEPLOYMENT)
