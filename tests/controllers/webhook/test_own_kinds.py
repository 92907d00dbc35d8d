"""Admission of policies, exceptions, cleanup policies and the TTL label: refusals, warnings, rights."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from controllers.kube import Discovery, Forbidden, Invalid, Kind, Unreachable
from controllers.kube.kinds import PODS
from controllers.runtime.cluster_cache import ClusterCache
from controllers.runtime.metrics import Metrics
from controllers.store.policies import ExceptionRules
from controllers.webhook.policy_validation import PolicyValidator
from controllers.webhook.scopes import needs_of_policy
from engine.parse import parse_policy
from tests.controllers.kube.fake import WELL_KNOWN, FakeClient

from .staging import body, pod, policy

if TYPE_CHECKING:
    from collections.abc import Callable

CLUSTER_KIND = Kind("iam.example.org", "v1", "users", "User", False)
EVENTUALLY = Kind("apps", "v1", "deployments", "Deployment", subresources=("scale",))


def ask(
    path: str,
    obj: dict[str, Any],
    old: dict[str, Any] | None = None,
    *,
    denied: dict[str, set[str]] | None = None,
    client: FakeClient | None = None,
    rules: ExceptionRules | None = None,
    review: Callable[[Any], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return the response; `denied` are verbs by resource that we do not have, `review` says itself what we may."""

    def decide(spec: Any) -> dict[str, Any]:
        attributes = spec["resourceAttributes"]
        return {"allowed": attributes["verb"] not in (denied or {}).get(attributes["resource"], ())}

    async def go() -> dict[str, Any]:
        made = client or FakeClient()
        made.reviews["SelfSubjectAccessReview"] = review or decide
        discovery = Discovery(made, (*WELL_KNOWN, PODS, CLUSTER_KIND, EVENTUALLY))
        validator = PolicyValidator(
            ClusterCache(discovery, Metrics(), exceptions=rules), made, user="us"
        )
        fields = {"operation": "UPDATE" if old else "CREATE", "oldObject": old}
        answer = await getattr(validator, path)("", body(obj, **fields), 5.0)
        return orjson.loads(answer)["response"]

    return asyncio.run(go())


def generating(**fields: Any) -> dict[str, Any]:
    made = policy("make")
    block = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "namespace": "y", "synchronize": True, "data": {}, **fields}  # fmt: skip
    rule = {
        "name": "r",
        "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
        "generate": {key: value for key, value in block.items() if value is not None},
    }
    made["spec"] = {"rules": [rule]}
    return made


def test_a_sound_policy_is_accepted() -> None:
    assert ask("policy", policy())["allowed"] is True


def test_a_policy_that_lint_refuses_is_refused_with_its_first_error() -> None:
    bad = policy()
    bad["spec"]["rules"][0]["mutate"] = {"patchStrategicMerge": {}}
    response = ask("policy", bad)

    assert response["allowed"] is False
    assert "Multiple operations defined in the rule 'needs-team'" in response["status"]["message"]


def test_what_lint_doubts_is_a_warning() -> None:
    response = ask("policy", policy(validationFailureAction="enforce"))

    assert response["allowed"] is True
    assert any("lower case is deprecated" in text for text in response["warnings"])


def test_a_document_of_another_form_is_refused() -> None:
    assert ask("policy", policy(rules="none"))["allowed"] is False


def kinds(*names: str) -> dict[str, Any]:
    made = policy()
    made["spec"]["rules"][0]["match"] = {"any": [{"resources": {"kinds": list(names)}}]}
    return made


def test_a_rule_for_kinds_that_do_not_exist_is_refused_and_one_of_several_is_told() -> None:
    response = ask("policy", kinds("Scale"))
    assert response["allowed"] is False
    assert "unable to convert GVK to GVR for kinds Scale" in response["status"]["message"]

    response = ask("policy", kinds("Deployment", "Later"))
    assert response["allowed"] is True
    assert "Later" in response["warnings"][-1]
    assert ask("policy", kinds("*"))["allowed"] is True
    assert ask("policy", kinds("*/scale"))["allowed"] is True


def test_a_rule_that_generates_needs_all_verbs_that_it_uses() -> None:
    response = ask("policy", generating(), denied={"configmaps": {"delete", "update"}})

    assert response["allowed"] is False
    assert response["status"]["message"] == (
        "spec.rules[0].generate: us requires permissions update, delete for resource configmaps in namespace y"
    )
    assert ask("policy", generating(synchronize=False), denied={"configmaps": {"delete"}})[
        "allowed"
    ]
    assert not ask("policy", generating(synchronize=False), denied={"configmaps": {"create"}})["allowed"]  # fmt: skip


def test_a_copy_needs_the_right_to_read_its_source() -> None:
    copy = generating(kind="Secret", data=None, clone={"name": "a", "namespace": "b"}, synchronize=False)  # fmt: skip
    response = ask("policy", copy, denied={"secrets": {"get"}})

    assert response["allowed"] is False


def test_a_part_of_an_object_is_made_with_the_rights_on_the_object() -> None:
    part = parse_policy(generating(apiVersion="apps/v1", kind="Deployment/scale"))
    discovery = Discovery(FakeClient(), (EVENTUALLY,))
    assert [need.resource for need in needs_of_policy(part, discovery)] == ["deployments"]


def giving(kind: str = "RoleBinding") -> dict[str, Any]:
    return generating(
        apiVersion="rbac.authorization.k8s.io/v1",
        kind=kind,
        namespace="y" if kind == "RoleBinding" else None,
        data={"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"}},
    )  # fmt: skip


def test_a_binding_needs_the_right_to_bind_its_role() -> None:
    client = FakeClient()
    client.fail("create", Forbidden("attempting to grant permissions not currently held", status=403))  # fmt: skip
    response = ask("policy", giving(), denied={"clusterroles": {"bind"}}, client=client)

    message = response["status"]["message"]
    assert "requires permissions bind for resource clusterroles.rbac.authorization.k8s.io `admin`" in message  # fmt: skip
    assert "in namespace" not in message
    assert ask("policy", giving(), client=FakeClient())["allowed"] is True


@pytest.mark.parametrize("kind", ["RoleBinding", "ClusterRoleBinding"])
def test_a_role_all_of_which_we_hold_may_be_given_without_the_right_to_bind_it(kind: str) -> None:
    client = FakeClient()
    response = ask("policy", giving(kind), denied={"clusterroles": {"bind"}}, client=client)

    assert response["allowed"] is True
    [tried] = [call for call in client.calls if call.verb == "create"]
    assert tried.dry_run
    assert (tried.resource, tried.namespace) == (f"{kind.lower()}s", "y" if kind == "RoleBinding" else "")  # fmt: skip
    assert tried.body["roleRef"]["name"] == "admin"


def test_targets_of_mutation_need_the_right_to_change_them() -> None:
    made = policy("change")
    made["spec"] = {
        "rules": [
            {
                "name": "r",
                "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
                "mutate": {
                    "targets": [{"apiVersion": "v1", "kind": "Secret", "name": "x", "namespace": "y"}],
                    "patchStrategicMerge": {"metadata": {"labels": {"a": "b"}}},
                },
            }
        ]
    }  # fmt: skip
    assert ask("policy", made)["allowed"] is True
    response = ask("policy", made, denied={"secrets": {"update"}})
    assert "update" in response["status"]["message"]


def test_a_server_that_does_not_answer_about_rights_refuses() -> None:
    client = FakeClient()
    client.fail("review", Unreachable("no answer"), times=9)

    assert ask("policy", generating(), client=client)["allowed"] is False


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"namespace": None}, "spec.rules[0].namespace: Forbidden: target namespace must be set for a namespaced resource"),
        ({"apiVersion": "iam.example.org/v1", "kind": "User"}, "must not be set for a cluster-wide resource"),
        ({"data": None, "apiVersion": None, "kind": None, "name": None, "cloneList": {"namespace": "a", "kinds": ["v1/Secret", "iam.example.org/v1/User"]}}, "same scope"),
        ({"data": None, "apiVersion": None, "kind": None, "name": None, "cloneList": {"kinds": ["v1/Secret"]}}, "namespace of the source must be set"),
        ({"data": None, "apiVersion": None, "kind": None, "name": None, "cloneList": {"namespace": "a", "kinds": ["iam.example.org/v1/User"]}}, "must not be set"),
    ],
)  # fmt: skip
def test_targets_lie_where_their_kind_allows(fields: dict[str, Any], text: str) -> None:
    response = ask("policy", generating(**fields))

    assert response["allowed"] is False
    assert text in response["status"]["message"]


def test_a_changed_source_is_warned_of() -> None:
    before = generating(kind="Secret", data=None, clone={"name": "a", "namespace": "b"})
    after = generating(kind="Secret", data=None, clone={"name": "other", "namespace": "b"})
    response = ask("policy", after, before)

    assert response["warnings"][-1] == (
        "no synchronization will be performed to the old target resource upon policy updates"
    )
    assert "warnings" not in ask("policy", before, before)


def test_match_conditions_are_judged_by_the_server_itself() -> None:
    condition = {"name": "x", "expression": "object.keys(@)"}
    client = FakeClient()
    fine = policy(webhookConfiguration={"matchConditions": [condition]})
    assert ask("policy", fine, client=client)["allowed"] is True
    assert [call.dry_run for call in client.calls if call.verb == "create"] == [True]

    client.fail("create", Invalid("compilation failed", status=422))
    response = ask("policy", fine, client=client)
    assert response["status"]["message"] == "spec.webhookConfiguration.matchConditions: compilation failed"  # fmt: skip


def exception(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {"name": "x", "namespace": "shop"},
        "spec": {
            "exceptions": [{"policyName": "team", "ruleNames": ["needs-team"]}],
            "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
            **spec,
        },
    }


def test_exceptions_are_checked_and_warned_of_where_they_do_not_count() -> None:
    assert ask("exception", exception())["allowed"] is True
    users = {"any": [{"resources": {"kinds": ["Pod"]}, "subjects": [{"kind": "User", "name": "chip"}]}]}  # fmt: skip
    assert ask("exception", exception(match=users))["allowed"] is False
    response = ask("exception", exception(), rules=ExceptionRules(namespace="other"))
    assert response["warnings"] == ["PolicyException resource namespace must match the defined namespace."]  # fmt: skip


def cleanup(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": "ClusterCleanupPolicy",
        "metadata": {"name": "x"},
        "spec": {
            "schedule": "*/5 * * * *",
            "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
            **spec,
        },
    }


def test_cleanup_policies_need_a_schedule_that_can_be_read_and_the_right_to_delete() -> None:
    assert ask("cleanup", cleanup())["allowed"] is True
    assert ask("cleanup", cleanup(schedule="at noon"))["allowed"] is False
    response = ask("cleanup", cleanup(), denied={"pods": {"delete"}})
    assert (
        response["status"]["message"] == "cleanup controller has no permission to delete kind Pod"
    )


@pytest.mark.parametrize(
    ("names", "allowed"),
    [
        (["old"], True),
        (["old", "older"], False),
        (["old*"], False),
        (["{{ x }}"], False),
        ([], False),
    ],
)
def test_cleanup_policies_of_named_objects_need_rights_on_these_alone(names, allowed) -> None:
    policy = cleanup(match={"any": [{"resources": {"kinds": ["Pod"], "names": names}}]})

    def review(spec: Any) -> dict[str, Any]:
        return {"allowed": spec["resourceAttributes"].get("name") == "old"}

    assert ask("cleanup", policy, review=review)["allowed"] is allowed


def test_a_ttl_label_nobody_can_read_is_warned_of_and_never_refused() -> None:
    response = ask("label", pod(labels={"cleanup.kyverno.io/ttl": "soon"}))

    assert response["allowed"] is True
    assert response["warnings"][0].startswith("cleanup.kyverno.io/ttl label value cannot be parsed")
    assert "warnings" not in ask("label", pod(labels={"cleanup.kyverno.io/ttl": "30s"}))


def test_objects_that_are_going_are_let_go() -> None:
    going = policy(rules="none")
    going["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"

    assert ask("policy", going, going)["allowed"] is True


def test_what_is_going_still_acts_and_is_checked_where_it_changes() -> None:
    going = policy(rules="none")
    going["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"

    assert ask("policy", going, policy())["allowed"] is False


def of_cel(expression: str, *kinds: str) -> dict[str, Any]:
    made = policy("cel")
    rule = {
        "name": "r",
        "match": {"any": [{"resources": {"kinds": list(kinds)}}]},
        "validate": {"cel": {"expressions": [{"expression": expression, "message": "m"}]}},
    }
    made["spec"] = {"rules": [rule]}
    return made


def publishing(**answers: Any) -> FakeClient:
    client = FakeClient()
    deployment = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}}},
        "x-kubernetes-group-version-kind": [
            {"group": "apps", "version": "v1", "kind": "Deployment"}
        ],
    }
    document = {"components": {"schemas": {"Deployment": deployment}}}
    client.answers["/openapi/v3/apis/apps/v1"] = answers.get("apps", document)
    return client


def test_an_expression_that_reads_what_its_kind_does_not_have_is_accepted_with_a_warning() -> None:
    response = ask("policy", of_cel("object.replicas > 1", "Deployment"), client=publishing())

    assert response["allowed"] is True
    assert response["warnings"] == [
        "apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'replicas'; | object.replicas > 1; | ......^;"
    ]
    sound = of_cel("object.spec.replicas > 1", "Deployment")
    assert "warnings" not in ask("policy", sound, client=publishing())


def test_a_server_that_does_not_publish_schemas_costs_the_warnings_only() -> None:
    client = publishing(apps=Unreachable("no"))
    response = ask("policy", of_cel("object.replicas > 1", "Deployment"), client=client)
    assert response["allowed"] is True
    assert "warnings" not in response


def test_no_schema_is_asked_for_where_nothing_is_written_in_cel() -> None:
    client = publishing()
    ask("policy", policy(), client=client)
    ask("policy", of_cel("object.replicas > 1", "Deploy*", "Deployment/scale"), client=client)
    assert [call for call in client.calls if call.verb == "raw"] == []


def of_cel_kind(expression: str, *resources: str, **spec: Any) -> dict[str, Any]:
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": list(resources)}  # fmt: skip
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "cel"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression, "message": "m"}],
            **spec,
        },
    }


def test_expressions_of_policies_written_in_cel_are_held_against_their_kinds_too() -> None:
    conditions = [{"name": "c", "expression": "object.paused == true"}]
    variables = [{"name": "spec", "expression": "object.spec"}]
    made = of_cel_kind(
        "variables.spec.replica > 1",
        "deployments",
        "deployments/scale",
        "*",
        matchConditions=conditions,
        variables=variables,
    )
    response = ask("policy", made, client=publishing())

    assert response["allowed"] is True
    fields = [
        text.partition("undefined field ")[2].partition(";")[0] for text in response["warnings"]
    ]
    assert fields == ["'paused'", "'replica'"]
    sound = of_cel_kind("object.spec.replicas > 1", "deployments")
    assert "warnings" not in ask("policy", sound, client=publishing())


def test_the_rights_on_a_kind_that_came_to_the_server_just_now_are_asked_for() -> None:
    new = Kind("example.org", "v1", "widgets", "Widget")
    client = FakeClient(kinds=(*WELL_KNOWN, PODS, new))
    made = generating(apiVersion="example.org/v1", kind="Widget")
    response = ask("policy", made, client=client, denied={"widgets": {"create"}})

    assert response["allowed"] is False
    assert (
        "requires permissions create for resource widgets.example.org"
        in response["status"]["message"]
    )
    known = generating()
    client = FakeClient()
    ask("policy", known, client=client)
    assert [call for call in client.calls if call.verb == "raw"] == []


def test_a_rule_that_makes_other_objects_than_before_leaves_the_old_ones_alone_with_a_warning() -> (
    None
):
    response = ask("policy", generating(name="other"), generating())

    assert any("no synchronization will be performed" in text for text in response["warnings"])
    assert ask("policy", generating(data={"a": "b"}), generating()).get("warnings") is None


CALL = {"urlPath": "/api/v1/pods"}
NODES = {"version": "v1", "resource": "nodes"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"kubernetesResource": NODES, "apiCall": CALL},
            "either have Kubernetes Resource or API Call",
        ),
        ({}, "either have Kubernetes Resource or API Call"),
        ({"kubernetesResource": {"version": "v2", "resource": "x"}}, "requires a group"),
        ({"apiCall": CALL | {"service": {"url": "https://x"}}}, "either have Service or URLPath"),
        (
            {"apiCall": CALL | {"method": "GET", "data": [{"key": "a", "value": 1}]}},
            "should have method as POST",
        ),
        (
            {"apiCall": CALL | {"refreshInterval": "0m0s"}},
            "refresh interval greater than 0 seconds",
        ),
        (
            {"apiCall": CALL, "projections": [{"name": "n", "jmesPath": "a["}]},
            "spec.projections[0].jmesPath",
        ),
    ],
)
def test_an_entry_for_all_rules_that_can_never_be_loaded_is_refused(
    spec: dict[str, Any], expected: str
) -> None:
    entry = {
        "apiVersion": "kyverno.io/v2beta1",
        "kind": "GlobalContextEntry",
        "metadata": {"name": "e"},
    }
    response = ask("entry", entry | {"spec": spec})

    assert response["allowed"] is False
    assert expected in response["status"]["message"]


@pytest.mark.parametrize(
    "spec", [{"kubernetesResource": NODES}, {"apiCall": CALL | {"refreshInterval": "10s"}}]
)
def test_an_entry_that_can_be_loaded_is_accepted(spec: dict[str, Any]) -> None:
    entry = {
        "apiVersion": "kyverno.io/v2beta1",
        "kind": "GlobalContextEntry",
        "metadata": {"name": "e"},
    }

    assert ask("entry", entry | {"spec": spec})["allowed"] is True
