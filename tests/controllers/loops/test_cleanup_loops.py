"""What is deleted because its time has come, and what is not: cleanup policies, TTL labels, exceptions."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from controllers.kube import Forbidden, Unreachable
from controllers.kube.kinds import (
    CLEANUP_POLICIES,
    CLUSTER_CLEANUP_POLICIES,
    CONFIG_MAPS,
    PODS,
    POLICY_EXCEPTIONS,
)
from controllers.loops.cleanup.exceptions import ExceptionSweep
from controllers.loops.cleanup.policies import CleanupLoop
from controllers.loops.cleanup.ttl import TtlLoop

from .staging import NOW, Scene, config_map, matching, namespace, scene

HOUR = 3600


def cleaning(name: str = "tidy", *, ns: str = "", annotations: Any = None, labels: Any = None, **spec: Any) -> dict[str, Any]:  # fmt: skip
    metadata: dict[str, Any] = {"name": name}
    if ns:
        metadata["namespace"] = ns
    if annotations:
        metadata["annotations"] = annotations
    if labels:
        metadata["labels"] = labels
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": "CleanupPolicy" if ns else "ClusterCleanupPolicy",
        "metadata": metadata,
        "spec": {"schedule": "0 * * * *", "match": matching("ConfigMap"), **spec},
    }


def exception(name: str = "emergency", ns: str = "shop", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kyverno.io/v2", "kind": "PolicyException",
        "metadata": {"name": name, "namespace": ns, **metadata},
        "spec": {"exceptions": [{"policyName": "p", "ruleNames": ["r"]}], "match": matching("Pod")},
    }  # fmt: skip


def names(made: Scene) -> list[str]:
    return [one["metadata"]["name"] for one in made.stored(CONFIG_MAPS)]


def run(play: Any, *objects: Any, loop: Any = CleanupLoop) -> None:
    async def within() -> None:
        async with scene(*objects) as made:
            made.start(loop(made.context).run())
            await made.rest()
            await play(made)

    asyncio.run(within())


def test_a_policy_deletes_what_it_matches_when_it_is_due_and_not_before():
    async def play(made: Scene) -> None:
        await made.rest(41 * 60)
        assert names(made) == ["a"]
        await made.rest(2 * 60)
        assert names(made) == []
        [event] = made.events
        assert event["message"] == "successfully cleaned up the target resource ConfigMap/shop/a"
        assert event["involvedObject"]["kind"] == "ClusterCleanupPolicy"
        assert (event["reason"], event["action"]) == ("PolicyApplied", "Resource Cleaned Up")
        assert event["reportingComponent"] == "kyverno-cleanup"
        [policy] = made.stored(CLUSTER_CLEANUP_POLICIES)
        assert policy["status"]["lastExecutionTime"].startswith("2026-11-21T11:00:")

    run(play, cleaning(), config_map("a"))


def test_a_policy_runs_again_at_its_next_time():
    async def play(made: Scene) -> None:
        await made.rest(HOUR)
        made.put(config_map("b"))
        await made.rest(600)
        assert names(made) == ["b"]
        await made.rest(HOUR)
        assert names(made) == []

    run(play, cleaning(), config_map("a"))


def test_a_policy_of_a_namespace_deletes_there_only():
    async def play(made: Scene) -> None:
        await made.rest(HOUR)
        assert names(made) == ["b"]
        assert made.stored(CLEANUP_POLICIES)[0]["status"]["lastExecutionTime"]

    run(play, cleaning(ns="shop"), config_map("a"), config_map("b", "other"))


def test_named_objects_are_looked_for_by_name_so_that_rights_on_these_are_enough():
    async def play(made: Scene) -> None:
        asked: list[str] = []
        listed = made.client.list_all

        async def list_all(kind: Any, *place: Any, **selected: Any) -> Any:
            if kind == CONFIG_MAPS:
                asked.append(selected["field_selector"])
            return await listed(kind, *place, **selected)

        made.client.list_all = list_all
        await made.rest(HOUR)
        assert names(made) == ["c"]
        assert asked == ["metadata.name=a", "metadata.name=b"]

    named = {"any": [{"resources": {"kinds": ["ConfigMap"], "names": [one]}} for one in "ab"]}
    run(play, cleaning(match=named), *map(config_map, "abc"))


def test_conditions_and_context_decide_about_each_target():
    async def play(made: Scene) -> None:
        await made.rest(HOUR)
        assert names(made) == ["limit", "small"]

    context = [{"name": "wanted", "apiCall": {"urlPath": "/"}}]
    context = [{"name": "wanted", "variable": {"value": "big"}}]
    conditions = {"all": [{"key": "{{ target.data.size }}", "operator": "Equals", "value": "{{ wanted }}"}]}  # fmt: skip
    run(
        play,
        cleaning(conditions=conditions, context=context),
        config_map("big", data={"size": "big"}),
        config_map("small", data={"size": "small"}),
        config_map("limit"),
    )


def test_excluded_filtered_and_selected_objects_are_told_apart():
    async def play(made: Scene) -> None:
        await made.rest(HOUR)
        assert names(made) == ["filtered", "kept", "dev"]

    match = matching("ConfigMap", namespaceSelector={"matchLabels": {"env": "prod"}})
    run(
        play,
        cleaning(match=match, exclude=matching("ConfigMap", names=["kept"])),
        namespace("shop", env="prod"),
        namespace("test", env="dev"),
        namespace("kube-system", env="prod"),
        config_map("a"),
        config_map("kept"),
        config_map("dev", "test"),
        config_map("filtered", "kube-system"),
    )


def test_a_run_that_fails_is_tried_again_and_counts_only_when_done():
    async def play(made: Scene) -> None:
        made.client.fail("delete", Unreachable("gone"))
        await made.rest(42 * 60)
        assert names(made) == ["a"]
        assert "status" not in made.stored(CLUSTER_CLEANUP_POLICIES)[0]
        await made.rest(60)
        assert names(made) == []

    run(play, cleaning(), config_map("a"))


def test_missing_rights_are_said_and_do_not_stop_other_objects():
    async def play(made: Scene) -> None:
        made.client.fail("delete", Forbidden("no"))
        await made.rest(HOUR)
        assert names(made) == ["a"]
        said = [one["message"] for one in made.events if one["reason"] == "PolicyError"]
        assert said[0] == "failed to clean up the target resource ConfigMap/shop/a: no"

    run(play, cleaning(), config_map("a"), config_map("b"))


def test_a_late_leader_runs_what_was_due_once():
    async def play() -> None:
        async with scene(cleaning(), config_map("a")) as made:
            await made.rest(5 * HOUR)
            loop = CleanupLoop(made.context)
            made.start(loop.run())
            await made.rest()
            assert names(made) == []
            made.put(config_map("b"))
            await made.rest(60)
            assert names(made) == ["b"]

    asyncio.run(play())


@pytest.mark.parametrize(
    ("annotations", "at_one", "at_three"),
    [
        ({"kpolicy.io/cleanup-pause": "ben; freeze"}, ["a"], ["a"]),
        ({"kpolicy.io/cleanup-after": "2026-11-21T12:30:00Z ben; freeze"}, ["a"], []),
        ({"kpolicy.io/cleanup-skip": "2026-11-21T11:00:00Z ben"}, ["a"], []),
        ({"kpolicy.io/cleanup-after": "tomorrow"}, ["a"], ["a"]),
    ],
)
def test_people_can_pause_postpone_and_skip_a_policy(annotations, at_one, at_three):
    async def play(made: Scene) -> None:
        await made.rest(HOUR)
        assert names(made) == at_one
        await made.rest(2 * HOUR)
        assert names(made) == at_three

    run(play, cleaning(annotations=annotations), config_map("a"))


@pytest.mark.parametrize(
    ("annotations", "stays"),
    [
        ({"kpolicy.io/cleanup-skip": "ben"}, True),
        ({"kpolicy.io/cleanup-after": "2026-11-21T13:00:00Z"}, True),
        ({"kpolicy.io/cleanup-after": "2026-11-21T10:30:00Z"}, False),
        ({"other": "x"}, False),
    ],
)
def test_people_can_keep_an_object(annotations, stays):
    async def play(made: Scene) -> None:
        await made.rest(HOUR)
        assert bool(names(made)) is stays

    kept = config_map("a")
    kept["metadata"]["annotations"] = annotations
    run(play, cleaning(), kept)


def generated_for(uid: str) -> dict[str, Any]:
    labels = {"generate.kyverno.io/trigger-uid": uid, "generate.kyverno.io/trigger-kind": "PolicyException"}  # fmt: skip
    match = matching("PolicyException", namespaces=["shop"], names=["emergency"])
    return cleaning("polex-shop-emergency-ab12cd34", labels=labels, match=match, schedule="18 14 21 11 6")  # fmt: skip


def test_a_policy_generated_for_an_exception_deletes_it_at_its_time():
    async def play(made: Scene) -> None:
        [stored] = made.stored(POLICY_EXCEPTIONS)
        made.put(generated_for(stored["metadata"]["uid"]))
        await made.rest(4 * HOUR - 60)
        assert made.stored(POLICY_EXCEPTIONS)
        await made.rest(120)
        assert made.stored(POLICY_EXCEPTIONS) == []

    run(play, exception())


def test_a_policy_generated_for_an_exception_leaves_a_later_namesake_alone_for_ever():
    async def play(made: Scene) -> None:
        [stored] = made.stored(POLICY_EXCEPTIONS)
        made.put(generated_for(stored["metadata"]["uid"]))
        await made.rest(4 * HOUR + 60)
        assert made.stored(POLICY_EXCEPTIONS) == []
        made.put(exception())
        await made.rest(timedelta(days=8).total_seconds())
        assert len(made.stored(POLICY_EXCEPTIONS)) == 1

    run(play, exception())


def test_a_namesake_made_before_the_time_is_left_alone_too():
    async def play(made: Scene) -> None:
        made.put(generated_for("uid-of-another"))
        await made.rest(5 * HOUR)
        assert len(made.stored(POLICY_EXCEPTIONS)) == 1

    run(play, exception())


def labelled(value: str, name: str = "a", **annotations: str) -> dict[str, Any]:
    made = config_map(name, **{"cleanup.kyverno.io/ttl": value})
    made["metadata"]["annotations"] = annotations
    return made


@pytest.mark.parametrize(("value", "lasts"), [("1h", HOUR), ("2026-11-21T111800Z", HOUR)])
def test_a_labelled_object_lives_as_long_as_its_label_says(value, lasts):
    async def play(made: Scene) -> None:
        await made.rest(lasts - 40)
        assert names(made) == ["a"]
        await made.rest(80)
        assert names(made) == []
        [event] = made.events
        assert event["message"] == "successfully cleaned up the target resource ConfigMap/shop/a"
        labels = ("", "v1", "configmaps", "shop")
        assert made.context.metrics.value("kyverno_ttl_controller_deletedobjects", labels) == 1

    run(play, labelled(value), loop=TtlLoop)


def test_a_label_that_says_nothing_deletes_nothing():
    async def play(made: Scene) -> None:
        await made.rest(48 * HOUR)
        assert names(made) == ["a"]

    run(play, labelled("soon"), loop=TtlLoop)


def test_a_shortened_label_counts_at_once():
    async def play(made: Scene) -> None:
        await made.rest(60)
        made.put(labelled("30s"))
        await made.rest()
        assert names(made) == []

    run(play, labelled("10h"), loop=TtlLoop)


def test_the_annotation_says_what_becomes_of_dependents():
    async def play(made: Scene) -> None:
        await made.rest(60)
        [call] = [one for one in made.client.calls if one.verb == "delete"]
        assert call.body["propagation"] == "Foreground"
        assert call.body["uid"]

    kept = {"cleanup.kyverno.io/propagation-policy": "Foreground"}
    run(play, labelled("10s", **kept), loop=TtlLoop)


def test_an_object_on_which_people_hold_their_hand_stays_until_they_let_go():
    async def play(made: Scene) -> None:
        await made.rest(HOUR)
        assert names(made) == ["a"]
        made.put(labelled("10s"))
        await made.rest(60)
        assert names(made) == []

    run(play, labelled("10s", **{"kpolicy.io/cleanup-pause": "ben"}), loop=TtlLoop)


def test_an_object_that_we_may_not_delete_gets_one_event_and_goes_when_we_may():
    async def play(made: Scene) -> None:
        made.client.fail("delete", Forbidden("no"), times=3)
        await made.rest(20)
        await made.rest(300)
        said = [one for one in made.events if one["reason"] == "PolicyError"]
        assert [one["message"] for one in said] == [
            "failed to clean up the target resource ConfigMap/shop/a: no"
        ]
        assert names(made) == []

    run(play, labelled("10s"), loop=TtlLoop)


def test_kinds_that_we_may_not_watch_are_shown_and_watched_once_we_may():
    async def within() -> None:
        refused = {"configmaps"}
        async with scene(labelled("10s")) as made:
            made.client.reviews["SelfSubjectAccessReview"] = lambda spec: {
                "allowed": spec["resourceAttributes"]["resource"] not in refused
            }
            loop = TtlLoop(made.context)
            made.start(loop.run())
            await made.rest(60)
            assert names(made) == ["a"]
            missing = {
                verb for verb, _, _, plural in loop.rights.refused() if plural == "configmaps"
            }
            assert missing == {"list", "watch", "delete"}
            assert PODS in dict(loop.watched())
            refused.clear()
            await made.rest(700)
            assert names(made) == []
            assert list(loop.rights.refused()) == []

    asyncio.run(within())


def test_an_exception_goes_at_its_end_and_not_before():
    async def play(made: Scene) -> None:
        await made.rest(HOUR - 31)
        assert len(made.stored(POLICY_EXCEPTIONS)) == 2
        await made.rest(62)
        assert [one["metadata"]["name"] for one in made.stored(POLICY_EXCEPTIONS)] == ["for-ever"]
        [event] = made.events
        assert event["message"].endswith("PolicyException/shop/emergency")

    ends = (NOW + timedelta(hours=1)).isoformat()
    limited = exception(annotations={"kpolicy.io/expires-at": ends})
    run(play, limited, exception("for-ever"), loop=ExceptionSweep)


def test_an_exception_whose_end_cannot_be_read_is_left_for_people_to_see():
    async def play(made: Scene) -> None:
        await made.rest(HOUR)
        assert len(made.stored(POLICY_EXCEPTIONS)) == 1

    run(play, exception(annotations={"kpolicy.io/expires-at": "soon"}), loop=ExceptionSweep)


def test_a_new_exception_of_the_same_name_is_not_deleted_for_the_old_one():
    async def play(made: Scene) -> None:
        made.client.take(POLICY_EXCEPTIONS, "emergency", "shop")
        made.client.put(exception())
        await made.rest(HOUR)
        assert len(made.stored(POLICY_EXCEPTIONS)) == 1

    ends = (NOW + timedelta(minutes=1)).isoformat()
    run(play, exception(annotations={"kpolicy.io/expires-at": ends}), loop=ExceptionSweep)


def test_only_rights_that_were_given_for_clean_ups_count_for_a_label():
    async def play() -> None:
        async with scene(labelled("10s")) as made:
            asked: list[Any] = []
            given: list[str] = []

            def decide(spec: Any) -> dict[str, Any]:
                asked.append(spec["resourceAttributes"]["verb"])
                may = spec["resourceAttributes"]["resource"] in given
                return {"allowed": may or spec["resourceAttributes"]["verb"] != "delete"}

            made.client.reviews["SelfSubjectAccessReview"] = decide
            made.start(TtlLoop(made.context).run())
            await made.rest(60)
            await made.rest(300)
            assert names(made) == ["a"]
            assert set(asked) == {"list", "watch", "delete"}
            [said] = [one["message"] for one in made.events]
            assert said.startswith(
                "failed to clean up the target resource ConfigMap/shop/a: no right"
            )
            assert [call for call in made.client.calls if call.verb == "delete"] == []
            given.append("configmaps")
            await made.rest(1000)
            assert names(made) == []

    asyncio.run(play())
