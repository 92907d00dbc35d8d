"""What is played on a node: installed as people install it, used, disturbed while it is used, and removed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from controllers.manifests.deploy import CLIENT_CA_SECRET
from tests.e2e import scenario
from tests.e2e.engine import NAMESPACE
from tests.e2e.load import Load
from tests.e2e.replicas import NO_HOST_IPC
from tests.e2e.scenario import ScenarioError
from tests.e2e.tiers import ROOT

from .cluster import NODE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.tiers import Tier

DEPLOYMENT = "deployment/kyverno-admission-controller"
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


def install(tier: Tier, image: str) -> None:
    """Install the controllers, with the authority by which they know the API server, and wait until all replicas are ready."""
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
    tier.kubectl(
        "apply", "--server-side", "-f", "-", given=plugin(tier, "install", "--image", image)
    )
    rolled_out(tier)


def rolled_out(tier: Tier) -> None:
    """Wait until the Deployment is as it is written."""
    tier.kubectl("-n", NAMESPACE, "rollout", "status", DEPLOYMENT, "--timeout=120s")


def uninstall(tier: Tier) -> None:
    """Remove everything, the kinds with it, and wait until the namespace and what was in it are gone."""
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
    for what, doing in (("a replica of three is killed", _kill_one), ("all replicas are rolled over", _roll_over)):  # fmt: skip
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


def _roll_over(tier: Tier) -> None:
    tier.kubectl("-n", NAMESPACE, "rollout", "restart", DEPLOYMENT)
