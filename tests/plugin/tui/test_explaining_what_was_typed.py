"""`:explain` with everything that people write for an object: the same answer, or why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from engine.errors import EngineError
from kubectl_kpolicy.cluster.sources import LiveSource
from kubectl_kpolicy.cluster.subject import subject_of
from tests.clock import ManualClock
from tests.controllers.kube.fake import FakeClient
from tests.plugin.scene import NOW, meta, policy, world

from .stage import LARGE, Stage, console, on_stage, text_of

if TYPE_CHECKING:
    from kubectl_kpolicy.cluster.cache import ClusterCache


class Live(Stage, LiveSource):
    """A ClusterCache that stands still, with a cluster behind it that can be asked."""

    def __init__(self, there: ClusterCache | None = None) -> None:
        super().__init__(there if there is not None else world({"clusterpolicies": [checking()]}))
        self.client: Any = FakeClient(
            deployment("web", "payments"), deployment("twin", "a"), deployment("twin", "b"), clock=ManualClock(NOW)
        )  # fmt: skip


def checking() -> dict[str, Any]:
    made = policy("require-labels", "Audit", "low", ["check-team"])
    made["spec"]["rules"][0].update(
        match={"any": [{"resources": {"kinds": ["Deployment"]}}]},
        validate={"message": "m", "pattern": {"metadata": {"labels": {"team": "?*"}}}},
    )
    return made


def deployment(name: str, namespace: str) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta(name, namespace)}


def explained(text: str, source: Stage | None = None, **words: Any) -> str:
    seen: list[str] = []

    async def look(app, _pilot) -> None:
        seen.append(text_of(app))

    keys = ("colon", *f"explain {text}", "enter")
    on_stage(look, console(source=source or Stage(), **words), keys=keys, size=LARGE)
    return seen[0]


FORMS = ["deploy/web", "Deployment/web", "deployments/web", "payments/Deployment/web", "payments deploy/web", "deploy/web -n payments"]  # fmt: skip


@pytest.mark.parametrize("text", FORMS)
def test_reports_answer_whatever_is_written_for_an_object(text: str) -> None:
    shown = explained(text)

    assert "Explain payments/Deployment/web" in shown
    assert "require-run-as-nonroot" in shown


@pytest.mark.parametrize("text", FORMS)
def test_the_engine_answers_whatever_is_written_for_an_object(text: str) -> None:
    shown = explained(text, Live())

    assert "Explain payments/Deployment/web" in shown
    assert "require-labels" in shown
    assert "check-team" in shown


@pytest.mark.parametrize("source", [Stage, Live])
def test_an_object_that_is_not_there_is_said_to_be_unknown(source) -> None:
    shown = explained("deploy/nothing", source())

    assert "no policy speaks of this object" not in shown
    assert "nothing" in shown
    assert "no policy report is about `deploy/nothing`" in shown or "there is no deployments.apps `nothing`" in shown  # fmt: skip


def test_a_kind_that_is_not_there_is_said_to_be_unknown() -> None:
    assert "the server has no kind `nonsense`" in explained("nonsense/web", Live())


def test_a_name_that_several_have_is_asked_back() -> None:
    shown = explained("deploy/twin", Live())

    assert "may be a/Deployment/twin, b/Deployment/twin" in shown
    assert "Explain b/Deployment/twin" in explained("deploy/twin", Live(), namespace="b")


def test_no_policy_speaks_of_an_object_only_where_all_policies_were_read() -> None:
    assert "no policy speaks of this object" in explained("deploy/web", Live(world({})))

    shown = explained("deploy/web", Live(world({}, without=("clusterpolicies",))))
    assert "no policy speaks of this object" not in shown
    assert "forbidden: you may not list clusterpolicies.kyverno.io" in shown


@pytest.mark.parametrize("text", ["", "web", "a/b/c/d", "a b c/d", "x/", "/x"])
def test_what_names_no_object_is_no_subject(text: str) -> None:
    with pytest.raises(EngineError) as raised:
        subject_of(text)
    assert "KIND/NAME" in raised.value.help
