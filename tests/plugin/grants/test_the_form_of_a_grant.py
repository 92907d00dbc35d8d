"""The form of a grant and the command judge alike: the engine's rules, one request, one reach."""

from __future__ import annotations

import asyncio
import shlex

import pytest

from engine.errors import EngineError
from engine.grants.blocks import Block, block_id
from engine.record import replace
from kubectl_kpolicy.actions.screens import LISTINGS
from kubectl_kpolicy.codes.issuing import read_binding
from kubectl_kpolicy.grants.form import Draft, GrantForm, ask_of, command, draft_of, draft_of_all
from kubectl_kpolicy.grants.reach import reach_of
from kubectl_kpolicy.grants.requests import judge, manifest
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.output.rows import Row
from kubectl_kpolicy.session.errors import Refused
from kubectl_kpolicy.session.identity import Identity
from kubectl_kpolicy.session.targets import Target, read_rule
from tests.clock import ManualClock
from tests.controllers.kube.fake import FakeClient
from tests.plugin.scene import NOW, ago, objects, world

ADA = Identity("ada", ("dev",))


GRANT_POLICY = {
    "kind": "GrantPolicy", "metadata": {"name": "prod-default"},
    "spec": {"policies": ["require-*"], "namespaces": ["pay*"], "maxDuration": "4h", "reason": {"minLength": 20},
             "ticket": {"pattern": "OPS-[0-9]+"}, "approvers": [{"groups": ["sre"], "count": 2}]},
}  # fmt: skip


def draft(**changes: object) -> Draft:
    row = next(
        one
        for one in LISTINGS["violations"].rows(world(), NOW)
        if one.text("resource") == "Pod/debug-shell" and one.text("rule") == "run-as-non-root"
    )
    made = replace(
        draft_of(row), reason="the image is rebuilt on Monday", ticket="OPS-1", length="2h"
    )
    return replace(made, **changes)


def form(*policies) -> GrantForm:
    return GrantForm(
        world({**objects(), "grantpolicies": list(policies) or [GRANT_POLICY]}), lambda: NOW
    )


def test_requirements_are_those_of_the_grant_policy_that_covers() -> None:
    required = form().requirements(draft())

    assert required.policy is not None
    assert required.policy.name == "prod-default"
    assert required.approvers == "2 of group sre"
    assert form().refusals(draft()) == []
    assert form().requirements(draft(namespace="search")).policy is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"length": "8h"},
            "duration 8h exceeds maximum 4h of grantpolicy/prod-default; try --for 4h",
        ),
        ({"length": "soon"}, "`soon` is no length of time"),
        ({"reason": "."}, "the reason has 1 characters, grantpolicy/prod-default asks for 20"),
        (
            {"ticket": "OPS-1; x"},
            "ticket `OPS-1; x` is not of the form `OPS-[0-9]+` of grantpolicy/prod-default",
        ),
        ({"name": ""}, "name a policy and an object"),
        ({"start": "tomorrow"}, "`tomorrow` is no instant"),
        ({"uses": "few"}, "`few` is no number of uses"),
        ({"namespace": "search"}, "no grant policy lets"),
        ({"name": "debug-*"}, "allows no wildcards"),
    ],
)
def test_refusals_name_rule_limit_and_next_step(changes, words: str) -> None:
    found = form().refusals(draft(**changes))

    assert any(words in one for one in found), found


def test_reach_counts_what_turns_and_what_stays() -> None:
    reach = form().reach(draft())
    assert [row.text("rule") for row in reach.flips] == ["run-as-non-root"]
    assert (reach.stays, reach.fits_later) == (1, False)

    wide = form().reach(draft(name="*", kind="*"))
    assert (len(wide.flips), wide.stays, wide.fits_later) == (2, 0, True)


def test_a_request_is_handed_in_as_its_manifest() -> None:
    handed: list[tuple[dict, bool]] = []

    async def hand_in(obj, dry_run: bool) -> str:
        handed.append((obj, dry_run))
        return "requested"

    open_form = GrantForm(world(), lambda: NOW, hand_in=hand_in)

    assert asyncio.run(open_form.try_out(draft())) == "accepted (dry run)"
    assert asyncio.run(open_form.submit(draft(uses="1", emergency=True))) == "requested"
    assert [one[1] for one in handed] == [True, False]
    spec = handed[1][0]["spec"]
    assert (spec["uses"], spec["emergency"], spec["duration"]) == (1, True, "2h")


@pytest.mark.parametrize("text", ["no wildcards", "refused: no wildcards"])
def test_a_verdict_says_refused_once(text: str) -> None:
    async def refuse(_obj, _dry_run: bool) -> str:
        raise EngineError(text)

    verdict = asyncio.run(GrantForm(world(), lambda: NOW, hand_in=refuse).try_out(draft()))
    assert verdict == "refused: no wildcards"


def test_without_controllers_a_request_says_what_to_install() -> None:
    with pytest.raises(EngineError) as caught:
        asyncio.run(form().submit(draft()))

    assert "install --crds-only" in caught.value.help


def test_the_command_of_a_request_can_be_pasted() -> None:
    words = shlex.split(command(draft(reason="it's late; really")))

    assert words[words.index("--reason") + 1] == "it's late; really"
    assert words[4:6] == ["require-run-as-nonroot/run-as-non-root", "Pod/debug-shell"]


def _policy(name: str, **spec):
    return {"apiVersion": "kpolicy.io/v1alpha1", "kind": "GrantPolicy", "metadata": {"name": name}, "spec": {"approvers": [{"users": ["bob"]}], **spec}}  # fmt: skip


def _grant(name: str, state: str, requester: str = "ada", **status):
    spec = {"requester": requester, "policy": "require-run-as-nonroot", "rules": ["*"], "target": {"kind": "Pod", "name": "web"}, "duration": "1h"}  # fmt: skip
    return {"apiVersion": "kpolicy.io/v1alpha1", "kind": "Grant", "metadata": {"name": name, "namespace": "payments", "uid": name}, "spec": spec, "status": {"state": state, **status}}  # fmt: skip


SHORT, LONG = _policy("a-short", maxDuration="1h"), _policy("b-long", maxDuration="8h")
CASES = {
    "a second policy allows what the first one by name does not": ([SHORT, LONG], [], {"length": "4h"}, True),
    "no policy allows so long": ([SHORT, LONG], [], {"length": "9h"}, False),
    "a policy without a maximum has the engine's": ([_policy("p")], [], {"length": "5h"}, False),
    "days are lengths": ([_policy("p", maxDuration="3d")], [], {"length": "2d"}, True),
    "an emergency is shorter": ([_policy("p", emergency={"maxDuration": "30m"})], [], {"length": "1h", "emergency": True}, False),
    "there is no emergency path": ([_policy("p")], [], {"emergency": True}, False),
    "somebody else may ask": ([_policy("p", requesters={"users": ["eve"]})], [], {}, False),
    "a group may ask": ([_policy("p", requesters={"groups": ["dev"]})], [], {}, True),
    "another namespace": ([_policy("p", namespaces=["search"])], [], {}, False),
    "another rule": ([_policy("p", rules=["other"])], [], {}, False),
    "a wide request": ([_policy("p")], [], {"name": "debug-*"}, False),
    "a wide request where wildcards are allowed": ([_policy("p", wildcards=True)], [], {"name": "debug-*"}, True),
    "every rule is a wildcard": ([_policy("p")], [], {"rule": ""}, False),
    "too many are open": ([_policy("p", limits={"openPerUser": 1})], [_grant("g", "active")], {}, False),
    "others' open ones do not count": ([_policy("p", limits={"openPerUser": 1})], [_grant("g", "active", "eve")], {}, True),
    "the last one ended just now": ([_policy("p", limits={"coolDown": "1h"})], [_grant("g", "expired", endedAt=ago(minutes=5))], {}, False),
    "uses are needed": ([_policy("p", limits={"uses": 3})], [], {}, False),
    "uses within the limit": ([_policy("p", limits={"uses": 3})], [], {"uses": "2"}, True),
    "a ticket's form that is none fits nothing": ([_policy("p", ticket={"pattern": "("})], [], {}, False),
    "a short reason": ([_policy("p", reason={"minLength": 90})], [], {}, False),
    "a policy that cannot be read counts for nothing": ([_policy("p", maxDuration="soon"), LONG], [], {"length": "6h"}, True),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_form_and_command_judge_alike(case: str) -> None:
    policies, grants, changes, is_allowed = CASES[case]
    asked = draft(**changes)
    there = world({**objects(), "grantpolicies": policies, "grants": grants})
    made = GrantForm(there, lambda: NOW, ADA)

    client = FakeClient(*policies, *grants, clock=ManualClock(NOW))
    try:
        asyncio.run(judge(client, manifest(ask_of(asked), ADA), NOW))
        said = []
    except Refused as error:
        said = [line.removeprefix("refused: ") for line in error.message.splitlines()]

    assert made.refusals(asked) == said
    assert (not said) is is_allowed


def test_the_longest_is_that_of_any_policy_and_an_emergency_is_shorter() -> None:
    made = form(SHORT, _policy("b-long", maxDuration="8h", emergency={"maxDuration": "2h"}))

    def longest(**changes: object) -> float:
        found = made.requirements(draft(**changes)).longest
        assert found is not None
        return found.total_seconds() / 3600

    assert longest() == 8
    assert longest(emergency=True) == 2


@pytest.mark.parametrize(
    "changes",
    [{}, {"rule": ""}, {"name": "*"}, {"name": "*", "kind": "*"}, {"namespace": ""}, {"namespace": "search"}, {"kind": "Service"}],
)  # fmt: skip
def test_form_and_command_reach_alike(changes) -> None:
    asked, there = draft(**changes), world()
    place = Target(asked.kind, asked.name, asked.namespace or "default")
    by_command = reach_of(there, asked.policy, (asked.rule or "*",), [place])

    assert GrantForm(there, lambda: NOW).reach(asked) == by_command


def test_the_form_makes_the_grant_that_the_command_makes() -> None:
    asked = draft(uses="2", emergency=True, start="2026-03-14T13:00:00Z", namespace="")
    made = GrantForm(world(), lambda: NOW, ADA).manifest(asked)

    assert made == manifest(ask_of(asked), ADA)
    assert made["spec"]["requester"] == "ada"
    assert made["metadata"] == {"generateName": "debug-shell-require-run-as-nonroot-", "namespace": "default"}  # fmt: skip


def shown(resource: str, rule: str = "run-as-non-root", namespace: str = "payments") -> Row:
    cells = {"resource": resource, "policy": "require-run-as-nonroot", "rule": rule, "namespace": namespace, "kind": resource.partition("/")[0]}  # fmt: skip
    return Row(f"{namespace}/{resource}/{rule}", cells)


def test_marked_objects_are_asked_for_by_what_their_names_share() -> None:
    made = draft_of_all([shown("Pod/web-1"), shown("Pod/web-2")])

    assert (made.kind, made.name, made.namespace) == ("Pod", "web-*", "payments")
    assert draft_of_all([shown("Pod/web-1")]) == draft_of(shown("Pod/web-1"))


@pytest.mark.parametrize(
    ("other", "what"),
    [(shown("Pod/api"), "name"), (shown("StatefulSet/web"), "kind"), (shown("Pod/web", "other"), "rule"), (shown("Pod/web", namespace="shop"), "namespace")],
)  # fmt: skip
def test_marked_objects_that_no_grant_can_name_together_are_no_request(other: Row, what: str) -> None:  # fmt: skip
    with pytest.raises(EngineError, match=f"what is marked differs in {what}"):
        draft_of_all([shown("Pod/web"), other])


IN_CEL = {
    "KyvernoValidatingPolicy team": "vpol:team",
    "KyvernoValidatingPolicy pay/team": "nvpol:pay/team",
    "KyvernoImageValidatingPolicy signed": "ivpol:signed",
    "kyverno team": "team",
    " team": "team",
}


@pytest.mark.parametrize("said", IN_CEL)
def test_a_row_of_a_report_is_asked_about_by_the_kind_of_its_policy(said: str) -> None:
    source, policy = said.split(" ")
    row = Row("r", {"policy": policy, "rule": "r", "source": source, "resource": "Pod/web", "namespace": "pay"})  # fmt: skip
    made = draft_of(row)

    assert made.policy == IN_CEL[said]
    is_cel = ":" in IN_CEL[said]
    assert ask_of(made).rules == (() if is_cel else ("r",))
    subject = IN_CEL[said] if is_cel else f"{IN_CEL[said]}/r"
    assert command(made).startswith(f"kubectl kpolicy grant request {subject} Pod/web -n pay")
    assert read_rule(subject) == (made.policy, ask_of(made).rules)


def test_a_blocked_request_of_a_cel_policy_is_asked_about_by_its_id() -> None:
    block = block_id(Block("vpol:team", (), "Pod", "web", "pay"), b"k")
    row = Row("r", {"policy": "team", "policykind": "ValidatingPolicy", "rule": "", "resource": "Pod/web", "namespace": "pay", "block": block})  # fmt: skip

    assert f"--block {block}" in command(draft_of(row))
    assert ask_of(draft_of(row)).block == block
    assert ask_of(replace(draft_of(row), name="other")).block == ""


def test_a_rule_of_a_cel_policy_is_refused_by_the_form_as_by_the_server() -> None:
    policy = {**GRANT_POLICY, "spec": {}}
    asked = draft(policy="vpol:team", rule="r")
    assert any("`vpol:team` is one rule, which has no name" in one for one in form(policy).refusals(asked))  # fmt: skip
    assert form(policy).refusals(replace(asked, rule="")) == []


def test_a_grant_from_a_cel_policy_reaches_its_failures_and_not_those_of_its_namesake() -> None:
    def result(source: str, rule: str = "") -> dict[str, object]:
        return {"policy": "team", "rule": rule, "result": "fail", "source": source}

    report = {
        "apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "PolicyReport", "metadata": {"name": "r", "namespace": "pay"},
        "scope": {"kind": "Pod", "name": "web", "namespace": "pay"},
        "results": [result("KyvernoValidatingPolicy"), result("kyverno", "a")],
    }  # fmt: skip
    found = reach_of(world({"reports": [report]}), "vpol:team", (), [Target("Pod", "web", "pay")])

    assert [one.text("source") for one in found.flips] == ["KyvernoValidatingPolicy"]
    assert found.stays == 0


@pytest.mark.parametrize("text", ["vpol:", "xpol:a", "nvpol:a", "vpol:a/b", "a/b/c/d", "/a", ""])
def test_what_names_no_policy_is_a_mistake_of_the_command_line(text: str) -> None:
    with pytest.raises(Misuse):
        read_rule(text)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("vpol:team:Pod/web", ("vpol:team", (), "Pod", "web")),
        ("nvpol:pay/team:Role/system:x", ("nvpol:pay/team", (), "Role", "system:x")),
        ("team/r:Role/system:x", ("team", ("r",), "Role", "system:x")),
        ("pay/team/r,s:Pod/web", ("pay/team", ("r", "s"), "Pod", "web")),
    ],
)
def test_a_code_says_what_it_is_for_by_the_same_names(text: str, read: object) -> None:
    assert read_binding(text) == read
