"""Generate rules from request to object, and everything that synchronising means (row U-04)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controllers.kube import Forbidden, Unreachable
from controllers.kube.kinds import CLUSTER_POLICIES, CONFIG_MAPS, SECRETS, UPDATE_REQUESTS
from controllers.loops.generate import memory
from controllers.loops.generate.watching import PolicyWatch, SyncWatch
from controllers.loops.requests.consumer import Consumer
from controllers.loops.requests.work import Worker
from engine.generate.labels import downstream_labels
from engine.model import Review
from engine.parse.policies import parse_policy

from .staging import NOW, Scene, cluster_policy, config_map, matching, namespace, scene


def rule(called: str = "make", /, match: Any = None, **generate: Any) -> dict[str, Any]:
    block = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "quota",
        "namespace": "{{ request.object.metadata.name }}",
        "synchronize": True,
        "data": {"data": {"cpu": "4"}},
        **generate,
    }
    kept = {key: value for key, value in block.items() if value is not None}
    return {"name": called, "match": match or matching("Namespace"), "generate": kept}


def copying(**generate: Any) -> dict[str, Any]:
    clone = {"clone": {"namespace": "platform", "name": "pull"}, "kind": "Secret", "name": "pull"}
    return rule("copy", **{"data": None, **clone, **generate})


def secret(name: str = "pull", **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "platform", "labels": {"team": "core"}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


def leading(made: Scene) -> None:
    worker = Worker(made.context, made.sink.pending)
    sync = SyncWatch(made.context, worker.generator)
    made.start(Consumer(made.context, worker).run())
    made.start(sync.run())
    made.start(PolicyWatch(made.context, worker.generator, sync).run())


def test_a_request_makes_the_object_with_its_labels_and_the_work_is_forgotten():
    async def play():
        async with scene(cluster_policy("quotas", rule())) as made:
            leading(made)
            await made.request(namespace("dev"))
            assert len(made.requests) == 1
            await made.rest()
            found = made.stored(CONFIG_MAPS, "quota", "dev")
            trigger = made.context.client.stored(made.client.kind_of(namespace("dev")))[0]
            assert found["data"] == {"cpu": "4"}
            assert found["metadata"]["labels"] == {
                "app.kubernetes.io/managed-by": "kyverno",
                "generate.kyverno.io/policy-name": "quotas",
                "generate.kyverno.io/policy-namespace": "",
                "generate.kyverno.io/rule-name": "make",
                "generate.kyverno.io/trigger-group": "",
                "generate.kyverno.io/trigger-kind": "Namespace",
                "generate.kyverno.io/trigger-namespace": "",
                "generate.kyverno.io/trigger-uid": trigger["metadata"]["uid"],
                "generate.kyverno.io/trigger-version": "v1",
            }
            assert made.requests == []

    asyncio.run(play())


def test_what_a_subresource_triggers_is_labelled_with_the_body_of_its_request():
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "web", "namespace": "shop"},
    }
    review = Review(body, kind="Pod", subresource="eviction")
    labels = downstream_labels(parse_policy(cluster_policy("note", rule())), "make", review)

    place = {
        part: labels[f"generate.kyverno.io/trigger-{part}"]
        for part in ("group", "version", "kind", "uid")
    }
    assert place == {"group": "policy", "version": "v1", "kind": "Eviction", "uid": ""}


def test_a_request_that_is_refused_after_all_makes_nothing():
    async def play():
        async with scene(cluster_policy("quotas", rule())) as made:
            leading(made)
            refused = {**namespace("dev")}
            refused["metadata"] = {"name": "dev", "uid": "never-stored"}
            await made.admit(refused)
            await made.rest(10)
            [request] = made.requests
            assert request["status"]["message"] == "the trigger is not there yet"
            await made.rest(60)
            assert made.stored(CONFIG_MAPS) == []
            assert made.requests == []

    asyncio.run(play())


def test_work_of_a_policy_that_only_another_replica_has_seen_waits_for_it():
    async def play():
        policy = cluster_policy("quotas", rule())
        async with scene(policy) as made:
            await made.request(namespace("dev"))
            stored = made.stored(made.client.kind_of(policy), "quotas")
            made.cache.remove(CLUSTER_POLICIES, stored)
            leading(made)
            await made.rest(2)
            assert made.stored(CONFIG_MAPS) == []
            assert len(made.requests) == 1
            made.cache.put(CLUSTER_POLICIES, {**policy, **stored})
            await made.rest(2)
            assert made.stored(CONFIG_MAPS, "quota", "dev")["data"] == {"cpu": "4"}
            assert made.requests == []

    asyncio.run(play())


def test_work_of_a_policy_that_is_gone_is_forgotten():
    async def play():
        policy = cluster_policy("quotas", rule())
        async with scene(policy) as made:
            await made.request(namespace("dev"))
            made.take(policy)
            leading(made)
            await made.rest(2)
            assert (made.stored(CONFIG_MAPS), made.requests) == ([], [])

    asyncio.run(play())


def test_work_written_down_before_a_crash_is_done_by_the_next_leader():
    async def play():
        async with scene(cluster_policy("quotas", rule(synchronize=False))) as made:
            await made.request(namespace("dev"))
            await made.rest(60)
            assert made.stored(CONFIG_MAPS) == []
            leading(made)
            await made.rest()
            assert made.stored(CONFIG_MAPS, "quota", "dev")

    asyncio.run(play())


def test_work_that_fails_says_so_and_is_done_when_it_can_be():
    async def play():
        async with scene(cluster_policy("quotas", rule())) as made:
            leading(made)
            await made.rest()
            made.client.fail("create", Unreachable("gone"), resource="configmaps")
            await made.request(namespace("dev"))
            await made.rest()
            [request] = made.requests
            assert request["status"] == {"state": "Failed", "retryCount": 0, "message": "gone"}
            on_trigger, on_policy = sorted(made.events, key=lambda e: e["involvedObject"]["name"])
            assert on_policy["message"] == "policy quotas/make error: gone"
            assert on_policy["reportingComponent"] == "kyverno-generate"
            assert on_trigger["involvedObject"]["name"] == "dev"
            await made.rest(5)
            assert made.stored(CONFIG_MAPS, "quota", "dev")
            assert made.requests == []

    asyncio.run(play())


@pytest.mark.parametrize(("synchronize", "value"), [(True, "4"), (False, "100")])
def test_an_edited_object_is_put_right_only_when_synchronised(synchronize, value):
    async def play():
        async with scene(cluster_policy("quotas", rule(synchronize=synchronize))) as made:
            leading(made)
            await made.request(namespace("dev"))
            await made.rest()
            found = made.stored(CONFIG_MAPS, "quota", "dev")
            made.client.put({**found, "data": {"cpu": "100"}})
            await made.rest()
            assert made.stored(CONFIG_MAPS, "quota", "dev")["data"] == {"cpu": value}

    asyncio.run(play())


@pytest.mark.parametrize("synchronize", [True, False])
def test_a_deleted_object_comes_back_only_when_synchronised(synchronize):
    async def play():
        async with scene(cluster_policy("quotas", rule(synchronize=synchronize))) as made:
            leading(made)
            await made.request(namespace("dev"))
            await made.rest()
            made.client.take(CONFIG_MAPS, "quota", "dev")
            await made.rest()
            assert bool(made.stored(CONFIG_MAPS)) is synchronize

    asyncio.run(play())


def test_an_object_whose_labels_were_taken_off_gets_them_back():
    async def play():
        async with scene(cluster_policy("quotas", rule())) as made:
            leading(made)
            await made.request(namespace("dev"))
            await made.rest()
            found = made.stored(CONFIG_MAPS, "quota", "dev")
            found["metadata"]["labels"] = {"mine": "yes"}
            made.client.put({**found, "data": {}})
            await made.rest()
            after = made.stored(CONFIG_MAPS, "quota", "dev")
            assert after["data"] == {"cpu": "4"}
            assert after["metadata"]["labels"]["mine"] == "yes"
            assert after["metadata"]["labels"]["generate.kyverno.io/rule-name"] == "make"

    asyncio.run(play())


@pytest.mark.parametrize("synchronize", [True, False])
def test_objects_go_with_their_trigger_only_when_synchronised(synchronize):
    async def play():
        by_label = rule(
            match=matching("ConfigMap", names=["source"]),
            namespace="other",
            synchronize=synchronize,
        )
        async with scene(cluster_policy("quotas", by_label)) as made:
            leading(made)
            await made.request(config_map("source"))
            await made.rest()
            assert made.stored(CONFIG_MAPS, "quota", "other")
            await made.request(config_map("source"), "DELETE")
            await made.rest()
            assert bool(made.stored(CONFIG_MAPS, "quota", "other")) is not synchronize

    asyncio.run(play())


def test_a_trigger_that_no_longer_matches_takes_its_objects_along():
    async def play():
        match = matching("Namespace", selector={"matchLabels": {"tier": "gold"}})
        async with scene(cluster_policy("quotas", rule(match=match))) as made:
            leading(made)
            await made.request(namespace("dev", tier="gold"))
            await made.rest()
            assert made.stored(CONFIG_MAPS, "quota", "dev")
            before = made.client.stored(made.client.kind_of(namespace("dev")))[0]
            await made.request(namespace("dev", tier="tin"), "UPDATE", oldObject=before)
            await made.rest()
            assert made.stored(CONFIG_MAPS) == []

    asyncio.run(play())


def test_a_changed_rule_changes_what_it_made():
    async def play():
        async with scene(cluster_policy("quotas", rule())) as made:
            leading(made)
            await made.request(namespace("dev"))
            await made.rest()
            made.put(cluster_policy("quotas", rule(data={"data": {"cpu": "8"}})))
            await made.rest()
            assert made.stored(CONFIG_MAPS, "quota", "dev")["data"] == {"cpu": "8"}

    asyncio.run(play())


@pytest.mark.parametrize(
    ("changes", "stays"),
    [({}, False), ({"orphanDownstreamOnPolicyDelete": True}, True), ({"synchronize": False}, True)],
)
def test_a_deleted_policy_takes_its_objects_along_unless_they_outlive_it(changes, stays):
    async def play():
        policy = cluster_policy("quotas", rule(**changes))
        async with scene(policy) as made:
            leading(made)
            await made.request(namespace("dev"))
            await made.rest()
            made.take(policy)
            await made.rest()
            assert bool(made.stored(CONFIG_MAPS)) is stays

    asyncio.run(play())


def test_a_deleted_rule_takes_only_its_own_objects_along():
    async def play():
        both = [rule(), rule("second", data={"data": {}}) | {}]
        both[1]["generate"]["name"] = "other"
        async with scene(cluster_policy("quotas", *both)) as made:
            leading(made)
            await made.request(namespace("dev"))
            await made.rest()
            assert len(made.stored(CONFIG_MAPS)) == 2
            made.put(cluster_policy("quotas", both[0]))
            await made.rest()
            assert [one["metadata"]["name"] for one in made.stored(CONFIG_MAPS)] == ["quota"]

    asyncio.run(play())


def test_rules_for_existing_objects_find_them_when_the_policy_comes():
    async def play():
        async with scene(namespace("dev"), namespace("ops")) as made:
            leading(made)
            await made.rest()
            made.put(cluster_policy("quotas", rule(generateExisting=True)))
            await made.rest()
            names = [one["metadata"]["namespace"] for one in made.stored(CONFIG_MAPS)]
            assert names == ["dev", "ops"]
            assert made.requests == []

    asyncio.run(play())


def test_without_the_wish_existing_objects_are_left_alone():
    async def play():
        async with scene(namespace("dev"), cluster_policy("quotas", rule())) as made:
            leading(made)
            await made.rest()
            assert made.stored(CONFIG_MAPS) == []

    asyncio.run(play())


def test_a_source_is_labelled_only_for_an_author_who_may_update_it():
    async def play():
        async with scene(cluster_policy("pulls", copying()), secret(token="a")) as made:
            leading(made)
            await made.request(namespace("dev"))
            await made.rest()
            assert made.stored(SECRETS, "pull", "dev")["data"] == {"token": "a"}
            source = made.stored(SECRETS, "pull", "platform")
            assert "generate.kyverno.io/clone-source" not in source["metadata"].get("labels", {})

    asyncio.run(play())


def test_a_copy_follows_its_source_and_goes_with_it():
    async def play():
        policy = cluster_policy("pulls", copying())
        policy["metadata"]["annotations"] = {"kpolicy.io/labels-clone-sources": "true"}
        async with scene(policy, secret(token="a")) as made:
            leading(made)
            await made.request(namespace("dev"))
            await made.rest()
            copied = made.stored(SECRETS, "pull", "dev")
            assert copied["data"] == {"token": "a"}
            assert "generate.kyverno.io/clone-source" not in copied["metadata"]["labels"]
            source = made.stored(SECRETS, "pull", "platform")
            assert source["metadata"]["labels"]["generate.kyverno.io/clone-source"] == ""
            made.client.put({**source, "data": {"other": "b"}})
            await made.rest()
            assert made.stored(SECRETS, "pull", "dev")["data"] == {"other": "b"}
            made.client.take(SECRETS, "pull", "platform")
            await made.rest(5)
            assert made.stored(SECRETS) == []

    asyncio.run(play())


def test_a_copy_without_synchronising_outlives_its_source():
    async def play():
        policy = cluster_policy("pulls", copying(synchronize=False))
        async with scene(policy, secret(token="a")) as made:
            leading(made)
            await made.request(namespace("dev"))
            await made.rest()
            made.client.take(SECRETS, "pull", "platform")
            await made.rest()
            assert made.stored(SECRETS, "pull", "dev")["data"] == {"token": "a"}

    asyncio.run(play())


def test_a_list_of_copies_grows_and_shrinks_with_its_sources():
    async def play():
        sources = {"namespace": "platform", "kinds": ["v1/Secret"], "selector": {"matchLabels": {"team": "core"}}}  # fmt: skip
        lists = rule(
            "copies", data=None, apiVersion=None, kind=None, name=None, cloneList=sources
        )  # fmt: skip
        lists["generate"].pop("name", None)
        async with scene(cluster_policy("pulls", lists), secret(a="1"), secret("other", b="2")) as made:  # fmt: skip
            leading(made)
            await made.request(namespace("dev"))
            await made.rest()

            def names() -> list[str]:
                return [o["metadata"]["name"] for o in made.stored(SECRETS) if o["metadata"]["namespace"] == "dev"]  # fmt: skip

            assert names() == ["other", "pull"]
            made.client.put(secret("third", c="3"))
            await made.rest()
            assert names() == ["other", "pull", "third"]
            made.client.take(SECRETS, "other", "platform")
            await made.rest()
            assert names() == ["pull", "third"]

    asyncio.run(play())


def test_an_element_that_left_the_list_takes_its_object_along():
    async def play():
        loops = {"foreach": [{
            "list": "request.object.metadata.annotations.teams | split(@, ',')",
            "apiVersion": "v1", "kind": "ConfigMap", "name": "team-{{ element }}", "namespace": "{{ request.object.metadata.name }}",
            "data": {"metadata": {"labels": {"index": "{{ elementIndex }}"}}, "data": {"team": "{{ element }}"}},
        }]}  # fmt: skip
        each = rule(**{"data": None, "apiVersion": None, "kind": None, "namespace": None, **loops})
        each["generate"].pop("name")
        async with scene(cluster_policy("teams", each)) as made:
            leading(made)
            dev = namespace("dev")
            dev["metadata"]["annotations"] = {"teams": "a,b"}
            await made.request(dev)
            await made.rest()
            labels = [one["metadata"]["labels"]["index"] for one in made.stored(CONFIG_MAPS)]
            assert labels == ["0", "1"]
            dev["metadata"]["annotations"] = {"teams": "b"}
            await made.request(dev, "UPDATE", oldObject=dev)
            await made.rest()
            assert [one["metadata"]["name"] for one in made.stored(CONFIG_MAPS)] == ["team-b"]

    asyncio.run(play())


def test_a_rule_for_deletions_makes_its_object_when_the_trigger_goes_and_leaves_it():
    async def play():
        match = matching("ConfigMap", names=["source"], operations=["DELETE"])
        gone = rule(match=match, namespace="other")
        gone["generate"]["data"] = {"data": {"gone": "{{ request.oldObject.metadata.name }}"}}
        async with scene(cluster_policy("quotas", gone)) as made:
            leading(made)
            await made.request(config_map("source"))
            await made.rest()
            assert made.stored(CONFIG_MAPS, "quota", "other") is None
            await made.request(config_map("source"), "DELETE")
            await made.rest()
            assert made.stored(CONFIG_MAPS, "quota", "other")["data"] == {"gone": "source"}

    asyncio.run(play())


def test_an_object_of_somebody_else_is_left_alone_without_synchronising():
    async def play():
        policy = cluster_policy("quotas", rule(synchronize=False))
        async with scene(policy, config_map("quota", "dev", {"cpu": "1"})) as made:
            leading(made)
            await made.request(namespace("dev"))
            await made.rest()
            assert made.stored(CONFIG_MAPS, "quota", "dev")["data"] == {"cpu": "1"}

    asyncio.run(play())


def test_what_happened_while_nobody_led_is_put_right_at_the_start():
    async def play():
        async with scene(cluster_policy("quotas", rule())) as made:
            leading(made)
            await made.request(namespace("dev"))
            await made.request(namespace("ops"))
            await made.rest()
            for task in made.tasks:
                task.cancel()
            await asyncio.gather(*made.tasks, return_exceptions=True)
            made.tasks.clear()
            made.take(namespace("ops"))
            found = made.stored(CONFIG_MAPS, "quota", "dev")
            made.client.put({**found, "data": {"cpu": "100"}})
            leading(made)
            await made.rest()
            [left] = made.stored(CONFIG_MAPS)
            assert (left["metadata"]["namespace"], left["data"]) == ("dev", {"cpu": "4"})

    asyncio.run(play())


def test_a_policy_of_a_namespace_does_not_reach_beyond_it():
    async def play():
        policy = cluster_policy("quotas", rule(match=matching("ConfigMap", names=["source"])))
        policy["kind"] = "Policy"
        policy["metadata"]["namespace"] = "shop"
        policy["spec"]["rules"][0]["generate"]["namespace"] = "{{ request.object.data.where }}"
        async with scene(policy) as made:
            leading(made)
            await made.request(config_map("source", data={"where": "kube-system"}))
            await made.rest()
            assert made.stored(CONFIG_MAPS, "quota", "kube-system") is None
            assert "may only generate in namespace `shop`" in made.requests[0]["status"]["message"]

    asyncio.run(play())


def test_the_cleanup_policy_of_an_exception_is_made_once_four_hours_ahead_and_names_its_trigger():
    async def play():
        block = {
            "apiVersion": "kyverno.io/v2",
            "kind": "ClusterCleanupPolicy",
            "name": "polex-{{ request.namespace }}-{{ request.object.metadata.name }}-{{ random('[0-9a-z]{8}') }}",
            "synchronize": False,
            "data": {
                "metadata": {"labels": {"kyverno.io/automated": "true"}},
                "spec": {
                    "schedule": "{{ time_add('{{ time_now_utc() }}','4h') | time_to_cron(@) }}",
                    "match": matching("PolicyException", names=["{{ request.object.metadata.name }}"]),
                },
            },
        }  # fmt: skip
        one = {"name": "cleanup-polex", "match": matching("PolicyException"), "generate": block}
        exception = {
            "apiVersion": "kyverno.io/v2",
            "kind": "PolicyException",
            "metadata": {"name": "emergency", "namespace": "falcon-dev"},
            "spec": {"exceptions": [{"policyName": "p", "ruleNames": ["r"]}], "match": matching("Pod")},
        }  # fmt: skip
        from controllers.kube.kinds import CLUSTER_CLEANUP_POLICIES

        async with scene(cluster_policy("automate-cleanup", one, background=False)) as made:
            leading(made)
            await made.request(exception)
            await made.rest()
            [found] = made.stored(CLUSTER_CLEANUP_POLICIES)
            assert found["spec"]["schedule"] == "18 14 21 11 6"
            assert found["metadata"]["name"].startswith("polex-falcon-dev-emergency-")
            assert found["metadata"]["labels"]["kyverno.io/automated"] == "true"
            await made.request({**exception, "metadata": {**exception["metadata"], "labels": {"a": "b"}}}, "UPDATE")  # fmt: skip
            await made.rest()
            assert len(made.stored(CLUSTER_CLEANUP_POLICIES)) == 1

    asyncio.run(play())


def test_the_same_work_is_written_down_once():
    async def play():
        async with scene(cluster_policy("quotas", rule())) as made:
            await made.request(namespace("dev"))
            stored = made.client.stored(made.client.kind_of(namespace("dev")))[0]
            await made.admit(stored)
            assert len(made.client.stored(UPDATE_REQUESTS)) == 1
            assert made.clock.now() == NOW

    asyncio.run(play())


def changing(made: Scene) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a namespace as it is and as a request would have it."""
    before = made.client.stored(made.client.kind_of(namespace("dev")))[0]
    metadata = {**before["metadata"], "labels": {"tier": "tin"}}
    return before, {**before, "metadata": metadata}


def test_a_change_that_is_stored_only_after_its_work_was_begun_counts_all_the_same():
    async def play():
        match = matching("Namespace", selector={"matchLabels": {"tier": "gold"}})
        async with scene(cluster_policy("quotas", rule(match=match))) as made:
            leading(made)
            await made.request(namespace("dev", tier="gold"))
            await made.rest()
            before, after = changing(made)
            await made.admit(after, "UPDATE", oldObject=before)
            await made.rest(0.5)
            assert made.stored(CONFIG_MAPS, "quota", "dev")
            made.put(after)
            await made.rest(3)
            assert made.stored(CONFIG_MAPS) == []
            assert made.requests == []

    asyncio.run(play())


def test_a_change_that_is_refused_after_all_takes_nothing_away():
    async def play():
        match = matching("Namespace", selector={"matchLabels": {"tier": "gold"}})
        async with scene(cluster_policy("quotas", rule(match=match))) as made:
            leading(made)
            await made.request(namespace("dev", tier="gold"))
            await made.rest()
            before, after = changing(made)
            await made.admit(after, "UPDATE", oldObject=before)
            await made.rest(90)
            assert made.stored(CONFIG_MAPS, "quota", "dev")
            assert made.requests == []

    asyncio.run(play())


async def resigned(made: Scene) -> None:
    """Let the leader stop."""
    leading_tasks, made.tasks[1:] = made.tasks[1:], []
    for task in leading_tasks:
        task.cancel()
    await asyncio.gather(*leading_tasks, return_exceptions=True)


@pytest.mark.parametrize("stays", [False, True])
def test_what_a_rule_made_that_went_while_nobody_led_goes_unless_it_outlives_the_rule(stays):
    async def play():
        policy = cluster_policy("quotas", rule(orphanDownstreamOnPolicyDelete=stays))
        async with scene(policy) as made:
            leading(made)
            await made.request(namespace("dev"))
            await made.rest()
            foreign = config_map("kept", "dev", **{"generate.kyverno.io/policy-name": "quotas"})
            made.put(foreign)
            await resigned(made)
            made.take(policy)
            await made.rest()
            assert made.stored(CONFIG_MAPS, "quota", "dev") is not None
            leading(made)
            await made.rest()
            assert (made.stored(CONFIG_MAPS, "quota", "dev") is not None) is stays
            assert made.stored(CONFIG_MAPS, "kept", "dev") is not None

    asyncio.run(play())


def test_what_a_rule_made_that_was_taken_out_of_its_policy_while_nobody_led_goes():
    async def play():
        async with scene(cluster_policy("quotas", rule("a"), rule("b", name="other"))) as made:
            leading(made)
            await made.request(namespace("dev"))
            await made.rest()
            await resigned(made)
            made.put(cluster_policy("quotas", rule("b", name="other")))
            leading(made)
            await made.rest()
            assert made.stored(CONFIG_MAPS, "quota", "dev") is None
            assert made.stored(CONFIG_MAPS, "other", "dev") is not None

    asyncio.run(play())


def test_what_was_made_for_a_trigger_that_went_while_nobody_led_goes():
    async def play():
        async with scene(cluster_policy("quotas", rule(namespace="platform"))) as made:
            leading(made)
            await made.request(namespace("dev"))
            await made.rest()
            await resigned(made)
            made.take(namespace("dev"))
            leading(made)
            await made.rest()
            assert made.stored(CONFIG_MAPS, "quota", "platform") is None

    asyncio.run(play())


def test_what_a_policy_made_that_cannot_be_compiled_any_more_stays():
    async def play():
        policy = cluster_policy("quotas", rule())
        async with scene(policy) as made:
            leading(made)
            await made.request(namespace("dev"))
            await made.rest()
            await resigned(made)
            made.take(policy)
            made.put({**cluster_policy("quotas"), "spec": {"rules": "broken"}})
            assert "quotas" in made.context.snapshot.problems
            leading(made)
            await made.rest()
            assert made.stored(CONFIG_MAPS, "quota", "dev") is not None

    asyncio.run(play())


def variable_kind(**generate: Any) -> dict[str, Any]:
    return rule(kind="{{ request.object.metadata.labels.makes || 'ConfigMap' }}", **generate)


def test_objects_of_a_kind_that_a_variable_gives_are_kept_as_the_rule_says():
    async def play():
        async with scene(cluster_policy("quotas", variable_kind())) as made:
            leading(made)
            await made.request(namespace("dev", makes="Secret"))
            await made.rest()
            found = made.stored(SECRETS, "quota", "dev")
            assert found["data"] == {"cpu": "4"}
            made.put({**found, "data": {"cpu": "400"}})
            await made.rest()
            assert made.stored(SECRETS, "quota", "dev")["data"] == {"cpu": "4"}
            made.take(found)
            await made.rest()
            assert made.stored(SECRETS, "quota", "dev") is not None

    asyncio.run(play())


def test_objects_of_a_kind_that_a_variable_gives_go_with_rule_and_trigger():
    async def play():
        policy = cluster_policy("quotas", variable_kind(namespace="platform"))
        async with scene(policy) as made:
            leading(made)
            await made.request(namespace("dev", makes="Secret"))
            await made.rest()
            made.take(namespace("dev"))
            await made.rest()
            assert made.stored(SECRETS, "quota", "platform") is None
            await made.request(namespace("test", makes="Secret"))
            await made.rest()
            await resigned(made)
            made.take(policy)
            leading(made)
            await made.rest()
            assert made.stored(SECRETS, "quota", "platform") is None

    asyncio.run(play())


def test_objects_of_the_kind_that_a_rule_made_before_it_was_edited_stay():
    async def play():
        async with scene(cluster_policy("quotas", rule())) as made:
            leading(made)
            await made.request(namespace("dev"))
            await made.rest()
            made.put(cluster_policy("quotas", rule(kind="Secret")))
            await made.rest()
            assert made.stored(CONFIG_MAPS, "quota", "dev") is not None

    asyncio.run(play())


@pytest.mark.parametrize("leads", [True, False])
def test_copies_outlive_their_rule_and_go_with_their_policy(leads):
    async def play():
        async with scene(cluster_policy("p", copying(), rule()), secret(a="1")) as made:
            leading(made)
            await made.request(namespace("dev"))
            await made.rest()
            assert made.stored(SECRETS, "pull", "dev") is not None
            if not leads:
                await resigned(made)
            made.put(cluster_policy("p", rule()))
            if not leads:
                leading(made)
            await made.rest()
            assert made.stored(SECRETS, "pull", "dev") is not None
        async with scene(cluster_policy("p", copying(), rule()), secret(a="1")) as made:
            leading(made)
            await made.request(namespace("dev"))
            await made.rest()
            if not leads:
                await resigned(made)
            made.take(cluster_policy("p"))
            if not leads:
                leading(made)
            await made.rest()
            assert made.stored(SECRETS, "pull", "dev") is None

    asyncio.run(play())


def test_what_is_too_much_to_be_remembered_is_carried_out_all_the_same(monkeypatch):
    monkeypatch.setattr(memory, "MOST", 10)

    async def play():
        async with scene(cluster_policy("p", rule())) as made:
            leading(made)
            await made.request(namespace("dev"))
            await made.rest()
            assert made.stored(CONFIG_MAPS, "quota", "dev") is not None
            assert made.stored(CONFIG_MAPS, memory.NAME, "kyverno") is None

    asyncio.run(play())


@pytest.mark.parametrize("error", [Unreachable("no answer"), Forbidden("you may not", status=403)])
def test_what_cannot_be_deleted_holds_up_no_other_policy(error):
    async def play():
        doomed = cluster_policy("doomed", rule(namespace="platform"))
        async with scene(doomed) as made:
            leading(made)
            await made.request(namespace("dev"))
            await made.rest()
            listed = made.client.list_all

            async def refused(kind, *args, **fields):
                if "policy-name=doomed" in fields.get("label_selector", ""):
                    raise error
                return await listed(kind, *args, **fields)

            made.client.list_all = refused
            made.take(doomed)
            made.put(cluster_policy("later", rule("existing", name="made", generateExisting=True)))
            made.put(namespace("prod"))
            await made.rest()
            assert made.stored(CONFIG_MAPS, "made", "prod") is not None
            assert made.stored(CONFIG_MAPS, "quota", "platform") is not None
            made.client.list_all = listed
            await made.rest(31)
            stays = isinstance(error, Forbidden)
            assert (made.stored(CONFIG_MAPS, "quota", "platform") is not None) is stays

    asyncio.run(play())
