"""Where rows come from: one reading, watches, recordings; and what is told when reading is hindered."""

from __future__ import annotations

import asyncio
import io
from dataclasses import replace
from datetime import timedelta

import pytest

from controllers.kube.errors import Forbidden, NotFound, Unauthorized, Unreachable
from controllers.kube.kinds import CONFIG_MAPS, POLICY_EXCEPTIONS, POLICY_REPORTS
from engine.errors import DocumentError
from kubectl_kpolicy.actions.screens import LISTINGS
from kubectl_kpolicy.cluster import recording, sources, violations
from kubectl_kpolicy.cluster.cache import ClusterCache, Trouble
from kubectl_kpolicy.cluster.fetching import Scope, fetch
from kubectl_kpolicy.cluster.knowledge import Sight, known
from kubectl_kpolicy.cluster.recording import Recorder, ReplaySource, read_recording
from kubectl_kpolicy.cluster.sources import LiveSource
from kubectl_kpolicy.output.time_format import span
from tests.clock import ManualClock
from tests.controllers.kube.fake import FakeClient
from tests.plugin.scene import NOW, exception, objects, report, result, ttl_object, world


def server(*more) -> FakeClient:
    given = objects()
    found = [
        obj
        for name in ("reports", "exceptions", "clusterpolicies", "events")
        for obj in given[name]
    ]
    return FakeClient(*found, *more, clock=ManualClock(NOW))


def test_one_reading_holds_everything_and_notes_what_is_forbidden() -> None:
    client = server()
    client.fail(
        "list", Forbidden("no", status=403), resource="policyexceptions.kyverno.io", times=9
    )
    client.fail("list", Forbidden("no", status=403), resource="policyexceptions", times=9)

    found = asyncio.run(fetch(client, ["reports", "exceptions"], NOW))

    assert len(found.objects("reports")) == 4
    problem = found.problem("exceptions")
    assert problem is not None
    assert problem.trouble is Trouble.FORBIDDEN
    assert problem.message == "you may not list policyexceptions.kyverno.io"


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (NotFound("x", status=404), Trouble.MISSING),
        (Unauthorized("x", status=401), Trouble.UNAUTHORIZED),
        (Unreachable("x"), Trouble.UNREACHABLE),
    ],
)
def test_errors_are_told_apart(error, trouble: Trouble) -> None:
    client = server()
    client.fail("*", error, times=9)

    found = asyncio.run(fetch(client, ["grants"], NOW)).problem("grants")

    assert found is not None
    assert found.trouble is trouble
    assert found.help


def test_a_namespace_limits_what_is_read() -> None:
    found = asyncio.run(fetch(server(), ["reports"], NOW, Scope("search")))

    assert [obj["metadata"]["namespace"] for obj in found.objects("reports")] == ["search"]


def test_objects_with_a_ttl_label_are_found_whatever_their_kind() -> None:
    client = server(ttl_object("ConfigMap", "x", "a", "5m", "2026-03-14T11:00:00Z"))

    found = asyncio.run(fetch(client, ["ttl"], NOW))

    assert [(obj["kind"], obj["metadata"]["name"]) for obj in found.objects("ttl")] == [
        ("ConfigMap", "x")
    ]


def test_kinds_that_may_not_be_listed_may_hide_objects_with_a_ttl_label() -> None:
    client = server(ttl_object("ConfigMap", "x", "a", "5m", "2026-03-14T11:00:00Z"))
    client.fail("list", Forbidden("no", status=403), times=1)

    found = asyncio.run(fetch(client, ["ttl"], NOW))

    assert not found.is_synced("ttl")
    assert "you may not list" in found.problem("ttl").message


def test_kinds_that_nobody_told_may_have_objects_with_a_ttl_label() -> None:
    client = server()
    client.fail("*", Unreachable("cannot be reached"), times=99)

    found = asyncio.run(fetch(client, ["ttl"], NOW))

    assert not found.is_synced("ttl")
    assert found.problem("ttl").trouble is Trouble.UNREACHABLE


async def _until(condition) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


def test_watches_bring_changes_and_take_back_what_is_gone() -> None:
    async def look() -> list[int]:
        client = server()
        source = LiveSource(client, client.clock, resources=["reports", "exceptions"])
        await source.start()
        await _until(
            lambda: source.world.is_synced("reports") and source.world.is_synced("exceptions")
        )
        counts = [len(source.world.objects("exceptions"))]
        client.put(exception("new", "a", "p", ["r"], ["web"]))
        await _until(lambda: len(source.world.objects("exceptions")) != counts[-1])
        counts.append(len(source.world.objects("exceptions")))
        client.take(POLICY_EXCEPTIONS, "new", "a")
        await _until(lambda: len(source.world.objects("exceptions")) != counts[-1])
        counts.append(len(source.world.objects("exceptions")))
        await source.close()
        return counts

    assert asyncio.run(look()) == [3, 4, 3]


def many(number: int) -> list:
    found = result("p", "r", "fail", "low", "no")
    return [report("Pod", f"web-{index:04d}", "a", found) for index in range(number)]


def test_of_more_reports_than_a_console_holds_the_first_and_the_worst_are_read(monkeypatch) -> None:
    monkeypatch.setattr(sources, "MOST_RESULTS", 400)

    async def look() -> None:
        client = FakeClient(*many(1200), clock=ManualClock(NOW))
        worst = [report("Pod", "worst", "z", result("p", "r", "fail", "critical", "no"))]
        listing = client.list

        async def sorting(kind, *words, sort_by="", **more):
            page = await listing(kind, *words, **more)
            return replace(page, items=list(worst), sorted_by=sort_by) if sort_by else page

        client.list = sorting
        source = LiveSource(client, client.clock, resources=["reports"])
        await source.start()
        await _until(lambda: source.world.is_synced("reports"))
        assert len(source.world.objects("reports")) == 551
        found = known(source.world, LISTINGS["violations"])
        assert found.sight is Sight.PARTLY
        assert "there are more results than are read" in found.said(NOW)

        client.put(report("Pod", "new", "a", result("p", "r", "fail", "low", "no")))
        client.put({**many(1)[0], "results": []})
        await _until(lambda: not violations.rows_of_report(source.world.objects("reports")[0]))
        assert len(source.world.objects("reports")) == 551, "what is cut does not grow"
        worst.clear()
        await source.refresh()
        assert len(source.world.objects("reports")) == 550
        await source.close()

    asyncio.run(look())


def test_the_first_screen_is_read_ahead_of_the_others_and_its_first_page_is_short() -> None:
    async def look() -> None:
        client = FakeClient(*many(120), clock=ManualClock(NOW))
        listing, asked = client.list, []

        async def noting(kind, *words, limit=0, **more):
            asked.append((kind.plural, limit))
            return await listing(kind, *words, limit=limit, **more)

        client.list = noting
        source = LiveSource(client, client.clock, resources=["grants", "reports"], first=["reports"])  # fmt: skip
        await source.start()
        assert [one for one, _ in asked] == ["policyreports"] * len(asked), "others were asked for"
        assert asked[0][1] < 100
        assert len(source.world.objects("reports")) >= asked[0][1]
        await _until(lambda: source.world.is_synced("reports") and source.world.is_synced("grants"))
        assert len(source.world.objects("reports")) == 120
        await source.close()

    asyncio.run(look())


def test_the_other_resources_do_not_wait_for_a_first_one_that_does_not_come() -> None:
    async def look() -> None:
        client = server()
        listing = client.list

        async def silent(kind, *words, **more):
            if kind.plural == "policyreports":
                await asyncio.Event().wait()
            return await listing(kind, *words, **more)

        client.list = silent
        source = LiveSource(client, client.clock, resources=["exceptions", "reports"], first=["reports"])  # fmt: skip
        starting = asyncio.create_task(source.start())
        await _until(lambda: client.clock.sleeping)
        assert not starting.done()
        await client.clock.advance(1)
        await _until(lambda: source.world.is_synced("exceptions"))
        assert not source.world.is_synced("reports")
        await source.close()

    asyncio.run(look())


def test_a_watch_that_is_forbidden_says_so_and_recovers() -> None:
    async def look() -> tuple[Trouble, bool]:
        client = server()
        client.fail("list", Forbidden("no", status=403), resource="policyreports", times=2)
        client.fail(
            "list", Forbidden("no", status=403), resource="policyreports.wgpolicyk8s.io", times=2
        )
        source = LiveSource(client, client.clock, resources=["reports"])
        await source.start()
        await _until(
            lambda: (one := source.world.problem("reports")) and one.trouble is not Trouble.FAILED
        )
        trouble = source.world.problem("reports").trouble
        await client.clock.advance(61)
        await _until(lambda: source.world.is_synced("reports"))
        recovered = source.world.problem("reports") is None
        await source.close()
        return trouble, recovered

    assert asyncio.run(look()) == (Trouble.FORBIDDEN, True)


def test_what_a_server_that_went_away_had_told_stays_and_says_since_when_it_is_old() -> None:
    async def look() -> tuple[float, int, int]:
        client = server()
        source = LiveSource(client, client.clock, resources=["exceptions"])
        await source.start()
        await _until(lambda: source.world.is_synced("exceptions") and source.world.is_synced("ttl"))
        began, timers = client.clock.now(), len(source.world.objects("ttl"))
        await client.clock.advance(600)
        for verb in ("list", "watch", "raw"):
            client.fail(verb, Unreachable("cannot be reached"), times=1000)
        source._troubled(POLICY_EXCEPTIONS, "cannot be reached")
        await client.clock.advance(120)
        with pytest.raises(Unreachable):
            await source.refresh()
        seen = source.world.seen_at("exceptions")
        counts = (
            len(source.world.objects("exceptions")),
            len(source.world.objects("ttl")) - timers,
        )
        await source.close()
        return (seen - began).total_seconds(), *counts

    age, exceptions_left, timers_lost = asyncio.run(look())
    assert 600 <= age < 700
    assert (exceptions_left, timers_lost) == (3, 0)


def test_the_journal_is_read_where_one_is_named() -> None:
    client = server(objects()["journal"][0])

    found = asyncio.run(fetch(client, ["journal"], NOW, Scope(journal="platform/otp")))
    none = asyncio.run(fetch(client, ["journal"], NOW))

    assert len(found.objects("journal")) == 1
    assert none.objects("journal") == []
    assert CONFIG_MAPS.plural == "configmaps"


def record_scene(path) -> None:
    made = ClusterCache()
    with path.open("w") as out:
        Recorder(made, out, lambda: NOW, "prod-eu")
        for name, found in objects().items():
            made.replace(name, found, NOW)


def test_a_replayed_recording_shows_the_same_rows(tmp_path) -> None:
    record_scene(tmp_path / "r.jsonl")
    source = ReplaySource(read_recording(tmp_path / "r.jsonl"))
    asyncio.run(source.start())

    assert source.name == "prod-eu"
    for listing in LISTINGS.values():
        if listing.noun != "health":
            assert [row.key for row in listing.rows(source.world, NOW)] == [
                row.key for row in listing.rows(world(), NOW)
            ]


def test_no_code_that_works_gets_into_a_recording(tmp_path) -> None:
    record_scene(tmp_path / "r.jsonl")
    text = (tmp_path / "r.jsonl").read_text()

    assert "ua8v92pg" not in text
    assert "9akvm2o7" in text


def test_time_can_be_moved_back_and_forth(tmp_path) -> None:
    path = tmp_path / "r.jsonl"
    instants = iter([NOW, NOW, NOW + timedelta(minutes=5), NOW + timedelta(minutes=9)])
    made = ClusterCache()
    with path.open("w") as out:
        Recorder(made, out, lambda: next(instants), "x")
        made.put("reports", report("Pod", "x", "a", result("p", "r", "fail", "high", "no")))
        made.put("reports", report("Pod", "x", "a", result("p", "r", "pass", "high", "yes")))
        made.remove("reports", ("PolicyReport", "a", "uid-a-x"))
    source = ReplaySource(read_recording(path))
    asyncio.run(source.start())

    def shown() -> list[str]:
        return [
            row.text("result") for row in LISTINGS["violations"].rows(source.world, source.now())
        ]

    seen = [shown()]
    source.move(timedelta(minutes=-9))
    seen.append(shown())
    source.move(timedelta(minutes=6))
    seen.append(shown())
    source.move(timedelta(days=-6))
    assert source.now() == NOW

    assert seen == [[], ["fail"], ["pass"]]


def test_problems_are_recorded_too(tmp_path) -> None:
    path = tmp_path / "r.jsonl"
    made = ClusterCache()
    with path.open("w") as out:
        Recorder(made, out, lambda: NOW, "x")
        client = server()
        client.fail("list", Forbidden("no", status=403), times=9)
        found = asyncio.run(fetch(client, ["grants"], NOW))
        made.hindered("grants", found.problem("grants"))
    source = ReplaySource(read_recording(path))
    asyncio.run(source.start())

    assert source.world.problem("grants").trouble is Trouble.FORBIDDEN


@pytest.mark.parametrize(
    ("text", "line"),
    [("", 1), ("{}", 1), ("[]", 1), ('{"kpolicy":"recording","at":"2026-01-01T00:00:00Z"}\nx', 2),
     ('{"kpolicy":"recording","at":"2026-01-01T00:00:00Z"}\n{"at":1}', 2)],
)  # fmt: skip
def test_a_file_that_is_no_recording_is_refused_with_its_line(
    tmp_path, text: str, line: int
) -> None:
    (tmp_path / "r.jsonl").write_text(text)

    with pytest.raises(DocumentError) as caught:
        read_recording(tmp_path / "r.jsonl")

    assert caught.value.at.line == line


def test_a_closed_recording_takes_nothing_more() -> None:
    out, made = io.StringIO(), ClusterCache()
    Recorder(made, out, lambda: NOW, "x")
    out.close()

    made.put("reports", {"kind": "PolicyReport", "metadata": {"name": "x"}})

    assert recording.VERSION == 1
    assert POLICY_REPORTS.plural == "policyreports"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (119, "119s"), (125, "2m5s"), (3599, "59m"), (3 * 3600, "3h"), (4 * 3600 + 120, "4h2m"),
     (9 * 3600, "9h"), (49 * 3600, "2d1h"), (30 * 86400, "30d"), (800 * 86400, "2y70d"), (-5, "0s")],
)  # fmt: skip
def test_ages_read_as_kubectls(seconds: int, text: str) -> None:
    assert span(seconds) == text


def test_a_server_that_no_longer_answers_is_noticed_though_no_watch_has_ended() -> None:
    async def look() -> tuple[Trouble, float, bool]:
        client = server()
        source = LiveSource(client, client.clock, resources=["reports"])
        await source.start()
        await _until(lambda: source.world.is_synced("reports"))
        began = client.clock.now()
        client.fail("raw", Unreachable("cannot be reached"), times=2)
        await client.clock.advance(10)
        await _until(lambda: source.world.problem("reports"))
        problem, seen = source.world.problem("reports"), source.world.seen_at("reports")
        await client.clock.advance(10)
        await client.clock.advance(10)
        await _until(lambda: source.world.problem("reports") is None)
        await source.close()
        return problem.trouble, (seen - began).total_seconds(), source.world.is_synced("reports")

    assert asyncio.run(look()) == (Trouble.UNREACHABLE, 0.0, True)
