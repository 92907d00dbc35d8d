"""Several clusters in one console: whose rows they are, what is unknown, and where what is done to a row is done."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from controllers.kube.kinds import POLICY_EXCEPTIONS
from engine.errors import EngineError
from kubectl_kpolicy.actions.executor import ActionExecutor
from kubectl_kpolicy.actions.screens import LISTINGS
from kubectl_kpolicy.cluster.beside import AbsentSource, BesideSource
from kubectl_kpolicy.cluster.cache import ClusterCache, Trouble
from kubectl_kpolicy.session.cluster import ClusterFlags
from kubectl_kpolicy.tui import start
from kubectl_kpolicy.tui.modals.danger import Danger
from kubectl_kpolicy.tui.start import ConsoleRequest, contexts_of, elsewhere, resolved
from kubectl_kpolicy.tui.state import Heading
from tests.clock import ManualClock
from tests.controllers.kube.fake import FakeClient
from tests.plugin.scene import NOW, hindered, objects, report, result, world

from .stage import LARGE, Stage, beside, drawn, leave, on_stage, press, settled, text_of, window_of


def one_violation(name: str, severity: str = "high") -> ClusterCache:
    return world({"reports": [report("Pod", name, "a", result("p", "r", "fail", severity, "no"))]})


def shown(app) -> list[tuple[str, str]]:
    rows = [one for one in app.table.lines if not isinstance(one, Heading)]
    return [(row.text("cluster"), row.text("resource")) for row in rows]


def test_rows_of_all_clusters_are_one_list_in_its_order_and_say_whose_they_are() -> None:
    app = beside({"eu": one_violation("web"), "us": one_violation("db", "critical")})

    async def look(made, pilot) -> None:
        assert shown(made) == [("us", "Pod/db"), ("eu", "Pod/web")]
        assert "CLUSTER" in text_of(made)
        assert "(2 in 2 of 2 clusters" in text_of(made)
        await press(pilot, "slash", *"cluster=eu", "enter")
        assert shown(made) == [("eu", "Pod/web")]

    on_stage(look, app)


def test_the_same_object_in_two_clusters_is_two_rows_that_change_each_by_itself() -> None:
    there = {"eu": one_violation("web"), "us": one_violation("web")}

    async def look(made, pilot) -> None:
        assert shown(made) == [("eu", "Pod/web"), ("us", "Pod/web")]
        await press(pilot, "down")
        before = made.row
        there["eu"].replace("reports", [], NOW)
        await drawn(made)
        assert shown(made) == [("us", "Pod/web")]
        assert made.row is before

    on_stage(look, beside(there))


@pytest.mark.parametrize(
    "screen", ["violations", "policies", "exceptions", "grants", "codes", "cleanup"]
)
def test_a_cluster_that_cannot_be_asked_is_unknown_with_its_reason_and_never_empty(screen) -> None:
    there = {"eu": world({}), "us": hindered(Trouble.UNREACHABLE)}

    async def look(made, pilot) -> None:
        said = text_of(made)
        assert "cluster: us (unknown) cluster unreachable: no answer within 10 s" in said
        assert "in 1 of 2 clusters" in said
        assert "1 of 2 unknown" in said
        await press(pilot, "slash", *"nothing-fits", "enter")
        assert "cluster: us (unknown)" in text_of(made)
        there["us"].replace(LISTINGS[screen].needs[0], [], NOW)
        for name in LISTINGS[screen].needs:
            there["us"].synced(name, NOW)
        for name in LISTINGS[screen].wants:
            there["us"].synced(name, NOW)
        await drawn(made)
        assert "unknown)" not in text_of(made)

    on_stage(look, beside(there, screen=screen), size=LARGE)


def test_numbers_of_clusters_of_which_one_is_unknown_say_so() -> None:
    async def look(made, pilot) -> None:
        assert "7+ failures" in text_of(made)
        assert "reports forbidden" in text_of(made)

    on_stage(
        look, beside({"eu": world(), "us": hindered(Trouble.FORBIDDEN)}, screen="pulse"), size=LARGE
    )


def test_what_is_done_to_a_row_is_done_in_its_cluster_which_the_dialog_names() -> None:
    clients = {
        name: FakeClient(*objects()["exceptions"], clock=ManualClock(NOW)) for name in ("eu", "us")
    }
    doers = {name: ActionExecutor(client, lambda: NOW) for name, client in clients.items()}
    app = beside({"eu": world(), "us": world()}, doers, screen="exceptions")

    async def look(made, pilot) -> None:
        await press(pilot, "slash", *"old-migration cluster=us", "enter", "ctrl+d")
        assert isinstance(made.screen, Danger)
        assert "In cluster us." in window_of(made)
        assert "us/ledger/old-migration" in window_of(made)
        assert "--context us" in window_of(made)
        await press(pilot, "shift+tab", *"old-migration", "enter", "enter")
        await settled(pilot.app)
        assert made.command_log[-1].endswith("old-migration -n ledger --yes --context us")

    on_stage(look, app, size=LARGE)
    assert len(clients["eu"].stored(POLICY_EXCEPTIONS)) == 3
    assert len(clients["us"].stored(POLICY_EXCEPTIONS)) == 2


def test_marked_rows_of_two_clusters_are_changed_each_in_its_own_and_asked_for_in_none() -> None:
    clients = {
        name: FakeClient(*objects()["exceptions"], clock=ManualClock(NOW)) for name in ("eu", "us")
    }
    doers = {name: ActionExecutor(client, lambda: NOW) for name, client in clients.items()}

    async def look(made, pilot) -> None:
        await press(pilot, "slash", *"old-migration", "enter", "space", "space", "ctrl+d")
        assert "In cluster eu, us." in window_of(made)
        await press(pilot, "shift+tab", *"old-migration", "enter", "enter")
        await settled(pilot.app)
        made.go("violations", "web")
        await settled(pilot.app)
        keys = {row.text("cluster"): row.key for row in made.table.lines}
        made.view.state.marks = set(keys.values())
        await press(pilot, "r")
        assert "the marked rows are in" in made.said[0]

    on_stage(look, beside({"eu": world(), "us": world()}, doers, screen="exceptions"), size=LARGE)
    assert [len(one.stored(POLICY_EXCEPTIONS)) for one in clients.values()] == [2, 2]


def test_a_notice_says_which_cluster_it_is_from_and_leads_to_its_rows() -> None:
    there = {"eu": world(), "us": world()}

    async def look(made, pilot) -> None:
        made._tick()
        evil = report("Pod", "evil", "payments", result("host", "h", "fail", "critical", "no"))
        there["us"].put("reports", evil)
        made._tick()
        await settled(made)
        assert "us: new critical failure: host on Pod/evil" in text_of(made)
        await press(pilot, ";")
        assert made.view.state.filter.text == "sev=critical cluster=us"

    on_stage(look, beside(there))


def test_a_request_names_the_cluster_that_it_is_for() -> None:
    async def look(made, pilot) -> None:
        await press(pilot, "slash", *"cluster=us", "enter", "r")
        assert "Request a grant in us" in window_of(made)

    on_stage(look, beside({"eu": world(), "us": world()}))


def test_the_command_of_a_list_names_all_clusters() -> None:
    async def look(made, pilot) -> None:
        await press(pilot, "w")
        assert made.command_log[-1] == "kubectl kpolicy violations list -A -o wide --contexts eu,us"

    on_stage(look, beside({"eu": world(), "us": world()}))


def test_clusters_are_chosen_by_names_and_wildcards() -> None:
    app = beside({"prod-eu": world(), "prod-us": world()})
    app.contexts = lambda: ["dev", "prod-eu", "prod-us"]

    async def look(made, pilot) -> None:
        await press(pilot, "colon", *"contexts 'prod-*'", "enter")
        assert made.said[0] == "this is prod-eu,prod-us already"
        await press(pilot, "colon", *"ctx dev,lost", "enter")
        assert "there is no context `lost`; there are dev, prod-eu, prod-us" in made.said[0]
        await press(pilot, "colon", *"ctx dev,prod-e*")
        await leave(made)

    on_stage(look, app)
    assert app.return_value == "dev,prod-eu"


def test_a_screen_with_a_context_behind_it_is_opened_there() -> None:
    app = beside({"prod-eu": world(), "prod-us": world()})
    app.contexts = lambda: ["dev", "prod-eu", "prod-us"]

    async def look(made, pilot) -> None:
        await press(pilot, "colon", *"g @lost", "enter")
        assert "there is no context `lost`" in made.said[0]
        await press(pilot, "colon", *"g @dev")
        await leave(made)

    on_stage(look, app)
    assert (app.return_value, app.current) == ("dev", "grants")


def test_the_console_opens_on_what_was_chosen_and_one_of_several_is_one(tmp_path) -> None:
    file = tmp_path / "config"
    file.write_text('{"contexts": [{"name": "a", "context": {}}, {"name": "b", "context": {}}]}')
    asked = ConsoleRequest(ClusterFlags(kubeconfig=str(file)), contexts="a,'b'")

    both = resolved(asked)
    assert contexts_of(both) == ["a", "b"]
    assert elsewhere(both, "a", "grants").connection.context == "a"
    assert contexts_of(elsewhere(both, "a", "grants")) == []
    assert contexts_of(elsewhere(both, "a,b", "grants")) == ["a", "b"]
    one = resolved(ConsoleRequest(asked.connection, contexts="b*"))
    assert (contexts_of(one), one.connection.context) == ([], "b")
    with pytest.raises(EngineError, match="neither recorded nor replayed"):
        resolved(ConsoleRequest(asked.connection, contexts="a,b", record="f"))


def test_a_context_that_leads_nowhere_is_unknown_beside_the_others(tmp_path) -> None:
    file = tmp_path / "config"
    file.write_text(
        '{"contexts": [{"name": "a", "context": {"cluster": "a"}}, {"name": "b", "context": {"cluster": "b"}}],'
        '"clusters": [{"name": "b", "cluster": {"server": "https://127.0.0.1:1"}}]}'
    )
    found = start._clusters(
        ConsoleRequest(ClusterFlags(kubeconfig=str(file)), contexts="a,b"), "a,b"
    )

    assert isinstance(found["a"].source, AbsentSource)
    assert "there is no cluster `a`" in found["a"].source.world.problem("reports").message
    assert found["b"].source.world.problem("reports") is None


def test_reading_again_goes_on_where_one_cluster_is_away() -> None:
    lost = AbsentSource("us", EngineError("no cluster"), lambda: NOW)
    there = Stage(world())
    asyncio.run(BesideSource({"us": lost, "eu": there}).refresh())
    assert there.refreshed == 1
    with pytest.raises(EngineError, match="no cluster"):
        asyncio.run(partial(BesideSource({"us": lost}).refresh)())


def test_lanes_say_which_cluster_they_are_of_and_show_what_happened_there_alone() -> None:
    there = {"eu": world(), "us": world({**objects(), "auditsegments": []})}

    async def look(made, pilot) -> None:
        drawn_lanes = [
            line for line in text_of(made).splitlines() if "alice Deployment/web  " in line
        ]
        assert ["eu alice" in drawn_lanes[0], "us alice" in drawn_lanes[1]] == [True, True]
        assert ["✓" in line for line in drawn_lanes] == [True, False]

    on_stage(look, beside(there, screen="grants"), size=LARGE)
