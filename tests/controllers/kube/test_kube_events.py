import asyncio
from dataclasses import replace

from controllers.kube import Forbidden, Unreachable
from controllers.kube.events import Note, Recorder, reference
from controllers.kube.kinds import EVENTS, object_reference
from tests.clock import ManualClock, settle
from tests.controllers.kube.fake import FakeClient

from .apiserver import run

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "dev", "uid": "u"},
}


def note(message="bad", reason="PolicyViolation", obj=POD):
    return Note(reference(object_reference(obj)), reason, message, action="Resource Blocked")


class Scene:
    def __init__(self, **options):
        self.clock = ManualClock()
        self.client = FakeClient(clock=self.clock)
        self.recorder = Recorder(self.client, "kpolicy-0", clock=self.clock, **options)

    async def __aenter__(self):
        self.task = asyncio.ensure_future(self.recorder.run())
        return self

    async def __aexit__(self, *_):
        self.task.cancel()
        await asyncio.wait([self.task])

    @property
    def events(self):
        return self.client.stored(EVENTS)


def test_an_event_says_what_who_and_about_which_object():
    async def scenario():
        async with Scene() as scene:
            scene.recorder.record(note())
            await scene.recorder.drained()
            [event] = scene.events
            assert event["apiVersion"] == "v1"
            assert event["metadata"]["namespace"] == "dev"
            assert event["metadata"]["name"].startswith("web.")
            assert event["involvedObject"] == {
                "apiVersion": "v1", "kind": "Pod", "name": "web", "namespace": "dev", "uid": "u",
            }  # fmt: skip
            assert (event["message"], event["reason"], event["type"]) == ("bad", "PolicyViolation", "Warning")  # fmt: skip
            assert event["action"] == "Resource Blocked"
            assert (
                event["reportingComponent"] == event["source"]["component"] == "kyverno-admission"
            )
            assert event["reportingInstance"] == "kpolicy-0"
            assert event["eventTime"] == "2026-01-01T00:00:00.000000Z"

    run(scenario())


def test_events_of_cluster_scoped_objects_stand_in_default():
    async def scenario():
        async with Scene() as scene:
            scene.recorder.record(note(obj={"kind": "ClusterPolicy", "metadata": {"name": "p"}}))
            await scene.recorder.drained()
            [event] = scene.events
            assert event["metadata"]["namespace"] == "default"
            assert "namespace" not in event["involvedObject"]

    run(scenario())


def test_an_object_without_a_name_gets_no_event():
    async def scenario():
        async with Scene() as scene:
            scene.recorder.record(note(obj={"kind": "Pod", "metadata": {"generateName": "x-"}}))
            await settle()
            assert scene.events == []

    run(scenario())


def test_equal_notes_are_counted_for_ten_minutes():
    async def scenario():
        async with Scene() as scene:
            for _ in range(3):
                scene.recorder.record(note())
            scene.recorder.record(note("other"))
            await scene.recorder.drained()
            assert sorted(event["count"] for event in scene.events) == [1, 3]
            await scene.clock.advance(601)
            scene.recorder.record(note())
            await scene.recorder.drained()
            assert len(scene.events) == 3

    run(scenario())


def test_what_is_not_counted_any_more_is_not_remembered_either():
    async def scenario():
        async with Scene() as scene:
            for number in range(20):
                scene.recorder.record(note(f"one {number}"))
            await scene.recorder.drained()
            await scene.clock.advance(300)
            scene.recorder.record(note("one 0"))
            scene.recorder.record(note("later"))
            await scene.recorder.drained()
            assert "21 remembered" in repr(scene.recorder)
            await scene.clock.advance(301)
            scene.recorder.record(note("last"))
            await scene.recorder.drained()
            assert "2 remembered" in repr(scene.recorder)

    run(scenario())


def test_a_counted_event_that_is_gone_is_written_anew():
    async def scenario():
        async with Scene() as scene:
            scene.recorder.record(note())
            await scene.recorder.drained()
            [event] = scene.events
            scene.client.take(EVENTS, event["metadata"]["name"], "dev")
            scene.recorder.record(note())
            await scene.recorder.drained()
            assert len(scene.events) == 1

    run(scenario())


def test_notes_that_a_policy_waits_for_are_never_counted_together_or_dropped():
    async def scenario():
        kept = {"must_keep": lambda event: event["reason"] == "PolicyViolation"}
        scene = Scene(most_queued=2, **kept)
        for _ in range(5):
            scene.recorder.record(note())
        for _ in range(5):
            scene.recorder.record(note(reason="PolicyApplied"))
        assert scene.recorder.dropped == 5
        async with scene:
            await scene.recorder.drained()
            assert len(scene.events) == 5

    run(scenario())


def test_an_event_that_is_refused_is_counted_as_lost():
    async def scenario():
        async with Scene() as scene:
            scene.client.fail("create", Forbidden("no"))
            scene.recorder.record(note())
            scene.recorder.record(note("second"))
            await scene.recorder.drained()
            assert (scene.recorder.dropped, len(scene.events)) == (1, 1)

    run(scenario())


def test_a_flood_is_written_slowly():
    async def scenario():
        async with Scene() as scene:
            for number in range(300):
                scene.recorder.record(note(str(number)))
            await settle(2000)
            assert len(scene.events) <= 201
            await scene.clock.advance(10)
            await scene.recorder.drained()
            assert len(scene.events) == 300

    run(scenario())


def is_awaited(event):
    return event["message"].startswith("awaited")


def test_in_a_rush_of_requests_only_what_a_policy_waits_for_is_written_fast():
    async def scenario():
        async with Scene(must_keep=is_awaited) as scene:
            for number in range(500):
                scene.recorder.record(note(str(number)))
                scene.recorder.rush.count()
                await scene.clock.advance(0.01)
                if number == 100:
                    before = len(scene.events)
            assert len(scene.events) - before <= 10 + 4 * 5 + 1
            await scene.clock.advance(20)
            await scene.recorder.drained()
            assert len(scene.events) == 500
            for number in range(100):
                scene.recorder.record(note(f"awaited {number}"))
                scene.recorder.rush.count()
                await scene.clock.advance(0.01)
            assert len(scene.events) == 600

    run(scenario())


def test_a_long_message_is_cut_at_1024_bytes():
    async def scenario():
        async with Scene() as scene:
            scene.recorder.record(note("ä" * 2000))
            await scene.recorder.drained()
            assert len(scene.events[0]["message"].encode()) <= 1024
            assert scene.events[0]["message"].endswith("ä...")

    run(scenario())


def test_an_awaited_event_is_written_again_when_the_server_is_back():
    async def scenario():
        async with Scene(must_keep=lambda event: event["reason"] == "PolicyViolation") as scene:
            scene.client.fail("create", Unreachable("gone"), times=2)
            scene.recorder.record(note())
            await scene.clock.advance(30)
            await scene.recorder.drained()
            assert (scene.recorder.dropped, len(scene.events)) == (0, 1)

    run(scenario())


def test_equal_notes_are_written_one_by_one_where_nothing_is_counted():
    async def scenario():
        async with Scene(counts_equal=False) as scene:
            scene.recorder.record(note())
            scene.recorder.record(note())
            await scene.recorder.drained()
            assert [event["count"] for event in scene.events] == [1, 1]

    run(scenario())


def test_notes_of_a_flood_that_say_the_same_are_written_together_with_the_latest():
    async def scenario():
        async with Scene() as scene:
            for number in range(400):
                said = replace(note(f"{number % 2}"), latest=(("request", str(number)),))
                scene.recorder.record(said)
            await scene.recorder.drained()
            assert [event["count"] for event in scene.events] == [200, 200]
            assert [event["metadata"]["annotations"]["request"] for event in scene.events] == [
                "398",
                "399",
            ]
            assert scene.recorder.dropped == 0
            assert (
                len([call for call in scene.client.calls if call.verb in ("create", "patch")]) == 4
            )

    run(scenario())
