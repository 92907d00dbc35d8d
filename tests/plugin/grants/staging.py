"""A sandbox with our kinds and the grant loop beside it, and the command line run in it as different people."""

from __future__ import annotations

import asyncio
import gc
import os
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from controllers.kube import connect, load_access
from controllers.kube.kinds import CRDS
from controllers.manifests.crds import definitions
from kpolicy_sandbox.call import User
from kpolicy_sandbox.server import Sandbox
from kubectl_kpolicy import entry
from kubectl_kpolicy.session.expressions import EngineExpressions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    import pytest

    from controllers.kube import Client

RBAC = "rbac.authorization.k8s.io"
OURS = ("kpolicy.io", "kyverno.io")
DEADLINE = 30.0


@dataclass
class Said:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str


class Stage:
    """A sandbox for one test; `admin` is a client that may do everything."""

    def __init__(self, sandbox: Sandbox, admin: Client, capsys: pytest.CaptureFixture[str]) -> None:
        self.sandbox, self.admin, self._capsys = sandbox, admin, capsys

    async def run(self, user: str, *words: str, groups: tuple[str, ...] = ()) -> Said:
        """Run `kubectl kpolicy WORDS` as a user, in this process but not in its loop."""
        file = self.sandbox.kubeconfig_of(User(user, (*groups, "system:authenticated")))
        os.environ["KUBECONFIG"] = str(file)
        self._capsys.readouterr()
        with warnings.catch_warnings():
            # A command ends with its loop and does not wait for the other side's farewell on each connection.
            warnings.simplefilter("ignore", ResourceWarning)
            code = await asyncio.wait_for(asyncio.to_thread(entry.main, list(words)), DEADLINE)
            gc.collect()
        out, err = self._capsys.readouterr()
        return Said(code, out, err)

    def client_of(self, user: str) -> Client:
        """Return a client that asks as a user; close it."""
        return connect(load_access(str(self.sandbox.kubeconfig_of(User(user, ("system:authenticated",))))))  # fmt: skip

    async def create(self, group_version: str, plural: str, obj: dict[str, Any], space: str = "") -> None:  # fmt: skip
        root = f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"
        place = f"/namespaces/{space}" if space else ""
        await self.admin.raw("POST", f"{root}{place}/{plural}", obj)

    async def allow(self, user: str, verbs: list[str], *resources: str) -> None:
        """Give a user rights on our kinds."""
        name = f"r-{user}-{'-'.join(verbs)}"
        rules = [{"apiGroups": list(OURS), "verbs": verbs, "resources": list(resources)}]
        await self.create(f"{RBAC}/v1", "clusterroles", {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules})  # fmt: skip
        await self.create(f"{RBAC}/v1", "clusterrolebindings", {
            "apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"kind": "ClusterRole", "name": name, "apiGroup": RBAC},
            "subjects": [{"kind": "User", "name": user, "apiGroup": RBAC}],
        })  # fmt: skip

    async def grant_policy(self, name: str = "default", **spec: Any) -> None:
        given = {"approvers": [{"users": ["bob", "cyd"]}], "maxDuration": "4h", **spec}
        obj = {"apiVersion": "kpolicy.io/v1alpha1", "kind": "GrantPolicy", "metadata": {"name": name}, "spec": given}  # fmt: skip
        await self.create("kpolicy.io/v1alpha1", "grantpolicies", obj)


def play(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[Stage], Awaitable[None]],
    *,
    kinds: bool = True,
) -> None:
    """Run an act on a fresh stage."""
    monkeypatch.setenv("KUBECONFIG", "")

    async def main() -> None:
        async with Sandbox.start(folder / "sandbox", expressions=EngineExpressions()) as sandbox:
            admin = connect(load_access(str(sandbox.kubeconfig)))
            try:
                if kinds:
                    for definition in definitions():
                        await admin.create(CRDS, definition)
                await act(Stage(sandbox, admin, capsys))
            finally:
                await admin.close()

    asyncio.run(main())
