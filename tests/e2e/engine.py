"""Installs what is shipped, and runs the controllers outside the cluster under exactly the rights that are shipped."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from controllers.kube.accounts import ACCOUNTS, CONTROLLERS, Job
from controllers.manifests.bundle import Choice, installed
from controllers.manifests.crds import definitions
from controllers.manifests.deploy import arguments
from kubectl_kpolicy.output.structured import json_text, list_of

from .server.processes import Process, free_ports
from .tiers import ROOT, is_answered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from .tiers import Tier

NAMESPACE = "kyverno"
_RUN_BY_US = frozenset({"Deployment"})
_AGGREGATED = 30.0


def install(
    tier: Tier, unfiltered: Sequence[str] = (), settings: Mapping[str, str] | None = None
) -> None:
    """Apply everything but the Deployment; `unfiltered` filters are taken out of the ConfigMap."""
    objects = [one for one in installed(Choice()) if one["kind"] not in _RUN_BY_US]
    for one in objects:
        if one["kind"] == "ConfigMap":
            filters = one["data"]["resourceFilters"].splitlines()
            kept = [line for line in filters if line not in unfiltered]
            one["data"].update({"resourceFilters": "\n".join(kept), **(settings or {})})
    tier.kubectl("apply", "--server-side", "-f", "-", given=json_text(list_of(objects)))
    wait_for_rights(tier)


def install_kinds(tier: Tier, groups: Sequence[str]) -> None:
    """Apply the definitions of the kinds of some groups, and wait until they are served."""
    objects = [one for one in definitions() if one["spec"]["group"] in groups]
    tier.kubectl("apply", "--server-side", "-f", "-", given=json_text(list_of(objects)))
    tier.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")


def wait_for_rights(tier: Tier) -> None:
    """Wait until the collecting roles hold what they collect; the API server's controller does that by and by."""
    names = [f"kyverno:{part}" for part in CONTROLLERS]
    end = time.monotonic() + _AGGREGATED
    while not all(tier.read("clusterrole", name).get("rules") for name in names):
        if time.monotonic() > end:
            raise TimeoutError("the cluster roles were not aggregated")
        time.sleep(0.2)


class Engine:
    """One replica whose clock can be moved.

    It follows a server whose clock was moved; where the server's cannot be, it is started again, so much ahead.
    """

    def __init__(self, tier: Tier, *flags: str) -> None:
        self._tier = tier
        self._flags = flags
        self._ahead: list[str] = []
        self.process = start(tier, "engine", *flags)

    def forward(self, duration: str) -> None:
        """Move the clocks of server and engine."""
        if self._tier.forward(duration):
            return
        self.process.stop()
        self._ahead.append(f"--clock-ahead={duration}")
        self.process = start(self._tier, "engine", *self._flags, *self._ahead)


@contextmanager
def engine(tier: Tier, *flags: str) -> Iterator[Engine]:
    """Run one replica until the end of the block; it is ready when the block begins."""
    running = Engine(tier, *flags)
    try:
        yield running
    finally:
        running.process.stop()


def start(
    tier: Tier,
    name: str = "engine",
    *flags: str,
    port: int = 0,
    metrics_port: int = 0,
    address: str = "auto",
    host: str = "127.0.0.1",
    is_known: bool = True,
    environment: Mapping[str, str] | None = None,
    wait: bool = True,
    tree: Path = ROOT,
) -> Process:
    """Start one replica as the Deployment does and wait until it is ready; `address` is where the API server reaches it.

    Without an address that is the Service of the installation.

    With `is_known` the authority of the certificate is there by which the API server is known. Without `wait` it is only started.
    `tree` holds the controllers that run, of this commit or of another.
    """
    others = free_ports(2)
    port, metrics = port or others[0], metrics_port or others[1]
    kubeconfig = tier.account(NAMESPACE, ACCOUNTS[Job.ADMISSION])
    process = Process(
        name,
        [
            sys.executable,
            "-m",
            "controllers",
            *arguments(port, metrics, _authority(tier, is_known=is_known)),
            *_outside(kubeconfig, address, host),
            *flags,
        ],
        tier.folder,
        {"KYVERNO_POD_NAME": name, **(environment or {})},
        tree,
    )
    if not wait:
        return process
    try:
        process.wait_until(lambda: is_answered(f"https://{host}:{port}/health/readiness"))
        process.wait_until(lambda: _is_asked(tier))
    except BaseException:
        process.stop()
        raise
    return process


def _authority(tier: Tier, *, is_known: bool) -> str:
    """Return the file of the authority that the Deployment mounts; without one there is no such file."""
    return str(tier.webhook_authority if is_known else tier.folder / "no-client-ca")


def _outside(kubeconfig: Path, address: str, host: str) -> list[str]:
    """Return what there is to say beside the Deployment's own arguments, because we do not run in a Pod of the cluster."""
    reached = [f"--server-url={address}"] if address else []
    return [f"--kubeconfig={kubeconfig}", f"--host={host}", *reached, "--drain=1s"]


def _is_asked(tier: Tier) -> bool:
    """Tell whether a leader has written who is asked about policies: the last step of a first start."""
    found = tier.kubectl("get", "validatingwebhookconfigurations", "-o", "name")
    return "kyverno-policy-validating-webhook-cfg" in found
