"""What `doctor` finds about accounts and guards: a job that shares its account, a guard or a binding that is missing or weaker."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from controllers.kube.accounts import ACCOUNTS, SPOKEN_AS, Job, account_user
from controllers.kube.errors import Forbidden
from controllers.manifests.guards import guards
from kubectl_kpolicy import entry
from kubectl_kpolicy.cluster.cache import ClusterCache
from kubectl_kpolicy.cluster.protection import BINDINGS, POLICIES, protection
from tests.controllers.kube.fake import FakeClient

NOW = datetime(2026, 11, 22, tzinfo=UTC)
SHIPPED = {job.value: account_user("kyverno", job) for job in Job}


def world(users: Any = SHIPPED, **annotations: str) -> ClusterCache:
    told = {SPOKEN_AS: users if isinstance(users, str) else json.dumps(users)} if users else {}
    metadata = {"name": "kyverno-x", "annotations": {"kpolicy.io/owner": "kpolicy", **told, **annotations}}  # fmt: skip
    made = ClusterCache()
    made.replace("validatingwebhooks", [{"metadata": metadata, "webhooks": []}], NOW)
    return made


def server(objects: list[Any] | None = None) -> FakeClient:
    return FakeClient(*(guards() if objects is None else objects), kinds=(POLICIES, BINDINGS))


def found(client: FakeClient, at: ClusterCache | None = None) -> dict[str, tuple[str, str]]:
    made = asyncio.run(protection(client, at or world()))
    return {one.name: (one.status, one.detail) for one in made}


def altered(name: str, kind: str, change: Any) -> list[Any]:
    made = json.loads(json.dumps(guards()))
    [one] = [obj for obj in made if (obj["metadata"]["name"], obj["kind"]) == (name, kind)]
    change(one["spec"])
    return made


def test_what_is_installed_is_in_order_and_names_the_account_of_each_job() -> None:
    made = found(server())
    assert {status for status, _ in made.values()} == {"ok"}
    for name in ACCOUNTS.values():
        assert name in made["accounts"][1]


@pytest.mark.parametrize("missing", guards(), ids=lambda one: f"{one['kind']}/{one['metadata']['name']}")  # fmt: skip
def test_a_guard_or_binding_that_is_missing_is_a_failure(missing: Any) -> None:
    made = found(server([one for one in guards() if one is not missing and one != missing]))
    status, detail = made[f"guard {missing['metadata']['name']}"]
    assert status == "fail"
    assert ("binding" in detail) is (missing["kind"] == BINDINGS.kind)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (POLICIES.kind, lambda spec: spec.update(failurePolicy="Ignore")),
        (POLICIES.kind, lambda spec: spec["validations"].pop()),
        (POLICIES.kind, lambda spec: spec["validations"][0].update(expression="true")),
        (POLICIES.kind, lambda spec: spec.update(matchConditions=[{"name": "n", "expression": "false"}])),
        (POLICIES.kind, lambda spec: spec["matchConstraints"].update(excludeResourceRules=[{"resources": ["*"]}])),
        (POLICIES.kind, lambda spec: spec["matchConstraints"].update(matchPolicy="Exact")),
        (POLICIES.kind, lambda spec: spec["matchConstraints"]["resourceRules"][0].update(resourceNames=["x"])),
        (BINDINGS.kind, lambda spec: spec.update(validationActions=["Audit"])),
        (BINDINGS.kind, lambda spec: spec.update(matchResources={"namespaceSelector": {"matchLabels": {"a": "b"}}})),
        (BINDINGS.kind, lambda spec: spec.update(policyName="another")),
    ],
)  # fmt: skip
def test_a_guard_or_binding_that_is_weaker_is_a_failure(kind: str, change: Any) -> None:
    made = found(server(altered("kpolicy-grant-states", kind, change)))
    assert made["guard kpolicy-grant-states"][0] == "fail"


def exception(name: str, made: str, group: str = "kyverno.io/v2", **annotations: str) -> Any:
    metadata = {
        "name": name,
        "namespace": "shop",
        "creationTimestamp": made,
        "annotations": annotations,
    }
    return {"apiVersion": group, "kind": "PolicyException", "metadata": metadata, "spec": {}}


def test_exceptions_that_are_older_than_what_asks_their_makers_are_named() -> None:
    at, guarded = world(), server()
    created = guarded.stored(POLICIES)[0]["metadata"]["creationTimestamp"]
    early, late = "2020-01-01T00:00:00Z", created
    by_grant = {"kpolicy.io/grant": "shop/g"}
    hook = {
        "metadata": {
            "name": "kyverno-cel-exception-validating-webhook-cfg",
            "creationTimestamp": created,
            "annotations": {"kpolicy.io/owner": "kpolicy"},
        }
    }
    at.replace("validatingwebhooks", [*at.objects("validatingwebhooks"), hook], NOW)
    at.replace(
        "exceptions",
        [
            exception("forged", early, **by_grant),
            exception("fine", late, **by_grant),
            exception("plain", early),
        ],
        NOW,
    )
    at.replace(
        "celexceptions",
        [
            exception("reads", early, "policies.kyverno.io/v1"),
            exception("asked", late, "policies.kyverno.io/v1"),
        ],
        NOW,
    )

    status, detail = found(guarded, at)["exceptions: makers"]
    assert (status, detail.rpartition(": ")[2]) == ("warn", "shop/forged, shop/reads")


def test_what_an_api_server_adds_is_no_alteration() -> None:
    def add(spec: Any) -> None:
        constraints = spec["matchConstraints"]
        constraints.update(matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})
        constraints["resourceRules"][0].update(scope="*")

    made = found(server(altered("kpolicy-grant-states", POLICIES.kind, add)))
    assert made["guards"][0] == "ok"


@pytest.mark.parametrize(
    ("users", "status", "says"),
    [
        (dict.fromkeys(SHIPPED, "dev"), "warn", "jobs share an account"),
        ({**SHIPPED, "cleanup": SHIPPED["background"]}, "warn", "background, cleanup as"),
        ({**SHIPPED, "admission": "dev"}, "warn", "admission is done as an account that is not the shipped one"),
        ("", "unknown", "does not say"),
        ("no JSON", "unknown", "does not say"),
    ],
)  # fmt: skip
def test_accounts_that_are_shared_foreign_or_not_told_are_named(users: Any, status: str, says: str) -> None:  # fmt: skip
    made = found(server(), world(users))
    assert made["accounts"][0] == status
    assert says in made["accounts"][1]


def test_guards_of_another_namespace_are_compared_with_those_of_that_namespace() -> None:
    users = {job.value: account_user("policy", job) for job in Job}
    assert found(server(guards("policy")), world(users))["guards"][0] == "ok"
    assert "guards" not in found(server(guards("kyverno")), world(users))


def test_a_guard_is_mended_where_the_engine_is_and_nothing_else_is_installed_anew(capsys) -> None:
    users = {job.value: account_user("policy", job) for job in Job}
    made = asyncio.run(protection(server([]), world(users)))
    [fix] = {one.fix for one in made if one.name.startswith("guard ")}

    assert entry.main([*fix.partition(" | ")[0].split()[2:], "-o", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)["items"]
    assert found(server(printed), world(users))["guards"][0] == "ok"
    assert {one["kind"] for one in printed} == {POLICIES.kind, BINDINGS.kind}


def test_guards_that_may_not_be_read_are_unknown() -> None:
    client = server()
    client.fail("list", Forbidden("no", status=403))
    assert found(client)["guards"][0] == "unknown"


def test_a_cluster_of_kyverno_s_own_has_no_guards_of_ours() -> None:
    assert asyncio.run(protection(server([]), ClusterCache())) == []
