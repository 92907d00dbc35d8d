"""A running sandbox: folder, certificates, kubeconfig, HTTPS on loopback, and the controllers behind it.

`async with Sandbox.start(folder) as sandbox` for tests; `python -m kpolicy_sandbox` for everybody else.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import ssl
from contextlib import asynccontextmanager
from email.utils import format_datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import web

from . import pki
from .access import auth, bootstrap
from .admission.chain import Chain
from .admission.webhook_client import Caller
from .call import ADMIN
from .cluster import Cluster, make_private, open_cluster, write_private
from .controllers import namespaces, roles
from .controllers.pods import NODE
from .controllers.running import ControlPlane
from .controllers.writing import ensure
from .custom import definitions
from .http.handler import Handler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from .call import User
    from .clock import Clock
    from .expressions import Expressions
    from .store import Change

Object = dict[str, Any]
HOST = "127.0.0.1"
_LARGEST_BODY = 16 << 20
_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


class Busy(Exception):  # noqa: N818 - says what the folder is
    """Another sandbox runs in the folder."""


class Sandbox:
    """A sandbox that runs: where it listens, how to reach it, and its clock; `were_open` names files that others could open."""

    def __init__(self, folder: Path, cluster: Cluster, files: pki.Files, port: int) -> None:
        self.folder = folder
        self.cluster = cluster
        self.files = files
        self.port = port
        self.were_open: list[str] = []

    @property
    def kubeconfig(self) -> Path:
        """Return the administrator's kubeconfig."""
        return self.folder / "kubeconfig"

    @property
    def url(self) -> str:
        """Return the server's address."""
        return f"https://{HOST}:{self.port}"

    @property
    def clock(self) -> Clock:
        """Return the clock, which tests move forward."""
        return self.cluster.clock

    def token(self, user: User) -> str:
        """Return a token that makes its bearer a user."""
        return auth.issue(self.cluster.token_key, user)

    def kubeconfig_of(self, user: User) -> Path:
        """Write a kubeconfig for a user and return its file."""
        place = self.folder / f"kubeconfig-{user.name.replace('/', '_')}"
        write_private(
            place,
            kubeconfig(self.url, self.files.authority.read_bytes(), user.name, self.token(user)),
        )
        return place

    @classmethod
    @asynccontextmanager
    async def start(
        cls, folder: Path, *, port: int = 0, expressions: Expressions | None = None
    ) -> AsyncIterator[Sandbox]:
        """Run a sandbox in a folder; the port is the one it had before if that is free. Raises Busy.

        `expressions` is the implementation of CEL that it evaluates with.
        """
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _only_one(folder):
            files = await asyncio.to_thread(pki.ensure, folder)
            opened = make_private(folder)
            admission = Chain(Caller(files.pair("webhook-client")))
            cluster = open_cluster(folder, admission, expressions)
            cluster.authority = files.authority.read_text()
            _serve_custom_kinds(cluster)
            await _furnish(cluster)
            control_plane = ControlPlane(cluster)
            runner = _runner(cluster)
            try:
                await runner.setup()
                bound = await _listen(cluster, runner, files, port)
                sandbox = cls(folder, cluster, files, bound)
                sandbox.were_open = opened
                sandbox.kubeconfig_of(ADMIN).replace(sandbox.kubeconfig)
                control_plane.start()
                yield sandbox
            finally:
                await control_plane.close()
                await runner.cleanup()
                await cluster.admission.close()
                cluster.store.close()


def kubeconfig(url: str, authority: bytes, name: str, token: str) -> bytes:
    """Return a kubeconfig (JSON, which is YAML too) with one context named `sandbox`."""
    import base64

    made = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "sandbox",
        "clusters": [
            {
                "name": "sandbox",
                "cluster": {
                    "server": url,
                    "certificate-authority-data": base64.b64encode(authority).decode(),
                },
            }
        ],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": name}}],
    }
    return orjson.dumps(made, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


@contextlib.contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, whose file names our process: others see from it whether and where a sandbox runs."""
    with (folder / "lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Busy(f"a sandbox runs already in `{folder}`") from error
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def _runner(cluster: Cluster) -> web.AppRunner:
    app = web.Application(client_max_size=_LARGEST_BODY)
    app.on_response_prepare.append(partial(_dated, cluster.clock))
    app.router.add_route("*", "/{path:.*}", Handler(cluster).__call__)
    return web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.2)


async def _dated(clock: Clock, _: web.Request, response: web.StreamResponse) -> None:
    """Say the sandbox's own time with every answer, as clients compare theirs with the server's."""
    response.headers["Date"] = format_datetime(clock.now(), usegmt=True)


async def _listen(cluster: Cluster, runner: web.AppRunner, files: pki.Files, port: int) -> int:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(*files.pair("server"))
    context.load_verify_locations(files.authority)
    context.verify_mode = ssl.CERT_OPTIONAL
    before = int(cluster.store.fact("port") or 0)
    for wanted in [port] if port else [before, 0]:
        site = web.TCPSite(runner, HOST, wanted, ssl_context=context)
        try:
            await site.start()
        except OSError:
            if port or not wanted:
                raise
            continue
        break
    bound: int = runner.addresses[0][1]
    cluster.store.set_fact("port", str(bound))
    return bound


def _serve_custom_kinds(cluster: Cluster) -> None:
    """Serve what the stored CRDs define, and follow every change of them at once."""

    def changed(change: Change) -> None:
        if change.storage == definitions.STORAGE:
            act = definitions.withdraw if change.type == "DELETED" else definitions.serve
            act(cluster.registry, change.object)

    for definition in cluster.store.list(definitions.STORAGE):
        definitions.serve(cluster.registry, definition)
    cluster.store.listen(changed)


async def _furnish(cluster: Cluster) -> None:
    """Create what every cluster has from the start and what is missing of it."""
    for name in _NAMESPACES:
        await _ensure(cluster, "", "namespaces", {"metadata": {"name": name}})
        if (space := cluster.store.get("/namespaces", "", name)) is not None:
            await namespaces.reconcile(cluster, space)
    for obj in bootstrap.objects():
        plural = "clusterroles" if obj["kind"] == "ClusterRole" else "clusterrolebindings"
        await _ensure(cluster, "rbac.authorization.k8s.io", plural, obj)
    for name in ("view", "edit", "admin"):
        if (role := cluster.store.get(roles.STORAGE, "", name)) is not None:
            await roles.reconcile(cluster, role)
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "it only looks as if",
    }
    node = {
        "metadata": {
            "name": NODE,
            "labels": {"kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux"},
        },
        "status": {
            "conditions": [ready],
            "nodeInfo": {"kubeletVersion": "v1.32.4"},
            "capacity": {"pods": "1000"},
        },
    }
    await _ensure(cluster, "", "nodes", node)
    service = {
        "metadata": {"name": "kubernetes", "namespace": "default"},
        "spec": {
            "clusterIP": "10.96.0.1",
            "ports": [{"name": "https", "port": 443, "targetPort": 6443}],
        },
    }
    await _ensure(cluster, "", "services", service)


async def _ensure(cluster: Cluster, group: str, plural: str, obj: Object) -> None:
    await ensure(cluster, cluster.resource(group, plural), obj, by=ADMIN)
