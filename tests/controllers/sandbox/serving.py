"""Runs a sandbox for one test and speaks to it: with kubectl as its own process, or with plain HTTPS."""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson
import pytest

from kpolicy_sandbox.call import ADMIN, User
from kpolicy_sandbox.server import Sandbox
from kubectl_kpolicy.session.expressions import EngineExpressions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from kpolicy_sandbox.expressions import Expressions

DEADLINE = 20.0
needs_kubectl = pytest.mark.skipif(
    shutil.which("kubectl") is None,
    reason="kubectl is not installed: nothing to test the sandbox with",
)


class Answer:
    """What kubectl printed and how it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    def __repr__(self) -> str:
        return f"exit {self.code}\n{self.out}{self.err}"


class Kubectl:
    """kubectl against one sandbox, as its administrator or as whom `as_` names."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox

    async def start(self, *words: str) -> asyncio.subprocess.Process:
        folder = self.sandbox.folder
        return await asyncio.create_subprocess_exec(
            "kubectl",
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={
                **os.environ,
                "KUBECONFIG": str(self.sandbox.kubeconfig),
                "KUBECACHEDIR": str(folder / "cache"),
                "HOME": str(folder),
                "KUBE_EDITOR": "sed -i 's/k: v/k: edited/'",
            },
        )

    async def __call__(self, *words: str, stdin: Any = "") -> Answer:
        text = stdin if isinstance(stdin, str) else orjson.dumps(stdin).decode()
        process = await self.start(*words)
        out, err = await asyncio.wait_for(process.communicate(text.encode()), 30)
        return Answer(process.returncode or 0, out.decode(), err.decode())

    async def ok(self, *words: str, stdin: Any = "") -> str:
        """Return what kubectl printed; the test fails when it failed."""
        answer = await self(*words, stdin=stdin)
        assert answer.code == 0, f"kubectl {' '.join(words)}: {answer}"
        return answer.out


class Api:
    """Plain HTTPS to one sandbox as a user."""

    def __init__(
        self, sandbox: Sandbox, session: aiohttp.ClientSession, user: User = ADMIN
    ) -> None:
        self.sandbox = sandbox
        self.session = session
        self.headers = {"Authorization": f"Bearer {sandbox.token(user)}"}
        self.context = ssl.create_default_context(cafile=str(sandbox.files.authority))

    def as_(self, name: str, *groups: str) -> Api:
        return Api(self.sandbox, self.session, User(name, groups))

    def open(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        data = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
        given = {"Content-Type": "application/json", **self.headers}
        given.update({key.replace("_", "-"): value for key, value in headers.items()})
        url = f"{self.sandbox.url}{path}"
        return self.session.request(method, url, data=data, headers=given, ssl=self.context)

    async def __call__(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, Any]:
        async with self.open(method, path, body, **headers) as answer:
            return answer.status, orjson.loads(await answer.read() or b"null")

    async def get(self, path: str) -> Any:
        status, found = await self("GET", path)
        assert status == 200, found
        return found

    async def post(self, path: str, body: Any) -> Any:
        status, made = await self("POST", path, body)
        assert status == 201, made
        return made

    async def eventually(self, path: str, holds: Callable[[Any], bool]) -> Any:
        """Return what a path answers as soon as it is as wanted; follows the store, not the clock."""
        changed = asyncio.Event()
        stop = self.sandbox.cluster.store.listen(lambda _: changed.set())
        try:
            async with asyncio.timeout(DEADLINE):
                while True:
                    changed.clear()
                    _, found = await self("GET", path)
                    if holds(found):
                        return found
                    await changed.wait()
        except TimeoutError:
            raise AssertionError(f"not so in {DEADLINE} s: {found}") from None
        finally:
            stop()


def run(
    folder: Path,
    test: Callable[[Api], Awaitable[None]],
    expressions: Expressions | None = EngineExpressions(),  # noqa: B008 - it keeps only what it has compiled
) -> None:
    """Run a test against a fresh sandbox, which evaluates CEL with the engine."""

    async def main() -> None:
        async with (
            Sandbox.start(folder / "sandbox", expressions=expressions) as sandbox,
            aiohttp.ClientSession() as session,
        ):
            await test(Api(sandbox, session))

    asyncio.run(main())


def config_map(name: str = "a", namespace: str = "default", **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }


def pod(name: str = "p", namespace: str = "default", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "busybox"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": containers, **spec},
    }


def deployment(name: str = "web", replicas: int = 1, image: str = "nginx") -> dict[str, Any]:
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": image}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }
