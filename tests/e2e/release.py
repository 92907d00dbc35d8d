"""`python -m tests.e2e.release`: the Helm chart on a real API server: installed, used, upgraded, rolled back, deleted.

There is no node, so what a kubelet would do is done here: Pods of Jobs are carried out as commands under the Pods' own accounts, and
a replica runs as a process for as long as the Deployment wants one. Afterwards the API server has what it had before; without
`removeKinds` it also has the kinds, and what was written in them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from controllers import installation
from controllers.manifests.crds import definitions
from controllers.manifests.deploy import NAME, SELECTOR
from tests.packaging import chart, helm

from . import engine, rights, tiers
from .node.walk import everything
from .replicas import NO_HOST_IPC
from .runs import parser_of, played
from .scenario import ScenarioError
from .server import binaries
from .server.real import AUDIT_LOG

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .server.processes import Process
    from .tiers import Tier

HOOKS = {one.name for one in (installation.leaving(), installation.bringing_kinds())}
_RUNNING = "replica-of-the-test"
_KINDS = "customresourcedefinition.apiextensions.k8s.io"
_BAD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "bad-", "namespace": "default"},
    "spec": {"hostIPC": True, "containers": [{"name": "c", "image": "busybox"}]},
}


class Kubelet(threading.Thread):
    """Carries out Pods of Jobs, and ends the replica once the Deployment wants none."""

    def __init__(self, tier: Tier) -> None:
        super().__init__(daemon=True)
        self.tier = tier
        self.replica: Process | None = None
        self.done: list[str] = []
        self.problem = ""
        self._is_over = threading.Event()

    def start_replica(self) -> None:
        """Run a replica, with a Pod that stands for it and that goes when the replica has ended."""
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": _RUNNING,
                "labels": dict(SELECTOR),
                "finalizers": ["kpolicy.io/e2e"],
            },
            "spec": _restricted({"containers": [{"name": "c", "image": "busybox"}]}),
        }
        self.tier.kubectl("-n", engine.NAMESPACE, "apply", "-f", "-", given=json.dumps(pod))
        self.replica = engine.start(self.tier, "engine")

    def run(self) -> None:
        """Look every half second until stopped."""
        while not self._is_over.wait(0.5):
            try:
                self._look()
            except (RuntimeError, KeyError, IndexError) as error:
                self.problem = str(error)

    def stop(self) -> None:
        """Look no more, and end what runs."""
        self._is_over.set()
        self.join()
        if self.replica is not None:
            self.replica.stop()

    def _look(self) -> None:
        for pod in self.tier.read("pods", "-n", engine.NAMESPACE, "-l", "batch.kubernetes.io/job-name")["items"]:  # fmt: skip
            if pod["status"].get("phase") == "Pending" and pod["metadata"]["uid"] not in self.done:
                self.done.append(pod["metadata"]["uid"])
                threading.Thread(target=self._carry_out, args=(pod,), daemon=True).start()
        if self.replica is not None and self.wanted() == 0:
            self.replica.stop(60)
            self.replica = None
            with suppress(RuntimeError):
                self.tier.kubectl("-n", engine.NAMESPACE, "patch", "pod", _RUNNING, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')  # fmt: skip
                self.tier.kubectl("-n", engine.NAMESPACE, "delete", "pod", _RUNNING, "--ignore-not-found")  # fmt: skip

    def wanted(self) -> int:
        """Return how many replicas the Deployment wants."""
        return int(self.tier.read("deployment", NAME, "-n", engine.NAMESPACE)["spec"]["replicas"])

    def _carry_out(self, pod: dict[str, Any]) -> None:
        (container,) = pod["spec"]["containers"]
        kubeconfig = self.tier.account(engine.NAMESPACE, pod["spec"]["serviceAccountName"])
        words = container["command"][container["command"].index("-m") :]
        done = subprocess.run(
            [sys.executable, *words, *container["args"], f"--kubeconfig={kubeconfig}"],
            cwd=tiers.ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        (self.tier.folder / f"{pod['metadata']['name']}.log").write_text(done.stdout + done.stderr)
        phase = {"status": {"phase": "Failed" if done.returncode else "Succeeded"}}
        name = pod["metadata"]["name"]
        self.tier.kubectl("-n", engine.NAMESPACE, "patch", "pod", name, "--subresource=status", "--type=merge", "-p", json.dumps(phase))  # fmt: skip


def _restricted(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the spec of a Pod as the namespace admits it; nobody runs it."""
    kept = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
    containers = [{**one, "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}} for one in spec["containers"]]  # fmt: skip
    return {**spec, "securityContext": kept, "containers": containers}


def main() -> int:
    """Play everything and return 1 when anything is not as it must be; without helm it says so and returns 0."""
    args = parser_of("release", __doc__).parse_args()
    if helm.program() is None:
        print("skipped: helm is not here; `python -m tests.packaging.helm` builds it")
        return 0
    failed = played("release", _whole, keep=args.keep)
    print(f"{1 - failed} passed, {failed} failed")
    return failed


def _whole(folder: Path) -> int:
    with tiers.real_tier(folder, binaries.ready()) as tier:
        _play(tier)
    # the controllers' own accounts are refused once their right to write webhooks has been taken
    refused = [one for one in rights.used(folder / AUDIT_LOG)[1] if one.account in HOOKS]
    if refused:
        raise ScenarioError(f"the shipped roles lack: {', '.join(map(str, sorted(refused)))}")
    return 0


def _play(tier: Tier) -> None:
    tier.kubectl("create", "namespace", engine.NAMESPACE)
    for made in ("serviceaccount/default", "configmap/kube-root-ca.crt"):
        tier.kubectl("wait", "--for=create", made, "-n", engine.NAMESPACE, "--timeout=60s")
    before = everything(tier)
    with _timed("installed, used, upgraded, rolled back and deleted; kinds and what is written in them stay"):  # fmt: skip
        _life(tier, remove_kinds=False)
    left = {one for one in everything(tier) - before if not _is_of_our_kinds(one)}
    if left or before - everything(tier):
        raise ScenarioError(f"left behind: {sorted(left)}; gone: {sorted(before - everything(tier))}")  # fmt: skip
    if not tier.is_created(_BAD):
        raise ScenarioError("a Pod is refused that no policy is asked about any more")
    with _timed("the same again on kinds that are there, which then go with the release"):
        _life(tier, remove_kinds=True)
    if different := sorted(before ^ everything(tier)):
        raise ScenarioError(f"after the release was deleted the cluster differs in: {different}")


def _is_of_our_kinds(name: str) -> bool:
    """Tell whether an object is one of our kinds, the definition of one, or the API server's entry for a group of them."""
    kind, _, own = name.partition("/")
    groups = {one["spec"]["group"] for one in definitions()}
    return kind == _KINDS or any(
        kind.endswith(f".{one}") or own.endswith(f".{one}") for one in groups
    )


def _life(tier: Tier, *, remove_kinds: bool) -> None:
    kubelet = Kubelet(tier)
    kubelet.start()
    try:
        _helm(tier, "install", str(chart.CHARTS / chart.CHART))
        engine.wait_for_rights(tier)
        kubelet.start_replica()
        tier.kubectl("apply", "-f", "-", given=NO_HOST_IPC)
        tier.kubectl("wait", "--for=condition=Ready", "clusterpolicy/no-host-ipc", "--timeout=60s")
        _expect_refusal(tier)
        _helm(tier, "upgrade", str(chart.CHARTS / chart.CHART), "--set", "replicas=2,networkPolicy=false")  # fmt: skip
        if kubelet.wanted() != 2:
            raise ScenarioError("the upgrade did not change the Deployment")
        _helm(tier, "rollback", "1")
        if kubelet.wanted() != 3:
            raise ScenarioError("the rollback did not change the Deployment back")
        _expect_refusal(tier)
        if remove_kinds:
            _helm(tier, "upgrade", str(chart.CHARTS / chart.CHART), "--reuse-values", "--set", "removeKinds=true")  # fmt: skip
        _helm(tier, "uninstall")
        if kubelet.replica is not None:
            raise ScenarioError("the release is gone and a replica still runs")
    except ScenarioError as error:
        raise ScenarioError(f"{error}; the last of the kubelet: {kubelet.problem}") from error
    finally:
        kubelet.stop()


def _expect_refusal(tier: Tier) -> None:
    if tier.is_created(_BAD):
        raise ScenarioError("a Pod was let in that a policy refuses")


def _helm(tier: Tier, what: str, *words: str) -> None:
    """Run helm on the release; raises ScenarioError with what it said."""
    command = [str(helm.program()), what, "kpolicy", *words, "-n", engine.NAMESPACE, f"--kubeconfig={tier.kubeconfig}", "--timeout=180s"]  # fmt: skip
    with _timed(f"helm {what}"):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ScenarioError(f"helm {what}: {done.stdout}{done.stderr}")


@contextmanager
def _timed(what: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    print(f"{time.monotonic() - began:6.1f} s  {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
