"""Granted exceptions at admission: a limited grant lets so many requests through and no more, on however many replicas."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import orjson
import pytest

from controllers.kube import Unreachable
from controllers.kube.kinds import CODE_USES, GRANTS, POLICY_EXCEPTIONS
from controllers.store.uses import ABSENT
from controllers.webhook.caller import Caller, current_caller
from controllers.webhook.grant_usage import FLUSH_SECONDS, GrantUsage
from controllers.webhook.reviewing import Reviewer
from engine.grants import exception_of, parse_grant

from .staging import NOW, Stage, body, hesitating, pod, policy, staged
from .test_cel_policies import vpol

KEY = b"k" * 32
END = NOW + timedelta(hours=4)


def grant(name: str = "web", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kpolicy.io/v1alpha1", "kind": "Grant",
        "metadata": {"name": name, "namespace": "shop", "uid": f"uid-of-{name}"},
        "spec": {"requester": "ada", "policy": "team", "rules": ["needs-team"], "target": {"kind": "Pod", "name": "web*"},
                 "duration": "4h", "reason": "rebuild", **spec},
    }  # fmt: skip


def exception(obj: dict[str, Any], **changes: Any) -> dict[str, Any]:
    made = exception_of(parse_grant(obj), END)
    metadata = {**made["metadata"], "creationTimestamp": "2026-11-21T00:00:00Z", **changes}
    return {**made, "metadata": metadata}


@dataclass
class Gate:
    """Two replicas on one cluster."""

    stage: Stage
    replicas: list[Reviewer] = field(default_factory=list)
    grant_usage: list[GrantUsage] = field(default_factory=list)
    asked: int = 0
    route: str = "fail"

    async def ask(self, obj: dict[str, Any] | None = None, *, replica: int = 0, uid: str = "", **fields: Any) -> Any:  # fmt: skip
        made = orjson.loads(orjson.dumps(obj or pod()))
        self.asked += 1
        made["metadata"]["uid"] = uid or f"object-{self.asked}"
        sent = body(made, **fields)
        answer = await self.replicas[replica].review("validate", self.route, sent, 5.0)
        return orjson.loads(answer)["response"]

    async def counted(self) -> dict[str, Any]:
        """Return the status of the grant once everything that was counted is written."""
        await asyncio.gather(*(one.flush() for one in self.grant_usage))
        [found] = self.stage.client.stored(GRANTS)
        return found.get("status") or {}

    def uses(self) -> list[dict[str, Any]]:
        return self.stage.client.stored(CODE_USES)


@asynccontextmanager
async def gate(*objects: dict[str, Any]):
    async with staged(policy(), *(one for one in objects if one["kind"] != "Grant")) as stage:
        for obj in objects:
            stage.client.put(obj)
        hesitating(stage.client)
        made = Gate(stage)
        for _ in range(2):
            grant_usage = GrantUsage(stage.cache, stage.client, stage.resolver, stage.client.clock, "kyverno", KEY)  # fmt: skip
            made.grant_usage.append(grant_usage)
            made.replicas.append(
                Reviewer(
                    stage.cache, stage.client, stage.resolver, stage.client.clock, stage.metrics, stage.background_queue,
                    key=KEY, sink=stage.sink, grant_usage=grant_usage,
                )
            )  # fmt: skip
        token = current_caller.set(Caller.CERTIFICATE)
        try:
            yield made
        finally:
            current_caller.reset(token)


def run(play: Any, *objects: dict[str, Any]) -> None:
    async def within() -> None:
        async with gate(*objects) as made:
            await play(made)

    asyncio.run(asyncio.wait_for(within(), 30))


def with_grant(play: Any, **spec: Any) -> None:
    obj = grant(**spec)
    run(play, obj, exception(obj))


def with_cel_grant(play: Any, *objects: dict[str, Any], **spec: Any) -> None:
    """Play where a policy written in CEL refuses, and the grant is from that one."""

    async def at_its_route(made: Gate) -> None:
        made.route = "fail/vpol"
        await play(made)

    obj = grant(policy="vpol:team", rules=[], **spec)
    run(at_its_route, obj, exception(obj), vpol(), *objects)


@pytest.mark.parametrize("uses", [1, 3])
def test_a_grant_from_a_cel_policy_lets_as_many_requests_pass_as_it_has_uses(uses: int):
    async def play(made: Gate) -> None:
        answers = await asyncio.gather(*(made.ask(replica=n % 2) for n in range(16)))
        passed = [one for one in answers if one["allowed"]]
        told = sorted(one["warnings"][0] for one in passed)
        assert told == [f"grant shop/web was used: {n} of {uses}" for n in range(1, uses + 1)]
        refused = next(one for one in answers if not one["allowed"])
        assert "Policy team failed: a team is needed" in refused["status"]["message"]
        bindings = [one["spec"]["binding"] for one in made.uses()]
        assert bindings == [{"policy": "vpol:team", "rules": []}] * uses

    with_cel_grant(play, uses=uses)


def test_a_grant_from_a_cel_policy_is_not_used_by_what_the_policy_lets_pass():
    async def play(made: Gate) -> None:
        assert (await made.ask(pod(labels={"team": "x"})))["allowed"]
        assert made.uses() == []
        assert (await made.ask())["allowed"]
        assert len(made.uses()) == 1

    with_cel_grant(play, uses=1)


def test_uses_of_an_unlimited_grant_from_a_cel_policy_are_counted():
    async def play(made: Gate) -> None:
        for _ in range(3):
            assert (await made.ask())["allowed"]
        assert (await made.ask(pod("other")))["allowed"] is False
        assert (await made.counted())["uses"] == 3

    with_cel_grant(play)


def test_a_plain_exception_from_a_cel_policy_of_the_same_name_is_used_first():
    plain = {
        "apiVersion": "policies.kyverno.io/v1", "kind": "PolicyException", "metadata": {"name": "grant-web", "namespace": "ops"},
        "spec": {"policyRefs": [{"name": "team", "kind": "ValidatingPolicy"}]},
    }  # fmt: skip

    async def play(made: Gate) -> None:
        assert (await made.ask())["allowed"]
        assert made.uses() == []

    with_cel_grant(play, plain, uses=1)


def test_a_grant_from_a_classic_policy_is_none_from_the_cel_policy_of_its_name():
    async def play(made: Gate) -> None:
        assert (await made.ask())["allowed"]
        made.route = "fail/vpol"
        assert not (await made.ask())["allowed"]

    obj = grant()
    run(play, obj, exception(obj), vpol())


@pytest.mark.parametrize("uses", [1, 3])
def test_of_many_requests_at_the_same_time_as_many_pass_as_the_grant_has_uses(uses: int):
    async def play(made: Gate) -> None:
        answers = await asyncio.gather(*(made.ask(replica=n % 2) for n in range(64)))
        passed = [one for one in answers if one["allowed"]]
        assert len(passed) == uses
        told = sorted(one["warnings"][0] for one in passed)
        assert told == [f"grant shop/web was used: {n} of {uses}" for n in range(1, uses + 1)]
        assert {one["auditAnnotations"]["grant-uses"] for one in passed} == {"shop/web"}
        refused = next(one for one in answers if not one["allowed"])
        assert "a team is needed" in refused["status"]["message"]
        assert len(made.uses()) == uses
        assert {one["spec"]["grant"] for one in made.uses()} == {"shop/web"}

    with_grant(play, uses=uses)


def test_the_same_request_sent_again_passes_by_its_own_use():
    async def play(made: Gate) -> None:
        answers = [await made.ask(uid="same", replica=n % 2) for n in range(4)]
        answers += await asyncio.gather(*(made.ask(uid="same", replica=n % 2) for n in range(8)))
        assert all(one["allowed"] for one in answers)
        assert len(made.uses()) == 1

    with_grant(play, uses=1)


def test_an_update_run_again_passes_for_forty_seconds_and_not_after():
    async def play(made: Gate) -> None:
        fields = {"operation": "UPDATE", "oldObject": pod(labels={"team": "x"}), "uid": "same"}
        for seconds, allowed in ((0, True), (39, True), (2, False)):
            await made.stage.client.clock.advance(seconds)
            assert (await made.ask(**fields))["allowed"] is allowed, seconds

    with_grant(play, uses=1)


def test_another_change_of_the_same_object_is_another_use():
    async def play(made: Gate) -> None:
        other = pod()
        other["spec"]["containers"][0]["image"] = "miner"
        fields = {"operation": "UPDATE", "oldObject": pod(labels={"team": "x"}), "uid": "same"}
        assert (await made.ask(**fields))["allowed"]
        assert not (await made.ask(other, **fields))["allowed"]

    with_grant(play, uses=1)


@pytest.mark.parametrize("uses", [0, 1])
def test_what_needs_no_exception_uses_nothing(uses: int):
    async def play(made: Gate) -> None:
        for _ in range(3):
            assert (await made.ask(pod(labels={"team": "blue"})))["allowed"]
        assert (made.uses(), await made.counted()) == ([], {})
        assert (await made.ask())["allowed"]

    with_grant(play, uses=uses)


@pytest.mark.parametrize("uses", [0, 1])
def test_a_dry_run_uses_nothing_and_is_told_the_truth(uses: int):
    async def play(made: Gate) -> None:
        for _ in range(3):
            assert (await made.ask(dryRun=True))["allowed"]
        assert (made.uses(), await made.counted()) == ([], {})
        assert (await made.ask())["allowed"]
        assert (await made.ask(dryRun=True))["allowed"] is (uses == 0)

    with_grant(play, uses=uses)


@pytest.mark.parametrize("verb", ["list", "create"])
def test_when_a_use_cannot_be_taken_the_request_is_refused(verb: str):
    async def play(made: Gate) -> None:
        made.stage.client.fail(verb, Unreachable("gone"), resource="codeuses")
        answer = await made.ask(uid="same")
        assert (answer["allowed"], made.uses()) == (False, [])
        assert "a team is needed" in answer["status"]["message"]
        assert (await made.ask(uid="same"))["allowed"]

    with_grant(play, uses=1)


def test_a_use_whose_writing_nobody_confirmed_is_found_by_the_next_attempt():
    async def play(made: Gate) -> None:
        real = made.stage.client.create

        async def create(*given: Any, **named: Any) -> Any:
            await real(*given, **named)
            raise Unreachable("connection lost")

        made.stage.client.create = create
        assert not (await made.ask(uid="same"))["allowed"]
        made.stage.client.create = real
        assert (await made.ask(uid="same", replica=1))["allowed"]
        assert (len(made.uses()), (await made.ask())["allowed"]) == (1, False)

    with_grant(play, uses=1)


def test_a_request_that_something_else_refuses_uses_nothing():
    other = policy("other", rules=[{
        "name": "no-web", "match": {"any": [{"resources": {"kinds": ["Pod"], "names": ["web"]}}]},
        "validate": {"message": "no web", "deny": {}},
    }])  # fmt: skip

    async def play(made: Gate) -> None:
        answer = await made.ask()
        assert (answer["allowed"], made.uses()) == (False, [])
        assert (await made.ask(pod("web-2")))["allowed"]

    obj = grant(uses=1)
    run(play, obj, exception(obj), other)


def test_uses_of_an_unlimited_grant_are_added_up_over_replicas_and_none_is_lost():
    async def play(made: Gate) -> None:
        for _ in range(3):
            answers = await asyncio.gather(*(made.ask(replica=n % 2) for n in range(10)))
            assert all(one["allowed"] for one in answers)
            await made.stage.client.clock.advance(60)
            await made.counted()
        status = await made.counted()
        assert (status["uses"], status["lastUsedAt"]) == (30, "2026-11-21T10:20:00Z")
        assert made.uses() == []

    with_grant(play)


def test_counting_asks_the_server_nothing_while_the_request_waits():
    async def play(made: Gate) -> None:
        before = len(made.stage.client.calls)
        assert (await made.ask())["allowed"]
        assert len(made.stage.client.calls) == before

    with_grant(play)


def test_counts_that_could_not_be_written_are_written_later():
    async def play(made: Gate) -> None:
        task = asyncio.ensure_future(made.grant_usage[0].run())
        assert (await made.ask())["allowed"]
        made.stage.client.fail("patch", Unreachable("gone"))
        for _ in range(2):
            await made.stage.client.clock.advance(FLUSH_SECONDS)
        [found] = made.stage.client.stored(GRANTS)
        assert found["status"]["uses"] == 1
        task.cancel()

    with_grant(play)


def test_a_grant_of_the_same_name_made_anew_does_not_inherit_counts():
    async def play(made: Gate) -> None:
        assert (await made.ask())["allowed"]
        anew = grant()
        made.stage.client.take(GRANTS, "web", "shop")
        made.stage.client.put({**anew, "metadata": {**anew["metadata"], "uid": "another"}})
        assert await made.counted() == {}

    with_grant(play)


@pytest.mark.parametrize(
    "annotation", ["0", "-1", "many", "", "1e3", "9999999999", "٣"]
)  # fmt: skip
def test_a_number_of_uses_that_cannot_be_read_gives_none(annotation: str):
    obj = grant(uses=1)
    made_exception = exception(obj)
    made_exception["metadata"]["annotations"]["kpolicy.io/uses"] = annotation

    async def play(made: Gate) -> None:
        assert not (await made.ask())["allowed"]

    run(play, obj, made_exception)


def test_a_limited_exception_whose_owner_was_taken_off_gives_nothing():
    obj = grant(uses=1)

    async def play(made: Gate) -> None:
        assert not (await made.ask())["allowed"]

    run(play, obj, exception(obj, ownerReferences=[]))


def test_the_owner_counts_at_once_when_it_changes():
    obj = grant(uses=1)

    async def play(made: Gate) -> None:
        made.stage.cache.put(POLICY_EXCEPTIONS, exception(obj, ownerReferences=[]))
        assert not (await made.ask())["allowed"]

    run(play, obj, exception(obj))


def test_a_plain_exception_beside_a_grant_is_used_first():
    obj = grant(uses=1)
    plain = exception(grant("plain"), annotations={}, ownerReferences=[], labels={})

    async def play(made: Gate) -> None:
        for _ in range(3):
            assert (await made.ask())["allowed"]
        assert made.uses() == []

    run(play, obj, exception(obj), plain)


def test_of_two_limited_grants_the_second_is_used_when_the_first_is_spent():
    first, second = grant("a", uses=1), grant("b", uses=1)

    async def play(made: Gate) -> None:
        answers = [(await made.ask())["allowed"] for _ in range(3)]
        assert answers == [True, True, False]
        assert sorted(one["spec"]["grant"] for one in made.uses()) == ["shop/a", "shop/b"]

    run(play, first, exception(first), second, exception(second))


def test_an_unlimited_grant_beside_a_limited_one_is_used_first():
    limited, unlimited = grant("a", uses=1), grant("b")

    async def play(made: Gate) -> None:
        for _ in range(3):
            assert (await made.ask())["allowed"]
        assert made.uses() == []

    run(play, limited, exception(limited), unlimited, exception(unlimited))


def test_the_record_of_a_use_says_who_used_what_for_which_object():
    async def play(made: Gate) -> None:
        await made.ask(uid="u7", userInfo={"username": "chip"})
        [use] = made.uses()
        spec = use["spec"]
        assert (spec["user"], spec["operation"], spec["binding"]) == ("chip", "CREATE", {"policy": "team", "rules": ["needs-team"]})  # fmt: skip
        assert (spec["object"]["name"], spec["object"]["uid"], spec["grantUid"]) == ("web", "u7", "uid-of-web")  # fmt: skip
        assert spec["mac"]

    with_grant(play, uses=1)


def test_results_of_a_request_by_a_spent_grant_are_failures_for_events_and_reports():
    async def play(made: Gate) -> None:
        await made.ask()
        await made.ask()
        await made.stage.background_queue.finish()
        [_, (_, results, verdict)] = made.stage.sink.results_
        assert (verdict.allowed, [one.status.value for one in results]) == (False, ["fail"])

    with_grant(play, uses=1)


def test_what_nobody_proved_reserves_a_use_only_where_the_object_is_new_and_says_so():
    async def play(made: Gate) -> None:
        current_caller.set(Caller.PATH)
        there = made.stage.client.put({**pod(), "metadata": {**pod()["metadata"], "uid": "there"}})
        assert not (await made.ask(uid="there"))["allowed"]
        was = {**there, "metadata": {**there["metadata"], "labels": {"team": "blue"}}}
        forged = {"operation": "UPDATE", "oldObject": was}
        assert not (await made.ask(there, uid="there", **forged))["allowed"]
        assert made.uses() == []
        assert (await made.ask(pod("web-2"), uid="new"))["allowed"]
        [use] = made.uses()
        assert use["spec"]["unproven"] == ABSENT

    with_grant(play, uses=1)


def test_uses_of_an_unlimited_grant_are_not_counted_on_the_word_of_somebody_who_proved_nothing():
    async def play(made: Gate) -> None:
        current_caller.set(Caller.PATH)
        assert (await made.ask())["allowed"]
        assert (await made.counted()).get("uses") is None
        current_caller.set(Caller.CERTIFICATE)
        assert (await made.ask())["allowed"]
        assert (await made.counted())["uses"] == 1

    with_grant(play)
