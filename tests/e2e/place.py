"""Three replicas as processes on a real API server, behind an address that goes by their readiness as a Service does."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from controllers.manifests.deploy import deployment
from controllers.manifests.written import LEASE

from . import aging, engine, tiers
from .scenario import ScenarioError
from .server.processes import SLOWNESS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .server.processes import Process
    from .tiers import Tier

REPLICAS = 3
LEADS_WITHIN = 15.0
"""Seconds after which another replica leads."""
PATIENCE = 150.0 * SLOWNESS


@dataclass(slots=True)
class Place:
    """Three replicas of which those that are ready are reached at one address."""

    tier: Tier
    ports: list[int]
    say: Callable[[str], None]
    replicas: dict[str, Process] = field(default_factory=dict)
    ready: list[int] = field(default_factory=list)
    address: str = ""
    clocks: Path | None = None
    has_disk: bool = False
    release: Path | None = None
    tree: Path = tiers.ROOT

    def start_all(self) -> None:
        """Start replicas that do not run, and wait until all are asked."""
        for number, port in enumerate(self.ports):
            name = f"replica-{number}"
            if name in self.replicas and self.replicas[name].is_running:
                continue
            flags = {"environment": aging.following(self.clocks)} if self.clocks else {}
            self.replicas[name] = engine.start(
                self.tier,
                name,
                port=port,
                address=self.address,
                wait=False,
                tree=self.tree,
                **flags,
            )
        self.until(lambda: set(self.ready) == set(self.ports), PATIENCE, "all replicas are ready")

    def leader(self) -> str:
        """Return the name of the replica that holds the Lease, empty for nobody."""
        lease = self.tier.read("lease", LEASE, "-n", engine.NAMESPACE)
        holder = str(lease["spec"].get("holderIdentity") or "")
        return next((name for name in self.replicas if name in holder), "")

    def until(self, holds: Callable[[], bool], seconds: float, what: str) -> float:
        """Wait until something holds and return how long it took; raises ScenarioError when it takes longer."""
        began = time.monotonic()
        while not self._holds(holds):
            if time.monotonic() - began > seconds:
                raise ScenarioError(f"not within {seconds:.0f} s: {what}")
            time.sleep(0.2)
        return time.monotonic() - began

    def another_leads(self, than: str) -> None:
        """Wait until another replica leads and say how long it took."""
        took = self.until(lambda: self.leader() not in ("", than), 4 * LEADS_WITHIN, "another replica leads")  # fmt: skip
        self.say(f"        another replica led after {took:.1f} s")

    @staticmethod
    def _holds(holds: Callable[[], bool]) -> bool:
        try:
            return holds()
        except (RuntimeError, OSError):
            return False

    def probe(self, stop: threading.Event) -> None:
        """Keep `ready` as a kubelet would, by the probe of the Deployment, until stopped."""
        (container,) = deployment()["spec"]["template"]["spec"]["containers"]
        probe = container["readinessProbe"]
        allowed = probe.get("failureThreshold", 3)
        threads = [threading.Thread(target=self._probe_one, args=(port, probe, allowed, stop)) for port in self.ports]  # fmt: skip
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _probe_one(self, port: int, probe: dict[str, Any], allowed: int, stop: threading.Event) -> None:  # fmt: skip
        failures = 0
        while not stop.is_set():
            failures = 0 if self._holds(lambda: self._answers(port, probe)) else failures + 1
            if not failures and port not in self.ready:
                self.ready.append(port)
            elif failures >= allowed and port in self.ready:
                self.ready.remove(port)
            # until a replica was ever ready it is asked more often, so that a start is not counted in whole periods
            stop.wait(probe["periodSeconds"] if port in self.ready else 0.5)

    @staticmethod
    def _answers(port: int, probe: dict[str, Any]) -> bool:
        path = probe["httpGet"]["path"]
        return tiers.is_answered(f"https://127.0.0.1:{port}{path}", seconds=probe["timeoutSeconds"])
