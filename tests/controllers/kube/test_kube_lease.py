import asyncio

import pytest

from controllers.kube import Unreachable
from controllers.kube.kinds import LEASES
from controllers.kube.lease import Election, LeadershipLost
from tests.clock import ManualClock, settle
from tests.controllers.kube.fake import FakeClient

from .apiserver import run


class Candidate:
    def __init__(self, client, clock, name, **options):
        self.election = Election(
            client, "kyverno", "kpolicy", name, clock=clock, chance=lambda: 0.0, **options
        )
        self.stops = 0
        self.task = asyncio.ensure_future(self.election.run(self.lead))

    async def lead(self):
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.stops += 1

    async def kill(self):
        """End as a crash would: nothing is given back."""
        self.election._client = FakeClient()
        self.task.cancel()
        await asyncio.wait([self.task])

    async def stop(self):
        self.task.cancel()
        await asyncio.wait([self.task])


def lease(client):
    return client.stored(LEASES)[0]["spec"]


def test_one_of_two_leads():
    async def scenario():
        clock = ManualClock()
        client = FakeClient(clock=clock)
        one, two = Candidate(client, clock, "one"), Candidate(client, clock, "two")
        await clock.advance(60)
        assert (one.election.is_leading, two.election.is_leading) == (True, False)
        assert two.election.holder == "one"
        assert lease(client)["holderIdentity"] == "one"
        assert lease(client)["leaseDurationSeconds"] == 10
        assert lease(client)["renewTime"] == "2026-01-01T00:01:00.000000Z"
        assert lease(client)["acquireTime"] == "2026-01-01T00:00:00.000000Z"
        await one.stop()
        await two.stop()

    run(scenario())


@pytest.mark.parametrize("apart", [0.0, 0.1, 1.0, 1.9])
def test_after_a_crash_another_leads_within_fifteen_seconds_whenever_it_looks(apart):
    async def scenario():
        clock = ManualClock()
        client = FakeClient(clock=clock)
        one = Candidate(client, clock, "one")
        await clock.advance(apart)
        two = Candidate(client, clock, "two")
        two.election._chance = lambda: 1.0
        await clock.advance(31)
        await one.kill()
        await clock.advance(7.9)
        assert not two.election.is_leading
        await clock.advance(7)
        assert two.election.is_leading
        assert lease(client)["leaseTransitions"] == 1
        await two.stop()

    run(scenario())


def test_a_leader_that_stops_gives_the_lease_back():
    async def scenario():
        clock = ManualClock()
        client = FakeClient(clock=clock)
        one = Candidate(client, clock, "one")
        await settle()
        two = Candidate(client, clock, "two")
        await clock.advance(5)
        await one.stop()
        assert one.stops == 1
        assert (lease(client)["holderIdentity"], lease(client)["leaseDurationSeconds"]) == ("", 1)
        await clock.advance(2)
        assert two.election.is_leading
        await two.stop()

    run(scenario())


def test_a_leader_that_cannot_renew_stops_before_its_lease_ends():
    async def scenario():
        clock = ManualClock()
        client = FakeClient(clock=clock)
        one = Candidate(client, clock, "one")
        await clock.advance(4)
        client.fail("*", Unreachable("away"), times=100)
        await clock.advance(7.9)
        assert one.election.is_leading
        await clock.advance(4)
        with pytest.raises(LeadershipLost):
            await one.task
        assert (one.stops, one.election.is_leading) == (1, False)

    run(scenario())


def test_short_trouble_is_survived():
    async def scenario():
        clock = ManualClock()
        client = FakeClient(clock=clock)
        one = Candidate(client, clock, "one")
        await clock.advance(4)
        client.fail("*", Unreachable("away"), times=3)
        await clock.advance(30)
        assert one.election.is_leading
        await one.stop()

    run(scenario())


def test_a_server_that_hangs_counts_as_away():
    async def scenario():
        clock = ManualClock()
        client = FakeClient(clock=clock)
        one = Candidate(client, clock, "one")
        await clock.advance(4)

        async def hang(*_, **__):
            await asyncio.get_running_loop().create_future()

        client.get = hang
        await clock.advance(12)
        assert one.stops == 1
        assert not one.election.is_leading
        with pytest.raises(LeadershipLost):
            await one.task

    run(scenario())


def test_a_foreign_holder_is_trusted_for_as_long_as_it_says():
    async def scenario():
        clock = ManualClock()
        client = FakeClient(clock=clock)
        client.put(
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": "kpolicy", "namespace": "kyverno"},
                "spec": {"holderIdentity": "go", "leaseDurationSeconds": 40, "leaseTransitions": 3},
            }
        )
        one = Candidate(client, clock, "one")
        await clock.advance(39)
        assert not one.election.is_leading
        await clock.advance(4)
        assert one.election.is_leading
        assert lease(client)["leaseTransitions"] == 4
        await one.stop()

    run(scenario())


def test_the_end_of_the_work_ends_the_election():
    async def scenario():
        client = FakeClient()

        async def lead():
            raise ValueError("a mistake")

        election = Election(client, "kyverno", "kpolicy", "one", clock=ManualClock())
        with pytest.raises(ValueError, match="a mistake"):
            await election.run(lead)
        assert lease(client)["holderIdentity"] == ""

    run(scenario())
