"""The report store behind a real API server: `python -m tests.e2e.report_store`.

Installed as it ships (only that a Service leads to this machine), under the account that ships, and written by the controllers. What
kubectl is told in both groups, what people may not read, who else may write, and that a kill and a pause lose nothing.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controllers.manifests.bundle import Choice, installed
from controllers.manifests.deploy import report_store
from kubectl_kpolicy.output.structured import json_text, list_of

from . import engine
from .server import binaries
from .server.processes import Process, free_ports
from .tiers import ROOT, Tier, real_tier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_STORE = Choice(with_report_store=True, with_kinds=False)
_POLICY = {
    "apiVersion": "kyverno.io/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "ask-team"},
    "spec": {
        "validationFailureAction": "Audit",
        "rules": [
            {
                "name": "needs-team",
                "match": {
                    "any": [{"resources": {"kinds": ["ConfigMap"], "namespaces": ["shop", "bank"]}}]
                },
                "validate": {
                    "message": "who?",
                    "pattern": {"metadata": {"labels": {"team": "?*"}}},
                },
            }
        ],
    },
}
_SECONDS = 60.0


class StoreError(Exception):
    """Something is not as it must be."""


class Played:
    """A cluster with a store that can be killed and started."""

    def __init__(self, tier: Tier) -> None:
        self.tier = tier
        [self._port] = free_ports(1)
        for name in (engine.NAMESPACE, "shop", "bank"):
            tier.kubectl("create", "namespace", name)
        # before there are custom resources of these kinds, which the garbage collector would watch for some minutes more
        objects = [self._outside(one) for one in installed(_STORE) if _is_of_store(one)]
        tier.kubectl("apply", "-f", "-", given=json_text(list_of(objects)))
        engine.install(tier)
        kubeconfig = tier.account(engine.NAMESPACE, report_store.NAME)
        words = report_store.arguments(self._port, str(tier.folder / "reports.db"))
        command = [
            sys.executable,
            "-m",
            "controllers.report_store",
            *words,
            f"--kubeconfig={kubeconfig}",
            "--host=127.0.0.1",
        ]
        self.store = Process("report-store", command, tier.folder, cwd=ROOT)
        self.until("both APIServices lead to the store", self._is_available)

    def _outside(self, one: dict[str, Any]) -> dict[str, Any]:
        """Return an object as it is where the store runs beside the cluster: its Service leads to this machine."""
        if one["kind"] == "Service":
            ports = [{"port": self._port, "name": "https"}]
            return {
                **one,
                "spec": {"type": "ExternalName", "externalName": "localhost", "ports": ports},
            }
        if one["kind"] == "APIService":
            service = {**one["spec"]["service"], "port": self._port}
            return {**one, "spec": {**one["spec"], "service": service}}
        return one

    def _is_available(self) -> bool:
        found = [self.tier.read("apiservice", name) for name in report_store.api_service_names()]
        conditions = [
            part for one in found for part in (one.get("status") or {}).get("conditions", ())
        ]
        return [(one["type"], one["status"]) for one in conditions] == [("Available", "True")] * 2

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait until something holds; raises StoreError."""
        began = time.monotonic()
        while not _held(holds):
            if time.monotonic() - began > _SECONDS:
                raise StoreError(f"not so after {_SECONDS:.0f} s: {what}")
            time.sleep(0.2)
        print(f"{time.monotonic() - began:6.1f} s  {what}", flush=True)

    def names(self, plural: str = "policyreports", *more: str) -> set[str]:
        """Return the objects that reports are about."""
        found = self.tier.read(plural, *(more or ("-A",)))
        return {one["scope"]["name"] for one in found["items"]}

    def refused(self, what: str, words: str, *command: str) -> None:
        """Have kubectl refused something; raises StoreError where it is not, or for another reason."""
        try:
            self.tier.kubectl(*command)
        except RuntimeError as error:
            if words in str(error):
                print(f"          refused: {what}", flush=True)
                return
            raise StoreError(f"{what}: {error}") from error
        raise StoreError(f"not refused: {what}")


@contextmanager
def stored(tier: Tier) -> Iterator[Played]:
    """Install everything on a tier with a store beside it, which ends with the block."""
    played = Played(tier)
    try:
        yield played
    finally:
        played.store.stop()


def _held(holds: Callable[[], bool]) -> bool:
    try:
        return holds()
    except (RuntimeError, KeyError):
        return False


def _is_of_store(one: dict[str, Any]) -> bool:
    labels = one["metadata"].get("labels") or {}
    is_of_it = labels.get("app.kubernetes.io/component") == "report-store"
    return is_of_it and one["kind"] != "StatefulSet"


def play(tier: Tier) -> None:
    """Play everything; raises StoreError."""
    kubectl = tier.kubectl
    with stored(tier) as played, engine.engine(tier, "--reports=store"):
        kubectl("apply", "-f", "-", given=json.dumps(_POLICY))
        for place, name in (("shop", "a"), ("shop", "b"), ("bank", "c")):
            kubectl("create", "configmap", name, "-n", place)
        wanted = {"a", "b", "c"}
        played.until(
            "reports are in both groups",
            lambda: wanted <= played.names() and wanted <= played.names("reports.openreports.io"),
        )
        _reads(played)
        _kills(played)
        _waits(played)
        kubectl("delete", "configmap", "b", "-n", "shop")
        played.until("a report goes with its object", lambda: "b" not in played.names())
        kubectl("delete", "namespace", "bank", "--wait=false")
        played.until("reports go with their namespace", lambda: "c" not in played.names())
        kubectl("delete", "clusterpolicy", "ask-team")
        played.until("rows go with their policy", lambda: not {"a", "late"} & played.names())


def _reads(played: Played) -> None:
    kubectl = played.tier.kubectl
    table = kubectl("get", "policyreports", "-n", "shop")
    if table.split()[:4] != ["NAME", "KIND", "NAME", "PASS"]:
        raise StoreError(f"not the columns of the definition: {table}")
    chosen = played.names(
        "policyreports", "-A", "--field-selector=results.result=fail,scope.name=a"
    )
    if chosen != {"a"}:
        raise StoreError(f"a field selector chooses {chosen}")
    paged = played.names("policyreports", "-A", "--chunk-size=1")
    if not {"a", "b", "c"} <= paged:
        raise StoreError(f"pages of one hold {paged}")
    kubectl("create", "rolebinding", "ann", "-n", "shop", "--clusterrole=view", "--user=ann")
    played.until(
        "a person reads his own namespace",
        lambda: "a" in played.names("policyreports", "-n", "shop", "--as=ann"),
    )
    played.refused(
        "a person in a foreign namespace",
        "forbidden",
        "get",
        "policyreports",
        "-n",
        "bank",
        "--as=ann",
    )
    played.refused(
        "a person in all namespaces", "forbidden", "get", "reports.openreports.io", "-A", "--as=ann"
    )
    played.refused(
        "an administrator who deletes",
        "written by the reports controller only",
        "delete",
        "policyreports",
        "--all",
        "-n",
        "shop",
    )
    rows = kubectl("get", "--raw", "/apis/wgpolicyk8s.io/v1alpha2/policyreports?limit=1")
    if "continue" not in json.loads(rows)["metadata"]:
        raise StoreError("a page that is not the last has no token")


def _kills(played: Played) -> None:
    before = played.tier.kubectl("get", "policyreports", "-A", "-o", "json")
    played.store.kill()
    played.store.start_again()
    played.until("a killed store is back", played._is_available)
    played.until(
        "and holds what it held",
        lambda: (
            json.loads(before)["items"]
            == json.loads(played.tier.kubectl("get", "policyreports", "-A", "-o", "json"))["items"]
        ),
    )


def _waits(played: Played) -> None:
    """Have something judged while the store is away."""
    played.store.kill()
    played.tier.kubectl("create", "configmap", "late", "-n", "shop")
    time.sleep(15)
    played.store.start_again()
    played.until("what was judged meanwhile is reported", lambda: "late" in played.names())


def main() -> int:
    """Play on a real server; returns 1 where something is not as it must be."""
    with tempfile.TemporaryDirectory(prefix="kpolicy-") as folder:
        try:
            with real_tier(Path(folder) / "real", binaries.ready()) as tier:
                try:
                    play(tier)
                except BaseException:
                    print((tier.folder / "report-store.log").read_text()[-3000:])
                    raise
        except (StoreError, binaries.ToolMissingError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
