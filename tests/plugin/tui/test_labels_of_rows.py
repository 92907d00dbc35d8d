"""A filter by labels keeps the violations of objects with these labels, which reports do not hold: the cluster is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubectl_kpolicy.cluster.sources import LiveSource
from tests.clock import ManualClock
from tests.controllers.kube.fake import FakeClient
from tests.plugin.scene import NOW, meta, report, result, world

from .stage import LARGE, Stage, console, on_stage, text_of

if TYPE_CHECKING:
    from kubectl_kpolicy.cluster.cache import ClusterCache


def failing(name: str) -> dict[str, Any]:
    made = report(
        "Deployment", name, "shop", result("require-probes", "ready", "fail", "high", "no probe")
    )
    made["scope"]["uid"] = f"uid-shop-{name}"
    return made


class Live(Stage, LiveSource):
    """A ClusterCache with two violations, and the cluster that knows the labels of both objects."""

    def __init__(self, there: ClusterCache | None = None) -> None:
        super().__init__(there or world({"reports": [failing("front"), failing("back")]}))
        self.client: Any = FakeClient(
            *(
                {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta(name, "shop", labels={"app": name})}
                for name in ("front", "back")
            ),
            clock=ManualClock(NOW),
        )  # fmt: skip


def shown(text: str, source: Stage, screen: str = "violations") -> str:
    seen: list[str] = []

    async def look(app, _pilot) -> None:
        seen.append(text_of(app))

    made = console(source=source, screen=screen)
    on_stage(look, made, keys=("slash", *text, "enter"), size=LARGE)
    return seen[0]


def test_rows_are_kept_by_the_labels_of_their_objects() -> None:
    text = shown("-l app=front", Live())

    assert "Deployment/front" in text
    assert "Deployment/back" not in text


def test_no_row_has_a_label_that_no_object_has() -> None:
    assert "Deployment/" not in shown("-l app=neither", Live())


def test_a_filter_without_labels_asks_nobody() -> None:
    assert "Deployment/back" in shown("back", Stage(Live().world))


def test_a_recording_says_that_it_holds_no_labels() -> None:
    assert "a recording holds no labels of objects" in shown("-l app=front", Stage(Live().world))


def test_denied_requests_say_that_they_have_no_labels() -> None:
    assert "denied requests have no labels" in shown("-l app=front", Live(world()), "blocks")
