from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import pytest

from kpolicy_sandbox import pki
from kpolicy_sandbox.access.auth import issue, read
from kpolicy_sandbox.call import User

from .serving import Api, config_map, run

if TYPE_CHECKING:
    from pathlib import Path

MAPS = "/api/v1/namespaces/default/configmaps"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def rule(verbs: list[str], *resources: str, names: tuple[str, ...] = ()) -> dict[str, object]:
    made: dict[str, object] = {"verbs": verbs, "apiGroups": [""], "resources": list(resources)}
    return {**made, "resourceNames": list(names)} if names else made


async def grant(
    api: Api, user: str, *rules: dict[str, object], name: str = "r", namespace: str = "default"
) -> None:
    """Give a user rights in a namespace, or everywhere without one."""
    kind = "Role" if namespace else "ClusterRole"
    place = f"{RBAC}/namespaces/{namespace}/roles" if namespace else f"{RBAC}/clusterroles"
    await api.post(place, {"metadata": {"name": name}, "rules": list(rules)})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"kind": kind, "name": name, "apiGroup": "rbac.authorization.k8s.io"},
        "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
    }
    await api.post(place.replace("roles", "rolebindings"), binding)


def test_nobody_gets_in_without_a_token_that_we_signed(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        for wrong in (
            "",
            "Bearer ",
            "Bearer a.b.c",
            "Bearer é",
            "Basic x",
            api.headers["Authorization"] + "x",
        ):
            status, refusal = await api("GET", MAPS, Authorization=wrong)
            assert (status, refusal["message"]) == (401, "Unauthorized")
        async with api.open("GET", "/readyz", Authorization="") as answer:
            assert await answer.text() == "ok"

    run(tmp_path, test)


def test_a_foreign_host_name_is_refused(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        assert (await api("GET", MAPS, Host="evil.example.com"))[0] == 403

    run(tmp_path, test)


@pytest.mark.parametrize(
    "change", [lambda t: t[:-2], lambda t: t.replace(".", "-", 1), lambda _: "..", lambda _: "é.é"]
)
def test_a_token_that_was_changed_is_none(change: object) -> None:
    token = issue(b"key", User("jane", ("dev",)))
    claims = read(b"key", token)
    assert claims is not None
    assert claims["sub"] == "jane"
    assert read(b"key", change(token)) is None  # type: ignore[operator] # a function from text to text
    assert read(b"other", token) is None


def test_rights_are_those_of_the_bindings_and_no_more(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        await api.post(MAPS, config_map())
        jane = api.as_("jane")
        status, refusal = await jane("GET", MAPS)
        assert (status, refusal["reason"]) == (403, "Forbidden")
        assert refusal["message"] == (
            'configmaps is forbidden: User "jane" cannot list resource "configmaps" in API group "" in the namespace "default"'
        )
        await grant(api, "jane", rule(["get"], "configmaps", names=("a",)))
        assert (await jane("GET", f"{MAPS}/a"))[0] == 200
        assert (await jane("GET", f"{MAPS}/b"))[0] == 403
        assert (await jane("DELETE", f"{MAPS}/a"))[0] == 403
        assert (await jane("GET", "/api/v1/namespaces/kube-system/configmaps/a"))[0] == 403
        assert (await jane("GET", "/api/v1/namespaces/default/secrets"))[0] == 403

    run(tmp_path, test)


def test_subresources_need_rights_of_their_own(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        await grant(api, "jane", rule(["get", "patch"], "pods"))
        status, refusal = await api.as_("jane")("GET", "/api/v1/namespaces/default/pods/p/log")
        assert status == 403
        assert 'resource "pods/log"' in refusal["message"]

    run(tmp_path, test)


def test_impersonation_needs_the_right_to_it_and_takes_the_others_rights(tmp_path: Path) -> None:
    whoami = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

    async def test(api: Api) -> None:
        status, found = await api(
            "POST", whoami, {}, Impersonate_User="jane", Impersonate_Group="dev"
        )
        assert status == 201
        assert found["status"]["userInfo"] == {
            "username": "jane",
            "groups": ["dev", "system:authenticated"],
        }
        assert (await api("GET", MAPS, Impersonate_User="jane"))[0] == 403
        assert (await api.as_("jane")("GET", MAPS, Impersonate_User="bob"))[0] == 403
        account = "system:serviceaccount:default:default"
        _, found = await api("POST", whoami, {}, Impersonate_User=account)
        assert "system:serviceaccounts:default" in found["status"]["userInfo"]["groups"]
        await grant(
            api, "jane", rule(["impersonate"], "users", names=("bob",)), name="i", namespace=""
        )
        assert (await api.as_("jane")("POST", whoami, {}, Impersonate_User="bob"))[0] == 201
        refused = await api.as_("jane")(
            "POST", whoami, {}, Impersonate_User="bob", Impersonate_Group="system:masters"
        )
        assert refused[0] == 403

    run(tmp_path, test)


def test_nobody_gives_away_rights_that_they_do_not_have(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        roles = {
            "verbs": ["create", "update"],
            "apiGroups": ["rbac.authorization.k8s.io"],
            "resources": ["roles", "rolebindings"],
        }
        await grant(api, "jane", roles, rule(["get"], "configmaps"))
        jane = api.as_("jane")
        place = f"{RBAC}/namespaces/default/roles"
        strong = {"metadata": {"name": "strong"}, "rules": [rule(["get"], "secrets")]}
        status, refusal = await jane("POST", place, strong)
        assert status == 403
        assert "is attempting to grant RBAC permissions not currently held" in refusal["message"]
        assert '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}' in refusal["message"]
        weak = {"metadata": {"name": "weak"}, "rules": [rule(["get"], "configmaps")]}
        assert (await jane("POST", place, weak))[0] == 201
        binding = {
            "metadata": {"name": "b"},
            "roleRef": {
                "kind": "ClusterRole",
                "name": "admin",
                "apiGroup": "rbac.authorization.k8s.io",
            },
            "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}],
        }
        assert (await jane("POST", place.replace("roles", "rolebindings"), binding))[0] == 403
        bind = {
            "verbs": ["bind"],
            "apiGroups": ["rbac.authorization.k8s.io"],
            "resources": ["clusterroles"],
            "resourceNames": ["admin"],
        }
        await grant(api, "jane", bind, name="bind")
        assert (await jane("POST", place.replace("roles", "rolebindings"), binding))[0] == 201

    run(tmp_path, test)


def test_reviews_answer_for_others_as_rbac_would(tmp_path: Path) -> None:
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

    async def test(api: Api) -> None:
        await grant(api, "jane", rule(["get"], "configmaps"))
        asked = {"verb": "get", "resource": "configmaps", "namespace": "default"}
        found = await api.post(path, {"spec": {"user": "jane", "resourceAttributes": asked}})
        assert found["status"]["allowed"] is True
        assert found["status"]["reason"].startswith('RBAC: allowed by RoleBinding "r/default"')
        found = await api.post(path, {"spec": {"user": "bob", "resourceAttributes": asked}})
        assert found["status"] == {"allowed": False}
        path_asked = {
            "spec": {
                "user": "bob",
                "groups": ["system:authenticated"],
                "nonResourceAttributes": {"verb": "get", "path": "/version"},
            }
        }
        assert (await api.post(path, path_asked))["status"]["allowed"] is True
        assert (await api("POST", path, {"spec": {"user": "bob"}}))[0] == 400

    run(tmp_path, test)


def test_a_service_accounts_token_dies_with_it(tmp_path: Path) -> None:
    place = "/api/v1/namespaces/default/serviceaccounts"

    async def test(api: Api) -> None:
        await api.post(place, {"metadata": {"name": "robot"}})
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600},
        }
        made = await api.post(f"{place}/robot/token", request)
        token = made["status"]["token"]
        review = "/apis/authentication.k8s.io/v1/tokenreviews"
        found = await api.post(review, {"spec": {"token": token}})
        assert found["status"]["user"]["username"] == "system:serviceaccount:default:robot"
        await api("DELETE", f"{place}/robot")
        await api.post(place, {"metadata": {"name": "robot"}})
        assert (await api.post(review, {"spec": {"token": token}}))["status"] == {
            "authenticated": False
        }
        assert (await api("POST", f"{place}/robot/token", {"spec": {"expirationSeconds": 5}}))[
            0
        ] == 422

    run(tmp_path, test)


def test_a_client_certificate_says_who_somebody_is(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        certificate, key = pki.client_certificate(api.sandbox.files, "carol", ("ops", "dev"))
        (tmp_path / "c.crt").write_bytes(certificate)
        (tmp_path / "c.key").write_bytes(key)
        context = ssl.create_default_context(cafile=str(api.sandbox.files.authority))
        context.load_cert_chain(tmp_path / "c.crt", tmp_path / "c.key")
        url = f"{api.sandbox.url}/apis/authentication.k8s.io/v1/selfsubjectreviews"
        async with api.session.post(url, json={}, ssl=context) as answer:
            found = await answer.json()
        user = found["status"]["userInfo"]
        assert (user["username"], sorted(user["groups"])) == (
            "carol",
            ["dev", "ops", "system:authenticated"],
        )

    run(tmp_path, test)


def test_aggregated_roles_gather_the_rules_of_others(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        more = {
            "metadata": {
                "name": "more",
                "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"},
            },
            "rules": [{"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["things"]}],
        }
        await api.post(f"{RBAC}/clusterroles", more)
        for name in ("view", "edit", "admin"):
            await api.eventually(
                f"{RBAC}/clusterroles/{name}",
                lambda role: more["rules"][0] in (role.get("rules") or []),
            )

    run(tmp_path, test)


def test_only_administrators_turn_the_clock_or_make_users(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        assert (await api.as_("jane")("POST", "/sandbox/clock", {"forward": "4h"}))[0] == 403
        assert (await api.as_("jane")("POST", "/sandbox/users", {"name": "root"}))[0] == 403
        status, made = await api("POST", "/sandbox/users", {"name": "jane", "groups": ["dev"]})
        assert status == 200
        assert (await api("GET", MAPS, Authorization=f"Bearer {made['token']}"))[0] == 403
        assert (await api("POST", "/sandbox/users", {"name": "system:admin"}))[0] == 400

    run(tmp_path, test)
