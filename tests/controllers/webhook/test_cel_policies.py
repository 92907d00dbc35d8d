"""Policies written in CEL in the webhook: verdicts, words, exceptions, configurations, and what is refused at creation."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import orjson

from controllers.kube import Discovery
from controllers.kube.kinds import PODS
from controllers.runtime.cluster_cache import ClusterCache
from controllers.runtime.configuration import read_configuration
from controllers.runtime.metrics import Metrics
from controllers.runtime.policy_cache import PolicyCache
from controllers.store.policies import ExceptionRules
from controllers.webhook.address import Address
from controllers.webhook.configurations import configurations
from controllers.webhook.policy_validation import PolicyValidator
from engine.evaluate import CompiledPolicy
from tests.controllers.kube.fake import VALIDATING_POLICIES, WELL_KNOWN, FakeClient

from .staging import DEPLOYMENTS, NOW, body, pod, policy, staged

if TYPE_CHECKING:
    import pytest

LABELLED = "has(object.metadata.labels) && 'team' in object.metadata.labels"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"]}  # fmt: skip
LANE, OPEN = "fail/vpol", "ignore/vpol"


def vpol(
    name: str = "team", expression: str = LABELLED, namespace: str = "", version: str = "v1", **spec: Any
) -> dict[str, Any]:  # fmt: skip
    """Return a ValidatingPolicy, or with a namespace a NamespacedValidatingPolicy."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": f"policies.kyverno.io/{version}",
        "kind": "NamespacedValidatingPolicy" if namespace else "ValidatingPolicy",
        "metadata": metadata,
        "spec": {
            "matchConstraints": {"resourceRules": [RULE]},
            "validations": [{"expression": expression, "message": "a team is needed"}],
            **spec,
        },
    }


def exception(name: str = "e", policy_name: str = "team", kind: str = "ValidatingPolicy", **spec: Any) -> dict[str, Any]:  # fmt: skip
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "PolicyException",
        "metadata": {"name": name, "namespace": "ops"},
        "spec": {"policyRefs": [{"name": policy_name, "kind": kind}], **spec},
    }


def answer(*objects: dict[str, Any], route: str = LANE, obj: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:  # fmt: skip
    """Return the response to the creation of a Pod."""

    async def go() -> dict[str, Any]:
        async with staged(*objects) as stage:
            response = await stage.ask("validate", body(obj or pod(), **fields), route)
            await stage.background_queue.finish()
            response["said"] = [one for _, found, _ in stage.sink.results_ for one in found]
            return response

    return asyncio.run(go())


def test_a_pod_that_does_not_meet_a_policy_is_denied_in_the_words_of_upstream() -> None:
    response = answer(vpol())

    assert response["allowed"] is False
    assert response["status"]["message"] == "Policy team failed: a team is needed"


def test_all_policies_that_deny_are_named() -> None:
    response = answer(vpol(), vpol("second", "object.metadata.name == 'x'"))

    assert response["status"]["message"] == (
        "Policy second failed: a team is needed; Policy team failed: a team is needed"
    )


def test_a_pod_that_meets_the_policy_is_admitted() -> None:
    assert answer(vpol(), obj=pod(labels={"team": "blue"}))["allowed"] is True


def test_every_served_version_is_enforced() -> None:
    for version in ("v1", "v1beta1", "v1alpha1"):
        assert answer(vpol(version=version))["allowed"] is False


def test_audit_admits_without_a_word_and_is_evaluated_afterwards() -> None:
    response = answer(vpol(validationActions=["Audit"]))

    assert (response["allowed"], response.get("warnings")) == (True, None)
    assert [(one.policy, one.status) for one in response["said"]] == [("team", "fail")]


def test_warn_admits_with_a_warning() -> None:
    response = answer(vpol(validationActions=["Warn"]))

    assert response["allowed"] is True
    assert response["warnings"] == ["Policy team failed: a team is needed"]


def test_an_error_denies_where_the_policy_fails_closed_and_only_there() -> None:
    broken = vpol(expression="object.spec.nothing == 'x'")
    response = answer(broken)
    assert response["allowed"] is False
    assert response["status"]["message"].startswith("Policy team error: error: no such key: ")

    broken["spec"]["failurePolicy"] = "Ignore"
    assert answer(broken, route=OPEN)["allowed"] is True
    assert answer(vpol(failurePolicy="Ignore"), route=OPEN)["allowed"] is False


def test_match_conditions_leave_objects_out() -> None:
    spared = [{"name": "not-web", "expression": "object.metadata.name != 'web'"}]

    assert answer(vpol(matchConditions=spared))["allowed"] is True
    assert answer(vpol(matchConditions=spared), obj=pod("other"))["allowed"] is False


def test_a_namespaced_policy_holds_in_its_namespace_only() -> None:
    mine = vpol(namespace="shop")

    here = answer(mine, route="fail/nvpol")
    assert here["status"]["message"] == "Policy team failed: a team is needed"
    assert answer(mine, route="fail/nvpol", obj=pod(namespace="elsewhere"))["allowed"] is True


def test_a_policy_that_is_not_for_admission_is_not_asked() -> None:
    assert answer(vpol(evaluation={"admission": {"enabled": False}}))["allowed"] is True


def test_a_policy_for_other_documents_is_not_asked() -> None:
    assert answer(vpol(evaluation={"mode": "JSON"}))["allowed"] is True


def test_classic_policies_of_the_same_name_are_kept_apart() -> None:
    response = answer(vpol(), policy("team"))
    assert response["status"]["message"] == "Policy team failed: a team is needed"

    response = answer(vpol(), policy("team"), route="fail")
    assert "team:\n  needs-team: " in response["status"]["message"]


def test_an_exception_lets_the_object_through() -> None:
    assert answer(vpol(), exception())["allowed"] is True
    assert answer(vpol(), exception(kind="NamespacedValidatingPolicy"))["allowed"] is False
    assert answer(vpol(), exception(policy_name="other"))["allowed"] is False


def test_an_exception_counts_for_what_it_is_written_for() -> None:
    narrow = exception(
        matchConditions=[{"name": "only", "expression": "object.metadata.name == 'x'"}]
    )

    assert answer(vpol(), narrow)["allowed"] is False
    assert answer(vpol(), narrow, obj=pod("x"))["allowed"] is True


def test_an_exception_counts_until_the_very_instant_of_its_end() -> None:
    async def go() -> list[bool]:
        ends = (NOW + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        async with staged(vpol(), exception(expiresAt=ends)) as stage:
            found = [(await stage.ask("validate", body(pod()), LANE))["allowed"]]
            await stage.client.clock.advance(3599)
            found.append((await stage.ask("validate", body(pod()), LANE))["allowed"])
            await stage.client.clock.advance(1)
            found.append((await stage.ask("validate", body(pod()), LANE))["allowed"])
            return found

    assert asyncio.run(go()) == [True, True, False]


def test_an_end_that_cannot_be_read_covers_nothing() -> None:
    assert answer(vpol(), exception(expiresAt="soon"))["allowed"] is False


def test_exceptions_count_from_the_namespace_that_is_set_only() -> None:
    cache = PolicyCache(ExceptionRules(namespace="trusted"))
    cache.put_policy(vpol())
    cache.put_exception(exception())
    assert cache.snapshot.cel_exceptions == ()

    trusted = exception()
    trusted["metadata"]["namespace"] = "trusted"
    cache.put_exception(trusted)
    assert [one.key for one in cache.snapshot.cel_exceptions] == ["trusted/e"]


def test_a_policy_compiles_again_when_an_exception_for_it_comes_and_goes() -> None:
    cache = PolicyCache()
    cache.put_policy(vpol())
    cache.put_policy(vpol("other"))
    before = cache.snapshot.compiled
    cache.put_exception(exception())
    between = cache.snapshot.compiled
    cache.remove_exception(exception())

    assert between["vpol:team"] is not before["vpol:team"]
    assert between["vpol:other"] is before["vpol:other"]
    assert cache.snapshot.compiled["vpol:team"] is not between["vpol:team"]


def test_an_exception_that_does_not_compile_neither_freezes_nor_breaks_the_policies_it_names() -> (
    None
):
    cache = PolicyCache()
    broken = exception("broken", matchConditions=[{"name": "c", "expression": "object.("}])
    for one in (exception("sound"), broken):
        cache.put_exception(one)
    cache.put_policy(vpol())
    before = cache.snapshot
    cache.put_policy(vpol(expression="false"))

    assert "cel:ops/broken" in cache.snapshot.problems
    assert [one.key for one in cache.snapshot.cel_exceptions] == ["ops/sound"]
    assert cache.snapshot.compiled["vpol:team"] is not before.compiled["vpol:team"]
    assert "vpol:team" not in cache.snapshot.problems


def test_a_policy_that_denies_does_not_keep_what_others_say_out_of_reports() -> None:
    denies = vpol("denies", expression="true", validationActions=["Deny"])
    response = answer(denies, vpol("audits", validationActions=["Audit"]))

    assert response["allowed"] is True
    assert ("audits", "fail") in [(one.policy, one.status) for one in response["said"]]


def test_a_changed_policy_that_does_not_compile_leaves_the_last_one_in_force() -> None:
    cache = PolicyCache()
    cache.put_policy(vpol())
    _ = cache.snapshot
    cache.put_policy(vpol(expression="object.("))

    assert "does not compile" in cache.snapshot.problems["vpol:team"].message
    assert "vpol:team" in cache.snapshot.compiled


def webhooks(*policies: dict[str, Any]) -> dict[str, Any]:
    """Return the webhooks for resources by name."""
    cache = PolicyCache()
    for one in policies:
        cache.put_policy(one)
    assert not cache.snapshot.problems
    discovery = Discovery(FakeClient(), (*WELL_KNOWN, PODS, DEPLOYMENTS))
    documents = configurations(
        cache.snapshot.routes, discovery, read_configuration(None), Address(b"CA")
    )
    return {
        one["name"]: one
        for document in documents
        if "resource-validating" in document["metadata"]["name"]
        for one in document["webhooks"]
    }


def test_webhooks_ask_for_what_match_constraints_name_and_autogen_adds() -> None:
    found = webhooks(vpol(), policy())

    assert sorted(found) == ["validate.kyverno.svc-fail", "vpol.validate.kyverno.svc-fail"]
    hook = found["vpol.validate.kyverno.svc-fail"]
    assert hook["clientConfig"]["service"]["path"] == f"/vpol/{vpol()['metadata']['name']}"
    assert hook["failurePolicy"] == "Fail"
    asked = {(one["apiGroups"][0], one["resources"][0]): one for one in hook["rules"]}
    places = {place for one in hook["rules"] for place in one["resources"]}
    assert places >= {"pods", "deployments", "cronjobs", "jobs"}
    assert asked["", "pods"] == {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["pods"],
        "scope": "*",
    }


def test_each_failure_policy_has_a_webhook_that_names_its_own_policies() -> None:
    found = webhooks(vpol("c"), vpol("a"), vpol("b", failurePolicy="Ignore"))

    paths = {name: hook["clientConfig"]["service"]["path"] for name, hook in found.items()}
    assert paths == {
        "vpol.validate.kyverno.svc-fail": "/vpol/a/c",
        "vpol.validate.kyverno.svc-ignore": "/vpol/b",
    }
    assert {hook["failurePolicy"] for hook in found.values()} == {"Fail", "Ignore"}


def test_sorting_policies_into_webhooks_compares_none_with_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> bool:
        raise AssertionError("with many policies every pair of them is compared")

    monkeypatch.setattr(CompiledPolicy, "__eq__", refuse)

    found = webhooks(*(vpol(name, webhookConfiguration={"timeoutSeconds": 9}) for name in "ab"))

    assert len(found) == 2


def test_a_policy_with_a_time_out_or_exact_matching_has_a_webhook_of_its_own() -> None:
    exact = {"matchPolicy": "Exact", "resourceRules": [RULE]}
    found = webhooks(
        vpol("a"),
        vpol("b", webhookConfiguration={"timeoutSeconds": 20}),
        vpol("c", matchConstraints=exact),
    )

    assert sorted(found) == [
        "vpol.validate.kyverno.svc-fail",
        "vpol.validate.kyverno.svc-fail-finegrained-b",
        "vpol.validate.kyverno.svc-fail-finegrained-c",
    ]
    assert found["vpol.validate.kyverno.svc-fail-finegrained-b"]["timeoutSeconds"] == 20
    own = found["vpol.validate.kyverno.svc-fail-finegrained-c"]
    assert own["matchPolicy"] == "Exact"
    assert own["clientConfig"]["service"]["path"] == "/vpol/c"


def conditions_of(**spec: Any) -> dict[str, str]:
    """Return the match conditions that the API server tests for a policy, by name."""
    found = webhooks(vpol("a", **spec))
    [hook] = found.values()
    return {one["name"]: one["expression"] for one in hook.get("matchConditions") or ()}


def test_conditions_that_the_api_server_can_test_are_tested_there_first() -> None:
    rule = {**RULE, "apiGroups": ["apps"], "resources": ["deployments"]}
    named = [{"name": "n", "expression": "object.metadata.name != 'x'"}]
    constrained = {"resourceRules": [rule]}

    assert conditions_of(matchConstraints=constrained, matchConditions=named) == {
        "n": "object.metadata.name != 'x'"
    }
    for text in ("variables.x", "namespaceObject.metadata.name == 'x'", "image('a').tag() == 'b'"):
        other = [{"name": "n", "expression": text}]
        assert conditions_of(matchConstraints=constrained, matchConditions=other) == {}


def test_conditions_of_pod_policies_are_guarded_by_the_kinds_that_they_are_written_for() -> None:
    named = [{"name": "n", "expression": "object.spec.hostNetwork"}]
    found = conditions_of(
        matchConditions=named, autogen={"podControllers": {"controllers": ["cronjobs", "jobs"]}}
    )

    assert found == {
        "autogen-n": "!((object.apiVersion == 'v1' && object.kind =='Pod')) || (object.spec.hostNetwork)",
        "autogen-cronjobs-n": "!((object.apiVersion == 'batch/v1' && object.kind =='CronJob')) || (object.spec.jobTemplate.spec.template.spec.hostNetwork)",
        "autogen-defaults-n": "!((object.apiVersion == 'batch/v1' && object.kind =='Job')) || (object.spec.template.spec.hostNetwork)",
    }
    deleting = {"resourceRules": [{**RULE, "operations": ["DELETE"]}]}
    assert conditions_of(matchConditions=named, matchConstraints=deleting) == {}


def test_conditions_with_names_that_the_api_server_refuses_are_tested_here_only() -> None:
    rule = {**RULE, "apiGroups": ["apps"], "resources": ["deployments"]}
    text = "object.metadata.name != 'x'"
    named = [{"name": one, "expression": text} for one in ("is it named", "n", "n" * 64)]
    about_pods = [{"name": "n" * 50, "expression": text}]

    assert conditions_of(matchConstraints={"resourceRules": [rule]}, matchConditions=named) == {
        "n": text
    }
    assert list(conditions_of(matchConditions=about_pods)) == ["autogen-" + "n" * 50]


def test_selectors_reach_the_webhook_and_tell_webhooks_apart() -> None:
    selected = {"resourceRules": [RULE], "objectSelector": {"matchLabels": {"a": "b"}}}
    one = webhooks(vpol("a", matchConstraints=selected))
    two = webhooks(vpol("a", matchConstraints=selected), vpol("b"))

    [hook] = one.values()
    assert hook["name"] == "vpol.validate.kyverno.svc-fail"
    assert hook["objectSelector"] == {"matchLabels": {"a": "b"}}
    assert len(two) == 2
    assert all(name.startswith("vpol.validate.kyverno.svc-fail-") for name in two)


def test_a_path_is_answered_by_the_policies_that_have_its_names_now() -> None:
    cache = PolicyCache()
    for one in (vpol("a"), vpol("b", failurePolicy="Ignore"), vpol("c")):
        cache.put_policy(one)

    def asked(lane: str) -> list[str]:
        route = cache.snapshot.routes.find(lane)
        assert route is not None
        return [one.policy.name for one in route.blocking.policies]

    assert asked("vpol/a/c/gone") == ["a", "c"]
    cache.remove_policy(vpol("c"))
    assert asked("vpol/a/c") == ["a"]
    ignoring, failing = (cache.snapshot.routes.find(f"vpol/{name}") for name in "ba")
    assert ignoring is not None
    assert failing is not None
    assert (ignoring.failure_policy, failing.failure_policy) == ("Ignore", "Fail")
    assert cache.snapshot.routes.find("xpol/a") is None


def constrained(*rules: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    given = {"matchConstraints": {"resourceRules": list(rules)}}
    found = webhooks(vpol(**given, **fields))
    name = (
        "nvpol.validate.kyverno.svc-fail"
        if "namespace" in fields
        else "vpol.validate.kyverno.svc-fail"
    )
    return found[name]["rules"] if found else []


def test_rules_are_brought_into_the_form_that_api_servers_accept() -> None:
    rule = {
        "apiGroups": ["apps", "*"],
        "operations": ["UPDATE", "*"],
        "resources": ["pods", "*", "pods/exec", "pods/*"],
        "resourceNames": ["x"],
    }

    assert constrained(rule, rule) == [
        {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*", "pods/*"], "scope": "*"}
    ]  # fmt: skip
    assert constrained({**rule, "resources": ["*/*", "pods"]})[0]["resources"] == ["*/*"]
    assert constrained({**rule, "resources": []}) == []


def test_policies_of_a_namespace_ask_for_nothing_outside_of_namespaces() -> None:
    assert {one["scope"] for one in constrained(RULE, namespace="shop")} == {"Namespaced"}
    nodes = {**RULE, "resources": ["nodes"], "scope": "Cluster"}
    assert constrained(nodes, namespace="shop") == []


def test_policies_that_no_request_can_concern_have_no_webhook() -> None:
    assert constrained(RULE, evaluation={"mode": "Envoy"}) == []
    assert constrained(RULE, evaluation={"admission": {"enabled": False}}) == []


def at_desk(path: str, obj: dict[str, Any], old: dict[str, Any] | None = None, rules: ExceptionRules | None = None) -> dict[str, Any]:  # fmt: skip
    async def go() -> dict[str, Any]:
        discovery = Discovery(FakeClient(), (*WELL_KNOWN, PODS, VALIDATING_POLICIES))
        validator = PolicyValidator(
            ClusterCache(discovery, Metrics(), exceptions=rules), FakeClient()
        )
        sent = body(obj, operation="UPDATE" if old else "CREATE", oldObject=old)
        return orjson.loads(await getattr(validator, path)("", sent, 5.0))["response"]

    return asyncio.run(go())


def refusal(path: str, obj: dict[str, Any]) -> str:
    response = at_desk(path, obj)
    assert response["allowed"] is False
    return response["status"]["message"]


def test_a_sound_policy_is_accepted_and_a_resource_that_is_not_there_is_told() -> None:
    assert at_desk("policy", vpol())["allowed"] is True
    found = at_desk("policy", vpol(matchConstraints={"resourceRules": [{**RULE, "resources": ["widgets"]}]}))  # fmt: skip
    assert found["allowed"] is True
    assert "does not have the resources widgets" in found["warnings"][0]


def test_an_expression_that_does_not_compile_is_refused_with_its_place() -> None:
    assert refusal("policy", vpol(expression="object.spec ==")) == (
        'spec.validations[0].expression: Invalid value: "object.spec ==": compilation failed: '
        "ERROR: <input>:1:15: syntax error: unexpected `<EOF>`"
    )
    assert "undeclared reference to 'objct'" in refusal("policy", vpol(expression="objct.spec"))
    assert refusal("policy", vpol(expression="variables.x == 1")).endswith("undefined field 'x'")


def test_everything_that_is_wrong_is_named_and_warned_of() -> None:
    missing = "spec.matchConstraints: Required value: a matchConstraints with at least one resource rule is required"  # fmt: skip
    found = at_desk("policy", vpol(matchConstraints={}))
    assert (found["status"]["message"], found["warnings"]) == (missing, [missing])
    found = at_desk("policy", vpol(matchConstraints={}, expression="objct.spec"))
    assert found["warnings"][0] == missing
    assert found["status"]["message"] == f"[{', '.join(found['warnings'])}]"


def test_a_policy_that_was_accepted_once_may_keep_its_spec() -> None:
    broken = vpol(expression="object.spec ==")
    assert at_desk("policy", broken, broken)["allowed"] is True
    assert at_desk("policy", broken, vpol())["allowed"] is False


def test_a_policy_of_another_form_is_refused() -> None:
    assert "validationActions" in refusal("policy", vpol(validationActions=["Block"]))
    assert "spec.validations" in refusal("policy", vpol(validations=[]))


def test_exceptions_are_checked_and_warned_of_where_they_would_not_count() -> None:
    assert at_desk("exception", exception())["allowed"] is True
    assert "must be an instant" in refusal("exception", exception(expiresAt="soon"))
    assert "spec.policyRefs[0].kind" in refusal("exception", exception(kind="ClusterPolicy"))
    bad = [{"name": "x", "expression": "nobody"}]
    assert "spec.matchConditions[0].expression" in refusal("exception", exception(matchConditions=bad))  # fmt: skip
    found = at_desk("exception", exception(), rules=ExceptionRules(namespace="trusted"))
    assert found["warnings"] == [
        "PolicyException resource namespace must match the defined namespace."
    ]
