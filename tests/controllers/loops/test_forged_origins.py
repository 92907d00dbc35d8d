"""Labels that say which rule made an object can be written by anybody who may write some object: nothing else follows from them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controllers.kube.kinds import CONFIG_MAPS, NAMESPACES

from .staging import Scene, cluster_policy, config_map, namespace, scene
from .test_generate import leading, rule

PREFIX = "generate.kyverno.io/"
BY_THE_BOSS = {
    "any": [{"resources": {"kinds": ["Namespace"]}, "subjects": [{"kind": "User", "name": "boss"}]}]
}


async def claim(
    made: Scene, called: str = "mine", within: str = "shop", cpu: str = "", **changed: str
) -> None:
    """Write a ConfigMap of somebody that claims to be made for namespace dev; `changed` are parts of what it says of the trigger."""
    [trigger] = [one for one in made.stored(NAMESPACES) if one["metadata"]["name"] == "dev"]
    place = {"group": "", "version": "v1", "kind": "Namespace", "namespace": ""}
    said = {**place, "uid": trigger["metadata"]["uid"], **changed}
    labels = {
        "app.kubernetes.io/managed-by": "kyverno",
        f"{PREFIX}policy-name": "quotas",
        f"{PREFIX}policy-namespace": "",
        f"{PREFIX}rule-name": "make",
        **{f"{PREFIX}trigger-{part}": value for part, value in said.items()},
    }
    claimed: dict[str, Any] = {**config_map(called, within), "data": {"cpu": cpu}}
    made.client.put({**claimed, "metadata": {**claimed["metadata"], "labels": labels}})
    await made.rest(30)


@pytest.mark.parametrize(
    "changed",
    [
        {"kind": "ConfigMap"},
        {"namespace": "shop", "kind": "ConfigMap"},
        {"group": "apps", "kind": "Deployment"},
    ],
)
def test_a_claim_of_a_trigger_that_is_not_there_deletes_nothing_that_was_made_for_the_real_one(
    changed: dict[str, str],
) -> None:
    async def play() -> None:
        async with scene(cluster_policy("quotas", rule())) as made:
            leading(made)
            await made.request(namespace("dev"))
            await made.rest()
            before = made.stored(CONFIG_MAPS, "quota", "dev")
            await claim(made, **changed)
            assert made.stored(CONFIG_MAPS, "quota", "dev") == before
            assert [one["metadata"]["name"] for one in made.stored(CONFIG_MAPS)] == ["quota"]

    asyncio.run(play())


def test_a_claim_makes_nothing_by_a_rule_for_what_others_ask() -> None:
    async def play() -> None:
        async with scene(cluster_policy("quotas", rule(match=BY_THE_BOSS))) as made:
            leading(made)
            await made.request(namespace("dev"))
            await made.rest()
            await claim(made)
            assert made.stored(CONFIG_MAPS, "quota", "dev") is None

    asyncio.run(play())


@pytest.mark.parametrize("edited", [True, False])
def test_what_a_rule_for_what_others_ask_made_is_put_right_all_the_same(edited: bool) -> None:
    async def play() -> None:
        async with scene(cluster_policy("quotas", rule(match=BY_THE_BOSS))) as made:
            leading(made)
            await made.request(namespace("dev"), user="boss")
            await made.rest()
            found = made.stored(CONFIG_MAPS, "quota", "dev")
            if edited:
                made.client.put({**found, "data": {"cpu": "100"}})
            else:
                made.take(found)
            await made.rest()
            assert made.stored(CONFIG_MAPS, "quota", "dev")["data"] == {"cpu": "4"}

    asyncio.run(play())


def test_a_claim_in_the_place_of_what_others_ask_for_is_not_filled() -> None:
    async def play() -> None:
        async with scene(cluster_policy("quotas", rule(match=BY_THE_BOSS))) as made:
            leading(made)
            await made.request(namespace("dev"))
            await made.rest()
            await claim(made, called="quota", within="dev")
            await claim(made, called="quota", within="dev", cpu="1")
            assert made.stored(CONFIG_MAPS, "quota", "dev")["data"] == {"cpu": "1"}
            made.take(made.stored(CONFIG_MAPS, "quota", "dev"))
            await made.rest(30)
            assert made.stored(CONFIG_MAPS, "quota", "dev") is None

    asyncio.run(play())
