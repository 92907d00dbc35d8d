"""What the smallest shipped installation takes: one parent that speaks as five accounts, and one worker."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import yaml

from controllers.kube import Client, connect, load_access
from controllers.kube.accounts import ACCOUNTS, Job
from controllers.kube.kinds import CLUSTER_POLICIES, POLICY_REPORTS, SERVICE_ACCOUNTS
from controllers.manifests import SAMPLES
from kpolicy_sandbox.pki import CALLER
from kpolicy_sandbox.server import Sandbox
from kubectl_kpolicy.session.expressions import EngineExpressions

from .test_accounts_at_work import accepted, eventually, install

MIB = 1024
MOST = 200
ROOT = Path(__file__).parents[3]
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}  # fmt: skip


def family(process: int) -> list[int]:
    """Return a process and all that descend from it."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [process, *(one for child in children for one in family(int(child)))]


def resident(process: int) -> int:
    """Return what a process has in memory, in KiB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


async def kubeconfig(sandbox: Sandbox, admin: Client, folder: Path) -> Path:
    """Write the kubeconfig of the account that the Deployment names."""
    metadata = {"name": ACCOUNTS[Job.ADMISSION], "namespace": "kyverno"}
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": metadata, "spec": {}}  # fmt: skip
    made = await admin.create(SERVICE_ACCOUNTS, request, subresource="token")
    config: Any = yaml.safe_load(sandbox.kubeconfig.read_text())
    config["users"] = [{"name": "us", "user": {"token": made["status"]["token"]}}]
    config["contexts"][0]["context"]["user"] = "us"
    path = folder / "us.kubeconfig"
    path.write_text(json.dumps(config))
    return path


def test_parent_and_worker_together_stay_within_200_mib(tmp_path: Path) -> None:
    async def go() -> int:
        async with Sandbox.start(tmp_path / "sandbox", expressions=EngineExpressions()) as sandbox:
            admin = connect(load_access(sandbox.kubeconfig))
            await install(admin)
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "controllers", f"--kubeconfig={await kubeconfig(sandbox, admin, tmp_path)}",
                "--host=127.0.0.1", "--port=0", "--metrics-port=-1", "--server-url=auto", "--drain=50ms",
                f"--client-ca={sandbox.files.authority}", f"--client-name={CALLER}",
                cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
            )  # fmt: skip
            try:
                for path in sorted((SAMPLES / "pod-security-standards").glob("*.yaml")):
                    for one in yaml.safe_load_all(path.read_text()):
                        await eventually(lambda one=one: accepted(admin, one))
                await eventually(lambda: reported(admin))
                return sum(map(resident, family(process.pid)))
            finally:
                process.terminate()
                await process.wait()
                await admin.close()

    taken = asyncio.run(go())
    assert taken > 50 * MIB, "less than Python itself takes was not measured"
    assert taken <= MOST * MIB, f"{taken / MIB:.0f} MiB"


async def reported(admin: Client) -> bool:
    """Make a Pod once policies are in force, and tell whether its report is there: every job has worked by then."""
    from controllers.kube.kinds import NAMESPACES, PODS

    found = (await admin.list_all(CLUSTER_POLICIES)).items
    conditions = [(one.get("status") or {}).get("conditions") or [{}] for one in found]
    if not all(one[0].get("status") == "True" for one in conditions):
        return False
    if not (await admin.list_all(PODS, "shop")).items:
        await admin.create(NAMESPACES, NAMESPACE)
        await admin.create(PODS, POD)
    return bool((await admin.list_all(POLICY_REPORTS, "shop")).items)
