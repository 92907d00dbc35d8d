"""The two servers that scenarios run on, behind one face: the embedded sandbox, and a real API server with etcd."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.pki import CALLER
from kubectl_kpolicy.session.replica import EXPRESSIONS, sandbox_environment
from kubectl_kpolicy.session.replica import SANDBOX as SANDBOX_MODULE

from .server.processes import Process
from .server.real import WEBHOOK_CLIENT, real_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from .server.binaries import Binaries

ROOT = Path(__file__).parents[2]
SANDBOX, REAL = "sandbox", "real"


@dataclass(slots=True)
class Tier:
    """A server that runs: an administrator's kubeconfig, and by what webhooks know that it asks.

    `webhook_authority` signs the certificate of `webhook_pair` (certificate and key) for `webhook_name`; `admin_pair` is of the
    same authority where administrators have certificates. `programs` are those that the server consists of, by name, where it is a
    real one, and `is_ready` tells whether it answers.
    """

    name: str
    folder: Path
    kubeconfig: Path
    webhook_authority: Path
    webhook_name: str
    webhook_pair: tuple[str, str]
    admin_pair: tuple[str, str] | None = None
    programs: Mapping[str, Process] = field(default_factory=dict)
    is_ready: Callable[[], bool] = lambda: True

    def kubectl(self, *words: str, given: str = "") -> str:
        """Run kubectl as the administrator; returns what it printed, raises CalledProcessError."""
        done = subprocess.run(
            ["kubectl", f"--kubeconfig={self.kubeconfig}", *words],
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"kubectl {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def read(self, *words: str) -> dict[str, Any]:
        """Get an object."""
        found: dict[str, Any] = json.loads(self.kubectl("get", *words, "-o", "json"))
        return found

    def is_created(self, obj: dict[str, Any]) -> bool:
        """Tell whether an object may be created; nothing is stored."""
        try:
            self.kubectl("create", "--dry-run=server", "-f", "-", given=json.dumps(obj))
        except RuntimeError:
            return False
        return True

    def account(self, namespace: str, name: str) -> Path:
        """Write the kubeconfig of a service account and return its path."""
        token = self.kubectl("create", "token", name, "-n", namespace, "--duration=12h").strip()
        config = json.loads(self.kubectl("config", "view", "--raw", "--flatten", "-o", "json"))
        config["users"] = [{"name": name, "user": {"token": token}}]
        config["contexts"][0]["context"]["user"] = name
        path = self.folder / f"{name}.kubeconfig"
        path.write_text(json.dumps(config))
        path.chmod(0o600)
        return path

    def forward(self, duration: str) -> bool:
        """Move the server's clock; False where it cannot be moved."""
        if self.name != SANDBOX:
            return False
        self.kubectl(
            "create", "--raw=/sandbox/clock", "-f", "-", given=json.dumps({"forward": duration})
        )
        return True


@contextmanager
def sandbox_tier(folder: Path) -> Iterator[Tier]:
    """Run the sandbox in a process of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / "cluster"
    process = Process(
        "sandbox",
        [sys.executable, "-m", SANDBOX_MODULE, f"--expressions={EXPRESSIONS}", f"--dir={place}"],
        folder,
        sandbox_environment(),
    )
    try:
        process.wait_until(lambda: "ready:" in process.log.read_text(errors="replace"))
        yield Tier(
            SANDBOX,
            folder,
            place / "kubeconfig",
            place / "ca.crt",
            CALLER,
            _pair(place, "webhook-client"),
        )
    finally:
        process.stop()


@contextmanager
def real_tier(folder: Path, binaries: Binaries, runtime_config: str = "") -> Iterator[Tier]:
    """Run etcd, kube-apiserver and kube-controller-manager; `runtime_config` as of the API server's flag."""
    with real_server(binaries, folder, runtime_config) as server:
        pairs = _pair(folder, WEBHOOK_CLIENT), _pair(folder, "kubernetes-admin")
        yield Tier(
            REAL, folder, server.kubeconfig, server.authority, WEBHOOK_CLIENT, *pairs,
            programs=server.programs, is_ready=server.is_ready,
        )  # fmt: skip


def _pair(folder: Path, name: str) -> tuple[str, str]:
    return str(folder / f"{name}.crt"), str(folder / f"{name}.key")


def is_answered(url: str, authority: Path | None = None, seconds: float = 5) -> bool:
    """Tell whether an HTTPS address answers 200; without an authority, whoever it says it is."""
    context = ssl.create_default_context(cafile=str(authority) if authority else None)
    if authority is None:
        context.check_hostname = False
        # what is asked is only whether the webhook is ready; its authority is in a Secret
        context.verify_mode = ssl.CERT_NONE
    with urllib.request.urlopen(url, timeout=seconds, context=context) as answer:
        return bool(answer.status == 200)
