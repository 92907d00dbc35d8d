"""`python -m tests.e2e.faults [ROW…]`: what becomes of requests while something breaks, as the table of docs/operations.md.

Three replicas as processes on a real API server, behind an address that goes by their readiness as a Service does. Each row
breaks one thing while Pods are created without a pause, and prints three figures. Nothing bad may be let in, in any row; good
Pods may be refused only where the row says so, because nobody could answer for them.
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import aging, engine, tiers
from .breaking import disk, empty, fill, last_release, tree_of
from .load import Load
from .place import PATIENCE, REPLICAS, Place
from .replicas import NO_HOST_IPC
from .runs import parser_of, played
from .scenario import ScenarioError
from .server import binaries
from .server.balancer import balanced
from .server.processes import StartError, free_ports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .tiers import Tier

OUTAGE = 60.0
_ENOUGH = 60
"""Right answers before and after a disturbance that are waited for."""


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


def go_back_and_forth(place: Place) -> None:
    """Roll over to the controllers of the last release, and to those of this commit again, with what both have stored."""
    assert place.release is not None
    for tree, words in ((place.release, "the last release"), (tiers.ROOT, "this commit")):
        place.tree = tree
        began = time.monotonic()
        roll_over(place)
        place.say(f"        all replicas were of {words} after {time.monotonic() - began:.1f} s")
        exception = _EXCEPTION.format("from-" + words.split()[-1])
        place.tier.kubectl("apply", "-f", "-", given=exception)


def fill_disk(place: Place) -> None:
    """Fill the disk of etcd, API server and replicas for half a minute; what ended for it is started again."""
    etcd = place.tier.programs["etcd"]
    fill(place.tier.folder)
    try:
        time.sleep(OUTAGE / 2)
    finally:
        empty(place.tier.folder)
    if not etcd.is_running:
        place.say("        etcd had ended")
        etcd.start_again()
    place.until(place.tier.is_ready, PATIENCE, "the API server answers")


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


_EXCEPTION = """
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {{name: {0}, namespace: default}}
spec:
  exceptions: [{{policyName: no-host-ipc, ruleNames: [host-ipc]}}]
  match: {{any: [{{resources: {{kinds: [Pod], names: ["{0}"]}}}}]}}
"""
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
    place.until(place.tier.is_ready, PATIENCE, "the API server answers")


def stop_etcd(place: Place) -> None:
    """Stop etcd for a minute (SIGSTOP): the API server can neither read nor write."""
    etcd = place.tier.programs["etcd"]
    etcd.suspend()
    time.sleep(OUTAGE)
    etcd.resume()
    place.until(place.tier.is_ready, PATIENCE, "the API server answers")


def rotate(place: Place) -> None:
    """Have authority and certificate replaced because their end is near, while requests come."""
    before = aging.shown(place.tier)
    place.until(aging.is_due, PATIENCE, "the authority is due")
    place.tier.kubectl("annotate", "clusterpolicy/no-host-ipc", f"e2e/looked-at={time.monotonic()}")
    took = place.until(lambda: aging.is_rotated(place.tier, before), PATIENCE, "both are new")
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
    "disk": Row("the disk of etcd and of all replicas is full for half a minute", fill_disk, may_refuse=True),
    "upgrade": Row("all replicas go back to the last release, and to this commit again", go_back_and_forth),
    "nothing": Row("all replicas are killed and start from nothing", stop_everything, may_refuse=True),
}  # fmt: skip


def main() -> int:
    """Play rows and return 1 when one is not as it must be."""
    parser = parser_of("faults", __doc__)
    parser.add_argument(
        "--release",
        default=last_release(),
        metavar="COMMIT",
        help="the last release, for the row `upgrade` (its tag)",
    )
    parser.add_argument("rows", nargs="*", metavar="ROW", help=" ".join(ROWS))
    args = parser.parse_args()
    if unknown := set(args.rows) - set(ROWS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")

    def play(folder: Path) -> int:
        with disk(folder) as has_disk:
            failed = _play(args.rows or list(ROWS), folder, args.release, has_disk=has_disk)
        print(f"failed: {', '.join(failed)}" if failed else "all rows are as they must be")
        return int(bool(failed))

    return played("faults", play, keep=args.keep)


def _lacking(place: Place, row: Row) -> str:
    """Return what a row takes and is not here, empty where nothing is missing."""
    if row.doing is step_clocks and place.clocks is None:
        return "libfaketime is not here (Debian package libfaketime)"
    if row.doing is fill_disk and not place.has_disk:
        return "a disk of its own takes root"
    if row.doing is go_back_and_forth and place.release is None:
        return "no release is tagged; name one with --release"
    return ""


def _play(names: list[str], folder: Path, release: str, *, has_disk: bool) -> list[str]:
    """Play rows on one server and return the names of those that are not as they must be."""
    failed = []
    with ExitStack() as stack:
        tier = stack.enter_context(tiers.real_tier(folder, binaries.ready()))
        place = stack.enter_context(_place(tier, wants_clocks="clocks" in names))
        place.has_disk = has_disk
        if release and "upgrade" in names:
            place.release = tree_of(release, folder)
        for name in names:
            if lacking := _lacking(place, ROWS[name]):
                print(f"{name}: skipped, {lacking}", flush=True)
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
        load.wait_for(_ENOUGH, PATIENCE)
        load.longest = 0.0
        try:
            row.doing(place)
            place.start_all()
            if not load.wait_for(_ENOUGH, PATIENCE):
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
