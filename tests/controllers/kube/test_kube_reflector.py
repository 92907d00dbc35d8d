import asyncio
import json
import sys
from weakref import WeakValueDictionary

from controllers.kube import Forbidden, KubeError, Unreachable
from controllers.kube.client import Event, ListPage
from controllers.kube.kinds import PODS
from controllers.kube.packed import PACKED_PAGE, PackedStore
from controllers.kube.reflector import Informers, Reflector, Selection
from controllers.kube.rush import PATIENCE, Rush
from controllers.kube.store import Store, by_label, by_owner
from tests.clock import ManualClock, settle
from tests.controllers.kube.fake import FakeClient

from .apiserver import run

EVERYTHING = Selection()
PACKED = Selection(packed=True)


def pod(name, **metadata):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "dev", **metadata},
        "spec": {"x": 1},
    }


class Scene:
    """A reflector that runs on a clock moved by hand, and what its store told."""

    def __init__(self, *objects, selection=EVERYTHING, stands_back=False, made=FakeClient):
        self.clock = ManualClock()
        self.client = made(*objects, clock=self.clock)
        indexes = {"team": by_label("team"), "owner": by_owner}
        self.store = PackedStore() if selection.packed else Store(indexes=indexes)
        self.told = []
        self.problems = []
        self.rush = Rush(self.clock)
        self.store.on_change(self._note)
        self.reflector = Reflector(
            self.client,
            PODS,
            self.store,
            selection,
            clock=self.clock,
            chance=lambda: 1.0,
            on_problem=lambda _, problem: self.problems.append(problem),
            rush=self.rush if stands_back else None,
        )

    async def put(self, count, *, seconds, name="n"):
        """Have so many new objects arrive one after the other."""
        for number in range(count):
            self.client.put(pod(f"{name}{number}"))
            await self.clock.advance(seconds / count)

    def _note(self, change):
        what = "removed" if change.new is None else "added" if change.old is None else "changed"
        self.told.append((what, change.key[1]))

    async def __aenter__(self):
        self.task = asyncio.ensure_future(self.reflector.run())
        await settle()
        return self

    async def __aexit__(self, *_):
        self.task.cancel()
        await asyncio.wait([self.task])

    def count(self, verb):
        return sum(call.verb == verb for call in self.client.calls)


def test_the_store_holds_what_is_there_and_what_comes():
    async def scenario():
        async with Scene(pod("a", managedFields=[1])) as scene:
            assert scene.store.is_synced
            assert "managedFields" not in scene.store.get("a", "dev")["metadata"]
            scene.client.put(pod("b"))
            scene.client.put({**pod("a"), "spec": {}})
            scene.client.take(PODS, "b", "dev")
            await settle()
            assert scene.told == [
                ("added", "a"),
                ("added", "b"),
                ("changed", "a"),
                ("removed", "b"),
            ]
            assert scene.store.keys() == [("dev", "a")]
            assert scene.count("list") == 1

    run(scenario())


def test_what_is_packed_is_shown_as_it_came_and_told_of_like_anything_else():
    async def scenario():
        async with Scene(pod("a", managedFields=[1], uid="1"), selection=PACKED) as scene:
            shown = scene.store.get("a", "dev")
            assert shown["spec"] == {"x": 1}
            assert "managedFields" not in shown["metadata"]
            assert (scene.store.is_as(shown), scene.store.get("b", "dev")) == (True, None)
            scene.client.put(pod("b", labels={"é": "ü"}))
            scene.client.put({**pod("a", uid="1"), "spec": {"x": 2}})
            await settle()
            assert not scene.store.is_as(shown)
            assert scene.store.get("a", "dev")["spec"] == {"x": 2}
            assert scene.store.get("b", "dev")["metadata"]["labels"] == {"é": "ü"}
            assert [one["metadata"]["name"] for one in scene.store] == ["a", "b"]
            assert len(scene.store.in_namespace("dev")) == len(scene.store.uids("dev")) == 2
            assert scene.store.uids()[0] == (("dev", "a"), "1")
            assert (scene.store.uids("other"), scene.store.in_namespace("other")) == ([], [])
            scene.client.take(PODS, "b", "dev")
            await settle()
            told = [("added", "a"), ("added", "b"), ("changed", "a"), ("removed", "b")]
            assert scene.told == told
            scene.client.disconnect()
            scene.client.take(PODS, "a", "dev")
            scene.client.put(pod("c"))
            scene.client.expire(PODS)
            await scene.clock.advance(10)
            assert scene.told == [*told, ("added", "c"), ("removed", "a")]

    run(scenario())


def test_of_an_object_as_it_was_a_packed_store_tells_who_it_was():
    store, told = PackedStore(), []
    store.on_change(told.append)
    store.apply(Event("ADDED", pod("a", uid="1", resourceVersion="7")))
    store.apply(Event("MODIFIED", pod("a", uid="1", resourceVersion="8")))
    store.apply(Event("DELETED", pod("a", uid="1", resourceVersion="9")))
    assert [change.old and change.old["metadata"]["resourceVersion"] for change in told] == [
        None,
        "7",
        "9",
    ]
    assert told[1].old == {
        "metadata": {"namespace": "dev", "name": "a", "uid": "1", "resourceVersion": "7"}
    }


def test_a_long_list_that_is_packed_is_taken_over_page_by_page_and_others_come_in_between():
    async def scenario():
        seen = []

        class Looking(FakeClient):
            async def list(self, *args, **options):
                seen.append((len(scene.store), scene.store.is_synced))
                return await super().list(*args, **options)

        pods = (pod(f"p{n:05}") for n in range(3 * PACKED_PAGE))
        scene = Scene(*pods, selection=PACKED, made=Looking)
        async with scene:
            assert seen == [(0, False), (PACKED_PAGE, False), (2 * PACKED_PAGE, False)]
            assert (len(scene.store), scene.store.is_synced) == (3 * PACKED_PAGE, True)

    run(scenario())


def test_the_objects_of_a_page_that_is_packed_are_gone_before_the_next_is_asked_for():
    async def scenario():
        class Watched(dict):
            __slots__ = ("__weakref__",)

        alive = WeakValueDictionary()
        left = []

        class Looking(FakeClient):
            async def list(self, *args, **options):
                left.append(len(alive))
                page = await super().list(*args, **options)
                items = [Watched(one) for one in page.items]
                alive.update({id(one): one for one in items})
                return ListPage(items, page.resource_version, page.resume, page.remaining)

        pods = (pod(f"p{n:05}") for n in range(3 * PACKED_PAGE))
        async with Scene(*pods, selection=PACKED, made=Looking) as scene:
            assert len(scene.store) == 3 * PACKED_PAGE
            assert left == [0, 0, 0]

    run(scenario())


def test_a_packed_object_takes_a_small_part_of_what_it_takes_otherwise():
    env = [{"name": "A", "value": "x"}]
    spec = {
        "containers": [{"name": f"c{n}", "image": f"r.example/{n}", "env": env} for n in range(20)]
    }
    pods = [
        pod(f"p{n}", uid=str(n), resourceVersion=str(n + 1)) | {"spec": spec} for n in range(50)
    ]
    store = PackedStore()
    store.replace(pods, "1")
    kept = sum(sys.getsizeof(one[2]) for one in store._objects.values())
    assert kept < sum(len(json.dumps(one)) for one in pods) / 10
    assert [one["spec"] for one in store] == [spec] * 50


def test_after_the_end_of_a_stream_it_goes_on_where_it_was():
    async def scenario():
        async with Scene(pod("a")) as scene:
            scene.client.put(pod("b"))
            await settle()
            scene.client.disconnect()
            scene.client.put(pod("c"))
            await scene.clock.advance(1)
            assert [name for _, name in scene.told] == ["a", "b", "c"]
            assert (scene.count("list"), scene.count("watch")) == (1, 2)

    run(scenario())


def test_an_expired_version_lists_again_and_tells_what_was_missed():
    async def scenario():
        async with Scene(pod("a"), pod("b")) as scene:
            scene.client.disconnect()
            scene.client.take(PODS, "a", "dev")
            scene.client.put(pod("c"))
            scene.client.expire(PODS)
            await scene.clock.advance(5)
            assert scene.told[2:] == [("removed", "a"), ("added", "c")]
            assert scene.count("list") == 2

    run(scenario())


def test_bookmarks_move_the_version_on():
    async def scenario():
        async with Scene(pod("a")) as scene:
            scene.client.bookmark(PODS)
            await settle()
            assert scene.store.version == "2"
            assert scene.told == [("added", "a")]

    run(scenario())


def test_streams_that_end_at_once_are_not_opened_in_a_hot_loop():
    async def scenario():
        async with Scene(pod("a")) as scene:
            for _ in range(20):
                scene.client.disconnect()
                await settle()
            assert scene.count("watch") <= 3

    run(scenario())


def test_failures_are_reported_and_tried_again_with_growing_pauses():
    async def scenario():
        scene = Scene(pod("a"))
        scene.client.fail("list", Unreachable("away"), times=3)
        async with scene:
            assert scene.problems == ["away"]
            await scene.clock.advance(0.8)
            assert scene.count("list") == 2
            await scene.clock.advance(1.5)
            assert scene.count("list") == 2
            await scene.clock.advance(0.2)
            assert scene.count("list") == 3
            await scene.clock.advance(3.2)
            assert scene.store.is_synced
            assert scene.problems == ["away", ""]

    run(scenario())


def test_where_we_may_not_look_the_pause_is_long():
    async def scenario():
        scene = Scene()
        scene.client.fail("list", Forbidden("you may not", status=403))
        async with scene:
            await scene.clock.advance(59)
            assert scene.count("list") == 1
            assert scene.reflector.problem == "you may not"
            await scene.clock.advance(2)
            assert scene.store.is_synced

    run(scenario())


def test_a_pause_that_the_server_names_is_kept():
    async def scenario():
        scene = Scene()
        scene.client.fail("list", KubeError("busy", status=429, retry_after=20))
        async with scene:
            await scene.clock.advance(19)
            assert scene.count("list") == 1
            await scene.clock.advance(2)
            assert scene.count("list") == 2

    run(scenario())


def test_a_selection_keeps_only_what_it_names_and_metadata_where_that_suffices():
    async def scenario():
        selection = Selection("dev", labels="team=a", metadata_only=True)
        async with Scene(pod("a", labels={"team": "a"}), pod("b"), selection=selection) as scene:
            assert scene.store.keys() == [("dev", "a")]
            assert "spec" not in scene.store.get("a", "dev")
            scene.client.put(pod("a"))
            await settle()
            assert scene.store.keys() == []

    run(scenario())


def test_indexes_follow_every_change():
    async def scenario():
        owned = pod("a", labels={"team": "x"}, ownerReferences=[{"uid": "o1"}])
        async with Scene(owned, pod("b", labels={"team": "x"})) as scene:
            assert {obj["metadata"]["name"] for obj in scene.store.by("team", "x")} == {"a", "b"}
            assert [obj["metadata"]["name"] for obj in scene.store.by("owner", "o1")] == ["a"]
            scene.client.put(pod("a", labels={"team": "y"}))
            scene.client.take(PODS, "b", "dev")
            await settle()
            assert scene.store.by("team", "x") == []
            assert [obj["metadata"]["name"] for obj in scene.store.by("team", "y")] == ["a"]
            assert scene.store.by("owner", "o1") == []
            assert len(scene.store.in_namespace("dev")) == 1

    run(scenario())


def test_a_late_listener_hears_of_everything_and_may_stop():
    async def scenario():
        async with Scene(pod("a")) as scene:
            late = []
            stop = scene.store.on_change(late.append)
            assert [change.key for change in late] == [("dev", "a")]
            stop()
            scene.client.put(pod("b"))
            await settle()
            assert len(late) == 1

    run(scenario())


def test_an_object_made_anew_between_lists_is_a_change():
    store = Store()
    told = []
    store.on_change(told.append)
    store.replace([pod("a", uid="1", resourceVersion="5")], "5")
    store.replace([pod("a", uid="1", resourceVersion="5")], "6")
    assert len(told) == 1
    store.replace([pod("a", uid="2", resourceVersion="7")], "7")
    assert told[1].old["metadata"]["uid"] == "1"


def test_informers_are_shared_and_stop_with_the_last_user():
    async def scenario():
        client = FakeClient(pod("a"))
        informers = Informers(client, clock=ManualClock())
        one, two = informers.acquire(PODS), informers.acquire(PODS)
        assert one is two
        await one.wait_synced()
        await informers.release(PODS)
        client.put(pod("b"))
        await settle()
        assert len(one) == 2
        await informers.release(PODS)
        client.put(pod("c"))
        await settle()
        assert len(one) == 2
        informers.acquire(PODS)
        await informers.close()

    run(scenario())


def test_a_store_may_hold_a_short_page_before_the_next_one_came():
    async def scenario():
        clock = ManualClock()
        client = FakeClient(*(pod(f"pod-{number:04d}") for number in range(600)), clock=clock)
        store, seen = Store(), []
        listing = client.list

        async def list_and_look(*arguments, **details):
            seen.append((len(store), store.is_synced))
            return await listing(*arguments, **details)

        client.list = list_and_look
        reflector = Reflector(client, PODS, store, clock=clock, by_page=True)
        task = asyncio.ensure_future(reflector.run())
        await settle()
        assert seen == [(0, False), (50, False), (550, False)]
        assert (len(store), store.is_synced) == (600, True)
        task.cancel()
        await asyncio.wait([task])

    run(scenario())


def test_a_watch_rests_while_many_objects_are_new_and_misses_none():
    async def scenario():
        async with Scene(*(pod(f"old{n}") for n in range(100)), stands_back=True) as scene:
            await scene.put(90, seconds=3)
            assert len(scene.store) < 100 + 15
            assert scene.rush.is_on
            scene.client.take(PODS, "old0", "dev")
            await scene.clock.advance(10)
            assert not scene.rush.is_on
            assert len(scene.store) == 100 + 90 - 1
            assert scene.told[-1] == ("removed", "old0")
            assert scene.count("watch") == 2

    run(scenario())


def test_a_rest_ends_in_a_rush_that_does_not_end_and_everything_that_came_is_taken_over():
    async def scenario():
        async with Scene(*(pod(f"old{n}") for n in range(1000)), stands_back=True) as scene:
            await scene.put(int(PATIENCE) * 20, seconds=PATIENCE)
            assert len(scene.store) < 1000 + 15
            await scene.put(40, seconds=2, name="more")
            assert len(scene.store) > 1000 + PATIENCE * 20
            assert scene.rush.is_on

    run(scenario())


def test_what_more_is_new_than_was_there_is_listed_and_not_told_one_by_one():
    async def scenario():
        async with Scene(stands_back=True) as scene:
            await scene.put(200, seconds=2)
            await scene.clock.advance(10)
            assert len(scene.store) == 200
            assert sorted(name for _, name in scene.told) == sorted(f"n{n}" for n in range(200))
            await scene.put(1, seconds=1, name="last")
            assert scene.told[-1] == ("added", "last0")

    run(scenario())


def test_what_came_during_a_rest_is_no_rush_afterwards():
    async def scenario():
        async with Scene(*(pod(f"old{n}") for n in range(300)), stands_back=True) as scene:
            await scene.put(200, seconds=2)
            await scene.clock.advance(10)
            assert len(scene.store) == 500
            assert scene.rush.rate < 1

    run(scenario())


def test_a_rest_ends_when_somebody_comes_who_cannot_wait():
    async def scenario():
        async with Scene(stands_back=True) as scene:
            await scene.put(90, seconds=3)
            assert len(scene.store) < 15
            scene.reflector.never_rest()
            await scene.clock.advance(2)
            assert len(scene.store) == 90
            await scene.put(90, seconds=3, name="more")
            assert len(scene.store) == 180
            assert not scene.rush.is_on

    run(scenario())


def test_informers_let_no_watch_rest_that_somebody_shares_who_cannot_wait():
    async def scenario():
        clock = ManualClock()
        client = FakeClient(clock=clock)
        informers = Informers(client, clock=clock)
        rush = Rush(clock)
        store = informers.acquire(PODS, rush=rush)
        await settle()
        assert informers.acquire(PODS) is store
        for number in range(90):
            client.put(pod(f"n{number}"))
            await clock.advance(0.02)
        assert len(store) == 90
        await informers.close()

    run(scenario())


def test_whoever_does_not_stand_back_sees_each_object_of_a_rush_at_once():
    async def scenario():
        async with Scene() as scene:
            await scene.put(200, seconds=2)
            assert len(scene.store) == 200
            assert scene.count("list") == 1

    run(scenario())


def test_a_rest_in_which_the_server_cannot_be_asked_ends():
    async def scenario():
        async with Scene(pod("a"), stands_back=True) as scene:
            scene.client.fail("list", Unreachable("gone"))
            await scene.put(60, seconds=2)
            await scene.clock.advance(20)
            assert len(scene.store) == 61
            assert scene.reflector.problem == ""
            assert not scene.rush.is_on

    run(scenario())
