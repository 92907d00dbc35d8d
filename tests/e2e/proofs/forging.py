"""Reviews that nobody but an attacker sent have no effect: not answered, no code in the body, nothing written (T0, row 9)."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from controllers.kube.kinds import CODE_USES, EVENTS, PODS, UPDATE_REQUESTS

from .stage import CODE, Stage, hold, pod, posting, review, staged, tried, until

if TYPE_CHECKING:
    from tests.e2e.tiers import Tier

    from .stage import Say

PATHS = (
    "validate/fail",
    "mutate/fail",
    "validate",
    "grantvalidate",
    "policyvalidate",
    "exceptionvalidate",
    "verifyttl",
)
_GENERATES = """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: make-config}
spec:
  rules:
  - name: config
    match: {any: [{resources: {kinds: [Namespace]}}]}
    generate:
      apiVersion: v1
      kind: ConfigMap
      name: made
      namespace: "{{ request.object.metadata.name }}"
      data: {data: {by: a forged review}}
"""


def run(tier: Tier, say: Say) -> None:
    """Forge against replicas that know the API server, and against one that does not."""
    with staged(tier) as stage:
        tier.kubectl("apply", "-f", "-", given=_GENERATES)
        tier.kubectl("wait", "--for=condition=Ready", "clusterpolicy/make-config", "--timeout=60s")
        asyncio.run(_known(stage, say))
        stage.stop()
        _without_authority(stage)
        asyncio.run(_unknown(stage, say))
        stage.stop()
        _without_authority(stage, "--secret-path")
        asyncio.run(_by_path(stage, say))


def _without_authority(stage: Stage, *flags: str) -> None:
    from tests.e2e import engine

    stage.replicas = {
        0: engine.start(
            stage.tier, "open", *flags, port=stage.ports[0], address=stage.address, is_known=False
        )
    }


def _forged(user: str = "alice") -> list[dict[str, object]]:
    space = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "other", "namespace": ""},
    }
    place = {
        "kind": {"group": "", "version": "v1", "kind": "Namespace"},
        "resource": {"group": "", "version": "v1", "resource": "namespaces"},
    }
    return [
        review(pod("forged"), user),
        review(pod("forged", "0" * 20), user),
        review(space, user, namespace="other", **place),
    ]  # fmt: skip


async def _written(stage: Stage) -> str:
    client = stage.client()
    found = [(await client.list_all(kind)).items for kind in (CODE_USES, UPDATE_REQUESTS, EVENTS)]
    await client.close()
    forged = [one for listed in found for one in listed if "forged" in json.dumps(one)]
    return json.dumps([found[0], found[1], forged])


async def _known(stage: Stage, say: Say) -> None:
    callers = {
        "no certificate": None,
        "an administrator's certificate of the same authority": stage.tier.admin_pair,
    }
    before, count = await _written(stage), 0
    for who, certificate in callers.items():
        if who != "no certificate" and certificate is None:
            continue
        async with posting(stage, certificate) as poster:
            for path in PATHS:
                for sent in _forged():
                    status, text = await poster.post(count % 2, sent, path)
                    hold(status == 403 and not CODE.search(text), f"refused: {who} at {path}", (status, text))  # fmt: skip
                    count += 1
    async with posting(stage, stage.tier.webhook_pair) as poster:
        hold(await poster.offered(0, pod("honest"), "alice"), "the API server itself is answered")
    await asyncio.sleep(3)  # what a review sets off is written within a second
    hold(await _written(stage) == before, "nothing is written", await _written(stage))
    say(
        f"{count} forged reviews by {len([one for one in callers.values() if one]) + 1} kinds of callers: all 403, nothing written"
    )


async def _unknown(stage: Stage, say: Say) -> None:
    """Where no authority is known the caller's word for who asks is worth nothing to codes."""
    async with posting(stage, stage.tier.webhook_pair) as poster:
        for number in range(50):
            answer = await poster.ask(0, review(pod(f"forged-{number}"), "alice"))
            hold(not answer["allowed"], "a denial stays one")
            hold(not CODE.search(json.dumps(answer)), "no code in a body", answer)
    client = stage.client()
    uses = (await client.list_all(CODE_USES)).items
    await client.close()
    hold(not uses, "no use is written", uses)
    say(
        "50 reviews with a made-up user to a replica that knows no authority: denied, no code, no use"
    )


async def _by_path(stage: Stage, say: Say) -> None:
    """Where the API server proves itself by a path, who does not know it gets no code."""
    async with posting(stage, None) as poster:
        for path in ("validate/fail", "0" * 32 + "/validate/fail", "x/validate/fail"):
            _, text = await poster.post(0, review(pod("guessed"), "alice"), path)
            hold(
                not CODE.search(text) and '"allowed":true' not in text, f"no code at /{path}", text
            )
    client = stage.client("alice")

    async def offered() -> bool:
        return bool(CODE.search(await tried(client, PODS, pod("honest"), dry_run=True)))

    await until(offered, 60, "the API server knows the path and people get codes")
    await client.close()
    admin = stage.client()
    uses = (await admin.list_all(CODE_USES)).items
    await admin.close()
    hold(not uses, "no use is written", uses)
    say(
        "a replica that goes by its secret path: no code at any other path, codes through the API server"
    )
