"""A code moved to another object, name, namespace, user, policy or moment opens nothing, and what it let in stays as it is."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from controllers.kube import JSON_PATCH, KubeError
from controllers.kube.kinds import CODE_USES, NAMESPACES, PODS, Kind

from .stage import REFUSED, Stage, code_for, hold, pod, staged, tried, until

if TYPE_CHECKING:
    from controllers.kube import Client
    from tests.e2e.tiers import Tier

    from .stage import Say

DEPLOYMENTS = Kind("apps", "v1", "deployments", "Deployment")
_MINER = {"containers": [{"name": "c", "image": "miner"}]}
_BESIDE = {"containers": [{"name": "c", "image": "busybox"}, {"name": "d", "image": "busybox"}]}
_INIT = {"initContainers": [{"name": "i", "image": "busybox"}]}
_PRIVILEGED = {"containers": [{"name": "c", "image": "busybox", "securityContext": {"privileged": True}}]}  # fmt: skip
_COMMAND = {"containers": [{"name": "c", "image": "busybox", "command": ["sh"]}]}


def _moved(code: str) -> dict[str, dict[str, Any]]:
    """Return what carries a code that was given for `web` in `default`."""
    return {
        "another name": pod("web-2", code),
        "a generated name": pod("web-", code),
        "another namespace": pod("web", code, namespace="other"),
        "another image": pod("web", code, **_MINER),
        "another container beside": pod("web", code, **_BESIDE),
        "an init container": pod("web", code, **_INIT),
        "a privileged container": pod("web", code, **_PRIVILEGED),
        "another command": pod("web", code, **_COMMAND),
        "another thing forbidden": pod("web", code, hostIPC=True, hostNetwork=True),
    }


def run(tier: Tier, say: Say) -> None:
    """Try every move through the API server; the code itself is good to the end."""
    with staged(tier) as stage:
        asyncio.run(_all(stage, say))


async def _all(stage: Stage, say: Say) -> None:
    ada, eve, admin = stage.client("ada"), stage.client("eve"), stage.client()
    code = await code_for(ada, pod("web"))
    tried_so_far = []
    for what, obj in _moved(code).items():
        await _denied(ada, obj, what)
        tried_so_far.append(what)
    await _denied(eve, pod("web", code), "another user")
    capital, robot = stage.client("Ada"), stage.client("system:serviceaccount:default:ada")
    await _denied(capital, pod("web", code), "the user's name in other letters")
    await _denied(robot, pod("web", code), "a service account", "no host PID")
    hold(not (await admin.list_all(CODE_USES)).items, "no use was written")
    for client in (ada, eve, admin, capital, robot):
        await client.close()
    ben = stage.client("ben")
    say(
        f"{len(tried_so_far) + 3} moves of a minted code denied: {', '.join(tried_so_far)}, another user, other letters, a service account"
    )
    await _changed_under(stage, ben, say)


async def _denied(client: Client, obj: dict[str, Any], what: str, word: str = REFUSED) -> None:
    said = await tried(client, PODS, obj)
    hold(word in said, f"denied: {what}", said)


async def _changed_under(stage: Stage, ben: Client, say: Say) -> None:
    """Change the policy and the namespace between the code's making and its use."""
    admin = stage.client()
    in_other = await code_for(ben, pod("web", namespace="other"))
    await admin.delete(NAMESPACES, "other")

    async def gone() -> bool:
        return "other" not in {
            one["metadata"]["name"] for one in (await admin.list_all(NAMESPACES)).items
        }

    await until(gone, 90, "the namespace is gone")
    await admin.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})  # fmt: skip

    async def refused_by_policy() -> str:
        said = await tried(ben, PODS, pod("web", in_other, namespace="other"))
        return said if "no host PID" in said else ""

    said = await until(refused_by_policy, 60, "Pods are judged there")
    hold(REFUSED in said, "denied: the namespace was made anew", said)
    code = await code_for(ben, pod("web"))
    for what, patch in {
        "the policy says something else": ("--type=merge", '-p={"spec":{"rules":[{"name":"host-pid","match":{"any":[{"resources":{"kinds":["Pod"]}}]},"validate":{"failureAction":"Enforce","message":"no host PID at all","pattern":{"spec":{"=(hostPID)":false}}}}]}}'),
    }.items():  # fmt: skip
        await asyncio.to_thread(stage.tier.kubectl, "patch", "clusterpolicy", "no-host", *patch)

        async def changed() -> bool:
            return "no host PID at all" in await tried(ben, PODS, pod("x"), dry_run=True)

        await until(changed, 30, "the policy is another one")
        said = await tried(ben, PODS, pod("web", code))
        hold(REFUSED in said, f"denied: {what}", said)
    uses = (await admin.list_all(CODE_USES)).items
    hold(not uses, "no use was written", uses)
    fresh = await code_for(ben, pod("web"))
    hold(not await tried(ben, PODS, pod("web", fresh)), "the right code is good")
    await _changed_later(stage, ben, say)
    for client in (ben, admin):
        await client.close()
    say(
        "a namespace made anew and a policy that was edited: denied; the code that fits them passes"
    )


async def _changed_later(stage: Stage, ben: Client, say: Say) -> None:
    """Change what passed by a code: to something else by nobody, in what the rule does not look at by anybody."""
    eve, admin = stage.client("eve"), stage.client()
    other = [{"op": "replace", "path": "/spec/containers/0/image", "value": "miner"}]
    for name, client in (("who used the code", ben), ("somebody else", eve), ("root", admin)):
        said = await _patched(client, other, content_type=JSON_PATCH)
        hold("leaves it as it is" in said, f"denied: another image, by {name}", said)
        said = await _patched(client, {"metadata": {"labels": {"seen": name.split()[0]}}})
        hold(not said, f"a label passes, by {name}", said)
    uses = (await admin.list_all(CODE_USES)).items
    hold(len(uses) == 1, "no more codes were used", uses)
    for one in (eve, admin):
        await one.close()
    say("what passed by a code is changed to another image by nobody, and labelled by anybody")


async def _patched(client: Client, body: Any, **options: Any) -> str:
    """Change the Pod that passed; return why that was refused, nothing where it was not."""
    try:
        await client.patch(PODS, "web", "default", body, **options)
    except KubeError as error:
        return error.message or "refused"
    return ""
