"""`python -m tests.e2e.faults [ROW…]`: what becomes of requests while something breaks, as the table of docs/operations.md.

Three replicas as processes on a real API server, behind an address that goes by their readiness as a Service does. Each row
breaks one thing while Pods are created without a pause, and prints three figures. Nothing bad may be let in, in any row; good
Pods may be refused only where the row says so, because nobody could answer for them.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controllers.manifests.deploy import deployment
from controllers.manifests.written import LEASE

from . import aging, engine, tiers
from .load import Load
from .replicas import NO_HOST_IPC
from .scenario import ScenarioError
from .server import binaries
from .server.balancer import balanced
from .server.processes import StartError, free_ports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .server.processes import Process
    from .tiers import Tier

REPLICAS = 3
OUTAGE = 60.0
LEADS_WITHIN = 15.0
"""Seconds after which another replica leads."""
_ENOUGH = 60
"""Right answers before and after a disturbance that are waited for."""
_PATIENCE = 150.0


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

    def start_all(self) -> None:
        """Start replicas that do not run, and wait until all are asked."""
        for number, port in enumerate(self.ports):
            name = f"replica-{number}"
            if name in self.replicas and self.replicas[name].is_running:
                continue
            flags = {"environment": aging.following(self.clocks)} if self.clocks else {}
            self.replicas[name] = engine.start(self.tier, name, port=port, address=self.address, wait=False, **flags)  # fmt: skip
        self.until(lambda: set(self.ready) == set(self.ports), _PATIENCE, "all replicas are ready")

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


def kill_leader(place: Place) -> None:
    """Kill the leader, and start it again."""
    name = place.leader()
    for pid in place.replicas[name].family():
        aging.kill(pid)
    place.replicas[name].kill()
    place.another_leads(name)
    place.start_all()


def roll_over(place: Place) -> None:
    """End one replica after the other as a rolling update does: told to go, gone, another one ready."""
    for port, name in zip(place.ports, list(place.replicas), strict=True):
        if port in place.ready:
            place.ready.remove(port)
        place.replicas[name].stop(60)
        place.start_all()


def suspend_leader(place: Place) -> None:
    """Stop the leader with all its processes for half a minute (SIGSTOP), and let it go on."""
    name = place.leader()
    place.replicas[name].suspend()
    try:
        place.another_leads(name)
        time.sleep(OUTAGE / 2)
    finally:
        place.replicas[name].resume()


def suspend_parent(place: Place) -> None:
    """Stop only the leading process; its worker, which is fed by it, must not go on deciding by what was then."""
    name = place.leader()
    process = place.replicas[name]
    aging.suspend(process.pid)
    try:
        place.another_leads(name)
        place.tier.kubectl("apply", "-f", "-", given=_LATER)
        place.tier.kubectl("wait", "--for=condition=Ready", "clusterpolicy/no-host-pid", "--timeout=60s")  # fmt: skip
        time.sleep(OUTAGE / 4)
        let_in = sum(place.tier.is_created(_HOST_PID) for _ in range(10 * REPLICAS))
        if let_in:
            raise ScenarioError(f"let in by what was known before: {let_in} of {10 * REPLICAS}")
    finally:
        aging.resume(process.pid)
        place.tier.kubectl("delete", "clusterpolicy", "no-host-pid", "--ignore-not-found")


_LATER = NO_HOST_IPC.replace("no-host-ipc", "no-host-pid").replace("hostIPC", "hostPID").replace("host IPC", "host PID")  # fmt: skip
_HOST_PID = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "later-", "namespace": "default"},
    "spec": {"hostPID": True, "containers": [{"name": "c", "image": "busybox"}]},
}


def restart_api_server(place: Place) -> None:
    """End the API server at once and start it again."""
    server = place.tier.programs["kube-apiserver"]
    server.kill()
    server.start_again()
    place.until(place.tier.is_ready, _PATIENCE, "the API server answers")


def stop_etcd(place: Place) -> None:
    """Stop etcd for a minute (SIGSTOP): the API server can neither read nor write."""
    etcd = place.tier.programs["etcd"]
    etcd.suspend()
    time.sleep(OUTAGE)
    etcd.resume()
    place.until(place.tier.is_ready, _PATIENCE, "the API server answers")


def rotate(place: Place) -> None:
    """Have authority and certificate replaced because their end is near, while requests come."""
    before = aging.shown(place.tier)
    place.until(aging.is_due, _PATIENCE, "the authority is due")
    place.tier.kubectl("annotate", "clusterpolicy/no-host-ipc", f"e2e/looked-at={time.monotonic()}")
    took = place.until(lambda: aging.is_rotated(place.tier, before), _PATIENCE, "both are new")
    place.say(f"        authority and certificate were new after {took:.1f} s")


def stop_everything(place: Place) -> None:
    """Kill all replicas with `Fail` webhooks in place, delete what they kept, and start from nothing."""
    for process in place.replicas.values():
        for pid in process.family():
            aging.kill(pid)
        process.kill()
    place.ready.clear()
    time.sleep(OUTAGE / 6)
    place.tier.kubectl("-n", engine.NAMESPACE, "delete", "secrets,leases", "--all")
    began = time.monotonic()
    place.start_all()
    place.say(
        f"        all replicas were ready {time.monotonic() - began:.1f} s after they were started"
    )


def step_clocks(place: Place) -> None:
    """Set the clocks of all replicas an hour ahead, then an hour back, while they run."""
    assert place.clocks is not None
    for offset in ("+3600", "-3600", "+0"):
        place.clocks.write_text(offset)
        time.sleep(OUTAGE / 4)


@dataclass(frozen=True, slots=True)
class Row:
    """What is broken, and whether good Pods may be refused meanwhile because nobody can answer for them."""

    words: str
    doing: Callable[[Place], None]
    may_refuse: bool = False


ROWS = {
    "certificates": Row("authority and certificate are replaced", rotate),
    "killed": Row("the leader of three replicas is killed", kill_leader),
    "rolling": Row("all replicas are rolled over", roll_over),
    "suspended": Row("the leader hangs for half a minute (SIGSTOP)", suspend_leader, may_refuse=True),
    "parent": Row("only the leading process hangs, its worker does not", suspend_parent, may_refuse=True),
    "api-server": Row("the API server is restarted", restart_api_server),
    "etcd": Row("etcd hangs for a minute", stop_etcd, may_refuse=True),
    "clocks": Row("the replicas' clocks step an hour ahead, an hour back", step_clocks),
    "nothing": Row("all replicas are killed and start from nothing", stop_everything, may_refuse=True),
}  # fmt: skip


def main() -> int:
    """Play rows and return 1 when one is not as it must be."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.faults", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="keep the folder with logs")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=" ".join(ROWS))
    args = parser.parse_args()
    if unknown := set(args.rows) - set(ROWS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    folder = Path(tempfile.mkdtemp(prefix="kpolicy-faults-"))
    try:
        failed = _play(args.rows or list(ROWS), folder)
    except (binaries.ToolMissingError, StartError, ScenarioError, RuntimeError, TimeoutError) as error:  # fmt: skip
        print(f"FAILED (logs in {folder} with --keep):\n{error}", file=sys.stderr)
        failed = ["set-up"]
    if not args.keep:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"failed: {', '.join(failed)}" if failed else "all rows are as they must be")
    return 1 if failed else 0


def _play(names: list[str], folder: Path) -> list[str]:
    """Play rows on one server and return the names of those that are not as they must be."""
    failed = []
    with ExitStack() as stack:
        tier = stack.enter_context(tiers.real_tier(folder, binaries.ready()))
        place = stack.enter_context(_place(tier, wants_clocks="clocks" in names))
        for name in names:
            if ROWS[name].doing is step_clocks and place.clocks is None:
                print(f"{name}: skipped, libfaketime is not here (Debian package libfaketime)", flush=True)  # fmt: skip
                continue
            if not _holds(place, ROWS[name]):
                failed.append(name)
    return failed


@contextmanager
def _place(tier: Tier, *, wants_clocks: bool) -> Iterator[Place]:
    place = Place(tier, free_ports(REPLICAS), lambda text: print(text, flush=True))
    stop = threading.Event()
    prober = threading.Thread(target=place.probe, args=(stop,))
    with balanced(place.ready) as port:
        place.address = f"https://127.0.0.1:{port}"
        engine.install(tier)
        aging.keep_old_certificates(tier, place.address)
        if wants_clocks and aging.library():
            place.clocks = tier.folder / "clocks"
            place.clocks.write_text("+0")
        prober.start()
        try:
            place.start_all()
            tier.kubectl("apply", "-f", "-", given=NO_HOST_IPC)
            tier.kubectl("wait", "--for=condition=Ready", "clusterpolicy/no-host-ipc", "--timeout=60s")  # fmt: skip
            yield place
        finally:
            stop.set()
            prober.join()
            for process in place.replicas.values():
                process.resume()
                process.stop()


def _holds(place: Place, row: Row) -> bool:
    """Play a row; tell whether nothing bad was let in and nothing good refused that need not be."""
    began = time.monotonic()
    problem = ""
    with Load(place.tier.kubeconfig) as load:
        load.wait_for(_ENOUGH, _PATIENCE)
        load.longest = 0.0
        try:
            row.doing(place)
            place.start_all()
            if not load.wait_for(_ENOUGH, _PATIENCE):
                problem = "requests are not answered any more"
        except (ScenarioError, RuntimeError, StartError) as error:
            problem = str(error)
    place.say(f"{time.monotonic() - began:6.1f} s  {row.words}: {load.said()}")
    for text in (problem, *load.wrongly_refused[:2], *sorted(load.problems)[:2]):
        if text:
            place.say(f"        {text[:300]}")
    is_right = not load.let_in and (row.may_refuse or not load.wrongly_refused)
    return is_right and not problem


if __name__ == "__main__":
    sys.exit(main())
