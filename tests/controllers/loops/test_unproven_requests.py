"""Work on the word of callers who proved nothing: only what the live object shows, as nobody's, and nothing that only they tell."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from controllers.kube.kinds import CONFIG_MAPS
from controllers.loops.requests.consumer import _PATIENCE
from controllers.runtime.sink import Trigger, Verdict
from engine.model import RuleResult, RuleType, Status

from .staging import (
    ROLE_BINDINGS,
    Scene,
    cluster_policy,
    config_map,
    matching,
    namespace,
    request_of,
    review_of_request,
    scene,
)
from .test_generate import leading, rule


def binding(called: str = "bind", /, match: Any = None, **fields: Any) -> dict[str, Any]:
    """Return a rule that makes somebody the administrator of a namespace that is labelled so."""
    return {
        "name": called,
        "match": match or matching("Namespace", selector={"matchLabels": {"admin": "?*"}}),
        "generate": {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "name": "administrator",
            "namespace": "{{ request.object.metadata.name }}",
            "data": {
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
                "subjects": [{"kind": "User", "name": "{{ request.object.metadata.labels.admin }}"}],
            },
        },
        **fields,
    }  # fmt: skip


def forged(obj: dict[str, Any], **labels: str) -> dict[str, Any]:
    made = orjson.loads(orjson.dumps(obj))
    made["metadata"]["labels"] = labels
    return made


def play(test: Any, *objects: dict[str, Any]) -> None:
    async def go() -> None:
        async with scene(*objects) as made:
            leading(made)
            await test(made)

    asyncio.run(go())


def messages(made: Scene) -> list[str]:
    return [str(one["message"]) for one in made.events if one["reason"] == "PolicyError"]


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_a_forged_review_binds_no_role_in_the_namespace_of_somebody_else(operation: str):
    async def test(made: Scene) -> None:
        victim = made.put(namespace("victim"))
        await made.admit(forged(victim, admin="mallory"), operation, is_proven=False)
        await made.rest(_PATIENCE + 5)
        await made.rest(_PATIENCE)
        assert made.stored(ROLE_BINDINGS) == []
        assert made.requests == []

    play(test, cluster_policy("administrators", binding()))


def test_what_the_live_object_asks_for_is_done_by_its_own_words_and_nothing_of_the_request_is_kept():
    async def test(made: Scene) -> None:
        own = made.store(namespace("own", admin="alice"))
        await made.admit(forged(own, admin="mallory"), is_proven=False)
        assert "mallory" not in orjson.dumps(made.requests).decode()
        assert "chip" not in orjson.dumps(made.requests).decode()
        await made.rest()
        made_binding = made.stored(ROLE_BINDINGS, "administrator", "own")
        assert [one["name"] for one in made_binding["subjects"]] == ["alice"]
        assert made.requests == []

    play(test, cluster_policy("administrators", binding()))


def test_an_object_that_never_comes_to_be_causes_nothing():
    async def test(made: Scene) -> None:
        ghost = namespace("ghost", admin="mallory")
        ghost["metadata"]["uid"] = "made-up"
        await made.admit(ghost, is_proven=False)
        await made.rest()
        assert len(made.requests) == 1
        made.put(namespace("ghost", admin="mallory"))
        await made.rest(_PATIENCE)
        await made.rest(_PATIENCE)
        assert made.requests == []
        assert made.stored(ROLE_BINDINGS) == []

    play(test, cluster_policy("administrators", binding()))


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({"exclude": {"any": [{"subjects": [{"kind": "User", "name": "root"}]}]}}, "who asks"),
        ({"match": {"any": [{"clusterRoles": ["edit"], "resources": {"kinds": ["Namespace"]}}]}}, "who asks"),
        ({"preconditions": {"all": [{"key": "{{ request.userInfo.username }}", "operator": "Equals", "value": ""}]}}, "who asks"),
        ({"context": [{"name": "x", "variable": {"jmesPath": "request.oldObject"}}]}, "the request"),
        ({"match": matching("Namespace", operations=["DELETE"])}, "deletions"),
    ],
)  # fmt: skip
def test_a_rule_that_reads_what_only_the_request_tells_is_not_carried_out_and_says_so(fields: Any, asked: str):  # fmt: skip
    async def test(made: Scene) -> None:
        stored = made.put(namespace("own", admin="alice"))
        if asked == "deletions":
            made.store(stored, "DELETE")
            await made.admit(stored, "DELETE", is_proven=False)
        else:
            await triggered(made, stored)
        await made.rest()
        assert made.stored(ROLE_BINDINGS) == []
        told = messages(made)
        assert told
        assert all(f"goes by {asked}, and nobody proved" in one for one in told)
        assert made.requests == []

    play(test, cluster_policy("administrators", {**binding(), **fields}))


async def triggered(made: Scene, stored: dict[str, Any]) -> None:
    """Hand over a review whose rule matched by what it claims of who asks."""
    request = request_of(stored)
    trigger = Trigger("administrators", "bind", RuleType.GENERATION)
    verdict = Verdict(True, made.clock.now(), request, (trigger,))
    await made.sink.triggered(review_of_request(request, {}), verdict)


def test_a_forged_deletion_takes_nothing_away_and_a_real_one_does():
    async def test(made: Scene) -> None:
        await made.request(namespace("dev"))
        await made.rest()
        assert made.stored(CONFIG_MAPS, "quota", "dev") is not None
        live = made.client.stored(made.client.kind_of(namespace("dev")))[0]
        await made.admit(live, "DELETE", is_proven=False)
        await made.rest(_PATIENCE)
        assert made.stored(CONFIG_MAPS, "quota", "dev") is not None
        await made.rest(_PATIENCE)
        gone = made.store(live, "DELETE")
        await made.admit(gone, "DELETE", is_proven=False)
        await made.rest(5)
        assert made.stored(CONFIG_MAPS, "quota", "dev") is None

    play(test, cluster_policy("quotas", rule()))


def test_a_change_is_waited_for_until_the_object_shows_it():
    async def test(made: Scene) -> None:
        old = made.put(namespace("own"))
        new = forged(old, admin="alice")
        await made.admit(new, "UPDATE", is_proven=False, oldObject=old)
        await made.rest()
        assert made.stored(ROLE_BINDINGS) == []
        assert len(made.requests) == 1
        made.put({**namespace("own", admin="alice"), "metadata": {**new["metadata"]}})
        await made.rest(5)
        assert len(made.stored(ROLE_BINDINGS)) == 1

    play(test, cluster_policy("administrators", binding()))


def test_a_forged_review_leaves_no_event_and_no_report_row():
    async def test(made: Scene) -> None:
        obj = config_map("settings")
        obj["metadata"]["uid"] = "made-up"
        request = request_of(obj)
        review = review_of_request(request, {})
        found = [RuleResult("team", "needs-team", RuleType.VALIDATION, Status.FAIL, "no team")]
        for allowed in (True, False):
            verdict = Verdict(allowed, made.clock.now(), request)
            await made.sink.results(review, found, verdict)
        await made.rest(10)
        assert made.events == []
        assert [call.resource for call in made.client.calls if call.verb == "create"] == []

    play(test, cluster_policy("team", {"name": "needs-team", "match": matching("ConfigMap"), "validate": {"pattern": {"metadata": {"labels": {"team": "?*"}}}}}))  # fmt: skip
