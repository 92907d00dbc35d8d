"""A request for what is not there is told so, and an emergency for a rule that is not there is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controllers.kube.clock import ManualClock
from controllers.kube.errors import Forbidden
from controllers.kube.kinds import GRANTS
from kubectl_kpolicy.actions.grants import hand_in
from kubectl_kpolicy.grants.arguments import missing
from kubectl_kpolicy.session.errors import Refused
from tests.controllers.kube.fake import FakeClient
from tests.plugin.scene import NOW, meta

GRANT_POLICY = {"apiVersion": "kpolicy.io/v1alpha1", "kind": "GrantPolicy", "metadata": {"name": "all"}, "spec": {"emergency": {"maxDuration": "1h"}}}  # fmt: skip
POLICY = {
    "apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": meta("labels"),
    "spec": {"rules": [{"name": "team", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
                        "validate": {"message": "m", "pattern": {"metadata": {"labels": {"team": "?*"}}}}}]},
}  # fmt: skip
WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("web", "shop")}


def client() -> FakeClient:
    return FakeClient(GRANT_POLICY, POLICY, WEB, clock=ManualClock(NOW))


def asked(policy: str = "labels", rule: str = "team", target: str = "web", **more: Any) -> dict[str, Any]:  # fmt: skip
    return {
        "apiVersion": "kpolicy.io/v1alpha1", "kind": "Grant", "metadata": {"generateName": "x-", "namespace": "shop"},
        "spec": {"requester": "ada", "policy": policy, "rules": [rule], "target": {"kind": "Deployment", "name": target},
                 "duration": "30m", "reason": "it is rebuilt on Monday", **more},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (asked(), []),
        (asked(rule="autogen-team"), []),
        (asked(policy="lab*", rule="*"), []),
        (asked(policy="labls"), ["there is no policy `labls`"]),
        (asked(policy="shop/labels"), ["there is no policy `shop/labels`"]),
        (asked(rule="teem"), ["policy `labels` has no rule `teem`; it has team, autogen-team, autogen-cronjob-team"]),
        (asked(target="wbe"), ["there is no Deployment `wbe` in namespace shop yet"]),
    ],
)  # fmt: skip
def test_names_that_nothing_has_are_said(wanted: dict[str, Any], said: list[str]) -> None:
    assert [one.partition("; it has")[0] for one in asyncio.run(missing(client(), wanted))] == [one.partition("; it has")[0] for one in said]  # fmt: skip


@pytest.mark.parametrize("names", [{"policy": "labls"}, {"rule": "teem"}])
def test_an_emergency_for_a_rule_that_is_not_there_is_refused(names: dict[str, str]) -> None:
    server = client()
    with pytest.raises(Refused, match="nobody looks at an emergency before it is active"):
        asyncio.run(hand_in(server, asked(**names, emergency=True), NOW))
    assert server.stored(GRANTS) == []


def test_an_emergency_for_an_object_that_was_denied_may_be_asked_for() -> None:
    said = asyncio.run(hand_in(client(), asked(target="new", emergency=True), NOW))
    assert "there is no Deployment `new` in namespace shop yet" in said


def test_what_may_not_be_read_is_not_called_missing() -> None:
    server = client()
    server.fail("get", Forbidden("no", status=403), times=9)
    assert asyncio.run(missing(server, asked(policy="labls", target="wbe"))) == []
