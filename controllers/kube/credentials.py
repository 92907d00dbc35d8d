"""Who we are to an API server: tokens, token files, passwords, and plugins that make either.

For `http.HttpClient`, which asks before every request, because tokens in files and those of plugins change while we run.

Plugins (`exec`) are programs that log somebody in. Their protocol is that of client.authentication.k8s.io (v1, v1beta1): the question
lies in the environment, the answer is one ExecCredential on standard output, and standard input and standard error are the user's
terminal where the plugin may ask something. The auth providers of before (`auth-provider`) are asked by the `kubernetes` package.
Plugins are not: its runner overlooks `interactiveMode`, lets plugins read a terminal that they were told not to, tells them of paths
where their contents belong, changes their folder, and hides why one failed in a terminal behind an error of its own. All of that is
one method.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from engine.errors import reason_of
from engine.lang import rfc3339

from .errors import AccessError, capped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from .clock import Clock
    from .kubeconfig import Entry

_REREAD_SECONDS = 60.0
_EARLY = timedelta(seconds=30)
_PLUGIN_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Presented:
    """What is shown to the server: an Authorization header, a client certificate with its key (PEM), or nothing."""

    authorization: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)


class Credentials(Protocol):
    """Where credentials come from."""

    async def current(self, clock: Clock) -> Presented:
        """Return what to present now; raises AccessError when it cannot be had."""

    def spoil(self) -> bool:
        """Forget what was presented, for the server refused it; return whether asking again may give something else."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Credentials that never change: a certificate, a token from the kubeconfig, a password, or none at all."""

    presented: Presented = Presented()

    async def current(self, clock: Clock) -> Presented:  # noqa: ARG002 - the interface's
        """Return them."""
        return self.presented

    def spoil(self) -> bool:
        """Return False: there is nothing else to try."""
        return False


def bearer(token: str) -> Fixed:
    """Make credentials of a token."""
    return Fixed(Presented(f"Bearer {token}"))


def basic(user: str, password: str) -> Fixed:
    """Make credentials of a user name and a password."""
    encoded = base64.b64encode(f"{user}:{password}".encode()).decode()
    return Fixed(Presented(f"Basic {encoded}"))


class TokenFile:
    """A token in a file that somebody else renews, as the kubelet does for Pods; read again every minute."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._presented: Presented | None = None
        self._read_at = 0.0

    async def current(self, clock: Clock) -> Presented:
        """Return the token that the file holds; raises AccessError when it cannot be read."""
        is_old = clock.monotonic() - self._read_at >= _REREAD_SECONDS
        if self._presented is None or is_old:
            try:
                token = (await asyncio.to_thread(self._path.read_text)).strip()
            except OSError as error:
                raise AccessError(f"cannot read the token in `{self._path}`") from error
            self._presented, self._read_at = Presented(f"Bearer {token}"), clock.monotonic()
        return self._presented

    def spoil(self) -> bool:
        """Forget the token, so that the file is read again."""
        had = self._presented is not None
        self._presented = None
        return had


class Plugin:
    """Credentials that `make` fetches, kept until shortly before they expire.

    `make` runs in a thread and returns what to present and until when (None: until it is refused).
    """

    def __init__(self, name: str, make: Callable[[], tuple[Presented, datetime | None]]) -> None:
        self._name = name
        self._make = make
        self._kept: tuple[Presented, datetime | None] | None = None
        self._lock = asyncio.Lock()

    async def current(self, clock: Clock) -> Presented:
        """Return what the plugin gave; raises AccessError with its words when it fails."""
        async with self._lock:
            kept = self._kept
            if kept is None or (kept[1] is not None and kept[1] - _EARLY <= clock.now()):
                kept = self._kept = await self._made()
            return kept[0]

    def spoil(self) -> bool:
        """Forget what the plugin gave, so that it is run again."""
        had = self._kept is not None
        self._kept = None
        return had

    async def _made(self) -> tuple[Presented, datetime | None]:
        try:
            return await asyncio.wait_for(asyncio.to_thread(self._make), _PLUGIN_SECONDS)
        except AccessError:
            raise
        except Exception as error:
            # The package and the plugin below it raise whatever they like; nothing of it may pass this border.
            raise AccessError(
                f"the credential plugin `{self._name}` failed: {capped(str(error), 300)}",
                help="run it by hand to see why, or log in again",
            ) from error


def exec_plugin(block: Mapping[str, Any], folder: Path, cluster: Entry) -> Plugin:
    """Make credentials of a kubeconfig's `exec` block; `folder` is what relative commands start from."""

    def run() -> tuple[Presented, datetime | None]:
        status = log_in(block, folder, cluster)
        token = str(status.get("token") or "")
        presented = Presented(
            f"Bearer {token}" if token else "",
            str(status.get("clientCertificateData") or "").encode(),
            str(status.get("clientKeyData") or "").encode(),
        )
        return presented, _expiry(status.get("expirationTimestamp"))

    return Plugin(str(block.get("command") or ""), run)


def auth_provider(block: Mapping[str, Any], folder: Path) -> Plugin:
    """Make credentials of a kubeconfig's older `auth-provider` block; `folder` is what relative paths start from."""

    def run() -> tuple[Presented, datetime | None]:
        return Presented(ask_provider(block, folder)), None

    return Plugin(str(block.get("name") or ""), run)


def _expiry(text: Any) -> datetime | None:
    """Return when a credential ends, None where the plugin does not say; raises AccessError for what client-go refuses, too."""
    if text in (None, ""):
        return None
    ends = rfc3339.read(text)
    if ends is None:
        raise AccessError(
            "the credential plugin's `expirationTimestamp` is no instant",
            help="RFC 3339 with its zone is needed, such as 2026-01-31T17:00:00Z",
        )
    return ends


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
