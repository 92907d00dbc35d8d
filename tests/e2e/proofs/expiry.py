"""An exception ends within three seconds of its end with every controller stopped and only webhooks running (row 16)."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from controllers.kube.kinds import GRANTS, PODS, POLICY_EXCEPTIONS, Kind

from .stage import hold, pod, staged, tried, until

if TYPE_CHECKING:
    from controllers.kube import Client
    from tests.e2e.tiers import Tier

    from .stage import Say, Stage

CEL_EXCEPTIONS = Kind("policies.kyverno.io", "v1", "policyexceptions", "PolicyException")
SECONDS, WITHIN = 12, 3.0
_CEL = """
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: no-host-cel}
spec:
  validationActions: [Deny]
  evaluation: {background: {enabled: false}}
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  validations:
  - {expression: "!has(object.spec.hostIPC) || !object.spec.hostIPC", message: no host IPC}
"""


def run(tier: Tier, say: Say) -> None:
    """Let exceptions of each kind and a grant end while two webhooks and no loops run."""
    with staged(tier) as stage:
        tier.kubectl("apply", "-f", "-", given=_CEL)
        asyncio.run(_granted(stage))
        stage.stop()
        for number in range(2):
            stage.start(number, "--roles=webhook")
        asyncio.run(_all(stage, say))


async def _granted(stage: Stage) -> None:
    """Have a grant approved while the controllers run; it ends when they do not."""
    ada, bob = stage.client("ada"), stage.client("bob")
    spec = {
        "requester": "ada", "policy": "no-host", "rules": ["host-pid"], "target": {"kind": "Pod", "name": "granted"},
        "duration": "150s", "reason": "to see it end",
    }  # fmt: skip
    await _let_write(stage)
    await ada.create(GRANTS, {"apiVersion": "kpolicy.io/v1alpha1", "kind": "Grant", "metadata": {"name": "short", "namespace": "default"}, "spec": spec})  # fmt: skip
    await bob.patch(GRANTS, "short", "default", {"spec": {"decisions": [{"by": "bob", "verdict": "approve"}]}})  # fmt: skip

    async def active() -> Any:
        return (await ada.get(GRANTS, "short", "default")).get("status", {}).get(
            "state"
        ) == "active"

    await until(active, 30, "the grant is active")
    for client in (ada, bob):
        await client.close()


async def _let_write(stage: Stage) -> None:
    from .stage import furniture_of_rights

    await asyncio.to_thread(furniture_of_rights, stage.tier)


async def _all(stage: Stage, say: Say) -> None:
    ada, admin = stage.client("ada"), stage.client()
    said = await tried(ada, PODS, pod("granted"), dry_run=True)
    hold(not said, "the grant counts", said)
    annotations = (await admin.get(POLICY_EXCEPTIONS, "grant-short", "default"))["metadata"]["annotations"]  # fmt: skip
    end = datetime.fromisoformat(annotations["kpolicy.io/expires-at"])
    late = await _late(ada, pod("granted"), end)
    say(f"an exception of a grant: refused {late:.2f} s after its end")
    for what, kind, made, obj in _cases():
        end = datetime.now(UTC) + timedelta(seconds=SECONDS)
        await admin.create(kind, made(end))
        await _honoured(ada, obj)
        late = await _late(ada, obj, end.replace(microsecond=0))
        say(f"{what}: refused {late:.2f} s after its end")
    hold(len((await admin.list_all(POLICY_EXCEPTIONS)).items) == 3, "nobody has removed what is over")  # fmt: skip
    await ada.close()
    await admin.close()


def _cases() -> list[tuple[str, Kind, Any, dict[str, Any]]]:
    def classic(
        name: str, target: str, annotations: dict[str, str], labels: dict[str, str]
    ) -> dict[str, Any]:
        return {
            "apiVersion": "kyverno.io/v2", "kind": "PolicyException",
            "metadata": {"name": name, "namespace": "default", "annotations": annotations, "labels": labels},
            "spec": {"exceptions": [{"policyName": "no-host", "ruleNames": ["host-pid"]}],
                     "match": {"any": [{"resources": {"kinds": ["Pod"], "names": [target], "namespaces": ["default"]}}]}},
        }  # fmt: skip

    def cel(end: datetime) -> dict[str, Any]:
        return {
            "apiVersion": "policies.kyverno.io/v1", "kind": "PolicyException", "metadata": {"name": "cel", "namespace": "default"},
            "spec": {"policyRefs": [{"name": "no-host-cel", "kind": "ValidatingPolicy"}], "expiresAt": f"{end:%Y-%m-%dT%H:%M:%SZ}",
                     "matchConditions": [{"name": "this", "expression": "object.metadata.name == 'in-cel'"}]},
        }  # fmt: skip

    in_cel = pod("in-cel")
    in_cel["spec"] = {"hostIPC": True, "containers": in_cel["spec"]["containers"]}
    return [
        ("a classic exception with the annotation", POLICY_EXCEPTIONS,
         lambda end: classic("by-annotation", "annotated", {"kpolicy.io/expires-at": f"{end:%Y-%m-%dT%H:%M:%SZ}"}, {}), pod("annotated")),
        ("a classic exception with the TTL label", POLICY_EXCEPTIONS,
         lambda end: classic("by-label", "labelled", {}, {"cleanup.kyverno.io/ttl": f"{end:%Y-%m-%dT%H%M%SZ}"}), pod("labelled")),
        ("a CEL exception with expiresAt", CEL_EXCEPTIONS, cel, in_cel),
    ]  # fmt: skip


async def _honoured(client: Client, obj: dict[str, Any]) -> None:
    async def passes() -> bool:
        return not await tried(client, PODS, obj, dry_run=True)

    await until(passes, SECONDS - 2, "the exception counts")


async def _late(client: Client, obj: dict[str, Any], end: datetime) -> float:
    """Ask ten times a second; return how long after an end the last request was let in, 0 for before it."""
    last, limit = time.monotonic(), time.monotonic() + 240
    late = 0.0
    while True:
        asked = datetime.now(UTC)
        if await tried(client, PODS, obj, dry_run=True):
            break
        late = max(late, (asked - end).total_seconds())
        last = time.monotonic()
        hold(last < limit, "it ends")
        await asyncio.sleep(0.1)
    hold(datetime.now(UTC) >= end - timedelta(seconds=1), "it does not end early", f"{datetime.now(UTC)} for {end}")  # fmt: skip
    hold(late <= WITHIN, f"within {WITHIN} s", f"{late:.2f} s")
    return late
