"""The engine beside a sandbox: installed there as it is shipped, and run as a process of its own outside of it.

For `sandbox up --engine` and the guided run. It works under the service account and the rights that `install` prints. Whether
it runs is told by a lock that the process inherits and holds until its end.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable


SECONDS = 60.0
"""How long a start may take on a slow machine."""

_ROOT = Path(__file__).parents[2]
_WEBHOOK = "kyverno-policy-validating-webhook-cfg"
_CALLER = "kube-apiserver-webhook-client"
"""Whom the sandbox's certificate for webhooks names (`kpolicy_sandbox.pki`)."""


def start(folder: Path) -> None:
    """Install what is shipped into the sandbox of a folder, and run the engine until `stop`; raises EngineError."""
    if holder_of(folder / "engine.lock") is not None:
        return
    _install(folder)
    log = folder / "engine.log"
    with _locked(folder) as lock, log.open("ab") as errors:
        process = subprocess.Popen(  # noqa: S603 - our own module, and no shell
            [
                sys.executable,
                "-m",
                "controllers",
                f"--kubeconfig={_account(folder)}",
                "--host=127.0.0.1",
                "--port=0",
                "--metrics-port=-1",
                "--server-url=auto",
                "--drain=100ms",
                f"--client-ca={folder / 'ca.crt'}",
                f"--client-name={_CALLER}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            cwd=_ROOT,
            env=child_environment(KYVERNO_POD_NAME="kpolicy-sandbox"),
            start_new_session=True,
            pass_fds=(lock.fileno(),),
        )
        lock.truncate(0)
        lock.write(str(process.pid))
    if not _until(lambda: process.poll() is not None or _is_asked(folder)) or process.poll():
        raise not_started("the engine", log)
    # the engine outlives us, which is what it was started for
    process.returncode = 0


def stop(folder: Path) -> bool:
    """End the engine of a folder and wait until it is gone; False when none ran. Raises EngineError."""
    return end(folder / "engine.lock")


def end(lock: Path) -> bool:
    """End the process that holds a lock and wait until it is gone; False when none does. Raises EngineError."""
    import signal

    process = holder_of(lock)
    if process is None:
        return False
    os.kill(process, signal.SIGTERM)
    if not _until(lambda: holder_of(lock) is None):
        raise EngineError(
            f"process {process} does not stop", help=f"end it with `kill -9 {process}`"
        )
    return True


def kubectl(folder: Path, *words: str, given: str = "") -> str:
    """Run kubectl as the sandbox's administrator and return what it prints; raises EngineError."""
    command = ["kubectl", f"--kubeconfig={folder / 'kubeconfig'}", *words]
    try:
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)  # noqa: S603 - no shell
    except FileNotFoundError as error:
        raise EngineError("kubectl is not on the path", help="see https://kubernetes.io/docs/tasks/tools/") from error  # fmt: skip
    if done.returncode:
        raise EngineError(f"kubectl {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def _locked(folder: Path) -> Any:
    """Return the lock file, locked; whoever inherits it holds the lock after we have closed it."""
    lock = (folder / "engine.lock").open("a+")
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return lock


def _install(folder: Path) -> None:
    from controllers.kube.accounts import CONTROLLERS
    from controllers.manifests.bundle import installed
    from controllers.manifests.choice import DEFAULT
    from kubectl_kpolicy.output.structured import json_text, list_of

    objects = [one for one in installed(DEFAULT) if one["kind"] != "Deployment"]
    kubectl(folder, "apply", "--server-side", "-f", "-", given=json_text(list_of(objects)))
    names = [f"kyverno:{part}" for part in CONTROLLERS]
    _until(lambda: all('"rules":[{' in _compact(folder, name) for name in names))


def _compact(folder: Path, name: str) -> str:
    return json.dumps(
        json.loads(kubectl(folder, "get", "clusterrole", name, "-o", "json")), separators=(",", ":")
    )


def _account(folder: Path) -> Path:
    """Write the kubeconfig of the service account that the engine starts as; it asks for tokens of the others itself."""
    from controllers.kube.accounts import ACCOUNTS, Job
    from controllers.manifests.choice import NAMESPACE

    name = ACCOUNTS[Job.ADMISSION]
    token = kubectl(folder, "create", "token", name, "-n", NAMESPACE, "--duration=24h")
    return write_kubeconfig(folder, name, token.strip(), "engine.kubeconfig")


def _is_asked(folder: Path) -> bool:
    """Tell whether the engine leads and has written who is asked about policies: the last step of a start."""
    found = kubectl(folder, "get", "validatingwebhookconfigurations", "-o", "name")
    return _WEBHOOK in found


def _until(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + SECONDS
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


# Processes of our own that outlive a command: how they find our packages, and whether one still runs.


SANDBOX = "kpolicy_sandbox"
"""The module of the sandbox, which is a distribution of its own: it is started, never imported."""
EXPRESSIONS = "kubectl_kpolicy.session.expressions:EngineExpressions"
"""Where the sandbox's process finds the engine, to evaluate CEL with."""
_CLONE = Path(__file__).parents[2] / "controllers" / "sandbox"


def child_environment(**more: str) -> dict[str, str]:
    """Return the environment for a process that imports what this one can import."""
    folders = [path for path in sys.path if path and Path(path).is_dir()]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(folders), **more}


def sandbox_environment() -> dict[str, str]:
    """Return the environment for the sandbox's process: as `child_environment`, in a clone with the sandbox of the same tree.

    Raises EngineError where the sandbox is not installed.
    """
    if (_CLONE / SANDBOX).is_dir():
        environment = child_environment()
        path = os.pathsep.join((str(_CLONE), environment["PYTHONPATH"]))
        return {**environment, "PYTHONPATH": path}
    if importlib.util.find_spec(SANDBOX) is None:
        raise EngineError(
            "the sandbox is not installed",
            help="pip install kpolicy-sandbox, or in a clone: pip install ./controllers/sandbox",
        )
    return child_environment()


def not_started(what: str, log: Path) -> EngineError:
    """Return the error about a process that did not start, with the last that it said."""
    last = log.read_text(errors="replace").strip().rpartition("\n")[2]
    return EngineError(f"{what} did not start: {last or 'it said nothing'}", help=f"see `{log}`")


def write_kubeconfig(folder: Path, user: str, token: str, file: str) -> Path:
    """Write a kubeconfig beside the sandbox's own, for another user and nobody else's eyes, and return its path."""
    config = json.loads((folder / "kubeconfig").read_text())
    config["users"] = [{"name": user, "user": {"token": token}}]
    config["contexts"][0]["context"]["user"] = user
    path = folder / file
    path.touch(mode=0o600)
    path.write_text(json.dumps(config, indent=2))
    return path


def holder_of(path: Path) -> int | None:
    """Return the number of the process that holds the lock at `path`, as the file says it; None when nobody does."""
    try:
        lock = path.open("r")
    except FileNotFoundError:
        return None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            text = lock.read()
            return int(text) if text.isdecimal() else None
    return None
