"""Updates of objects that broke a rule before: an exception that was used once is no licence for what comes later."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from controllers.kube import Unreachable
from controllers.kube.kinds import CODE_USES, GRANT_POLICIES, POLICY_EXCEPTIONS
from controllers.webhook.existing import NOT_FORGIVEN
from controllers.webhook.grant_usage import GrantUsage
from controllers.webhook.reviewing import Reviewer

from .code_gate import CHIP, CODE, KEY, Gate, grant_policy, message, run, with_code
from .staging import pod, policy
from .test_grant_usage import END, exception, grant

EVE = {"username": "eve", "groups": ["dev", "system:authenticated"]}
SYNC = {"username": "system:serviceaccount:argocd:argocd", "groups": ["system:serviceaccounts"]}


def changed(obj: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Return an object with other fields of its spec."""
    made: dict[str, Any] = orjson.loads(orjson.dumps(obj))
    made["spec"] |= spec
    return made


def labelled(obj: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    made: dict[str, Any] = orjson.loads(orjson.dumps(obj))
    made["metadata"] |= metadata
    return made


def image(name: str) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": name}]}


def stored(name: str = "web") -> dict[str, Any]:
    """Return a Pod that breaks the rule and is stored."""
    return labelled(pod(name), uid="uid-of-pod")


async def updated(made: Gate, old: dict[str, Any], new: dict[str, Any], **fields: Any) -> Any:
    given = {"user": EVE, **fields}
    return await made.ask(new, operation="UPDATE", oldObject=old, **given)


@pytest.mark.parametrize("forget", [False, True])
def test_what_passed_by_a_code_stays_as_it_is_or_needs_another_one(forget: bool):
    async def play(made: Gate) -> None:
        new = stored()
        code = await made.offered(new)
        assert (await made.ask(with_code(code, obj=new)))["allowed"]
        if forget:
            for one in made.uses():
                await made.stage.client.delete(CODE_USES, one["metadata"]["name"], "kyverno")
        for user in (EVE, CHIP, SYNC):
            answer = await updated(made, new, changed(new, **image("miner")), user=user)
            assert not answer["allowed"]
            assert NOT_FORGIVEN in message(answer)

    run(play)


def test_the_code_that_such_a_denial_offers_lets_that_very_change_pass():
    async def play(made: Gate) -> None:
        old = stored()
        new = changed(old, **image("nginx:2"))
        code = CODE.search(message(await updated(made, old, new, user=CHIP)))
        assert code is not None
        other = with_code(code[0], obj=changed(old, **image("miner")))
        assert not (await updated(made, old, other, user=CHIP))["allowed"]
        assert (await updated(made, old, with_code(code[0], obj=new), user=CHIP))["allowed"]
        assert len(made.uses()) == 1

    run(play)


def test_the_same_object_sent_fifty_times_again_passes_and_uses_nothing():
    async def play(made: Gate) -> None:
        old = with_code("AAAA-AAAA-AAAA-AAAA-AAAA", obj=stored())
        for number in range(50):
            new = labelled(old, annotations={"argocd.argoproj.io/tracking-id": str(number)})
            new["status"] = {"phase": "Running", "restarts": number}
            assert (await updated(made, old, new, user=SYNC, replica=number % 2))["allowed"]
            old = new
        assert made.uses() == []

    run(play)


def test_a_policy_of_which_no_grant_policy_speaks_is_as_in_kyverno():
    async def play(made: Gate) -> None:
        old = stored()
        assert (await updated(made, old, changed(old, **image("miner"))))["allowed"]

    for other in (
        grant_policy(policies=["another"]),
        grant_policy(rules=["another"]),
        grant_policy(namespaces=["another"]),
    ):
        run(play, other)


def test_grant_policies_without_codes_and_for_other_people_speak_of_a_rule_too():
    async def play(made: Gate) -> None:
        old = stored()
        assert not (await updated(made, old, changed(old, **image("miner"))))["allowed"]

    run(play, grant_policy("off", requesters={"users": ["somebody else"]}))


def test_where_grant_policies_cannot_be_read_nothing_is_forgiven_but_what_stays_as_it_is():
    async def play(made: Gate) -> None:
        old = stored()
        made.stage.client.fail(
            "list", Unreachable("gone"), resource=GRANT_POLICIES.plural, times=99
        )
        assert not (await updated(made, old, changed(old, **image("miner"))))["allowed"]
        assert (await updated(made, old, old))["allowed"]

    run(play, grant_policy(policies=["another"]))


def test_nothing_is_read_for_updates_that_pass_or_stay_as_they_are():
    async def play(made: Gate) -> None:
        old = stored()
        good = labelled(old, labels={"team": "blue"})
        before = len(made.stage.client.calls)
        assert (await updated(made, old, old))["allowed"]
        assert (await updated(made, old, good))["allowed"]
        assert (await updated(made, good, changed(good, **image("nginx:2"))))["allowed"]
        assert len(made.stage.client.calls) == before

    run(play)


DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop", "uid": "uid-of-web"},
    "spec": {"replicas": 1, "template": {"spec": image("nginx")}},
}
SCALE: dict[str, Any] = {
    "apiVersion": "autoscaling/v1",
    "kind": "Scale",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"replicas": 1},
}
DEPLOYMENTS = {"group": "apps", "version": "v1", "resource": "deployments"}
PODS = {"group": "", "version": "v1", "resource": "pods"}


def for_kind(kind: str, validate: dict[str, Any] | None = None) -> dict[str, Any]:
    made = policy()
    [rule] = made["spec"]["rules"]
    rule["match"] = {"any": [{"resources": {"kinds": [kind]}}]}
    if validate is not None:
        rule["validate"] = {"failureAction": "Enforce", **validate}
    return made


@pytest.mark.parametrize(
    ("kind", "old", "new", "fields", "allowed"),
    [
        ("Pod", stored(), changed(stored(), **image("miner")), {}, False),
        ("Pod", stored(), changed(stored(), activeDeadlineSeconds=3), {}, False),
        ("Pod", stored(), labelled(stored(), finalizers=["a"]), {}, True),
        (
            "Pod",
            stored(),
            changed(stored(), ephemeralContainers=[{"name": "d", "image": "miner"}]),
            {"subResource": "ephemeralcontainers", "resource": PODS},
            False,
        ),
        (
            "Pod",
            stored(),
            {**stored(), "status": {"phase": "Failed"}},
            {"subResource": "status", "resource": PODS},
            True,
        ),
        ("Deployment", DEPLOYMENT, changed(DEPLOYMENT, replicas=9), {}, True),
        (
            "Deployment",
            DEPLOYMENT,
            changed(DEPLOYMENT, replicas=9, template={"spec": image("miner")}),
            {},
            False,
        ),
        (
            "Deployment",
            SCALE,
            changed(SCALE, replicas=9),
            {"subResource": "scale", "resource": DEPLOYMENTS},
            True,
        ),
    ],
    ids=["image", "spec", "metadata", "debug", "status", "replicas", "template", "scale"],
)
def test_whichever_way_an_update_comes_only_the_violation_as_it_was_passes(
    kind: str, old: dict[str, Any], new: dict[str, Any], fields: dict[str, Any], allowed: bool
):
    async def play(made: Gate) -> None:
        answer = await updated(made, old, new, **fields)
        assert answer["allowed"] is allowed
        assert allowed or "a team is needed" in message(answer)

    run(play, policies=(for_kind(kind),))


def test_a_number_of_replicas_that_the_rule_is_about_stays_too():
    async def play(made: Gate) -> None:
        old = changed(DEPLOYMENT, replicas=9)
        assert (await updated(made, old, labelled(old, labels={"a": "b"})))["allowed"]
        assert not (await updated(made, old, changed(old, replicas=99)))["allowed"]

    pattern = {"message": "few", "pattern": {"spec": {"replicas": "<4"}}}
    condition = {"key": "{{ request.object.spec.replicas }}", "operator": "GreaterThan", "value": 3}
    deny = {"message": "few", "deny": {"conditions": {"any": [condition]}}}
    for validate in (pattern, deny):
        run(play, policies=(for_kind("Deployment", validate),))


def test_labels_and_annotations_count_where_the_rule_looks_at_them():
    def denying(key: str) -> dict[str, Any]:
        condition = {"key": key, "operator": "NotEquals", "value": "ok"}
        return for_kind("Pod", {"message": "m", "deny": {"conditions": {"any": [condition]}}})

    old = labelled(stored(), annotations={"tier": "a"}, labels={"tier": "a"})
    others = [labelled(old, annotations={"tier": "b"}), labelled(old, labels={"tier": "b"})]

    def play_of(*allowed: bool) -> Any:
        async def play(made: Gate) -> None:
            found = [(await updated(made, old, one))["allowed"] for one in others]
            assert tuple(found) == allowed

        return play

    two = {"labels": {"team": "?*"}, "annotations": {"tier": "ok"}}
    for parts, allowed in ((two, (False, False)), ({"name": "x"}, (True, True))):
        pattern = for_kind("Pod", {"message": "m", "pattern": {"metadata": parts}})
        run(play_of(*allowed), policies=(pattern,))
    run(play_of(False, True), policies=(denying("{{ request.object.metadata.annotations.tier }}"),))
    run(play_of(True, False), policies=(denying("{{ request.object.metadata.labels.tier }}"),))
    named = for_kind("Pod", {"message": "m", "deny": {}})
    entry = {"name": "v", "globalReference": {"name": "{{ request.object.metadata.labels.tier }}"}}
    named["spec"]["rules"][0]["context"] = [entry]
    run(play_of(True, False), policies=(named,))
    run(play_of(True, True), policies=(denying("{{ request.object.metadata.name }}"),))
    run(play_of(False, False), policies=(denying("{{ to_string(request.object) }}"),))
    run(play_of(False, False), policies=(denying("{{ request.object.metadata | to_string(@) }}"),))


def test_finalizers_and_owners_count_where_the_rule_looks_at_them_and_finalizers_of_what_is_going_do_not():
    node = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
    old = labelled(stored(), finalizers=["bad/a", "bad/b"], ownerReferences=[node])
    going = labelled(old, deletionTimestamp="2026-01-01T00:00:00Z")

    def play_of(*allowed: bool) -> Any:
        async def play(made: Gate) -> None:
            found = [
                (await updated(made, before, labelled(before, **change)))["allowed"]
                for before, change in (
                    (old, {"finalizers": ["bad/a", "bad/b", "bad/c"]}),
                    (old, {"ownerReferences": [node, {**node, "uid": "v"}]}),
                    (going, {"finalizers": ["bad/a"]}),
                )
            ]
            assert tuple(found) == allowed

        return play

    for name, allowed in (
        ("finalizers", (False, True, True)),
        ("ownerReferences", (True, False, True)),
        ("name", (True, True, True)),
    ):
        key = f"{{{{ request.object.metadata.{name} | to_string(@) }}}}"
        condition = {"key": key, "operator": "NotEquals", "value": "ok"}
        rule = for_kind("Pod", {"message": "m", "deny": {"conditions": {"any": [condition]}}})
        run(play_of(*allowed), policies=(rule,))


def test_controllers_of_kubernetes_go_on_with_what_was_let_in_and_nobody_else_does():
    names = {
        "system:kube-controller-manager": True,
        "system:serviceaccount:kube-system:persistent-volume-binder": True,
        "system:serviceaccount:kube-system:helm-controller": False,
        "system:serviceaccount:shop:deployment-controller": False,
        "system:anonymous": False,
        "system:admin": False,
    }

    async def play(made: Gate) -> None:
        old = stored()
        new = changed(old, **image("miner"))
        for name, allowed in names.items():
            answer = await updated(made, old, new, user={"username": name})
            assert answer["allowed"] is allowed, name

    run(play)


def test_a_rule_that_left_the_object_alone_for_a_while_does_not_forgive_what_changed_meanwhile():
    async def play(made: Gate) -> None:
        apart = labelled(stored(), labels={"team": "blue"})
        while_apart = changed(apart, **image("miner"))
        back = changed(stored(), **image("miner"))
        assert (await updated(made, apart, while_apart))["allowed"]
        assert not (await updated(made, while_apart, back))["allowed"]

    run(play)


@pytest.mark.parametrize("uses", [0, 2])
def test_after_the_end_of_a_grant_the_object_stays_as_it_was_let_in(uses: int):
    async def play(made: Gate) -> None:
        grant_usage = _waiving(made)
        new = stored()
        assert (await made.ask(new))["allowed"]
        for _ in range(3):
            assert (await updated(made, new, new, user=SYNC))["allowed"]
        assert len(made.uses()) == min(uses, 1)
        assert (await updated(made, new, changed(new, **image("nginx:2"))))["allowed"]
        assert len(made.uses()) == uses
        await grant_usage.flush()
        await made.stage.client.clock.advance((END - made.stage.client.clock.now()).total_seconds())
        answer = await updated(made, new, changed(new, **image("miner")))
        assert not answer["allowed"]
        assert (await updated(made, new, new))["allowed"]

    run(play, grant_policy("off"), grant(uses=uses), exception(grant(uses=uses)))


def test_an_update_of_an_object_let_in_before_is_a_use_of_the_grant_that_lets_it_through():
    async def play(made: Gate) -> None:
        _waiving(made)
        old = stored()
        first = await updated(made, old, changed(old, **image("nginx:2")))
        second = await updated(made, old, changed(old, **image("nginx:3")))
        assert (first["allowed"], second["allowed"], len(made.uses())) == (True, False, 1)

    run(play, grant_policy("off"), grant(uses=1), exception(grant(uses=1)))


def _waiving(made: Gate) -> GrantUsage:
    """Let the first replica count the uses of grants."""
    stage = made.stage
    for one in stage.client.stored(POLICY_EXCEPTIONS):
        stage.cache.put(POLICY_EXCEPTIONS, one)
    grant_usage = GrantUsage(
        stage.cache, stage.client, stage.resolver, stage.client.clock, "kyverno", KEY
    )
    reviewer = Reviewer(
        stage.cache, stage.client, stage.resolver, stage.client.clock, stage.metrics, stage.background_queue,
        key=KEY, sink=stage.sink, grant_usage=grant_usage,
    )  # fmt: skip
    made.replicas = (reviewer, reviewer)
    return grant_usage
