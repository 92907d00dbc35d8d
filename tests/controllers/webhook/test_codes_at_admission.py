"""One-time codes at admission: offered to whom, good for exactly one thing once, and never a way round a denial."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Any

import pytest

from controllers.kube import Unreachable
from controllers.kube.kinds import AUDIT_NOTES, GRANT_POLICIES, NAMESPACES
from controllers.webhook.caller import Caller, current_caller
from controllers.webhook.one_time_codes import LOCKED, NOT_ACCEPTED
from controllers.webhook.reviewing import Reviewer
from engine.codes import issued_code, issued_name, shown, verifier_of

from .code_gate import (
    CHIP,
    CODE,
    KEY,
    Gate,
    grant_policy,
    message,
    reviewer_of,
    run,
    space,
    with_code,
)
from .staging import NOW, body, pod, policy


def test_a_denial_offers_a_code_on_its_first_line_and_the_code_lets_the_same_object_pass_once():
    async def play(made: Gate) -> None:
        answer = await made.ask(pod())
        assert message(answer).startswith("one-time code for team: ")
        assert "a team is needed" in message(answer)
        code = await made.offered()
        passed = await made.ask(with_code(code))
        assert passed["allowed"]
        assert "on record" in passed["warnings"][0]
        [use] = made.uses()
        assert passed["auditAnnotations"] == {"code-uses": use["metadata"]["name"]}
        assert (use["spec"]["user"], use["spec"]["binding"]["rules"]) == ("chip", ["needs-team"])
        again = await made.ask(with_code(code))
        assert (again["allowed"], message(again).startswith(NOT_ACCEPTED)) == (False, True)

    run(play)


def test_the_same_denial_offers_the_same_code_on_every_replica_and_writes_nothing():
    async def play(made: Gate) -> None:
        before = made.state()
        codes = {await made.offered(replica=number % 2) for number in range(6)}
        assert (len(codes), made.state()) == (1, before)

    run(play)


BOB = {"username": "bob", "groups": ["dev", "system:authenticated"]}


def notes(made: Gate) -> list[dict[str, Any]]:
    return [one["spec"] for one in made.stage.client.stored(AUDIT_NOTES)]


async def used(made: Gate) -> str:
    """Return a code that chip has used for a Pod."""
    code = await made.offered()
    assert (await made.ask(with_code(code)))["allowed"]
    assert notes(made) == []
    return code


def test_a_used_code_that_is_brought_again_is_noted_with_who_used_it_when_and_never_with_the_code():
    async def play(made: Gate) -> None:
        code = await used(made)
        [use] = made.uses()
        for user in (CHIP, BOB, CHIP, BOB):
            assert not (await made.ask(with_code(code), user=user))["allowed"]
        chip, bob = sorted(notes(made), key=lambda one: one["actor"] == "bob")
        assert (chip["verb"], chip["actor"], bob["actor"]) == ("reuse", "chip", "bob")
        assert bob["object"]["name"] == use["metadata"]["name"]
        by_chip = f"already used by chip at {use['spec']['usedAt']}"
        assert bob["reason"] == f"{by_chip}; brought again for Pod/shop/web"
        assert not any(form in str(notes(made)) for form in (code, code.replace("-", "")))

    run(play)


def test_what_nobody_brings_again_is_not_noted():
    async def play(made: Gate) -> None:
        code = await used(made)
        stays = with_code(code)
        later = {"operation": "UPDATE", "oldObject": with_code(code, obj=pod(labels={"team": "a"}))}
        assert not (await made.ask(stays, user=BOB, **later))["allowed"]
        assert not (await made.ask(with_code("0000-0000-0000-0000-0000")))["allowed"]
        assert not (await made.ask(with_code(code), dryRun=True))["allowed"]
        token = current_caller.set(Caller.NOBODY)
        assert not (await made.ask(with_code(code)))["allowed"]
        current_caller.reset(token)
        assert notes(made) == []

    run(play)


def test_of_whom_the_trail_tells_already_nothing_is_noted():
    async def play(made: Gate) -> None:
        code = await used(made)
        [use] = made.uses()
        for known, count in ((["bob"], 0), ([f"u{n}" for n in range(5)], 0), (["eve"], 1)):
            made.stage.client.put({**use, "status": {"broughtAgainBy": known}})
            assert not (await made.ask(with_code(code), user=BOB))["allowed"]
            assert len(notes(made)) == count

    run(play)


def test_a_used_code_is_followed_by_another_one():
    async def play(made: Gate) -> None:
        first = await made.offered()
        await made.ask(with_code(first))
        assert await made.offered() != first

    run(play)


def test_of_many_redemptions_at_the_same_time_on_two_replicas_one_wins():
    async def play(made: Gate) -> None:
        for _ in range(10):
            code = await made.offered()
            before = len(made.uses())
            answers = await asyncio.gather(*(made.ask(with_code(code), replica=number % 2) for number in range(64)))  # fmt: skip
            assert sum(one["allowed"] for one in answers) == 1
            assert len(made.uses()) == before + 1
            await made.stage.client.clock.advance(601)

    run(play)


def test_the_same_attempt_sent_again_passes_by_its_own_use():
    async def play(made: Gate) -> None:
        code = await made.offered()
        obj = with_code(code)
        obj["metadata"]["uid"] = "fixed"
        for replica in (0, 1, 0):
            assert (await made.ask(obj, replica=replica))["allowed"]
        assert len(made.uses()) == 1

    run(play)


def test_an_update_run_again_passes_within_forty_seconds_and_not_after():
    async def play(made: Gate) -> None:
        old = pod(labels={"team": "blue"})
        old["metadata"]["uid"] = "fixed"
        new = pod()
        new["metadata"]["uid"] = "fixed"
        fields = {"operation": "UPDATE", "oldObject": old}
        code = await made.offered(new, **fields)
        for seconds, passes in ((0, True), (39, True), (10, False)):
            await made.stage.client.clock.advance(seconds)
            answer = await made.ask(with_code(code, obj=new), **fields)
            assert answer["allowed"] is passes, seconds
        assert len(made.uses()) == 1

    run(play)


def test_a_dry_run_verifies_and_writes_nothing():
    async def play(made: Gate) -> None:
        code = await made.offered()
        before = made.state()
        for _ in range(3):
            answer = await made.ask(with_code(code), dryRun=True)
            assert (answer["allowed"], "would be used" in answer["warnings"][0]) == (True, True)
        wrong = await made.ask(with_code("0" * 20), dryRun=True)
        assert (wrong["allowed"], made.state()) == (False, before)
        assert (await made.ask(with_code(code)))["allowed"]
        assert not (await made.ask(with_code(code), dryRun=True))["allowed"]

    run(play)


def image(name: str) -> dict[str, Any]:
    made = pod()
    made["spec"]["containers"][0]["image"] = name
    return made


async def _another_policy(made: Gate) -> None:
    changed = policy(background=True)
    made.stage.cache.put(_kind(), {**changed, "metadata": {**changed["metadata"], "uid": "uid-of-policy"}})  # fmt: skip


async def _recreated_policy(made: Gate) -> None:
    changed = policy()
    made.stage.cache.remove(_kind(), changed)
    made.stage.cache.put(
        _kind(), {**changed, "metadata": {**changed["metadata"], "uid": "another"}}
    )


async def _recreated_namespace(made: Gate) -> None:
    made.stage.client.take(NAMESPACES, "shop")
    made.stage.client.put({**space("shop"), "metadata": {"name": "shop", "uid": "another"}})


async def _later(made: Gate) -> None:
    await made.stage.client.clock.advance(1201)


async def _another_cluster(made: Gate) -> None:
    made.stage.client.take(NAMESPACES, "kube-system")
    made.stage.client.put({**space("kube-system"), "metadata": {"name": "kube-system", "uid": "another"}})  # fmt: skip
    made.replicas = (reviewer_of(made.stage), reviewer_of(made.stage))


def _kind() -> Any:
    from controllers.kube.kinds import CLUSTER_POLICIES

    return CLUSTER_POLICIES


TRANSPLANTS: dict[str, tuple[Any, dict[str, Any], Any]] = {
    "another name": (pod("other"), {}, None),
    "another namespace": (pod(namespace="other"), {}, None),
    "another user": (pod(), {"user": {"username": "eve"}}, None),
    "the same user in other letters": (pod(), {"user": {"username": "Chip"}}, None),
    "another image": (image("miner"), {}, None),
    "another container beside": ({**pod(), "spec": {"containers": [{"name": "c", "image": "nginx"}, {"name": "d", "image": "miner"}]}}, {}, None),
    "another value in the spec": ({**pod(), "spec": {**pod()["spec"], "hostPID": True}}, {}, None),
    "an update instead of a creation": (pod(), {"operation": "UPDATE", "oldObject": pod(labels={"team": "x"})}, None),
    "a policy that was edited": (pod(), {}, _another_policy),
    "a policy of the same name made anew": (pod(), {}, _recreated_policy),
    "a namespace of the same name made anew": (pod(), {}, _recreated_namespace),
    "two slots later": (pod(), {}, _later),
    "another cluster": (pod(), {}, _another_cluster),
}  # fmt: skip


@pytest.mark.parametrize("how", TRANSPLANTS)
def test_a_code_is_good_for_nothing_else(how: str):
    obj, fields, change = TRANSPLANTS[how]

    async def play(made: Gate) -> None:
        code = await made.offered()
        if change:
            await change(made)
        answer = await made.ask(with_code(code, obj=obj), **fields)
        assert (answer["allowed"], made.uses()) == (False, [])
        assert message(answer).startswith(NOT_ACCEPTED)

    run(play)


def test_a_harmless_label_does_not_matter_to_a_code():
    rule = {
        "name": "no-host", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
        "validate": {"message": "no host", "pattern": {"spec": {"=(hostPID)": False}}},
    }  # fmt: skip
    bad = {**pod(), "spec": {**pod()["spec"], "hostPID": True}}

    async def play(made: Gate) -> None:
        code = await made.offered(bad)
        labelled = {**bad, "metadata": {**bad["metadata"], "labels": {"tier": "front"}}}
        assert (await made.ask(with_code(code, obj=labelled)))["allowed"]

    run(play, policies=(policy("host", rules=[rule]),))


TEAM: dict[str, Any] = {"metadata": {"labels": {"team": "?*", "tier": "!root"}}}
HOST: dict[str, Any] = {"spec": {"=(hostPID)": False}, "metadata": {"labels": {"tier": "!root"}}}


@pytest.mark.parametrize(("pattern", "bad"), [(TEAM, {}), (HOST, {"hostPID": True})])
def test_a_code_does_not_cover_another_label_that_the_same_rule_would_refuse(
    pattern: dict[str, Any], bad: dict[str, Any]
):
    made_of = policy()
    made_of["spec"]["rules"][0]["validate"]["pattern"] = pattern

    def labelled(tier: str) -> dict[str, Any]:
        return {**pod(labels={"tier": tier}), "spec": {**pod()["spec"], **bad}}

    async def play(made: Gate) -> None:
        code = await made.offered(labelled("web"))
        answer = await made.ask(with_code(code, obj=labelled("root")))
        assert (answer["allowed"], made.uses()) == (False, [])
        assert (await made.ask(with_code(code, obj=labelled("web"))))["allowed"]

    run(play, policies=(made_of,))


NODE = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}


@pytest.mark.parametrize(
    ("name", "first", "other"),
    [("ownerReferences", NODE, {**NODE, "uid": "v"}), ("finalizers", "bad.io/a", "bad.io/b")],
)
def test_a_code_does_not_cover_other_owners_or_finalizers_that_the_same_rule_would_refuse(
    name: str, first: Any, other: Any
):
    key = f"{{{{ request.object.metadata.{name} || `[]` | length(@) }}}}"
    none = {"conditions": {"any": [{"key": key, "operator": "GreaterThan", "value": 0}]}}
    made_of = policy()
    made_of["spec"]["rules"][0]["validate"] = {"failureAction": "Enforce", "deny": none}

    def having(*listed: Any) -> dict[str, Any]:
        return {**pod(), "metadata": {**pod()["metadata"], name: list(listed)}}

    async def play(made: Gate) -> None:
        code = await made.offered(having(first))
        answer = await made.ask(with_code(code, obj=having(first, other)))
        assert (answer["allowed"], made.uses()) == (False, [])
        assert (await made.ask(with_code(code, obj=having(first))))["allowed"]

    run(play, policies=(made_of,))


@pytest.mark.parametrize(
    "user",
    [{"username": "system:serviceaccount:ci:bot"}, {"username": "system:node:n1"}, {"username": "system:admin"}],
)  # fmt: skip
def test_only_people_are_offered_codes(user: dict[str, str]):
    async def play(made: Gate) -> None:
        assert not CODE.search(message(await made.ask(pod(), user=user)))

    run(play)


def test_an_unauthenticated_caller_gets_no_code_and_uses_none():
    async def play(made: Gate) -> None:
        code = await made.offered()
        current_caller.set(Caller.NOBODY)
        assert not CODE.search(message(await made.ask(pod())))
        assert not (await made.ask(with_code(code)))["allowed"]
        assert made.uses() == []

    run(play)


def test_without_the_right_to_redeem_no_code_is_offered():
    async def play(made: Gate) -> None:
        made.may_redeem = False
        answer = message(await made.ask(pod()))
        assert not CODE.search(answer)
        assert "to request an exception: kubectl kpolicy grant --block kb1." in answer

    run(play)


@pytest.mark.parametrize(
    "objects",
    [(grant_policy("off"),), (grant_policy("approve"),), (grant_policy(policies=["other"]),), (grant_policy(namespaces=["prod-*"]),), (grant_policy(requesters={"users": ["ada"]}),)],
)  # fmt: skip
def test_codes_are_off_where_no_grant_policy_turns_them_on(objects: Any):
    async def play(made: Gate) -> None:
        assert not CODE.search(message(await made.ask(pod())))

    run(play, *objects)


def test_without_grant_policies_every_answer_is_as_if_there_were_no_codes():
    async def play(made: Gate) -> None:
        plain = Reviewer(
            made.stage.cache, made.stage.client, made.stage.resolver, made.stage.client.clock, made.stage.metrics,
            made.stage.background_queue, key=KEY, sink=made.stage.sink,
        )  # fmt: skip
        for obj in (pod(), with_code("0" * 20), pod(labels={"team": "a"})):
            sent = body(obj, userInfo=CHIP)
            assert await made.replicas[0].review("validate", "fail", sent, 5.0) == await plain.review("validate", "fail", sent, 5.0)  # fmt: skip

    run(play, grant_policy("off", policies=["unrelated"]))


@pytest.mark.parametrize("verb", ["get", "create", "list", "review"])
def test_when_the_api_server_does_not_answer_a_denial_stays_a_denial(verb: str):
    async def play(made: Gate) -> None:
        code = await made.offered()
        await made.stage.client.clock.advance(11)
        made.stage.client.fail(verb, Unreachable("gone"), times=9)
        answer = await made.ask(with_code(code))
        assert (answer["allowed"], made.uses()) == (False, [])
        assert "needs-team" in message(answer)

    run(play)


def test_who_redeems_is_asked_about_as_the_api_server_named_them():
    user = {"username": "chip", "uid": "u-7", "groups": ["dev"], "extra": {"team": ["a"]}}

    async def play(made: Gate) -> None:
        asked: list[Any] = []
        code = await made.offered(user=user)
        made.stage.client.reviews["SubjectAccessReview"] = lambda spec: (
            asked.append(spec) or {"allowed": True}
        )
        assert (await made.ask(with_code(code), user=user))["allowed"]
        about = {
            "verb": "redeem",
            "group": "kyverno.io",
            "resource": "clusterpolicies",
            "name": "team",
        }
        one = {
            "user": "chip",
            "uid": "u-7",
            "groups": ["dev"],
            "extra": {"team": ["a"]},
            "resourceAttributes": about,
        }
        assert asked
        assert all(spec == one for spec in asked)

    run(play)


def test_a_use_is_on_record_with_its_object_and_where_its_code_came_from():
    async def play(made: Gate) -> None:
        code = await made.offered()
        assert (await made.ask(with_code(code)))["allowed"]
        [use] = made.uses()
        target = use["spec"]["object"]
        assert use["spec"]["code"] == "minted"
        assert {key: target[key] for key in ("apiVersion", "kind", "namespace", "name")} == {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "shop",
            "name": "web",
        }

    run(play)


def test_a_code_fits_whatever_name_is_drawn_and_no_name_that_is_given():
    async def play(made: Gate) -> None:
        def drawn(name: str) -> dict[str, Any]:
            obj = pod()
            return {**obj, "metadata": {**obj["metadata"], "generateName": "web-", "name": name}}

        code = await made.offered(drawn("web-abcde"))
        assert not (await made.ask(with_code(code, obj=drawn("other"))))["allowed"]
        assert (await made.ask(with_code(code, obj=drawn("web-fghij"))))["allowed"]

    run(play)


def test_the_first_grant_policy_counts_within_a_second():
    async def play(made: Gate) -> None:
        policies = made.stage.client.stored(GRANT_POLICIES)
        for one in policies:
            made.stage.client.take(GRANT_POLICIES, one["metadata"]["name"])
        assert not CODE.search(message(await made.ask(pod())))
        for one in policies:
            made.stage.client.put(one)
        await made.stage.client.clock.advance(1)
        assert await made.offered()

    run(play)


def test_a_code_that_is_not_needed_is_not_used():
    async def play(made: Gate) -> None:
        code = await made.offered()
        answer = await made.ask(with_code(code, obj=pod(labels={"team": "a"})))
        assert (answer["allowed"], made.uses()) == (True, [])
        assert "no one-time code was needed" in answer["warnings"][0]

    run(play)


def test_guesses_are_slowed_down_and_none_is_accepted():
    async def play(made: Gate) -> None:
        for number in range(12):
            answer = await made.ask(with_code(f"{number:020d}"))
            assert not answer["allowed"]
        assert message(answer).startswith(LOCKED)
        assert not CODE.search(message(answer))
        await made.stage.client.clock.advance(61)
        assert await made.offered()

    run(play)


def test_every_policy_that_blocks_needs_its_own_code():
    async def play(made: Gate) -> None:
        codes = CODE.findall(message(await made.ask(pod())))
        assert len(codes) == 2
        assert not (await made.ask(with_code(codes[0])))["allowed"]
        assert made.uses() == []
        assert (await made.ask(with_code(*codes)))["allowed"]
        assert len(made.uses()) == 2

    run(play, policies=(policy("a"), policy("b")))


def issued(code: str, **changes: Any) -> dict[str, Any]:
    spec = {
        "user": "chip", "issuedBy": "bob", "expiresAt": (NOW + timedelta(minutes=15)).isoformat(), "verifier": verifier_of(code),
        "binding": {"policy": "team", "rules": ["needs-team"], "object": {"kind": "Pod", "namespace": "shop", "name": "web"}},
    }  # fmt: skip
    return {
        "apiVersion": "kpolicy.io/v1alpha1", "kind": "OneTimeCode",
        "metadata": {"name": issued_name(code), "namespace": "kyverno", "creationTimestamp": NOW.isoformat()},
        "spec": {**spec, **changes},
    }  # fmt: skip


BY_HAND = issued_code(b"chance and more")


def test_a_code_that_an_administrator_issued_lets_its_object_pass_once():
    async def play(made: Gate) -> None:
        made.stage.client.put(issued(BY_HAND))
        assert not (await made.ask(with_code(shown(BY_HAND)), user={"username": "eve"}))["allowed"]
        assert (await made.ask(with_code(shown(BY_HAND))))["allowed"]
        assert made.uses()[0]["spec"]["code"] == issued_name(BY_HAND)
        assert not (await made.ask(with_code(shown(BY_HAND))))["allowed"]

    run(play, grant_policy())


@pytest.mark.parametrize(
    "changes",
    [
        {"user": "eve"}, {"issuedBy": "chip"}, {"expiresAt": NOW.isoformat()}, {"verifier": "0" * 64},
        {"binding": {"policy": "other", "rules": ["needs-team"], "object": {"kind": "Pod", "namespace": "shop", "name": "web"}}},
        {"binding": {"policy": "team", "rules": ["other"], "object": {"kind": "Pod", "namespace": "shop", "name": "web"}}},
        {"binding": {"policy": "team", "rules": ["needs-team"], "object": {"kind": "Pod", "namespace": "shop", "name": "x"}}},
        {"binding": {"policy": "team", "rules": ["needs-team"], "object": {}}},
    ],
)  # fmt: skip
def test_an_issued_code_is_good_for_its_user_policy_rules_object_and_time_only(changes: Any):
    async def play(made: Gate) -> None:
        made.stage.client.put(issued(BY_HAND, **changes))
        assert not (await made.ask(with_code(BY_HAND)))["allowed"]

    run(play, grant_policy())


def test_an_issued_code_that_was_made_void_is_good_for_nothing():
    async def play(made: Gate) -> None:
        made.stage.client.put({**issued(BY_HAND), "status": {"state": "void"}})
        assert not (await made.ask(with_code(BY_HAND)))["allowed"]

    run(play, grant_policy())


FAR = {"expiresAt": "2099-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("changes", "policy"),
    [
        (FAR, {}),
        ({"expiresAt": (NOW + timedelta(hours=5)).isoformat()}, {}),
        ({}, {"approvers": [{"users": ["cyd"], "groups": ["leads"]}]}),
        ({"issuedByGroups": ["dev"]}, {"approvers": [{"groups": ["leads"]}]}),
        ({"issuedBy": "system:serviceaccount:ci:bot"}, {}),
        ({}, {"mode": "approve"}),
    ],
)
def test_an_issued_code_beyond_what_its_grant_policy_lets_is_good_for_nothing(changes: Any, policy: Any):  # fmt: skip
    async def play(made: Gate) -> None:
        made.stage.client.put(issued(BY_HAND, **changes))
        assert not (await made.ask(with_code(BY_HAND)))["allowed"]
        assert made.uses() == []

    run(play, grant_policy(**policy))


def test_an_issued_code_is_not_good_in_a_namespace_that_was_made_again():
    later = (NOW + timedelta(minutes=1)).isoformat()

    async def play(made: Gate) -> None:
        made.stage.client.put(issued(BY_HAND))
        made.stage.client.take(NAMESPACES, "shop")
        again = space("shop")
        made.stage.client.put({**again, "metadata": {**again["metadata"], "creationTimestamp": later}})  # fmt: skip
        assert not (await made.ask(with_code(BY_HAND)))["allowed"]

    run(play)


def test_an_issued_code_is_not_good_for_an_object_that_was_made_again():
    def old(minutes: int) -> dict[str, Any]:
        made = (NOW + timedelta(minutes=minutes)).isoformat()
        before = pod(labels={"team": "a"})
        return {**before, "metadata": {**before["metadata"], "creationTimestamp": made}}

    async def play(made: Gate) -> None:
        made.stage.client.put(issued(BY_HAND))
        change = {"operation": "UPDATE"}
        assert not (await made.ask(with_code(BY_HAND), oldObject=old(1), **change))["allowed"]
        assert (await made.ask(with_code(BY_HAND), oldObject=old(-1), **change))["allowed"]

    run(play)


def test_an_issued_code_that_is_being_deleted_is_good_for_nothing():
    async def play(made: Gate) -> None:
        gone = issued(BY_HAND)
        ending = {"deletionTimestamp": NOW.isoformat(), "finalizers": ["example.org/hold"]}
        made.stage.client.put({**gone, "metadata": {**gone["metadata"], **ending}})
        assert not (await made.ask(with_code(BY_HAND)))["allowed"]

    run(play)


def test_no_code_leaves_the_answer_to_whoever_asked(caplog: pytest.LogCaptureFixture):
    async def play(made: Gate) -> None:
        caplog.set_level(logging.DEBUG)
        people = [{**CHIP, "username": f"chip-{number}"} for number in range(25)]
        codes = [await made.offered(pod(one["username"]), user=one) for one in people]
        assert len({*codes}) == 25
        passed = await made.ask(with_code(codes[0], obj=pod("chip-0")), user=people[0])
        assert passed["allowed"]
        await made.stage.background_queue.finish()
        told = [results for _, results, _ in made.stage.sink.results_]
        figures = made.stage.metrics.exposition().decode()
        sinks = "\n".join([caplog.text, repr(told), figures, repr(made.uses()), repr(made.replicas), repr(passed)])  # fmt: skip
        for one in codes:
            assert one not in sinks
            assert one.replace("-", "") not in sinks

    run(play)


def test_a_code_is_used_only_by_somebody_who_still_may_redeem():
    async def play(made: Gate) -> None:
        code = await made.offered()
        made.may_redeem = False
        answer = await made.ask(with_code(code))
        assert not answer["allowed"]
        assert "the code is not accepted" in message(answer)
        assert made.uses() == []
        made.may_redeem = True
        assert (await made.ask(with_code(code)))["allowed"]

    run(play)


def test_a_code_is_bound_to_the_groups_in_which_it_was_offered_in_whatever_order_they_come():
    async def play(made: Gate) -> None:
        code = await made.offered()
        for groups in (["dev"], ["dev", "sre", "system:authenticated"], []):
            other = {**CHIP, "groups": groups}
            assert not (await made.ask(with_code(code), user=other))["allowed"]
        turned = {**CHIP, "groups": [*reversed(CHIP["groups"]), "dev"]}
        assert (await made.ask(with_code(code), user=turned))["allowed"]

    run(play)


def test_an_issued_code_is_used_only_by_somebody_who_may_redeem():
    async def play(made: Gate) -> None:
        made.stage.client.put(issued(BY_HAND))
        made.may_redeem = False
        assert not (await made.ask(with_code(shown(BY_HAND))))["allowed"]
        assert made.uses() == []

    run(play, grant_policy("approve"))
