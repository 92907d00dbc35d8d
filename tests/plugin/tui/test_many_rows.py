"""Rows by the ten thousand: the order kept while rows come and go, drawing that leaves time for keys, rows shown before all came."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from kubectl_kpolicy.cluster import violations
from kubectl_kpolicy.cluster.cache import ClusterCache
from kubectl_kpolicy.cluster.violations import LISTING, all_rows, rows_of_report, weight
from kubectl_kpolicy.output.rows import Row, sort_rows
from kubectl_kpolicy.tui.start import Late
from kubectl_kpolicy.tui.state import ListState, Sieve
from kubectl_kpolicy.tui.views import Pace
from tests.plugin.scene import NOW, report, result

from .stage import Stage, console, on_stage, settled, text_of

ORDERS = [(), ("severity",), ("severity", "-age"), ("-severity", "age", "policy"), ("nonsense", "-namespace")]  # fmt: skip


def row(number: int, chance: random.Random) -> Row:
    cells = {
        "severity": chance.choice(["critical", "high", "low", ""]),
        "age": NOW - timedelta(seconds=number),
        "policy": chance.choice(["a", "b", "B"]),
        "namespace": chance.choice(["", "x", "y"]),
    }
    return Row(str(number), cells)


@pytest.mark.parametrize("order", ORDERS)
def test_rows_that_come_and_go_end_up_where_sorting_would_put_them(order: tuple[str, ...]) -> None:
    chance = random.Random(7)
    rows = [row(number, chance) for number in range(1_200)]
    sieve = Sieve(LISTING)
    asked = []

    def keeps(one: Row) -> bool:
        asked.append(one)
        return one.cells["policy"] != "b"

    for turn in range(30):
        found = sieve.sift(rows, order, order, keeps)
        wanted = sort_rows([one for one in rows if one.cells["policy"] != "b"], LISTING, order)
        ranks = [[one.cells.get(name.lstrip("-")) for name in order] for one in found]
        assert ranks == [[one.cells.get(name.lstrip("-")) for name in order] for one in wanted]
        assert {one.key for one in found} == {one.key for one in wanted}
        for _ in range(chance.randrange(8)):
            rows = [*rows[1:], row(2_000 + turn * 10 + len(rows), chance)]
    assert len(asked) < 1_200 + 30 * 8, "rows that stayed were tested again"


def test_other_wishes_begin_anew() -> None:
    rows = [row(number, random.Random(number)) for number in range(50)]
    sieve = Sieve(LISTING)
    assert len(sieve.sift(rows, "all", (), lambda _: True)) == 50
    assert sieve.sift(rows, "none", (), lambda _: False) == []
    sieve.forget()
    assert len(sieve.sift(rows, "none", (), lambda _: True)) == 50


def test_a_filter_by_age_is_asked_again_when_time_has_passed() -> None:
    there = ClusterCache()
    there.replace("reports", [report("Pod", "web", "a", result("p", "r", "fail", "high", "no", minutes=5))], NOW)  # fmt: skip
    state = ListState(LISTING)
    state.where("age<10m")
    assert state.shown(there, NOW).kept == 1
    state.outdate()
    assert state.shown(there, NOW + timedelta(hours=1)).kept == 0


def test_drawing_takes_its_share_of_the_time_and_waits_between_quick_keys() -> None:
    pace = Pace()
    assert pace.is_due(0.0)
    pace.drew(0.0, 0.2)
    assert not pace.is_due(1.1)
    assert pace.is_due(1.21)
    pace.pressed(1.2)
    assert not pace.is_due(1.25), "a key was pressed just now"
    assert pace.is_due(1.4)
    pace.pressed(2.3)
    assert pace.is_due(2.31), "but nobody waits for ever"
    pace.drew(3.0, 3.001)
    pace.pressed(3.01)
    assert pace.is_due(3.02), "what is cheap is drawn between keys"


def test_rows_show_before_all_of_them_came() -> None:
    there = ClusterCache()
    there.put("reports", report("Pod", "first", "a", result("p", "r", "fail", "high", "no")))

    async def look(app, _pilot) -> None:
        assert "Pod/first" in text_of(app)
        assert "Violations (1+, failures)" in text_of(app)
        assert "more is on its way: results of policies in namespaces" in text_of(app)
        for name in violations.SOURCES:
            there.synced(name, NOW)
        app.draw()
        await settled(app)
        assert "Violations (1, failures)" in text_of(app)
        assert "on its way" not in text_of(app)


def test_nobody_says_that_nothing_fails_before_all_results_were_read() -> None:
    there = ClusterCache()
    there.synced("reports", NOW)

    async def look(app, _pilot) -> None:
        assert violations.LISTING.empty not in text_of(app)
        assert "waiting for the API server: results for cluster-wide objects" in text_of(app)

    on_stage(look, console(source=Stage(there)))


def test_changes_are_drawn_at_once_where_drawing_is_quick() -> None:
    there = ClusterCache()

    async def look(app, _pilot) -> None:
        app._flushing.stop()
        there.put("reports", report("Pod", "first", "a", result("p", "r", "fail", "high", "no")))
        await settled(app)
        assert "Pod/first" in text_of(app)

    on_stage(look, console(source=Stage(there)))

    on_stage(look, console(source=Stage(there)))


@pytest.mark.parametrize("screen", ["violations", "pulse"])
def test_numbers_of_rows_that_were_not_all_read_say_that_there_are_more(screen: str) -> None:
    there = ClusterCache()
    there.replace(
        "reports", [report("Pod", "first", "a", result("p", "r", "fail", "high", "no"))], NOW
    )
    there.left_out["reports"] = weight(None)
    said = {"violations": "Violations (1+, failures)", "pulse": "1+ failures"}

    async def look(app, _pilot) -> None:
        assert said[screen] in text_of(app)
        if screen == "violations":
            assert "there are more results than are read here" in text_of(app)

    on_stage(look, console(source=Stage(there), screen=screen))


def test_the_first_frame_is_drawn_before_anything_is_read() -> None:
    class Slow(Stage):
        drawn = ""

        async def start(self) -> None:
            self.drawn = text_of(app)

    source = Slow(ClusterCache())
    app = console(source=source)

    async def look(_app, _pilot) -> None:
        assert "Violations" in source.drawn
        assert "loading" in source.drawn

    on_stage(look, app)


def test_a_connection_is_made_when_it_is_first_used() -> None:
    made = []
    late = Late(lambda: made.append(1) or [3, 4])
    assert repr(late) == "<Late None>"
    assert not made
    assert late.index(4) == 1
    assert late.count(3) == 1
    assert made == [1]


def test_the_object_of_a_row_is_made_when_somebody_asks() -> None:
    there = rows_of_report(report("Pod", "web", "a", result("p", "r", "fail", "high", "no")))
    (found,) = there
    assert "object" not in vars(found)
    assert found.object["kind"] == "Violation"
    assert found.object is found.object
    assert found == rows_of_report(report("Pod", "web", "a", result("p", "r", "fail", "high", "no")))[0]  # fmt: skip
    assert found != Row(found.key, found.cells)
    assert Row("a", {}).object == {}


def test_rows_of_a_report_that_did_not_change_are_the_same_rows() -> None:
    there = ClusterCache()
    for name in ("a", "b"):
        there.put("reports", report("Pod", name, "x", result("p", "r", "fail", "high", "no")))
    first = {one.key: one for one in all_rows(there)}
    there.put("reports", report("Pod", "b", "x", result("p", "r", "pass", "high", "no")))
    kept = [one for one in all_rows(there) if one is first[one.key]]
    assert [one.text("resource") for one in kept] == ["Pod/a"]
