"""The whole way on a sandbox with the engine as its own process: denied, code or grant, through, over, and on record."""

from __future__ import annotations

import asyncio
import io
import json
import re
import sys
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from controllers.kube.errors import KubeError, NotFound
from controllers.kube.kinds import (
    AUDIT_SEGMENTS,
    CLUSTER_POLICIES,
    CODE_USES,
    EVENTS,
    GRANT_POLICIES,
    GRANTS,
    PODS,
    POLICY_EXCEPTIONS,
)
from kubectl_kpolicy.session import replica

from .staging import RBAC, Stage, play

if TYPE_CHECKING:
    from collections.abc import Callable

    from controllers.kube import Client
    from controllers.kube.kinds import Kind

CODE = re.compile(r"(?:[0-9A-Z]{4}-){4}[0-9A-Z]{4}")
DEADLINE = 60.0
POLICY = {
    "apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "no-host"},
    "spec": {"background": False, "rules": [{
        "name": "host-pid", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
        "validate": {"failureAction": "Enforce", "message": "no host pid", "pattern": {"spec": {"=(hostPID)": False}}},
    }]},
}  # fmt: skip
LIMITS = {
    "apiVersion": "kpolicy.io/v1alpha1", "kind": "GrantPolicy", "metadata": {"name": "default"},
    "spec": {"maxDuration": "4h", "approvers": [{"users": ["bob"]}], "codes": {"mode": "acknowledge", "duration": "1h"}},
}  # fmt: skip
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "debug", "namespace": "default"},
       "spec": {"hostPID": True, "containers": [{"name": "c", "image": "busybox"}]}}  # fmt: skip


async def until(client: Client, kind: Kind, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:  # fmt: skip
    """Return the first object of a kind that is as wanted, as soon as there is one."""
    async with asyncio.timeout(DEADLINE), aclosing(client.watch(kind, "")) as events:
        async for event in events:
            if event.type in ("ADDED", "MODIFIED") and holds(event.object):
                return event.object
    raise AssertionError


async def denial(stage: Stage) -> str:
    """Return the text of ada's denial."""
    client = stage.client_of("ada")
    try:
        with pytest.raises(KubeError) as refused:
            await client.create(PODS, POD, dry_run=True)
    finally:
        await client.close()
    return refused.value.message


async def furnish(stage: Stage) -> None:
    await asyncio.to_thread(replica.start, stage.sandbox.folder)
    await stage.admin.create(GRANT_POLICIES, LIMITS)
    await stage.admin.create(CLUSTER_POLICIES, POLICY)
    await until(stage.admin, CLUSTER_POLICIES, lambda one: any(c.get("status") == "True" for c in (one.get("status") or {}).get("conditions") or ()))  # fmt: skip
    for role in ("admin", "kpolicy:codes:redeem", "kpolicy:grants:approve"):
        await stage.create(f"{RBAC}/v1", "clusterrolebindings", {
            "apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": f"people-{role.replace(':', '-')}"},
            "roleRef": {"kind": "ClusterRole", "name": role, "apiGroup": RBAC},
            "subjects": [{"kind": "User", "name": name, "apiGroup": RBAC} for name in ("ada", "bob")],
        })  # fmt: skip


async def by_code(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> str:
    """Bring the code of a denial along; return it."""
    text = await denial(stage)
    code = CODE.search(text)
    assert code is not None, text
    file = stage.sandbox.folder / "pod.json"
    file.write_text(json.dumps(POD))
    for passes in (True, False):
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{code[0]}\n"))
        said = await stage.run("ada", "otp", "redeem", "-f", str(file))
        assert (said.code == 0) is passes, said.err
        if passes:
            await stage.admin.delete(PODS, "debug", "default")
            await gone(stage)
    assert "refused: the code is not accepted" in said.err
    [use] = (await stage.admin.list_all(CODE_USES)).items
    assert use["spec"]["user"] == "ada"
    return code[0]


async def gone(stage: Stage) -> None:
    async with asyncio.timeout(DEADLINE):
        while True:
            try:
                await stage.admin.get(PODS, "debug", "default")
            except NotFound:
                return
            await asyncio.sleep(0.05)


async def by_grant(stage: Stage) -> None:
    """Ask by the block of the denial, approve as bob, come through, give it back."""
    block = re.search(r"--block (\S+)", await denial(stage))
    assert block is not None
    asked = await stage.run("ada", "grant", "--block", block[1], "--for", "1h", "--reason", "reproduce the crash", "-o", "name")  # fmt: skip
    name = asked.out.strip().removeprefix("grant.kpolicy.io/")
    await until(stage.admin, GRANTS, lambda one: (one.get("status") or {}).get("state") == "pending")  # fmt: skip
    assert (await stage.run("ada", "grant", "approve", name, "--comment", "me")).code == 5
    assert (await stage.run("bob", "grant", "approve", name, "--comment", "fine")).code == 0
    await until(stage.admin, POLICY_EXCEPTIONS, lambda one: one["metadata"]["name"] == f"grant-{name}")  # fmt: skip
    await passes(stage)
    assert (await stage.run("ada", "grant", "drop", name, "--reason", "done")).code == 0
    await until(stage.admin, GRANTS, lambda one: (one.get("status") or {}).get("state") == "dropped")  # fmt: skip


async def passes(stage: Stage) -> None:
    client = stage.client_of("ada")
    try:
        async with asyncio.timeout(DEADLINE):
            while True:
                try:
                    await client.create(PODS, POD, dry_run=True)
                except KubeError:
                    await asyncio.sleep(0.1)
                else:
                    return
    finally:
        await client.close()


def test_a_denied_person_comes_through_by_code_or_grant_and_all_of_it_is_on_record(tmp_path, capsys, monkeypatch):  # fmt: skip
    async def act(stage: Stage) -> None:
        try:
            await furnish(stage)
            code = await by_code(stage, monkeypatch)
            await by_grant(stage)
            await until(stage.admin, AUDIT_SEGMENTS, lambda one: any(r["verb"] == "dropped" for r in one["spec"]["records"]))  # fmt: skip
            checked = await stage.run("root", "audit", "verify", groups=("system:masters",))
            assert (checked.code, "whole" in checked.out) == (0, True)
            told = await stage.run("root", "audit", "export", groups=("system:masters",))
            verbs = [json.loads(line)["verb"] for line in told.out.splitlines()]
            # The making of the grant policy is told where the webhook that tells it was there in time; the use of the code is
            # confirmed as soon as its Pod is seen, whatever else goes on.
            assert verbs.count("confirm") <= 1
            assert "confirm" not in verbs[: verbs.index("use")]
            assert [verb for verb in verbs if verb not in ("create", "confirm")] == ["use", "reuse", "request", "approve", "active", "drop", "dropped"]  # fmt: skip
            events = repr((await stage.admin.list_all(EVENTS)).items)
            for sink in (told.out, events, (stage.sandbox.folder / "engine.log").read_text()):
                assert code not in sink
        finally:
            await asyncio.to_thread(replica.stop, stage.sandbox.folder)

    play(tmp_path, capsys, monkeypatch, act, kinds=False)
