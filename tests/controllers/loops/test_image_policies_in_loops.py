"""ImageValidatingPolicies in the background scan: rows, rows of earlier answers, and evidence that policies share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from controllers.kube.kinds import CEL_EXCEPTIONS, CEL_POLICIES, PODS, POLICY_REPORTS
from engine.evaluate import Answer, ImageLookup, SignatureLookup
from tests.controllers.webhook.test_image_policies import DIGEST, PINNED, SIGNED, TAG, ivpol

from . import staging
from .staging import LISTED, Scene
from .test_cel_policies_in_loops import exception, play

IVPOL = next(one for one in CEL_POLICIES if one.kind == "ImageValidatingPolicy")
KINDS = tuple(replace(one, verbs=LISTED) for one in (IVPOL, CEL_EXCEPTIONS))


@pytest.fixture(autouse=True)
def _with_a_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = staging.ClusterAnswers.resolve

    async def resolve(self: Any, lookups: Any, tenant: str = "") -> dict[Any, Answer]:
        images = [one for one in lookups if isinstance(one, ImageLookup | SignatureLookup)]
        others = [one for one in lookups if one not in images]
        resolved = f"ghcr.io/acme/app@{DIGEST}"
        said = {
            one: Answer.found(
                {"resolvedImage": resolved} if isinstance(one, ImageLookup) else SIGNED
            )
            for one in images
        }
        return {**said, **(await ask(self, others) if others else {})}

    monkeypatch.setattr(staging.ClusterAnswers, "resolve", resolve)


def pod(image: str = PINNED) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"containers": [{"name": "c", "image": image}]},
    }


def rows(made: Scene) -> list[tuple[str, str, str]]:
    return sorted(
        (row["policy"], row.get("rule", ""), row["result"])
        for one in made.stored(POLICY_REPORTS)
        for row in one["results"]
    )


def test_a_scan_reports_under_the_name_of_the_policy_and_writes_no_digest() -> None:
    async def story(made: Scene) -> None:
        assert rows(made) == [("signed", "signed", "fail")]
        [row] = made.stored(POLICY_REPORTS)[0]["results"]
        assert row["source"] == "KyvernoImageValidatingPolicy"
        assert row["message"] == f"image {TAG} does not have a digest"
        [found] = made.stored(replace(PODS, verbs=LISTED))
        assert found["spec"]["containers"][0]["image"] == TAG

    play(story, ivpol(), pod(TAG), kinds=KINDS)


def test_what_a_policy_verifies_counts_for_the_others_as_long_as_it_is_there() -> None:
    lazy, busy = ivpol("lazy", "true"), ivpol("busy")

    async def story(made: Scene) -> None:
        assert rows(made) == [("busy", "busy", "pass"), ("lazy", "lazy", "pass")]
        lazy["metadata"]["annotations"] = {"policies.kyverno.io/severity": "low"}
        made.put({**lazy, "spec": {**lazy["spec"], "validationActions": ["Audit"]}})
        await made.rest(5)
        assert rows(made) == [("busy", "busy", "pass"), ("lazy", "lazy", "pass")]
        made.take(busy)
        await made.rest(5)
        assert rows(made) == [("lazy", "lazy", "fail")]

    play(story, lazy, busy, pod(), kinds=KINDS)


def test_the_row_of_an_exception_goes_with_it() -> None:
    waiver = exception(policyRefs=[{"name": "signed", "kind": "ImageValidatingPolicy"}])

    async def story(made: Scene) -> None:
        assert rows(made) == [("signed", "exception", "skip")]
        made.cache.remove(CEL_EXCEPTIONS, waiver)
        await made.rest(5)
        assert rows(made) == [("signed", "signed", "pass")]

    play(story, ivpol(), waiver, pod(), kinds=KINDS)
