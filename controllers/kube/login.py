"""Log-ins that a kubeconfig names: credential plugins (`exec`), and the auth providers of before (`auth-provider`).

For `credentials`, which keeps the answers. Plugins are programs that log somebody in. Their protocol is that of
client.authentication.k8s.io (v1, v1beta1): the question lies in the environment, the answer is one ExecCredential on standard
output, and standard input and standard error are the user's terminal where the plugin may ask something.

Providers are asked by the `kubernetes` package. Plugins are not: its runner overlooks `interactiveMode`, lets plugins read a terminal
that they were told not to, tells them of paths where their contents belong, changes their folder, and hides why one failed in a
terminal behind an error of its own. All of that is one method.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from engine.errors import reason_of

from .errors import AccessError, capped

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .kubeconfig import Entry

_EXTENSION = "client.authentication.k8s.io/exec"
_SHOWN = 300


def log_in(block: Mapping[str, Any], folder: Path, cluster: Entry) -> Mapping[str, Any]:
    """Run the plugin of an `exec` block and return the status that it prints; raises AccessError.

    `folder` is the kubeconfig's, which a command with a relative path starts from; `cluster` is told where the block says so.
    """
    name, version = str(block.get("command") or ""), str(block.get("apiVersion") or "")
    is_asking = _may_ask(block)
    given = [str(word) for word in block.get("args") or ()]
    try:
        done = subprocess.run(  # noqa: S603 - the user's own kubeconfig names it, and no shell
            [_program(name, folder, str(block.get("installHint") or "")), *given],
            env=_environment(block, version, cluster, is_asking=is_asking),
            stdin=None if is_asking else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if is_asking else subprocess.PIPE,
            check=False,
        )
    except OSError as error:
        raise AccessError(f"the credential plugin `{name}` cannot be run: {reason_of(error)}") from error  # fmt: skip
    if done.returncode:
        said = capped((done.stderr or b"").decode(errors="replace").strip(), _SHOWN)
        raise AccessError(
            f"the credential plugin `{name}` failed with code {done.returncode}{': ' if said else ''}{said}",
            help="run it by hand to see why, or log in again",
        )
    return _status(done.stdout, name, version)


def _may_ask(block: Mapping[str, Any]) -> bool:
    """Tell whether the plugin gets the terminal: `interactiveMode` and whether there is one; raises AccessError."""
    mode = block.get("interactiveMode") or "IfAvailable"
    has_terminal = sys.stdin is not None and sys.stdin.isatty()
    if mode == "Always" and not has_terminal:
        raise AccessError(f"the credential plugin `{block.get('command')}` asks for a terminal, and there is none")  # fmt: skip
    return mode != "Never" and has_terminal


def _program(name: str, folder: Path, hint: str) -> str:
    """Return the path of a command: of one with a relative path from the kubeconfig's folder on."""
    found = shutil.which(str(folder / name) if os.sep in name else name)
    if found is None:
        raise AccessError(f"the credential plugin `{name}` is not there", help=capped(hint, _SHOWN))
    return found


def _environment(
    block: Mapping[str, Any], version: str, cluster: Entry, *, is_asking: bool
) -> dict[str, str]:
    spec: dict[str, Any] = {"interactive": is_asking}
    if block.get("provideClusterInfo") is True:
        spec["cluster"] = _cluster(cluster)
    question = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
    more = {str(one["name"]): str(one["value"]) for one in block.get("env") or ()}
    return {**os.environ, **more, "KUBERNETES_EXEC_INFO": json.dumps(question)}


def _cluster(cluster: Entry) -> dict[str, Any]:
    """Return a cluster as plugins are told about it: inline, whatever the kubeconfig points to."""
    extensions = cluster.value.get("extensions") or ()
    told = {
        "server": cluster.text("server"),
        "tls-server-name": cluster.text("tls-server-name"),
        "insecure-skip-tls-verify": cluster.value.get("insecure-skip-tls-verify") is True,
        "certificate-authority-data": base64.b64encode(cluster.data("certificate-authority")).decode(),
        "proxy-url": cluster.text("proxy-url"),
        "config": next((one.get("extension") for one in extensions if one.get("name") == _EXTENSION), None),
    }  # fmt: skip
    return {key: value for key, value in told.items() if value}


def _status(printed: bytes, name: str, version: str) -> Mapping[str, Any]:
    try:
        answer = json.loads(printed)
    except ValueError as error:
        raise AccessError(f"the credential plugin `{name}` printed no ExecCredential") from error
    status = answer.get("status") if isinstance(answer, dict) else None
    if not isinstance(status, dict) or answer.get("kind") != "ExecCredential":
        raise AccessError(f"the credential plugin `{name}` printed no ExecCredential")
    if answer.get("apiVersion") != version:
        raise AccessError(
            f"the credential plugin `{name}` speaks `{capped(str(answer.get('apiVersion')), 60)}`, the kubeconfig asks for `{version}`"
        )
    return status


def ask_provider(block: Mapping[str, Any], folder: Path) -> str:
    """Return the Authorization header that an auth provider gives; raises AccessError where it gives none.

    The package is shown nothing but the block: of a whole kubeconfig it would write private keys into files of their own.
    """
    from kubernetes import config
    from kubernetes.client import Configuration

    found, name = Configuration(), str(block.get("name") or "")
    asked = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {}}],
        "users": [{"name": "u", "user": {"auth-provider": _verifying(block, folder)}}],
    }
    load: Any = config.load_kube_config_from_dict
    load(asked, client_configuration=found, persist_config=False)
    settings: Mapping[str, Any] = found.auth_settings()
    header = str((settings.get("BearerToken") or {}).get("value") or "")
    if not header:
        raise AccessError(f"the auth provider `{name}` gives no token")
    return header


def _verifying(block: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a provider's block with the authorities of its issuer: those that it names beside the kubeconfig, or the system's.

    INVARIANT: secrets go to a verified issuer only. Without authorities the package would send them to whoever answers.
    """
    given = dict(block.get("config") or {})
    if not given.get("idp-certificate-authority-data"):
        given.pop("idp-certificate-authority-data", None)
        named = str(given.get("idp-certificate-authority") or "")
        given["idp-certificate-authority"] = str(folder / named) if named else _system_authorities()
    return {**block, "config": given}


def _system_authorities() -> str:
    import ssl

    import certifi

    return ssl.get_default_verify_paths().cafile or certifi.where()
