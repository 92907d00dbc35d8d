"""Reviews that nobody but an attacker sent have no effect: not answered, no code in the body, nothing written."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from controllers.kube.kinds import (
    AUDIT_SEGMENTS,
    CODE_USES,
    CONFIG_MAPS,
    EVENTS,
    PODS,
    UPDATE_REQUESTS,
    VALIDATING_WEBHOOKS,
)
from controllers.manifests.written import CALLERS
from tests.e2e import engine

from .stage import CODE, Stage, hold, pod, posting, review, staged, tried, until

if TYPE_CHECKING:
    from controllers.kube import Client
    from tests.e2e.tiers import Tier

    from .stage import Poster, Say

PATHS = (
    "validate/fail",
    "mutate/fail",
    "validate",
    "grantvalidate",
    "policyvalidate",
    "exceptionvalidate",
    "verifyttl",
)
_AUDITOR = "bob-the-auditor"
_SECRET = 32
"""How long a secret path is."""
_SETTLED = 75
"""Seconds after which what was forged is waited for no more."""
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
    """Forge against replicas that know the API server by its certificate, and against one that runs as the Deployment does."""
    with staged(tier) as stage:
        tier.kubectl("apply", "-f", "-", given=_GENERATES)
        tier.kubectl("wait", "--for=condition=Ready", "clusterpolicy/make-config", "--timeout=60s")
        asyncio.run(_known(stage, say))
        stage.stop()
        # a certificate that was known once is asked for ever after, unless an administrator takes that back
        tier.kubectl("delete", "secret", "-n", engine.NAMESPACE, CALLERS)
        _as_shipped(stage)
        asyncio.run(_by_path(stage, say))


def _as_shipped(stage: Stage) -> None:
    """Start one replica with the flags of the Deployment; what they name is not there, as after an installation."""
    stage.replicas = {
        0: engine.start(
            stage.tier, "shipped", port=stage.ports[0], address=stage.address, is_known=False
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
    ]


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


async def _by_path(stage: Stage, say: Say) -> None:
    """Forge at plain, guessed, stolen and old paths; the API server itself is answered all the while."""
    client = stage.client()
    alice = stage.client("alice")

    async def refused() -> bool:
        return "no host PID" in await tried(alice, PODS, pod("honest"), dry_run=True)

    await until(refused, 60, "the API server is told the secret paths")
    await until(lambda: _are_secret(client), 60, "all configurations have secret paths")
    stolen = await _stolen(client)
    async with posting(stage, None) as poster:

        async def is_plain_over() -> bool:
            return (await poster.post(0, _forged()[0]))[0] != 200

        await until(is_plain_over, 10, "plain paths are refused once the secret ones are written")
        count = await _strange_paths(poster, stolen) + await _known_paths(poster, stolen)
        hold(await refused(), "the API server is answered meanwhile")
        # a path that somebody has seen is another one after the next start
        stage.stop()
        _as_shipped(stage)
        count += await _old_paths(client, poster, stolen)
    await until(refused, 30, "the API server is answered at the new paths")
    # beyond the time for which what is told is waited for
    await asyncio.sleep(_SETTLED)
    await _hold_nothing_came_of_it(client)
    await alice.close()
    await client.close()
    say(
        f"{count} forged reviews to a replica with the Deployment's flags, at plain, guessed, stolen and old paths: "
        "no code, no use, nothing generated, nothing in the trail"
    )


async def _strange_paths(poster: Poster, stolen: dict[str, str]) -> int:
    """Forge at paths that are none, and at those of other places; return how often."""
    more = ("auditnote", "cleanupvalidate", "x/validate/fail", "0" * 32 + "/validate/fail")
    mixed = [f"{secret}/{other}" for place, secret in stolen.items() for other in stolen if other != place]  # fmt: skip
    asked = [(path, sent) for path in (*PATHS, *more, *mixed) for sent in _forged()]
    for path, sent in asked:
        status, text = await poster.post(0, sent, path)
        is_refused = status in (403, 404) and not CODE.search(text)
        hold(is_refused, f"refused: /{path}", (status, text))
    return len(asked)


async def _known_paths(poster: Poster, stolen: dict[str, str]) -> int:
    """Forge at the paths that are good now; return how often."""
    sent = [(one, f"{stolen['validate']}/validate/fail") for one in _forged()]
    sent.append((_made_up(), f"{stolen['auditnote']}/auditnote"))
    for one, path in sent:
        status, text = await poster.post(0, one, path)
        is_answered = status == 200 and not CODE.search(text)
        hold(is_answered, "who knows the path is answered, and told no code", (status, text))
    return len(sent)


async def _old_paths(client: Client, poster: Poster, stolen: dict[str, str]) -> int:
    """Forge at paths that were good before a start; return how often."""

    async def is_another() -> bool:
        return (await _stolen(client)).get("validate") not in (None, stolen["validate"])

    async def is_dead() -> bool:
        return (await poster.post(0, _forged()[0], f"{stolen['validate']}/validate/fail"))[0] != 200

    await until(is_another, 60, "a start changes the paths")
    await until(is_dead, 30, "an old path is refused")
    for place, secret in stolen.items():
        status, text = await poster.post(0, _forged()[0], f"{secret}/{place}")
        hold(status in (403, 404), f"the old path of {place} is refused", (status, text))
    return len(stolen)


async def _hold_nothing_came_of_it(client: Client) -> None:
    uses = (await client.list_all(CODE_USES)).items
    hold(not uses, "no use is written", uses)
    made = [
        one
        for one in (await client.list_all(CONFIG_MAPS)).items
        if one["metadata"]["name"] == "made"
    ]
    hold(
        not [one for one in made if one["metadata"]["namespace"] == "other"],
        "nothing is generated",
        made,
    )
    trail = json.dumps((await client.list_all(AUDIT_SEGMENTS)).items)
    hold(_AUDITOR not in trail, "nothing is in the trail", trail)


def _made_up() -> dict[str, object]:
    """Return a review by which somebody made a grant policy that nobody made."""
    obj = {"apiVersion": "kpolicy.io/v1alpha1", "kind": "GrantPolicy", "metadata": {"name": "never", "namespace": ""}, "spec": {}}  # fmt: skip
    group = {"group": "kpolicy.io", "version": "v1alpha1"}
    return review(obj, _AUDITOR, kind={**group, "kind": "GrantPolicy"}, resource={**group, "resource": "grantpolicies"})  # fmt: skip


async def _are_secret(client: Client) -> bool:
    return all(len(one) == _SECRET for one in (await _stolen(client)).values())


async def _stolen(client: Client) -> dict[str, str]:
    """Return the secrets before each place, as an administrator reads them in the configurations."""
    found = {}
    for one in (await client.list_all(VALIDATING_WEBHOOKS)).items:
        for webhook in one.get("webhooks") or ():
            url = str(webhook["clientConfig"].get("url") or "")
            _, _, path = url.partition("://")
            parts = path.split("/")
            if "kpolicy.io/owner" in (one["metadata"].get("annotations") or {}):
                secret, place = (parts[1], parts[2]) if len(parts) > 2 else ("", parts[1])
                found[place] = secret
    return found
