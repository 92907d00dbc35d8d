"""Exceptions that name a grant, as somebody makes them: only what an active grant says; one that is over is told to be inert."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from controllers.kube import Unreachable
from controllers.kube.accounts import ALL, Job
from controllers.kube.kinds import GRANTS
from controllers.webhook.policy_validation import PolicyValidator
from engine.grants import exception_of, parse_grant
from engine.lang import rfc3339
from tests.clock import ManualClock

from .staging import NOW, body, staged

END = "2026-11-21T14:18:00Z"


def grant(state: str = "active", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kpolicy.io/v1alpha1", "kind": "Grant", "metadata": {"name": "web", "namespace": "shop", "uid": "g1"},
        "spec": {"requester": "ada", "policy": "team", "rules": ["r"], "target": {"kind": "Pod", "name": "web"}, "duration": "4h", **spec},
        "status": {"state": state, "expiresAt": END},
    }  # fmt: skip


def exception(of: Any = None, end: str = END, **annotations: str) -> dict[str, Any]:
    at = rfc3339.read(end)
    assert at is not None
    made = exception_of(parse_grant(of or grant()), at)
    return {**made, "metadata": {**made["metadata"], "annotations": {**made["metadata"]["annotations"], **annotations}}}  # fmt: skip


def ask(obj: dict[str, Any], *there: Any, fails: bool = False, jobs: Any = (Job.GRANTS,), **fields: Any) -> Any:  # fmt: skip
    async def go() -> Any:
        async with staged() as stage:
            for one in there:
                stage.client.put(one)
            if fails:
                stage.client.fail("get", Unreachable("gone"))
            validator = PolicyValidator(
                stage.cache, stage.client, clock=ManualClock(NOW), jobs_of=lambda _: jobs
            )
            return orjson.loads(await validator.exception("", body(obj, **fields), 5.0))["response"]

    return asyncio.run(go())


def text(answer: Any) -> str:
    return str((answer.get("status") or {}).get("message", ""))


def test_the_exception_of_an_active_grant_is_let_through_and_one_that_ends_sooner_too():
    assert ask(exception(), grant())["allowed"]
    assert ask(exception(end="2026-11-21T12:00:00Z"), grant())["allowed"]
    stored = exception()
    assert ask({**stored, "spec": {**stored["spec"], "background": True}}, grant())["allowed"]


@pytest.mark.parametrize("state", ["revoked", "expired", "pending", "exhausted", "draft"])
def test_the_exception_of_a_grant_that_is_not_active_is_not_made_again(state: str):
    assert f"grant shop/web is {state}" in text(ask(exception(), grant(state)))


def _spec(**changes: Any) -> dict[str, Any]:
    made = exception()
    return {**made, "spec": {**made["spec"], **changes}}


def _metadata(**changes: Any) -> dict[str, Any]:
    made = exception()
    return {**made, "metadata": {**made["metadata"], **changes}}


def cel_grant(**spec: Any) -> dict[str, Any]:
    return grant(**{"policy": "vpol:team", "rules": [], **spec})


def _cel_spec(**changes: Any) -> dict[str, Any]:
    made = exception(cel_grant())
    return {**made, "spec": {**made["spec"], **changes}}


WRONG_IN_CEL = {
    "from another policy": _cel_spec(policyRefs=[{"name": "other", "kind": "ValidatingPolicy"}]),
    "from one of a namespace": _cel_spec(policyRefs=[{"name": "team", "kind": "NamespacedValidatingPolicy"}]),
    "for every object": _cel_spec(matchConditions=[]),
    "with images": _cel_spec(images=["*"]),
    "as a pass": _cel_spec(reportResult="pass"),
    "longer by its spec": _cel_spec(expiresAt="2026-11-21T14:18:01Z"),
    "without an end in its spec": _cel_spec(expiresAt=""),
    "longer": exception(cel_grant(), end="2026-11-21T14:18:01Z"),
    "of a classic grant": exception(grant()),
}  # fmt: skip


@pytest.mark.parametrize("how", WRONG_IN_CEL)
def test_an_exception_from_a_cel_policy_that_its_grant_does_not_cause_is_refused(how: str):
    assert "not the exception of grant shop/web" in text(ask(WRONG_IN_CEL[how], cel_grant()))


def test_the_exception_of_a_grant_from_a_cel_policy_is_let_through_as_it_is_and_with_defaults():
    made = exception(cel_grant())
    assert ask(made, cel_grant())["allowed"]
    assert ask({**made, "spec": {**made["spec"], "reportResult": "skip"}}, cel_grant())["allowed"]
    assert "grant shop/web is revoked" in text(ask(made, {**cel_grant(), "status": {"state": "revoked"}}))  # fmt: skip


def test_nobody_but_the_account_of_grants_makes_one_from_a_cel_policy():
    refused = "an exception by grant is made from its grant; ask for one"
    assert refused in text(ask(exception(cel_grant()), cel_grant(), jobs=()))


WRONG = {
    "wider": _spec(exceptions=[{"policyName": "team", "ruleNames": ["*"]}]),
    "for another object": _spec(match={"any": [{"resources": {"kinds": ["Pod"]}}]}),
    "with pod security": _spec(podSecurity=[{"controlName": "Host Namespaces"}]),
    "longer": exception(end="2026-11-21T14:18:01Z"),
    "in another namespace": _metadata(namespace="prod"),
    "under another name": _metadata(name="grant-other"),
    "with more uses": exception(**{"kpolicy.io/uses": "9"}),
    "without an end": _metadata(annotations={"kpolicy.io/grant": "shop/web"}),
}


@pytest.mark.parametrize("how", WRONG)
def test_an_exception_that_its_grant_does_not_cause_is_refused(how: str):
    assert "not the exception of grant shop/web" in text(ask(WRONG[how], grant()))


def test_a_limited_grant_has_a_limited_exception():
    limited = grant(uses=1)
    assert ask(exception(limited), limited)["allowed"]
    assert "not the exception" in text(ask(exception(), limited))


def test_a_grant_that_is_not_there_or_cannot_be_read_makes_no_exception():
    assert "there is no grant `shop/web`" in text(ask(exception()))
    assert not ask(exception(), grant(), fails=True)["allowed"]


def test_an_exception_that_is_over_when_it_is_made_is_told_to_cover_nothing():
    made = _metadata(annotations={"kpolicy.io/expires-at": "2026-11-21T10:18:00Z"}, name="mine")
    answer = ask(made)
    assert answer["allowed"]
    assert any(
        "ended at 2026-11-21T10:18:00Z and covers nothing" in one for one in answer["warnings"]
    )
    later = _metadata(annotations={"kpolicy.io/expires-at": "2026-11-21T10:18:01Z"}, name="mine")
    assert not any("covers nothing" in one for one in ask(later).get("warnings", ()))


@pytest.mark.parametrize("jobs", [(), tuple(ALL - {Job.GRANTS})], ids=["people", "our other accounts"])  # fmt: skip
def test_nobody_but_the_account_of_grants_makes_an_exception_by_grant(jobs: Any):
    refused = "an exception by grant is made from its grant; ask for one"
    plain = _metadata(annotations={})
    owned = {"apiVersion": "kpolicy.io/v1alpha1", "kind": "Grant", "name": "web", "uid": "g1"}
    for made in (exception(), {**plain, "metadata": {**plain["metadata"], "ownerReferences": [owned]}}):  # fmt: skip
        assert refused in text(ask(made, grant(), jobs=jobs))
        bare = {**plain, "metadata": {**plain["metadata"], "ownerReferences": []}}
        assert refused in text(ask(made, grant(), jobs=jobs, oldObject=bare, operation="UPDATE"))
        assert ask(made, grant(), jobs=jobs, oldObject=made, operation="UPDATE")["allowed"]


def test_changes_of_exceptions_are_left_to_the_guards():
    assert ask(exception(), oldObject=exception(), operation="UPDATE")["allowed"]
    assert GRANTS.plural == "grants"


def test_the_exception_of_a_grant_that_is_being_deleted_is_not_made_again():
    going = {"deletionTimestamp": "2026-11-21T10:00:00Z", "finalizers": ["example.org/hold"]}
    held = {**grant(), "metadata": {**grant()["metadata"], **going}}
    assert "is being deleted" in text(ask(exception(), held))


@pytest.mark.parametrize("ttl", ["2026-11-20T101800Z", "1h"])
def test_a_new_exception_whose_label_ends_it_in_the_past_is_warned_of_like_any_other(ttl: str):
    made = {
        "apiVersion": "kyverno.io/v2", "kind": "PolicyException",
        "metadata": {"name": "e", "namespace": "shop", "creationTimestamp": "2026-11-20T00:00:00Z", "labels": {"cleanup.kyverno.io/ttl": ttl}},
        "spec": {"exceptions": [{"policyName": "team", "ruleNames": ["r"]}], "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}},
    }  # fmt: skip
    assert any("covers nothing" in one for one in ask(made)["warnings"])
