"""Grants from what changes or makes objects: a request that came to something else by one counts as its use."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import orjson
import pytest

from controllers.kube import Forbidden
from controllers.kube.kinds import CONFIG_MAPS, GRANTS
from controllers.loops.requests.consumer import Consumer
from controllers.loops.requests.work import Worker
from controllers.webhook.caller import Caller, current_caller
from controllers.webhook.grant_usage import GrantUsage
from controllers.webhook.reviewing import Reviewer
from engine.grants import exception_of, parse_grant
from tests.controllers.webhook.staging import body, mutating, pod, policy, staged
from tests.controllers.webhook.test_mutating_policies import mpol

from .staging import NOW, cluster_policy, config_map, matching, scene
from .test_generate import rule
from .test_generating_policies import KINDS, gpol

KEY = b"k" * 32
LABELLED = 'Object{metadata: Object.metadata{labels: {"a": "b"}}}'


def granted(named: str, rules: list[str], kind: str, **spec: Any) -> list[dict[str, Any]]:
    """Return a Grant from a policy, and the exception that it caused."""
    grant = {
        "apiVersion": "kpolicy.io/v1alpha1",
        "kind": "Grant",
        "metadata": {"name": "web", "namespace": "shop", "uid": "uid-of-web"},
        "spec": {
            "requester": "ada",
            "policy": named,
            "rules": rules,
            "target": {"kind": kind, "name": "web"},
            "duration": "4h",
            "reason": "rebuild",
            **spec,
        },
    }
    exception = exception_of(parse_grant(grant), NOW + timedelta(hours=4))
    exception["metadata"]["creationTimestamp"] = "2026-11-21T00:00:00Z"
    return [grant, exception]


def asked(
    *objects: dict[str, Any],
    route: str = "fail",
    times: int = 1,
    caller: Caller = Caller.CERTIFICATE,
    **fields: Any,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return what the mutating webhook answers to Pods, then what the Grant's status says."""

    async def go() -> tuple[list[dict[str, Any]], dict[str, Any]]:
        grant, *others = objects
        async with staged(*others) as stage:
            stage.client.put(grant)
            for one in others:
                if one["kind"] == "PolicyException":
                    stage.client.put(one)
            clock = stage.client.clock
            usage = GrantUsage(stage.cache, stage.client, stage.resolver, clock, "kyverno", KEY)
            reviewer = Reviewer(
                stage.cache,
                stage.client,
                stage.resolver,
                clock,
                stage.metrics,
                stage.background_queue,
                key=KEY,
                sink=stage.sink,
                grant_usage=usage,
            )
            token = current_caller.set(caller)
            try:
                answers = []
                for number in range(times):
                    made = pod(**fields.get("pod", {}))
                    made["metadata"]["uid"] = f"pod-{number // fields.get('sent', 1)}"
                    sent = body(made, dryRun=fields.get("dry_run", False))
                    answer = await reviewer.review("mutate", route, sent, 5.0)
                    answers.append(orjson.loads(answer)["response"])
            finally:
                current_caller.reset(token)
            await usage.flush()
            [found] = stage.client.stored(GRANTS)
            return answers, found.get("status") or {}

    return asyncio.run(go())


CLASSIC = ("fail", [*granted("add-team", ["add"], "Pod"), mutating()])
OF_CEL = ("fail/mpol", [*granted("mpol:seen", [], "Pod"), mpol(LABELLED)])


@pytest.mark.parametrize(("route", "objects"), [CLASSIC, OF_CEL])
def test_a_request_whose_object_stays_as_it_was_written_by_a_grant_uses_it(
    route: str, objects: list[dict[str, Any]]
) -> None:
    answers, status = asked(*objects, route=route, times=3)

    for answer in answers:
        assert answer["allowed"]
        assert "patch" not in answer
        assert answer["auditAnnotations"] == {"grant-uses": "shop/web"}
    assert status["uses"] == 3
    assert status["lastUsedAt"] == "2026-11-21T10:18:00Z"


def test_what_no_rule_would_have_changed_uses_nothing() -> None:
    route, objects = CLASSIC

    [answer], status = asked(*objects, route=route, pod={"labels": {"team": "red"}})

    assert answer["allowed"]
    assert "auditAnnotations" not in answer
    assert status == {}


def test_an_object_that_the_grant_is_not_about_uses_nothing_and_is_changed() -> None:
    route, objects = CLASSIC

    [answer], status = asked(*objects, route=route, pod={"name": "other"})

    assert "patch" in answer
    assert status == {}


def test_what_one_rule_changes_while_another_is_left_out_is_both_patched_and_on_record() -> None:
    another = mutating("add-tier")
    block = another["spec"]["rules"][0]["mutate"]["patchStrategicMerge"]
    block["metadata"]["labels"] = {"tier": "tin"}

    [answer], status = asked(*CLASSIC[1], another)

    assert "patch" in answer
    assert answer["auditAnnotations"] == {"grant-uses": "shop/web"}
    assert status["uses"] == 1


def test_a_change_that_passes_the_webhook_again_is_counted_once() -> None:
    _, status = asked(*CLASSIC[1], times=4, sent=2)

    assert status["uses"] == 2


@pytest.mark.parametrize(
    "how", [{"dry_run": True}, {"caller": Caller.NOBODY}], ids=["dry run", "nobody proved"]
)
def test_what_happens_to_nobody_or_on_nobodys_word_is_not_counted(how: dict[str, Any]) -> None:
    _, status = asked(*CLASSIC[1], **how)

    assert status == {}


def carried_out(
    *objects: dict[str, Any], is_refused: bool = False, **fields: Any
) -> dict[str, Any]:
    """Return the status of the Grant after a request for the ConfigMap `web` was followed up."""
    grant, *others = objects

    async def go() -> dict[str, Any]:
        async with scene(*others, kinds=KINDS) as made:
            made.client.put(grant)
            if is_refused:
                made.client.fail("patch", Forbidden("no", status=403), resource="grants")
            worker = Worker(made.context, made.sink.pending)
            made.start(Consumer(made.context, worker).run())
            await made.rest()
            await made.request(config_map("web"), **fields)
            await made.request(config_map("other"), **fields)
            await made.rest()
            names = {one["metadata"]["name"] for one in made.client.stored(CONFIG_MAPS)}
            assert names == {"web", "other", "of-other"}
            [found] = made.client.stored(GRANTS)
            return found.get("status") or {}

    return asyncio.run(go())


MAKING = rule(
    match=matching("ConfigMap", names=["web", "other"]),
    namespace="shop",
    name="of-{{ request.object.metadata.name }}",
    synchronize=False,
)
BY_RULE = [*granted("quotas", ["make"], "ConfigMap"), cluster_policy("quotas", MAKING)]
MADE = (
    'object.metadata.name.startsWith("of-") || generator.Apply("shop", [{"apiVersion": dyn("v1"), "kind": dyn("ConfigMap"),'
    ' "metadata": dyn({"name": "of-" + object.metadata.name})}])'
)
BY_EXPRESSION = [
    *granted("gpol:quotas", [], "ConfigMap"),
    gpol(MADE, resource="configmaps", sync=False),
]


@pytest.mark.parametrize("objects", [BY_RULE, BY_EXPRESSION])
def test_a_trigger_for_which_nothing_is_made_by_a_grant_uses_it(
    objects: list[dict[str, Any]],
) -> None:
    status = carried_out(*objects)

    assert status["uses"] == 1


def test_what_is_made_on_nobodys_word_uses_nothing() -> None:
    assert carried_out(*BY_RULE, is_proven=False) == {}


def test_a_rule_that_would_have_made_nothing_is_not_kept_from_it() -> None:
    never = {
        **MAKING,
        "preconditions": {
            "all": [
                {
                    "key": "{{ request.object.metadata.name }}",
                    "operator": "NotEquals",
                    "value": "web",
                }
            ]
        },
    }

    assert (
        carried_out(*granted("quotas", ["make"], "ConfigMap"), cluster_policy("quotas", never))
        == {}
    )


def test_a_count_that_cannot_be_written_keeps_no_work_from_being_done() -> None:
    assert carried_out(*BY_RULE, is_refused=True) == {}


def test_a_policy_that_checks_uses_no_grant_from_one_that_changes() -> None:
    _, status = asked(*granted("team", ["needs-team"], "Pod"), policy(), mutating())

    assert status == {}
