"""Settings of the ConfigMap and of the command line."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from controllers.kube.reflector import Informers
from controllers.lookups.answering import Lookups
from controllers.lookups.egress import DEFAULT_RULES, EgressRules
from controllers.runtime.configuration import read_configuration, read_filters
from controllers.runtime.feed import options_in, options_message
from controllers.runtime.options import Options, Outside, read_options
from controllers.starting import make_runtime
from engine.model import Review, UserInfo
from tests.clock import ManualClock
from tests.controllers.kube.fake import FakeClient


def review(kind: str = "Pod", *, group: str = "", version: str = "v1", subresource: str = "", **user: Any) -> Review:  # fmt: skip
    return Review(object={}, kind=kind, group=group, version=version, subresource=subresource, user=UserInfo(**user))  # fmt: skip


def filtered(text: str, kind: str, namespace: str = "", name: str = "", **place: str) -> bool:
    settings = read_configuration({"data": {"resourceFilters": text}})
    return settings.filters_out(review(kind, **place), namespace, name)


@pytest.mark.parametrize(
    ("text", "kind", "namespace", "name", "place", "is_filtered"),
    [
        ("[Event,*,*]", "Event", "a", "b", {}, True),
        ("[Event,*,*]", "Pod", "a", "b", {}, False),
        ("[*/*,kube-system,*]", "Pod", "kube-system", "x", {}, True),
        ("[*/*,kube-system,*]", "Pod", "kube-system-2", "x", {}, False),
        ("[*/*,kube-system,*]", "Namespace", "", "kube-system", {}, True),
        ("[*/*,kube-system,*]", "Namespace", "", "other", {}, False),
        ("[*/*,kube-*,*]", "Pod", "kube-public", "x", {}, True),
        ("[*,*,keep-*]", "Secret", "a", "keep-me", {}, True),
        ("[*,*,keep-*]", "Secret", "a", "mine", {}, False),
        ("[Pod/binding,*,*]", "Pod", "a", "b", {"subresource": "binding"}, True),
        ("[Pod/binding,*,*]", "Pod", "a", "b", {}, False),
        ("[Node,*,*][Node/?*,*,*]", "Node", "", "n", {"subresource": "status"}, True),
        ("[Pod , a , b ]", "Pod", "a", "b", {}, True),
        ("[Pod]", "Pod", "x", "y", {}, True),
        ("", "Pod", "x", "y", {}, False),
        ("[apps/v1/Deployment,*,*]", "Deployment", "x", "y", {"group": "apps"}, True),
        ("[apps/v1/Deployment,*,*]", "Deployment", "x", "y", {"group": "other"}, False),
    ],
)
def test_filters(text: str, kind: str, namespace: str, name: str, place: dict[str, str], is_filtered: bool) -> None:  # fmt: skip
    assert filtered(text, kind, namespace, name, **place) is is_filtered


def test_what_was_asked_before_does_not_change_what_filters_say() -> None:
    settings = read_configuration(
        {"data": {"resourceFilters": "[Pod,shop,a?][Namespace,team-*,*][*/*,kube-system,*]"}}
    )
    asked = [
        ("Pod", "shop", "ab"), ("Pod", "shop", "b"), ("Pod", "other", "ab"), ("Pod", "kube-system", "b"),
        ("Namespace", "", "team-a"), ("Namespace", "", "shop"), ("Namespace", "", "kube-system"),
    ]  # fmt: skip
    said = [settings.filters_out(review(kind), place, name) for kind, place, name in asked]
    assert said == [True, False, False, True, True, False, True]
    assert [settings.filters_out(review(kind), place, name) for kind, place, name in asked] == said


def test_line_breaks_between_filters_do_not_matter() -> None:
    assert len(read_filters("[Pod,a,b]\n  [Node,*,*]\n")) == 2


@pytest.mark.parametrize(
    ("data", "user", "is_excluded"),
    [
        ({"excludeUsernames": "bot-*"}, {"username": "bot-1"}, True),
        ({"excludeUsernames": "bot-*"}, {"username": "jane"}, False),
        ({"excludeGroups": "system:nodes"}, {"username": "n", "groups": ("system:nodes",)}, True),
        ({"excludeRoles": "shop:*"}, {"username": "n", "roles": ("shop:x",)}, True),
        ({"excludeClusterRoles": "admin"}, {"username": "n", "cluster_roles": ("admin",)}, True),
        ({"excludeUsernames": "*,!jane"}, {"username": "jane"}, False),
        ({"excludeGroups": "staff", "excludeUsernames": "!jane"}, {"username": "jane", "groups": ("staff",)}, False),
        ({"excludeUsernames": "!jane"}, {"username": "joe"}, False),
    ],
)  # fmt: skip
def test_users_who_are_left_out(data: dict[str, str], user: dict[str, Any], is_excluded: bool) -> None:  # fmt: skip
    assert read_configuration({"data": data}).excludes_user(review(**user)) is is_excluded


def test_without_a_config_map_a_cluster_can_still_start() -> None:
    settings = read_configuration(None)

    assert settings.filters_out(review("Lease", group="coordination.k8s.io"), "shop", "x")
    assert settings.filters_out(review(), "kube-system", "x")
    assert settings.excludes_user(review(username="node", groups=("system:nodes",)))
    assert not settings.filters_out(review(), "shop", "x")


def test_what_cannot_be_read_is_told_and_counts_as_not_given() -> None:
    settings = read_configuration({"data": {"webhooks": "{", "matchConditions": "[1, {}]", "webhookLabels": "[]", "generateSuccessEvents": "TRUE"}})  # fmt: skip

    assert settings.namespace_selector is None
    assert settings.match_conditions == ({},)
    assert settings.success_events is True
    assert len(settings.problems) == 1
    assert read_configuration({"data": {"webhooks": "7"}}).problems
    assert read_configuration({"data": {"webhooks": '[{"namespaceSelector":{"a":1}}]'}}).namespace_selector == {"a": 1}  # fmt: skip


def test_the_command_line_has_upstreams_flags() -> None:
    options = read_options(
        ["--backgroundScan=false", "--backgroundScanInterval=5m", "--enablePolicyException", "--exceptionNamespace=trusted", "--omitEvents=PolicyApplied,PolicySkipped", "--forceFailurePolicyIgnore", "--ttlReconciliationInterval=10s", "--openreportsEnabled"],
        {},
    )  # fmt: skip

    assert (options.background_scan, options.scan_interval, options.ttl_interval) == (
        False,
        300,
        10,
    )
    assert options.exceptions.counts("trusted")
    assert not options.exceptions.counts("shop")
    assert options.omitted_events == {"PolicyApplied", "PolicySkipped"}
    assert options.force_ignore
    assert options.open_reports
    assert not read_options([], {}).open_reports


def test_a_pod_tells_who_it_is_through_its_environment() -> None:
    options = read_options([], {"KYVERNO_NAMESPACE": "guard", "KYVERNO_POD_NAME": "guard-1"})

    assert (options.namespace, options.identity, options.workers) == ("guard", "guard-1", 1)
    assert options.serves
    assert options.loops


@pytest.mark.parametrize(
    "wrong", ["--roles=webhook,sing", "--workers=-1", "--workers=1000", "--backgroundScan=perhaps", "--backgroundScanInterval=soon", "--drain=-1s"],
)  # fmt: skip
def test_a_command_line_that_cannot_be_read_is_refused(wrong: str, capsys: Any) -> None:
    with pytest.raises(SystemExit):
        read_options([wrong], {})
    assert "error" in capsys.readouterr().err


def test_workers_are_given_the_options_of_their_parent() -> None:
    options = read_options(["--kubeconfig=/x", "--roles=webhook", "--omitEvents=a", "--exceptionNamespace=b", "--seed=1", "--clock-ahead=4h", "--client-name=a", "--client-name=b"], {})  # fmt: skip

    assert options_in(options_message(options)) == options
    assert options.kubeconfig == Path("/x")
    assert options_in(options_message(Options())) == Options()


OUTSIDE = [
    "--egress-network=127.0.0.0/8,::1",
    "--egress-host=*.example.org",
    "--egress-host=localhost",
    "--plain-registry=registry:5000",
    "--namespaced-services",
    "--imagePullSecrets=pull,shop/other",
]


def test_nothing_but_the_usual_may_be_called_until_an_operator_says_so() -> None:
    assert read_options([], {}).outside == Outside()
    assert rules_of([]) == DEFAULT_RULES


def rules_of(arguments: list[str]) -> EgressRules:
    """Return what the gate of a process with these arguments allows."""

    async def play() -> EgressRules:
        clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
        client = FakeClient(clock=clock)
        informers = Informers(client, clock=clock)
        options = options_in(options_message(read_options([*arguments, "--seed=1"], {})))
        runtime = await make_runtime(options, client, clock, informers)
        assert isinstance(runtime.resolver, Lookups)
        gate = runtime.resolver._gate
        assert gate is not None
        await runtime.close()
        return gate.rules

    return asyncio.run(play())


def test_what_an_operator_allows_reaches_the_gate_of_every_process() -> None:
    rules = rules_of(OUTSIDE)

    assert rules.hosts == ("*.example.org", "localhost")
    assert [str(one) for one in rules.networks] == ["127.0.0.0/8", "::1/128"]
    assert rules.is_plain("registry:5000")
    assert not rules.is_plain("registry:5001")
    assert rules.namespaced_services
    assert read_options(OUTSIDE, {}).outside.pull_secrets == ("pull", "shop/other")


@pytest.mark.parametrize("text", ["10.0.0.1/8", "example.org", "1.2.3.4,nothing"])
def test_a_network_that_is_none_ends_the_start(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        read_options([f"--egress-network={text}"], {})
    assert "is not a network such as 10.0.0.0/8" in capsys.readouterr().err


def test_help_says_what_is_closed_and_what_keyless_signatures_need(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        read_options(["--help"], {})
    shown = " ".join(capsys.readouterr().out.split())
    assert "outside of the API server (closed by default)" in shown
    assert "--trusted-root FILE trusted root (JSON) of a Sigstore instance; without it, rules" in shown  # fmt: skip
