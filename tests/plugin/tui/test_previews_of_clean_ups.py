"""`p` on Cleanup: what the next run would delete and leave, planned in the cluster, in a window."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.kube.errors import Forbidden
from engine.errors import EngineError
from kubectl_kpolicy.cluster import planning
from kubectl_kpolicy.cluster.cleanup import cleanup_rows
from kubectl_kpolicy.cluster.planning import Planned, preview
from kubectl_kpolicy.cluster.sources import LiveSource
from tests.plugin.scene import NOW, ahead, meta, world

from .stage import Stage, console, on_stage, press, text_of, window_of


class Live(Stage, LiveSource):
    """A World that stands still, with a cluster behind it that can be asked."""

    def __init__(self) -> None:
        super().__init__(world({"cleanuppolicies": [policy()]}))
        self.client: Any = object()


def policy(**annotations: str) -> dict[str, Any]:
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": "CleanupPolicy",
        "metadata": meta("scratch", "batch", annotations=annotations),
        "spec": {"schedule": "*/15 * * * *", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}},
    }


def pod(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta(name, "batch")}


PLANS = [
    Planned(pod("done"), "batch/scratch", NOW, goes=True, reason="matched", owners=("Job/import",), takes=("Pod/below",)),
    Planned(pod("[red]busy"), "batch/scratch", NOW, goes=False, reason="the conditions do not hold"),
]  # fmt: skip


@pytest.fixture
def planned(monkeypatch) -> list[str]:
    """Let the cluster hold two Pods; what was asked for is listed."""
    asked: list[str] = []

    async def answer(_client, rows, now):
        assert now == NOW
        asked.extend(row.text("object") for row in rows)
        return PLANS

    monkeypatch.setattr(planning, "plans_of", answer)
    return asked


def test_p_shows_what_the_next_run_deletes_and_what_it_leaves_and_why(planned) -> None:
    async def look(app, pilot) -> None:
        await press(pilot, "p")
        seen = window_of(app)
        assert "Preview: CleanupPolicy/scratch" in seen
        assert "Pod/done in batch and 1 that belong to it" in seen
        assert "of Job/import" in seen
        assert "with Pod/below" in seen
        assert "the conditions do not hold" in seen
        assert "Pod/[red]busy in batch" in seen
        assert app.command_log == ["kubectl kpolicy cleanup preview CleanupPolicy/scratch -n batch"]

    on_stage(look, console(source=Live()), keys=(":", *"cleanup", "enter"))
    assert planned == ["CleanupPolicy/scratch"]


def test_where_the_objects_may_not_be_read_it_says_so_and_shows_nothing(monkeypatch) -> None:
    async def refuse(_client, _rows, _now) -> list[Planned]:
        raise Forbidden("you may not list pods", status=403)

    monkeypatch.setattr(planning, "plans_of", refuse)

    async def look(app, pilot) -> None:
        await press(pilot, "p")
        assert "you may not list pods" in text_of(app)
        assert len(app.screen_stack) == 1

    assert issubclass(Forbidden, EngineError)
    on_stage(look, console(source=Live()), keys=(":", *"cleanup", "enter"))


def test_a_recording_says_that_it_does_not_hold_the_objects() -> None:
    async def look(app, pilot) -> None:
        await press(pilot, "p")
        assert "a recording does not hold" in text_of(app)
        assert len(app.screen_stack) == 1

    there = world({"cleanuppolicies": [policy()]})
    on_stage(look, console(there), keys=(":", *"cleanup", "enter"))


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("pause", "true bob: wait", "paused: nothing goes until it is resumed"),
        ("skip", f"{ahead(hours=20)} bob: wait", "skipped: the next run passes everything over"),
        ("after", f"{ahead(hours=2)} bob: wait", "postponed: nothing goes before then"),
        (
            "after",
            "tomorrow bob: wait",
            "held back: its annotation cannot be read, so that nothing goes until that is changed",
        ),
    ],
)
def test_what_holds_a_run_back_is_said_with_what_it_would_delete(key, value, says) -> None:
    row = cleanup_rows(world({"cleanuppolicies": [policy(**{f"kpolicy.io/cleanup-{key}": value})]}), NOW)[0]  # fmt: skip
    found = dict(preview(row, PLANS, NOW)[0].pairs)
    assert (found["held"], found["goes"], found["stays"]) == (says, "1", "1")


def test_a_run_that_finds_nothing_says_nought_goes() -> None:
    row = cleanup_rows(world({"cleanuppolicies": [policy()]}), NOW)[0]
    (only,) = preview(row, [], NOW)
    assert dict(only.pairs)["goes"] == "0"
    assert "held" not in dict(only.pairs)
