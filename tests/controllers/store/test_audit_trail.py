"""The audit trail in its segments: where it goes on, when a segment is full, and what tells that it was put back."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from controllers.kube import Conflict
from controllers.kube.kinds import AUDIT_SEGMENTS
from controllers.store import audit
from controllers.store.audit import AuditTrail, Regression
from engine.audit import MAX_BYTES, Checkpoint
from tests.controllers.kube.fake import FakeClient

KEY = b"s" * 32


def trail(client: FakeClient, told: list[Regression] | None = None) -> AuditTrail:
    made = AuditTrail(client, "kyverno", KEY)
    if told is not None:
        made.on_regression.append(told.append)
    return made


def entry(number: int, size: int = 0) -> dict[str, Any]:
    """Return a record; with a size it takes that many bytes in its segment."""
    made = {"id": str(number), "verb": "a", "actor": "x", "reason": ""}
    if size:
        whole = {**made, "seq": number, "hash": "0" * 64}
        made["reason"] = "r" * (size - audit.size_of(whole))
    return made


def segments(client: FakeClient) -> list[list[int]]:
    found = sorted(client.stored(AUDIT_SEGMENTS), key=lambda one: one["metadata"]["name"])
    return [[record["seq"] for record in one["spec"]["records"]] for one in found]


def test_who_reads_the_trail_anew_goes_on_in_its_last_segment() -> None:
    async def play() -> None:
        client = FakeClient()
        assert await trail(client).record(entry(1))
        again = trail(client)
        assert await again.record(entry(2))
        assert not await again.record(entry(1))
        assert segments(client) == [[1, 2]]
        assert again.head is not None
        assert again.head.seq == 2

    asyncio.run(play())


@pytest.mark.parametrize(
    ("size", "expected"), [(MAX_BYTES // 2, [[1, 2]]), (MAX_BYTES // 2 + 1, [[1], [2]])]
)
@pytest.mark.parametrize("anew", [False, True])
def test_a_segment_is_full_at_sixty_four_kibibytes_and_no_earlier(
    size: int, expected: list[list[int]], anew: bool
) -> None:
    async def play() -> None:
        client = FakeClient()
        first = trail(client)
        await first.record(entry(1, size))
        await (trail(client) if anew else first).record(entry(2, size))
        assert segments(client) == expected

    assert MAX_BYTES == 65_536
    asyncio.run(play())


def test_a_segment_that_is_closed_is_told_with_where_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def play() -> None:
        client = FakeClient()
        made = trail(client)
        for number in (1, 2, 3):
            await made.record(entry(number, MAX_BYTES // 2))
        [last] = [one for one in client.stored(AUDIT_SEGMENTS) if one["spec"]["sealed"]]
        assert f"to record 2 with hash {last['spec']['records'][-1]['hash']}" in caplog.text

    with caplog.at_level(logging.INFO):
        asyncio.run(play())


def test_a_trail_that_is_as_it_was_tells_nothing() -> None:
    async def play() -> None:
        told: list[Regression] = []
        client = FakeClient()
        made = trail(client, told)
        await made.look()
        await made.record(entry(1))
        await trail(client).record(entry(2))
        await made.look()
        await made.record(entry(3))
        assert (told, segments(client)) == ([], [[1, 2, 3]])

    asyncio.run(play())


def test_a_trail_that_went_is_told_of_with_where_it_was_and_where_it_is() -> None:
    async def play() -> None:
        told: list[Regression] = []
        client = FakeClient()
        made = trail(client, told)
        await made.record(entry(1))
        await made.record(entry(2))
        [stored] = client.stored(AUDIT_SEGMENTS)
        client.take(AUDIT_SEGMENTS, stored["metadata"]["name"], "kyverno")
        await made.look()
        assert told == [Regression(2, 0)]
        assert (made.head, made.witness) == (None, None)

    asyncio.run(play())


def test_a_trail_that_was_put_back_is_told_of_and_goes_on_from_there() -> None:
    async def play() -> None:
        told: list[Regression] = []
        client = FakeClient()
        made = trail(client, told)
        await made.record(entry(1))
        [before] = client.stored(AUDIT_SEGMENTS)
        await made.record(entry(2))
        client.put(before)
        await made.look()
        assert told == [Regression(2, 1)]
        assert made.witness == Checkpoint(1, before["spec"]["records"][0]["hash"])
        assert await made.record(entry(2))
        assert segments(client) == [[1, 2]]

    asyncio.run(play())


def test_a_record_is_tried_again_while_others_write_and_not_for_ever() -> None:
    async def play(refusals: int) -> bool:
        client = FakeClient()
        made = trail(client)
        await made.record(entry(1))
        client.fail("update", Conflict("somebody else wrote"), times=refusals)
        return await made.record(entry(2))

    assert asyncio.run(play(5))
    with pytest.raises(Conflict):
        asyncio.run(play(6))


def test_as_many_records_are_known_by_their_ids_as_are_promised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(audit, "MOST_IDS", 3)

    async def play() -> list[bool]:
        client = FakeClient()
        made = trail(client)
        for number in range(1, 5):
            await made.record(entry(number))
        return [await made.record(entry(number)) for number in (2, 3, 4, 1)]

    assert asyncio.run(play()) == [False, False, False, True]


def test_a_trail_says_in_words_how_far_it_is_and_shows_no_key() -> None:
    async def play() -> tuple[str, str]:
        made = trail(FakeClient())
        before = repr(made)
        await made.record(entry(1))
        return before, repr(made)

    assert asyncio.run(play()) == ("<AuditTrail to 0>", "<AuditTrail to 1>")
