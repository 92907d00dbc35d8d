"""Reviews: what is denied, allowed, warned of and patched, and what happens when things go wrong."""

from __future__ import annotations

import asyncio

import pytest

from controllers.kube import Unreachable
from controllers.kube.kinds import CONFIG_MAPS
from controllers.runtime.sink import Trigger
from controllers.webhook import envelope
from controllers.webhook.reviewing import NOT_READY, OVERLOADED, Limits, budget_of
from engine.errors import DocumentError, LimitError
from engine.evaluate import Answer, ConfigMapLookup
from engine.model import RuleType

from .staging import Stage, body, mutating, patch_of, pod, policy, staged

BLOCK = (
    "\n\nresource Pod/shop/web was blocked due to the following policies \n\n"
    "team:\n  needs-team: 'validation error: a team is needed. rule needs-team failed at path /metadata/labels/'\n"
)


def with_context(**spec):
    made = policy(**spec)
    made["spec"]["rules"][0] |= {
        "context": [{"name": "teams", "configMap": {"name": "teams", "namespace": "platform"}}],
        "preconditions": {"all": [{"key": "{{ teams.data.on }}", "operator": "Equals", "value": "yes"}]},
    }  # fmt: skip
    return made


def run(test, *objects, **options):
    async def go():
        async with staged(*objects, **options) as stage:
            return await test(stage)

    return asyncio.run(go())


def test_a_bad_pod_is_denied_with_upstreams_words() -> None:
    async def test(stage: Stage) -> None:
        response = await stage.ask("validate", body(pod()))
        assert response["allowed"] is False
        assert response["status"]["message"] == BLOCK

    run(test, policy())


def test_a_good_pod_is_allowed_without_a_word() -> None:
    async def test(stage: Stage) -> None:
        response = await stage.ask("validate", body(pod(labels={"team": "blue"})))
        assert response == {"uid": response["uid"], "allowed": True}

    run(test, policy())


def test_a_patch_too_deep_to_be_written_is_an_error_in_words() -> None:
    deep: list[object] = []
    for _ in range(400):
        deep = [deep]
    with pytest.raises(LimitError, match="nested too deep to be written"):
        envelope.patched("1", [{"op": "add", "path": "/spec/deep", "value": deep}])


def test_policies_of_the_other_lane_are_not_asked() -> None:
    async def test(stage: Stage) -> None:
        assert (await stage.ask("validate", body(pod()), route="ignore"))["allowed"] is True
        assert (await stage.ask("validate", body(pod()), route="all"))["allowed"] is False

    run(test, policy())


def test_two_policies_that_fail_are_both_named_in_order() -> None:
    async def test(stage: Stage) -> None:
        text = (await stage.ask("validate", body(pod())))["status"]["message"]
        assert text.index("\na-first:") < text.index("\nz-last:")

    run(test, policy("z-last"), policy("a-first"))


def test_nothing_is_allowed_before_everything_is_listed() -> None:
    async def test(stage: Stage) -> None:
        response = await stage.ask("validate", body(pod(labels={"team": "blue"})))
        assert (response["allowed"], response["status"]["message"]) == (False, NOT_READY)
        ignoring = await stage.ask("validate", body(pod()), route="ignore")
        assert ignoring["allowed"] is True
        assert ignoring["warnings"]
        stage.listed()
        assert (await stage.ask("validate", body(pod())))["status"]["message"] == BLOCK

    run(test, policy(), ready=False)


def test_audit_policies_are_answered_after_the_verdict() -> None:
    async def test(stage: Stage) -> None:
        response = await stage.ask("validate", body(pod()))
        assert response == {"uid": response["uid"], "allowed": True}
        assert stage.sink.results_ == []
        await stage.background_queue.finish()
        _, results, verdict = stage.sink.results_[0]
        assert [(r.policy, r.status.value) for r in results] == [("team", "fail")]
        assert verdict.allowed

    run(test, policy(validationFailureAction="Audit"))


def test_an_audit_policy_that_warns_is_answered_with_warnings() -> None:
    async def test(stage: Stage) -> None:
        response = await stage.ask("validate", body(pod()))
        text = (
            "validation error: a team is needed. rule needs-team failed at path /metadata/labels/"
        )
        assert response["warnings"] == [f"policy team.needs-team: {text}"]
        assert response["allowed"] is True

    run(test, policy(validationFailureAction="Audit", emitWarning=True))


def test_a_denied_request_is_told_but_audits_nothing() -> None:
    async def test(stage: Stage) -> None:
        await stage.ask("validate", body(pod()))
        await stage.background_queue.finish()
        _, results, verdict = stage.sink.results_[0]
        assert [result.policy for result in results] == ["team"]
        assert not verdict.allowed

    run(test, policy(), policy("soft", validationFailureAction="Audit"))


def test_nothing_is_handed_over_from_which_nothing_follows() -> None:
    async def test(stage: Stage) -> None:
        stage.sink.silent = {"pass"}
        for labels in ({"team": "blue"}, None):
            await stage.ask("validate", body(pod(labels=labels)))
            await stage.background_queue.finish()
        [(_, results, _)] = stage.sink.results_
        assert [(one.policy, one.status.value) for one in results] == [("soft", "fail")]

    run(test, policy("soft", validationFailureAction="Audit"))


@pytest.mark.parametrize("labels", [None, {"team": "blue"}])
def test_a_dry_run_is_answered_alike_and_leaves_nothing(labels) -> None:
    async def test(stage: Stage) -> None:
        real = await stage.ask("validate", body(pod(labels=labels)))
        await stage.background_queue.finish()
        stage.sink.results_.clear()
        dry = await stage.ask("validate", body(pod(labels=labels), dryRun=True))
        await stage.background_queue.finish()
        assert dry == real
        assert stage.sink.results_ == []
        assert stage.sink.triggered_[1:] == []

    run(test, policy(), generating())


def generating():
    made = policy("generate")
    made["spec"]["rules"] = [
        {
            "name": "quota",
            "match": {"any": [{"resources": {"kinds": ["Pod"], "operations": ["CREATE"]}}]},
            "generate": {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "namespace": "shop", "data": {}},
        }
    ]  # fmt: skip
    return made


def test_a_generate_rule_is_written_down_before_the_answer() -> None:
    async def test(stage: Stage) -> None:
        response = await stage.ask("validate", body(pod()))
        assert response["allowed"] is True
        assert stage.sink.triggered_[0].triggers == (
            Trigger("generate", "quota", RuleType.GENERATION),
        )

    run(test, generating())


def test_a_denied_request_generates_nothing() -> None:
    async def test(stage: Stage) -> None:
        assert (await stage.ask("validate", body(pod())))["allowed"] is False
        assert stage.sink.triggered_ == []

    run(test, generating(), policy())


def test_work_that_cannot_be_written_down_refuses_the_request() -> None:
    async def test(stage: Stage) -> None:
        stage.sink.error = Unreachable("there is no answer")
        response = await stage.ask("validate", body(pod()))
        assert (response["allowed"], response["status"]["message"]) == (False, "there is no answer")

    run(test, generating())


def test_a_deleted_trigger_is_told_even_if_the_rule_asks_for_create_only() -> None:
    async def test(stage: Stage) -> None:
        await stage.ask("validate", body(None, oldObject=pod(), operation="DELETE"))
        assert stage.sink.triggered_[0].triggers == (
            Trigger("generate", "quota", RuleType.GENERATION, matches=False),
        )

    run(test, generating())


def test_answers_from_outside_are_looked_up_and_the_rule_asked_again() -> None:
    async def test(stage: Stage) -> None:
        stage.resolver.given[ConfigMapLookup("platform", "teams")] = Answer.found(
            {"data": {"on": "yes"}}
        )
        assert (await stage.ask("validate", body(pod())))["status"]["message"] == BLOCK
        assert len(stage.resolver.asked) == 1

    run(test, with_context())


def test_an_answer_that_fails_blocks_where_the_policy_fails() -> None:
    async def test(stage: Stage) -> None:
        response = await stage.ask("validate", body(pod(labels={"team": "blue"})))
        assert response["allowed"] is False
        assert "needs-team" in response["status"]["message"]

    run(test, with_context())


def test_an_answer_that_fails_does_not_block_where_the_policy_ignores() -> None:
    async def test(stage: Stage) -> None:
        response = await stage.ask("validate", body(pod()), route="ignore")
        assert response["allowed"] is True

    run(test, with_context(failurePolicy="Ignore"))


@pytest.mark.parametrize(("failure_policy", "is_allowed"), [("Fail", False), ("Ignore", True)])
def test_the_deadline_is_kept_when_an_answer_never_comes(failure_policy, is_allowed) -> None:
    async def test(stage: Stage) -> None:
        stage.resolver.hangs = True
        response = await stage.ask(
            "validate", body(pod()), route=failure_policy.lower(), budget=0.05
        )
        assert response["allowed"] is is_allowed

    run(test, with_context(failurePolicy=failure_policy))


def test_a_full_queue_denies_and_says_so() -> None:
    async def test(stage: Stage) -> None:
        stage.resolver.hangs = True
        first = [asyncio.create_task(stage.ask("validate", body(pod()))) for _ in range(2)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        response = await stage.ask("validate", body(pod()))
        assert (response["allowed"], response["status"]["message"]) == (False, OVERLOADED)
        assert stage.metrics.value("kpolicy_reviews_refused", ("overload",)) == 1
        stage.resolver.released.set()
        await asyncio.gather(*first)

    run(test, with_context(), limits=Limits(running=1, waiting=1))


def test_reviews_of_one_namespace_that_wait_for_answers_do_not_keep_others_from_theirs() -> None:
    async def test(stage: Stage) -> None:
        stage.resolver.hangs = True
        reviews = [asyncio.create_task(stage.ask("validate", body(pod()))) for _ in range(20)]
        while len(stage.resolver.asked) < 2:
            await asyncio.sleep(0)
        stage.resolver.hangs = False
        response = await stage.ask("validate", body(pod(namespace="other")), budget=0.5)
        assert "nobody knows" in response["status"]["message"]
        stage.resolver.released.set()
        refused = [(await one)["status"]["message"] == OVERLOADED for one in reviews]
        assert refused.count(True) == 20 - 2 - 5

    run(test, with_context(), limits=Limits(running=8, waiting=10))


def test_work_after_requests_is_dropped_and_counted_when_it_piles_up() -> None:
    async def test(stage: Stage) -> None:
        for _ in range(5):
            assert (await stage.ask("validate", body(pod())))["allowed"] is True
        assert stage.metrics.value("kyverno_breaker_drops", ("audit",)) == 3

    run(test, policy(validationFailureAction="Audit"), queue=2)


def test_a_pod_is_patched_with_operations() -> None:
    async def test(stage: Stage) -> None:
        response = await stage.ask("mutate", body(pod()))
        assert response["patchType"] == "JSONPatch"
        assert patch_of(response) == [
            {"op": "add", "path": "/metadata/labels", "value": {"team": "blue"}}
        ]

    run(test, mutating())


def test_a_pod_that_needs_no_change_gets_no_patch() -> None:
    async def test(stage: Stage) -> None:
        response = await stage.ask("mutate", body(pod(labels={"team": "red"})))
        assert response == {"uid": response["uid"], "allowed": True}

    run(test, mutating())


def test_a_mutation_that_fails_is_refused_in_upstreams_words() -> None:
    async def test(stage: Stage) -> None:
        response = await stage.ask("mutate", body(pod()))
        assert response["allowed"] is False
        assert response["status"]["message"].startswith(
            "mutation policy add-team error: failed to apply policy add-team rules [add: "
        )

    broken = mutating()
    broken["spec"]["rules"][0]["mutate"] = {
        "patchStrategicMerge": {"metadata": {"labels": {"x": "{{ request.object.spec.none }}"}}}
    }
    run(test, broken)


def test_labels_of_an_unknown_namespace_are_asked_for() -> None:
    chosen = policy()
    chosen["spec"]["rules"][0]["match"]["any"][0]["resources"]["namespaceSelector"] = {
        "matchLabels": {"env": "prod"}
    }

    async def test(stage: Stage) -> None:
        fresh = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new", "labels": {"env": "prod"}}}  # fmt: skip
        stage.client.put(fresh)
        assert (await stage.ask("validate", body(pod(namespace="new"))))["allowed"] is False
        assert (await stage.ask("validate", body(pod(namespace="gone"))))["allowed"] is True
        stage.client.fail("get", Unreachable("no answer"), resource="namespaces")
        assert (await stage.ask("validate", body(pod(namespace="other"))))["allowed"] is False

    run(test, chosen)


def test_an_exception_lets_its_object_through_until_it_ends() -> None:
    exception = {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {"name": "x", "namespace": "shop", "annotations": {"kpolicy.io/expires-at": "2026-11-21T10:19:00Z"}},
        "spec": {
            "exceptions": [{"policyName": "team", "ruleNames": ["needs-team"]}],
            "match": {"any": [{"resources": {"kinds": ["Pod"], "names": ["web"]}}]},
        },
    }  # fmt: skip

    async def test(stage: Stage) -> None:
        assert (await stage.ask("validate", body(pod())))["allowed"] is True
        assert (await stage.ask("validate", body(pod("other"))))["allowed"] is False
        await stage.client.clock.advance(60)  # type: ignore[attr-defined] # - a clock moved by hand
        assert (await stage.ask("validate", body(pod())))["allowed"] is False

    run(test, policy(), exception)


def test_the_same_request_draws_the_same_chance_and_another_does_not() -> None:
    drawing = policy()
    drawing["spec"]["rules"][0]["validate"]["message"] = "code {{ random('[0-9a-z]{8}') }}"

    async def test(stage: Stage) -> None:
        texts = [
            (await stage.ask("validate", body(pod(), uid=uid)))["status"]["message"]
            for uid in ("1", "1", "2")
        ]
        assert texts[0] == texts[1] != texts[2]

    run(test, drawing)


def test_part_of_the_callers_time_is_kept_back() -> None:
    assert budget_of(10) == 9.5
    assert budget_of(1) == 0.5
    assert budget_of(0.2) == 0.1


def test_what_a_login_says_beside_names_is_that_of_each_request() -> None:
    async def test(stage: Stage) -> None:
        for _ in range(2):
            for login in ("one", "two"):
                user = {"username": "ada", "groups": ["dev"], "extra": {"login": [login]}}
                response = await stage.ask("validate", body(pod(), userInfo=user))
                assert response["allowed"] is (login == "one")
        user = {"username": "ada", "groups": ["dev"]}
        assert (await stage.ask("validate", body(pod(), userInfo=user)))["allowed"] is False

    made = policy()
    condition = {"key": "{{ request.userInfo.extra.login[0] || '' }}", "operator": "NotEquals", "value": "one"}  # fmt: skip
    made["spec"]["rules"][0]["validate"] = {"message": "no", "deny": {"conditions": {"any": [condition]}}}  # fmt: skip
    run(test, made)


def test_whose_requests_are_left_out_follows_the_configuration_at_once() -> None:
    async def test(stage: Stage) -> None:
        user = {"username": "ada", "groups": ["dev"]}
        for excluded, allowed in (("", False), ("ada", True), ("eve", False), ("!ada,*", False)):
            settings = {"metadata": {"name": "kyverno"}, "data": {"excludeUsernames": excluded}}
            stage.cache.put(CONFIG_MAPS, settings)
            for _ in range(2):
                response = await stage.ask("validate", body(pod(), userInfo=user))
                assert response["allowed"] is allowed, excluded

    run(test, policy())


@pytest.mark.parametrize(
    "fields",
    [{"userInfo": {"username": {}}}, {"userInfo": {"username": "a", "groups": 5}}, {"userInfo": {"groups": [{}]}},
     {"userInfo": {"extra": ["a"]}}, {"namespace": ["shop"]}, {"operation": 1},
     {"kind": {"kind": {}}}, {"resource": {"resource": []}}],
)  # fmt: skip
def test_a_request_with_names_that_are_no_texts_is_no_review(fields) -> None:
    async def test(stage: Stage) -> None:
        with pytest.raises(DocumentError):
            await stage.ask("validate", body(pod(), **fields), route="ignore")

    run(test, policy())


@pytest.mark.parametrize(
    ("settings", "seen"),
    [
        ({}, "docker.io nginx docker.io/nginx:latest"),
        ({"defaultRegistry": "mirror.corp"}, "mirror.corp nginx mirror.corp/nginx:latest"),
        ({"enableDefaultRegistryMutation": "false"}, "none nginx nginx:latest"),
    ],
)
def test_images_without_a_registry_are_of_the_one_that_the_settings_name(
    settings: dict[str, str], seen: str
) -> None:
    image = "images.containers.c"
    message = f"{{{{ {image}.registry || 'none' }}}} {{{{ {image}.name }}}} {{{{ image_normalize('nginx') }}}}"
    told = policy(
        rules=[
            {
                "name": "tell",
                "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
                "validate": {"message": message, "deny": {}},
            }
        ]
    )
    config_map = {
        "kind": "ConfigMap",
        "metadata": {"name": "kyverno", "namespace": "kyverno"},
        "data": settings,
    }

    async def play() -> str:
        async with staged(told, config_map) as stage:
            answer = await stage.ask("validate", body(pod()))
        return answer["status"]["message"]

    assert f"tell: {seen}" in asyncio.run(play())
