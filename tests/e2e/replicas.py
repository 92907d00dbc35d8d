"""Two replicas behind one address: bad Pods are sent without a pause while the leader is killed, started, and told to leave.

Nothing bad may ever be let in, the loops must move to the other replica within twenty seconds, and what must be generated
meanwhile is generated.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from . import engine
from .scenario import ScenarioError
from .server.balancer import balanced
from .server.processes import Process, free_ports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .tiers import Tier

Answer = TypeVar("Answer")
MOVED_WITHIN = 20.0
NO_HOST_IPC = """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: no-host-ipc}
spec:
  validationFailureAction: Enforce
  background: false
  rules:
  - name: host-ipc
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: no host IPC, pattern: {spec: {"=(hostIPC)": "false"}}}
"""
_POLICIES = (
    NO_HOST_IPC
    + """
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: make-config}
spec:
  rules:
  - name: config
    match: {any: [{resources: {kinds: [Namespace]}}]}
    generate:
      apiVersion: v1
      kind: ConfigMap
      name: made
      namespace: "{{ request.object.metadata.name }}"
      synchronize: true
      data: {data: {by: the leader}}
"""
)


@dataclass(slots=True)
class Flood:
    """Pods that must be refused, one after the other, until it is stopped."""

    tier: Tier
    let_in: list[str] = field(default_factory=list)
    refused: int = 0
    unanswered: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Send Pods until stopped."""
        number = 0
        while not self._stop.is_set():
            number += 1
            pod = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"bad-{number}", "namespace": "default"},
                "spec": {"hostIPC": True, "containers": [{"name": "c", "image": "busybox"}]},
            }
            done = subprocess.run(
                ["kubectl", f"--kubeconfig={self.tier.kubeconfig}", "create", "-f", "-"],
                input=json.dumps(pod),
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode == 0:
                self.let_in.append(f"bad-{number}")
            elif "no host IPC" in done.stderr:
                self.refused += 1
            else:
                self.unanswered += 1

    def stop(self) -> None:
        """Send no more."""
        self._stop.set()


def run(tier: Tier, say: Callable[[str], None]) -> None:
    """Play everything; raises ScenarioError when something is not as it must be."""
    with ExitStack() as stack:
        ports = free_ports(2)
        address = f"https://127.0.0.1:{stack.enter_context(balanced(ports))}"
        started = {f"replica-{n}": _start(tier, n, ports[n], address) for n in range(2)}
        stack.callback(_stop_all, started)
        tier.kubectl("apply", "-f", "-", given=_POLICIES)
        tier.kubectl("wait", "--for=condition=Ready", "clusterpolicy", "--all", "--timeout=60s")
        flood = Flood(tier)
        sender = threading.Thread(target=flood.run)
        sender.start()
        stack.callback(sender.join)
        stack.callback(flood.stop)

        first = _leader(tier)
        began = time.monotonic()
        started[first].kill()
        second = _until(lambda: _leader(tier, but=first), MOVED_WITHIN, "another replica leads")
        say(f"{time.monotonic() - began:6.1f} s  until {second} led after {first} was killed")
        _generates(tier, "after-kill", began, say)
        number = int(first[-1])
        started[first] = _start(tier, number, ports[number], address)
        began = time.monotonic()
        started[second].stop(60)
        third = _until(lambda: _leader(tier, but=second), MOVED_WITHIN, "another replica leads")
        say(
            f"{time.monotonic() - began:6.1f} s  until {third} led after {second} was told to leave, its leaving included"
        )
        _generates(tier, "after-leave", began, say)
        flood.stop()
        sender.join()
        say(
            f"          {flood.refused} bad Pods refused, {flood.unanswered} not answered and so refused, {len(flood.let_in)} let in"
        )
        if flood.let_in:
            raise ScenarioError(f"let in: {', '.join(flood.let_in)}")
        if not flood.refused:
            raise ScenarioError("no Pod was refused by the policy, so nothing was shown")


def _start(tier: Tier, number: int, port: int, address: str) -> Process:
    return engine.start(tier, f"replica-{number}", port=port, address=address)


def _stop_all(started: dict[str, Process]) -> None:
    for process in started.values():
        process.stop()


def _leader(tier: Tier, but: str = "") -> str:
    """Return who holds the Lease; nobody counts as an empty name, and so does `but`."""
    lease = tier.read("lease", "kyverno", "-n", engine.NAMESPACE)
    holder = str(lease["spec"].get("holderIdentity") or "")
    name = next((part for part in _names() if part in holder), "")
    return "" if name == but else name


def _names() -> Iterator[str]:
    yield from ("replica-0", "replica-1")


def _generates(tier: Tier, namespace: str, began: float, say: Callable[[str], None]) -> None:
    _until(lambda: _created(tier, namespace), MOVED_WITHIN, "a namespace can be made")
    _until(lambda: _has(tier, namespace), MOVED_WITHIN, "the loops generate again")
    say(f"{time.monotonic() - began:6.1f} s  until the loops had generated for a new namespace")


def _created(tier: Tier, namespace: str) -> bool:
    try:
        tier.kubectl("create", "namespace", namespace)
    except RuntimeError as error:
        return "already exists" in str(error)
    return True


def _has(tier: Tier, namespace: str) -> bool:
    return "made" in tier.kubectl("get", "configmaps", "-n", namespace, "-o", "name")


def _until(ask: Callable[[], Answer], seconds: float, what: str) -> Answer:
    end = time.monotonic() + seconds
    while not (answer := ask()):
        if time.monotonic() > end:
            raise ScenarioError(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.2)
    return answer
