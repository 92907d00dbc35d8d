"""All questions of a round at once: none waits for another, none breaks another, none is lost."""

from __future__ import annotations

import asyncio

import pytest

from controllers.kube import Discovery, KubeError
from controllers.lookups.answering import MOST_ASKED, Lookups
from controllers.lookups.assembling import for_cluster, for_person
from controllers.lookups.cluster import ClusterSource
from controllers.lookups.egress import Gate
from controllers.lookups.room import Overloaded, Room
from engine.evaluate import (
    Answer,
    ApiCallLookup,
    ConfigMapLookup,
    GlobalLookup,
    HostLookup,
    ImageLookup,
    ListLookup,
    ObjectLookup,
    ServiceLookup,
    SignatureLookup,
)
from engine.images import ImageData
from tests.controllers.kube.apiserver import run
from tests.controllers.kube.fake import FakeClient

EVERY = (
    ConfigMapLookup("dev", "a"),
    ApiCallLookup("GET", "/api/v1/pods"),
    ServiceLookup("GET", "http://a"),
    ImageLookup("a"),
    SignatureLookup("a"),
    GlobalLookup("a"),
    ObjectLookup("v1", "Pod", "dev", "a"),
    ListLookup("v1", "Pod", "dev"),
    HostLookup("a.test"),
)


class SlowImages:
    """Answers when it is let go; counts how often it was asked."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.asked = self.together = self.most = 0

    async def image(self, lookup):
        self.asked += 1
        self.together += 1
        self.most = max(self.most, self.together)
        await self.go.wait()
        self.together -= 1
        return lookup.reference

    async def signatures(self, lookup):
        raise ZeroDivisionError(lookup.reference)


def config_map(name: str):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "dev"}}


def test_where_nobody_is_there_to_ask_answers_are_absent() -> None:
    found = run(Lookups().resolve(EVERY))

    assert set(found) == set(EVERY)
    assert set(found.values()) == {Answer.absent()}


def test_a_failure_stands_beside_the_answers() -> None:
    async def scenario() -> None:
        client = FakeClient(config_map("a"))
        lookups = Lookups(cluster=ClusterSource(client, Discovery(client)))
        found = await lookups.resolve([ConfigMapLookup("dev", "a"), ConfigMapLookup("dev", "b")])
        assert found[ConfigMapLookup("dev", "a")].value["metadata"]["name"] == "a"
        assert found[ConfigMapLookup("dev", "b")] == Answer.failed(
            'configmaps "b" not found', is_missing=True
        )

    run(scenario())


@pytest.mark.parametrize("error", [KubeError("broken"), TimeoutError(), ValueError("canary")])
@pytest.mark.parametrize("lookup", [EVERY[0], EVERY[1], EVERY[6], EVERY[7]], ids=str)
def test_whatever_goes_wrong_is_a_failed_answer(lookup, error: Exception) -> None:
    async def scenario() -> None:
        client = FakeClient()
        discovery = Discovery(client)
        await discovery.refresh()
        client._faults.append(("*", "", error))
        found = await Lookups(cluster=ClusterSource(client, discovery)).resolve([lookup])
        assert found[lookup].error
        assert "canary" not in found[lookup].error
        assert found[lookup].value is None

    run(scenario())


def test_a_mistake_in_a_source_fails_one_answer(caplog) -> None:
    async def scenario() -> None:
        found = await Lookups(images=SlowImages()).resolve([SignatureLookup("a")])
        assert found[SignatureLookup("a")].error == "the answer could not be read"

    run(scenario())


def test_questions_are_asked_together() -> None:
    async def scenario() -> None:
        images = SlowImages()
        lookups = Lookups(images=images, parallel=3)
        wanted = [ImageLookup(str(number)) for number in range(5)]
        task = asyncio.ensure_future(lookups.resolve(wanted))
        while images.together < 3:
            await asyncio.sleep(0)
        images.go.set()
        found = await task
        assert {lookup: answer.value for lookup, answer in found.items()} == {
            lookup: lookup.reference for lookup in wanted
        }
        assert images.most == 3

    run(scenario())


def test_slow_registries_do_not_keep_the_cluster_waiting() -> None:
    async def scenario() -> None:
        images, client = SlowImages(), FakeClient(config_map("a"))
        source = ClusterSource(client, Discovery(client))
        lookups = Lookups(images=images, cluster=source, parallel=1)
        slow = [asyncio.ensure_future(lookups.resolve([ImageLookup(name)])) for name in "ab"]
        while not images.asked:
            await asyncio.sleep(0)
        found = await lookups.resolve([ConfigMapLookup("dev", "a")])
        assert not found[ConfigMapLookup("dev", "a")].error
        images.go.set()
        await asyncio.gather(*slow)

    run(scenario())


def test_a_room_lets_some_run_some_wait_and_refuses_the_rest() -> None:
    async def scenario() -> None:
        room, release = Room(1, 1), asyncio.Event()

        async def work() -> None:
            async with room.place("shop"):
                await release.wait()

        first, second = asyncio.create_task(work()), asyncio.create_task(work())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert room.waiting == 1
        with pytest.raises(Overloaded):
            await work()
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        assert room.waiting == 0
        third = asyncio.create_task(work())
        release.set()
        await asyncio.gather(first, third)

    run(scenario())


class Registries:
    """Answers for one registry; the other never does."""

    async def image(self, lookup):
        while lookup.reference.startswith("hangs"):
            await asyncio.sleep(1)
        return lookup.reference


def test_registries_that_never_answer_one_tenant_do_not_keep_others_waiting() -> None:
    async def scenario() -> None:
        lookups, good = Lookups(images=Registries()), ImageLookup("good")  # type: ignore[arg-type] # - only images are asked for
        many = [ImageLookup(f"hangs/{number}") for number in range(10 * MOST_ASKED)]
        attack = asyncio.ensure_future(lookups.resolve([*many, good], "attacker"))
        await asyncio.sleep(0.1)
        async with asyncio.timeout(1):
            found = await lookups.resolve([good], "shop")
        assert found[good].value == "good"
        attack.cancel()
        assert len(asyncio.all_tasks()) < 3 * MOST_ASKED
        await lookups.close()

    run(scenario())


def test_what_is_too_much_for_one_round_fails_and_the_rest_is_answered() -> None:
    async def scenario() -> None:
        lookups = Lookups(images=Registries())  # type: ignore[arg-type] # - only images are asked for
        wanted = [ImageLookup(str(number)) for number in range(MOST_ASKED + 5)]
        found = await lookups.resolve(wanted, "shop")
        assert [one.value for one in found.values()].count(None) == 5
        assert set(found) == set(wanted)
        assert {one.error for one in found.values() if one.value is None} == {
            "too many questions to the outside wait for an answer; try again later"
        }

    run(scenario())


def test_one_call_answers_all_who_ask_at_the_same_time_and_survives_the_first() -> None:
    async def scenario() -> None:
        images = SlowImages()
        lookups = Lookups(images=images)
        one, two = (asyncio.ensure_future(lookups.resolve([ImageLookup("a")])) for _ in "ab")
        while not images.asked:
            await asyncio.sleep(0)
        one.cancel()
        images.go.set()
        assert (await two)[ImageLookup("a")].value == "a"
        assert images.asked == 1
        await lookups.resolve([ImageLookup("a")])
        assert images.asked == 2

    run(scenario())


def test_askers_of_different_namespaces_do_not_share() -> None:
    async def scenario() -> None:
        images = SlowImages()
        images.go.set()
        wanted = [ImageLookup("a"), ImageLookup("a", within="dev")]
        await Lookups(images=images).resolve(wanted)
        assert images.asked == 2

    run(scenario())


def test_the_cluster_is_read_for_every_asker() -> None:
    async def scenario() -> None:
        client = FakeClient(config_map("a"))
        lookups = Lookups(cluster=ClusterSource(client, Discovery(client)))
        wanted = [ConfigMapLookup("dev", "a")]
        await asyncio.gather(lookups.resolve(wanted), lookups.resolve(wanted))
        assert len(client.calls) == 2

    run(scenario())


def test_an_answer_that_does_not_come_is_given_up() -> None:
    async def scenario() -> None:
        found = await Lookups(images=SlowImages(), seconds=0.1).resolve([ImageLookup("a")])
        assert found[ImageLookup("a")] == Answer.failed("there was no answer in time")

    run(scenario())


def test_closing_ends_what_is_under_way() -> None:
    async def scenario() -> None:
        images = SlowImages()
        lookups = Lookups(images=images)
        task = asyncio.ensure_future(lookups.resolve([ImageLookup("a")]))
        while not images.asked:
            await asyncio.sleep(0)
        await lookups.close()
        await asyncio.wait([task])
        assert task.cancelled()

    run(scenario())


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [(["8.8.8.8"], True), (["10.0.0.1"], False), (["8.8.8.8", "10.0.0.1"], False), ([], False)],
)
def test_a_host_is_outside_when_all_its_addresses_are(addresses, expected) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return addresses

    lookup = HostLookup("a.test")
    found = run(Lookups(gate=Gate(resolve=resolve)).resolve([lookup]))

    assert found[lookup].value is expected


def test_in_a_cluster_everything_is_answered() -> None:
    async def scenario() -> None:
        client = FakeClient()
        lookups = for_cluster(client, Discovery(client), namespace="kyverno")
        # Names and services need a network; the rest is answered by what is in memory.
        asked = [one for one in EVERY if not isinstance(one, HostLookup | SignatureLookup | ImageLookup | ServiceLookup)]  # fmt: skip
        found = await lookups.resolve(asked)
        await lookups.close()
        assert not any(answer.is_absent for answer in found.values())

    run(scenario())


def test_a_person_asks_registries_only_where_they_said_so(tmp_path) -> None:
    async def scenario(registry: bool):
        lookups = for_person(registry=registry, environment={}, home=tmp_path)
        lookup = SignatureLookup("127.0.0.1:1/a")
        found = (await lookups.resolve([lookup]))[lookup]
        await lookups.close()
        return found

    assert run(scenario(False)).is_absent
    assert run(scenario(True)).value == ImageData(problem="`127.0.0.1` cannot be reached")
