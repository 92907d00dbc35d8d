"""Mutate-existing rules: targets changed once, with nothing lost, for one request or for all triggers of a policy."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from controllers.kube import Forbidden, Unreachable
from controllers.kube.kinds import CONFIG_MAPS
from controllers.loops.generate.watching import PolicyWatch, SyncWatch
from controllers.loops.requests.consumer import KEPT, MOST_ATTEMPTS, Consumer
from controllers.loops.requests.work import Worker
from controllers.store.events import BLOCKED, VIOLATION, Note

from .staging import Scene, cluster_policy, config_map, matching, scene

NAME = "{{ request.object.metadata.name }}"


def adding(name: str = "count", **mutate: Any) -> dict[str, Any]:
    target = {"apiVersion": "v1", "kind": "ConfigMap", "name": "journal", "namespace": "shop"}
    patch = {"data": {"names": "{{ @ }}," + NAME}}
    block = {"targets": [target], "patchStrategicMerge": patch, **mutate}
    return {"name": name, "match": matching("Pod"), "mutate": block}


def pod(name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}}


def leading(made: Scene) -> None:
    worker = Worker(made.context, made.sink.pending)
    sync = SyncWatch(made.context, worker.generator)
    made.start(Consumer(made.context, worker).run())
    made.start(PolicyWatch(made.context, worker.generator, sync).run())


def journal(made: Scene) -> str:
    return made.stored(CONFIG_MAPS, "journal", "shop")["data"]["names"]


def test_every_request_adds_its_line_even_when_many_come_at_once():
    async def play():
        async with scene(cluster_policy("p", adding()), config_map("journal", data={"names": "start"})) as made:  # fmt: skip
            leading(made)
            for number in range(12):
                await made.request(pod(f"pod-{number:02}"))
            await made.rest(60)
            found = journal(made).split(",")
            assert found[0] == "start"
            assert sorted(found[1:]) == [f"pod-{number:02}" for number in range(12)]
            assert made.requests == []

    asyncio.run(play())


def test_a_retry_does_not_change_a_target_twice():
    async def play():
        target = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop"}
        targets = [{**target, "name": "journal"}, {**target, "name": "other"}]
        objects = [config_map(name, data={"names": "start"}) for name in ("journal", "other")]
        async with scene(cluster_policy("p", adding(targets=targets)), *objects) as made:
            leading(made)
            await made.rest()
            writes: list[str] = []
            update = made.client.update

            async def interrupted(kind: Any, obj: Any, **fields: Any) -> Any:
                writes.append(obj["metadata"]["name"])
                if len(writes) == 2:
                    from controllers.kube import Unreachable

                    raise Unreachable("gone")
                return await update(kind, obj, **fields)

            made.client.update = interrupted
            await made.request(pod("a"))
            await made.rest(10)
            assert journal(made) == "start,a"
            assert made.stored(CONFIG_MAPS, "other", "shop")["data"]["names"] == "start,a"
            assert writes == ["journal", "other", "other"]

    asyncio.run(play())


def test_a_target_that_cannot_be_judged_keeps_no_other_from_being_changed():
    async def play():
        key = "{{ target.metadata.annotations.wanted }}"
        conditions = {"all": [{"key": key, "operator": "Equals", "value": "yes"}]}
        every = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "*"}
        targets = [{**every, "preconditions": conditions}]
        journals = [config_map(name, data={"names": "start"}) for name in ("first", "journal", "last")]  # fmt: skip
        journals[1]["metadata"]["annotations"] = {"wanted": "yes"}
        async with scene(cluster_policy("p", adding(targets=targets)), *journals) as made:
            leading(made)
            await made.request(pod("a"))
            await made.rest()
            assert journal(made) == "start,a"
            assert made.stored(CONFIG_MAPS, "last", "shop")["data"]["names"] == "start"
            (request,) = made.requests
            assert "annotations" in request["status"]["message"]

    asyncio.run(play())


def test_the_object_of_the_request_counts_not_what_was_made_of_it_since():
    async def play():
        patch = {"data": {"names": "{{ request.object.metadata.labels.code }}"}}
        async with scene(cluster_policy("p", adding(patchStrategicMerge=patch)), config_map("journal", data={"names": ""})) as made:  # fmt: skip
            sent = pod("a")
            sent["metadata"]["labels"] = {"code": "first"}
            await made.request(sent)
            made.put({**pod("a"), "metadata": {**pod("a")["metadata"], "labels": {"code": "second"}}})  # fmt: skip
            leading(made)
            await made.rest()
            assert journal(made) == "first"

    asyncio.run(play())


def test_a_target_about_which_the_rule_fails_does_not_keep_the_others_from_being_changed():
    async def play():
        target = {
            "apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "*",
            "preconditions": [{"key": "{{ target.data.kind }}", "operator": "Equals", "value": "journal"}],
        }  # fmt: skip
        objects = [config_map("a", data={"names": ""}), config_map("journal", data={"names": "start", "kind": "journal"})]  # fmt: skip
        async with scene(cluster_policy("p", adding(targets=[target])), *objects) as made:
            leading(made)
            await made.request(pod("one"))
            await made.rest(30)
            assert journal(made) == "start,one"
            [request] = made.requests
            assert request["status"]["state"] == "Failed"

    asyncio.run(play())


@pytest.mark.parametrize(("operations", "expected"), [(None, "start"), (["DELETE"], "start,a")])
def test_a_deletion_sets_off_only_rules_that_name_it(operations, expected):
    async def play():
        one = adding()
        one["mutate"]["patchStrategicMerge"] = {"data": {"names": "{{ @ }},{{ request.name }}"}}
        if operations:
            one["match"] = matching("Pod", operations=operations)
        async with scene(cluster_policy("p", one), config_map("journal", data={"names": "start"}), pod("a")) as made:  # fmt: skip
            leading(made)
            await made.request(pod("a"), "DELETE")
            await made.rest()
            assert journal(made) == expected

    asyncio.run(play())


@pytest.mark.parametrize(("wish", "expected"), [(True, "x"), (False, "")])
def test_a_written_policy_acts_for_what_is_there_only_when_it_says_so(wish, expected):
    async def play():
        label = adding(patchStrategicMerge={"data": {"names": "x"}}, mutateExistingOnPolicyUpdate=wish)  # fmt: skip
        async with scene(pod("a"), pod("b"), config_map("journal", data={"names": ""})) as made:
            leading(made)
            await made.rest()
            made.put(cluster_policy("p", label))
            await made.rest()
            assert journal(made) == expected
            assert made.requests == []

    asyncio.run(play())


def test_events_about_success_are_written_where_they_are_asked_for():
    async def play():
        async with scene(cluster_policy("p", adding()), config_map("journal", data={"names": ""})) as made:  # fmt: skip
            made.cache.put(CONFIG_MAPS, {"kind": "ConfigMap", "metadata": {"name": "kyverno"}, "data": {"generateSuccessEvents": "true"}})  # fmt: skip
            leading(made)
            await made.request(pod("a"))
            await made.rest()
            said = {(one["involvedObject"]["kind"], one["message"]) for one in made.events}
            assert ("ClusterPolicy", "resource mutated") in said

    asyncio.run(play())


def seeds() -> Path:
    import os

    root = Path(os.environ.get("KPOLICY_SHARED", Path(__file__).parents[4] / "shared"))
    return root / "seeds" / "otp"


@pytest.mark.skipif(
    not seeds().is_dir(),
    reason="the published scenarios are not here; set KPOLICY_SHARED to the folder that holds seeds/",
)
def test_the_journal_of_one_time_codes_is_kept_as_published():
    async def play():
        journal_map = next(yaml.safe_load_all((seeds() / "1-journal.yaml").read_text()))
        blocking = yaml.safe_load((seeds() / "2-policy-disallow-host-namespaces-otp.yaml").read_text())  # fmt: skip
        keeping = yaml.safe_load((seeds() / "3-policy-manage-otp-list.yaml").read_text())
        deployment = yaml.safe_load((seeds() / "5-bad-deployment-with-code.yaml").read_text())
        deployment["metadata"]["namespace"] = "default"
        documents = list(yaml.safe_load_all((seeds() / "1-journal.yaml").read_text()))
        journal_map = next(one for one in documents if one["kind"] == "ConfigMap")
        async with scene(blocking, keeping, journal_map) as made:
            leading(made)

            def codes() -> list[str]:
                found = made.stored(CONFIG_MAPS, "otp", "platform")["data"]["codes"]
                return found.strip().splitlines()

            starters = codes()
            about = {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "name": "disallow-host-namespaces-otp"}  # fmt: skip
            text = 'Deployment default/busybox: [host-namespaces-otp] fail (blocked); … a one-time pass code "4y4jwr3j" assigned'
            from controllers.loops.announcing import announce

            announce(made.context, [Note(about, VIOLATION, BLOCKED, text, "kyverno-admission")])
            await made.rest()
            [event] = made.events
            await made.admit(event)
            await made.rest()
            assert codes() == [*starters, "- 4y4jwr3j"]
            deployment["metadata"]["labels"]["otp"] = "4y4jwr3j"
            await made.request(deployment, user="chip")
            await made.rest()
            assert codes() == [*starters, "- 4y4jwr3j-2026-11-21T10:18:00Z-chip"]

    asyncio.run(play())


async def resigned(made: Scene) -> None:
    """Let the leader stop."""
    leading_tasks, made.tasks[1:] = made.tasks[1:], []
    for task in leading_tasks:
        task.cancel()
    await asyncio.gather(*leading_tasks, return_exceptions=True)


def refusing(made: Scene, error: Exception, *names: str) -> list[str]:
    """Let updates of objects of some names fail; return the names of all that were tried, as they are."""
    tried: list[str] = []
    update = made.client.update

    async def refuse(kind: Any, obj: Any, **fields: Any) -> Any:
        name = obj["metadata"]["name"]
        tried.append(name)
        if name in names:
            raise error
        return await update(kind, obj, **fields)

    made.client.update = refuse
    return tried


async def waited(made: Scene, rounds: int = 40) -> None:
    for _ in range(rounds):
        await made.rest(901)


def test_work_that_can_never_be_done_is_given_up_said_and_kept_for_people():
    async def play():
        async with scene(cluster_policy("p", adding()), config_map("journal", data={"names": "start"})) as made:  # fmt: skip
            leading(made)
            tried = refusing(made, Forbidden("you may not", status=403), "journal")
            await made.request(pod("a"))
            await waited(made)
            assert len(tried) == MOST_ATTEMPTS
            [request] = made.requests
            assert request["status"] == {
                "state": "Failed",
                "retryCount": MOST_ATTEMPTS,
                "message": "given up after 15 attempts: you may not; set status.state to Pending to have it tried again",
            }
            said = [one["message"] for one in made.events if one["involvedObject"]["kind"] == "Pod"]
            assert said[0] == "policy p/count error: you may not"
            assert said[-1].startswith(
                "policy p/count error: given up after 15 attempts: you may not"
            )
            assert len(said) == 2
            await resigned(made)
            leading(made)
            await waited(made, 2)
            assert len(tried) == MOST_ATTEMPTS

    asyncio.run(play())


def test_work_that_was_given_up_is_forgotten_when_it_is_old():
    async def play():
        async with scene(cluster_policy("p", adding()), config_map("journal", data={"names": "start"})) as made:  # fmt: skip
            leading(made)
            refusing(made, Forbidden("you may not", status=403), "journal")
            await made.request(pod("a"))
            await waited(made)
            await made.rest(KEPT - 50 * 901)
            assert len(made.requests) == 1
            await made.rest(20 * 901)
            assert made.requests == []
            assert journal(made) == "start"

    asyncio.run(play())


def test_work_that_was_given_up_is_tried_again_when_somebody_says_so():
    async def play():
        async with scene(cluster_policy("p", adding()), config_map("journal", data={"names": "start"})) as made:  # fmt: skip
            leading(made)
            update = made.client.update
            refusing(made, Forbidden("you may not", status=403), "journal")
            await made.request(pod("a"))
            await waited(made)
            made.client.update = update
            [request] = made.requests
            made.put({**request, "status": {**request["status"], "state": "Pending"}})
            await made.rest()
            assert journal(made) == "start,a"
            assert made.requests == []

    asyncio.run(play())


def test_work_that_fails_because_nobody_answers_is_tried_for_as_long_as_that_lasts():
    async def play():
        async with scene(cluster_policy("p", adding()), config_map("journal", data={"names": "start"})) as made:  # fmt: skip
            leading(made)
            update = made.client.update
            tried = refusing(made, Unreachable("no answer"), "journal")
            await made.request(pod("a"))
            await waited(made)
            assert len(tried) > 2 * MOST_ATTEMPTS
            made.client.update = update
            await made.rest(901)
            assert journal(made) == "start,a"

    asyncio.run(play())


def test_a_new_leader_does_not_change_what_failing_work_has_changed_already():
    async def play():
        target = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop"}
        targets = [{**target, "name": "journal"}, {**target, "name": "other"}]
        objects = [config_map(name, data={"names": "start"}) for name in ("journal", "other")]
        async with scene(cluster_policy("p", adding(targets=targets)), *objects) as made:
            leading(made)
            update = made.client.update
            refusing(made, Forbidden("you may not", status=403), "other")
            await made.request(pod("a"))
            await made.rest()
            [request] = made.requests
            uid = made.stored(CONFIG_MAPS, "journal", "shop")["metadata"]["uid"]
            assert list(request["status"]["changedTargets"].values()) == [[uid]]
            await resigned(made)
            made.client.update = update
            leading(made)
            await made.rest(10)
            assert journal(made) == "start,a"
            assert made.stored(CONFIG_MAPS, "other", "shop")["data"]["names"] == "start,a"
            assert made.requests == []

    asyncio.run(play())


def test_every_trigger_that_is_there_changes_the_same_target_when_the_policy_is_written():
    async def play():
        async with scene(pod("a"), pod("b"), config_map("journal", data={"names": "start"})) as made:  # fmt: skip
            leading(made)
            await made.rest()
            made.put(cluster_policy("p", adding(mutateExistingOnPolicyUpdate=True)))
            await made.rest(10)
            assert sorted(journal(made).split(",")) == ["a", "b", "start"]

    asyncio.run(play())
