"""A request for what is not there is told so, and an emergency for a rule that is not there is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controllers.kube.errors import Forbidden
from controllers.kube.kinds import CEL_POLICIES, GRANTS
from kubectl_kpolicy.actions.grants import hand_in
from kubectl_kpolicy.cli import parser_of
from kubectl_kpolicy.cli.flags import request_of
from kubectl_kpolicy.grants.arguments import missing, resolved
from kubectl_kpolicy.grants.commands import GrantRequest, _asked
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.session.errors import Refused
from tests.clock import ManualClock
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


class Server(FakeClient):
    """Serves policies written in CEL, of the cluster and of namespaces."""

    async def raw(self, method: str, path: str, *_: Any, **__: Any) -> Any:
        if path == "/apis/policies.kyverno.io":
            return {"preferredVersion": {"version": "v1"}}
        kinds = ("ValidatingPolicy", "NamespacedValidatingPolicy", "MutatingPolicy")
        return {
            "resources": [
                {
                    "name": f"{kind.lower()[:-1]}ies",
                    "kind": kind,
                    "namespaced": kind.startswith("Namespaced"),
                }
                for kind in kinds
            ]
        }


def of_cel(kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    return {"apiVersion": "policies.kyverno.io/v1", "kind": kind, "metadata": meta(name, namespace)}


def resolve(policy: str, *there: dict[str, Any], rules: tuple[str, ...] = ("*",)) -> Any:
    server = Server(POLICY, *there, kinds=CEL_POLICIES, clock=ManualClock(NOW))
    return asyncio.run(resolved(server, (policy, rules), "shop"))


def test_the_kind_of_a_policy_is_found_by_its_name_where_one_has_it() -> None:
    assert resolve("team", of_cel("ValidatingPolicy", "team")) == ("vpol:team", ())
    namespaced = resolve("team", of_cel("NamespacedValidatingPolicy", "team", "shop"))
    assert namespaced == ("nvpol:shop/team", ())
    elsewhere = resolve("team", of_cel("NamespacedValidatingPolicy", "team", "ops"))
    assert elsewhere == ("team", ("*",))
    assert resolve("labels", of_cel("ValidatingPolicy", "labels")) == ("labels", ("*",))
    assert resolve("team", of_cel("ValidatingPolicy", "team"), rules=("r",)) == ("team", ("r",))


def test_a_name_that_several_policies_have_is_asked_about() -> None:
    with pytest.raises(Misuse) as said:
        resolve("team", of_cel("ValidatingPolicy", "team"), of_cel("MutatingPolicy", "team"))
    assert said.value.help == "write one of vpol:team, mpol:team"


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


def spans(*words: str) -> tuple[str, str]:
    """Return the start and the length that a command line asks for."""
    parser, _ = parser_of("grant")
    line = ["request", "labels/team", "Deployment/web", "--reason", "it is rebuilt", *words]
    base, _targets = _asked(request_of(GrantRequest, parser.parse_args(line)))
    return base.start, base.length


@pytest.mark.parametrize(
    ("window", "length"), [("2h", "2h"), ("2099-01-31T18:30:00Z", "1h30m"), ("90m", "90m")]
)
def test_a_window_is_a_start_with_an_end_or_a_length(window: str, length: str) -> None:
    start = "2099-01-31T17:00:00Z"

    assert spans("--window", f"{start}/{window}") == (start, length)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--window", "2099-01-31T17:00:00Z"], "is no window"),
        (["--window", "tonight/2h"], "as an instant"),
        (["--window", "2099-01-31T17:00:00Z/2099-01-31T16:00:00Z"], "is no instant to come"),
        (
            ["--window", "2099-01-31T17:00:00Z/2h", "--start", "2099-01-01T00:00:00Z"],
            "start and end",
        ),
    ],
)
def test_what_is_no_window_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(Misuse, match=said):
        spans(*words)
