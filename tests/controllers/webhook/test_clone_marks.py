"""Sources of copies are labelled for authors who may update them, and for nobody else; who may only read them copies all the same."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import orjson
import pytest

from controllers.kube import Discovery, Unreachable
from controllers.kube.accounts import Job, account_user
from controllers.kube.kinds import PODS
from controllers.runtime.cluster_cache import ClusterCache
from controllers.runtime.metrics import Metrics
from controllers.webhook.author_rights import AuthorRights
from controllers.webhook.clone_marks import CloneMarks
from engine.vocabulary import LABELS_SOURCES
from tests.controllers.kube.fake import WELL_KNOWN, FakeClient

from .staging import body
from .test_author_rights import EVERYTHING, USER, Rules, ask, generate, message, written

READER = (
    ("*", "get list", "secrets"),
    ("shop", "get create update delete", "secrets"),
    ("*", "get", "configmaps"),
)
WRITER = (*READER, ("ops", "update", "secrets"))
CLONE = generate(
    "v1", "Secret", "shop", data=None, synchronize=True, clone={"name": "key", "namespace": "ops"}
)
LIST = generate(
    "v1",
    "Secret",
    "shop",
    data=None,
    apiVersion=None,
    kind=None,
    name=None,
    synchronize=True,
    cloneList={"namespace": "ops", "kinds": ["v1/Secret"]},
)
LOOP = {
    "generate": {
        "synchronize": True,
        "foreach": [{"list": "request.object.data", **CLONE["generate"]}],
    }
}


def marked(
    obj: dict[str, Any],
    *rights: Any,
    user: Any = USER,
    old: Any = None,
    client: FakeClient | None = None,
) -> Any:
    """Return the annotation of a policy after its author wrote it, None for none."""

    async def go() -> Any:
        made = client or FakeClient()
        made.reviews["SubjectAccessReview"] = Rules(*rights)
        cache = ClusterCache(Discovery(made, (*WELL_KNOWN, PODS)), Metrics())
        jobs = {account_user("kyverno", job): [job] for job in Job}
        marks = CloneMarks(
            cache, AuthorRights(made, lambda _: False), lambda who: jobs.get(who, ())
        )
        resource = {"group": "kyverno.io", "version": "v1", "resource": "clusterpolicies"}
        fields = {
            "operation": "UPDATE" if old else "CREATE",
            "oldObject": old,
            "userInfo": user,
            "resource": resource,
        }
        answer = orjson.loads(await marks.review("", body(obj, **fields), 5.0))["response"]
        assert answer["allowed"] is True
        patch = orjson.loads(base64.b64decode(answer["patch"])) if "patch" in answer else []
        found = obj["metadata"].get("annotations", {}).get(LABELS_SOURCES)
        for one in patch:
            value = one.get("value")
            found = value.get(LABELS_SOURCES) if isinstance(value, dict) else value
        return found

    return asyncio.run(go())


def noted(obj: dict[str, Any], value: str = "true") -> dict[str, Any]:
    metadata = obj["metadata"]
    annotations = {**metadata.get("annotations", {}), LABELS_SOURCES: value}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}


@pytest.mark.parametrize("rule", [CLONE, LIST, LOOP])
def test_a_policy_is_marked_for_an_author_who_may_update_its_sources(rule: Any) -> None:
    made = written(rule)

    assert marked(made, *WRITER) == "true"
    assert marked(made, *READER) is None
    assert marked(noted(made), *READER) is None
    assert marked(noted(made, "false"), *WRITER) == "false"
    bare = {**made, "metadata": {"name": "p"}}
    assert marked(bare, EVERYTHING) == "true"


@pytest.mark.parametrize("rule", [CLONE, LIST, LOOP])
def test_who_says_himself_that_he_may_update_sources_is_asked(rule: Any) -> None:
    assert message(ask(written(rule), *READER)) == ""
    assert message(ask(noted(written(rule)), *WRITER)) == ""
    for said in ("true", "", "{{ request.object.data.a }}"):
        assert "may not update secrets" in message(ask(noted(written(rule), said), *READER))
    added = ask(noted(written(rule)), *READER, old=written(rule))
    assert "may not update secrets" in message(added)


def test_a_policy_that_is_generated_carries_no_mark_that_the_author_of_its_rule_was_not_asked_for() -> (
    None
):
    def generating(inner: dict[str, Any]) -> dict[str, Any]:
        data = {
            "spec": inner["spec"],
            "metadata": {"annotations": inner["metadata"]["annotations"]},
        }
        return written(generate("kyverno.io/v1", "ClusterPolicy", "", data=data))

    rights = (*READER, ("*", "get create", "clusterpolicies.kyverno.io"))
    assert message(ask(generating(written(CLONE)), *rights)) == ""
    assert "may not update secrets" in message(ask(generating(noted(written(CLONE))), *rights))
    ours = {"username": account_user("kyverno", Job.BACKGROUND)}
    assert marked(written(CLONE), EVERYTHING, user=ours) is None


def test_what_copies_nothing_or_stays_as_it_is_is_left_alone() -> None:
    once = generate("v1", "Secret", "shop", data=None, clone={"name": "key", "namespace": "ops"})
    unread = written({**CLONE, "match": "nothing"})
    silent = FakeClient()
    silent.fail("review", Unreachable("no answer"), times=9, resource="subjectaccessreviews")

    for made in (written(generate("v1", "ConfigMap", "shop")), written(once), unread):
        assert marked(made, EVERYTHING) is None
    assert marked(written(CLONE), EVERYTHING, old=written(CLONE)) is None
    assert marked(written(CLONE), EVERYTHING, client=silent) is None
