"""ValidatingAdmissionPolicies in the sandbox: our own guards hold while nothing of ours runs, and selectors choose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from controllers.kube.accounts import Job, account_user
from controllers.manifests.crds import all_kinds, definition
from controllers.manifests.guards import guards

from .serving import Api, Kubectl, config_map, needs_kubectl, run

if TYPE_CHECKING:
    from pathlib import Path

VAP = "/apis/admissionregistration.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
GRANTS = "/apis/kpolicy.io/v1alpha1/namespaces/default/grants"
MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"
PLURALS = {"ValidatingAdmissionPolicy": "validatingadmissionpolicies", "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings"}  # fmt: skip


WRITERS = ("ada", "bob", *(account_user("kyverno", job) for job in Job))


def grant(requester: str = "ada", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kpolicy.io/v1alpha1", "kind": "Grant", "metadata": {"name": "web"},
        "spec": {"requester": requester, "policy": "p", "target": {"kind": "Pod", "name": "x"}, "duration": "1h", **spec},
    }  # fmt: skip


GROUPS = ["kpolicy.io", "kyverno.io", "policies.kyverno.io"]


async def guarded(api: Api) -> None:
    """Install our kinds and guards and let everybody write grants, with nothing of ours running."""
    for kind in all_kinds():
        if kind.group in GROUPS:
            await api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(kind))  # fmt: skip
    for obj in guards():
        await api.post(f"{VAP}/{PLURALS[obj['kind']]}", obj)
    rules = [{"apiGroups": GROUPS, "resources": ["*"], "verbs": ["*"]}]
    await api.post(f"{RBAC}/clusterroles", {"metadata": {"name": "all"}, "rules": rules})
    await api.post(
        f"{RBAC}/clusterrolebindings",
        {
            "metadata": {"name": "all"},
            "roleRef": {
                "kind": "ClusterRole",
                "name": "all",
                "apiGroup": "rbac.authorization.k8s.io",
            },
            "subjects": [
                {"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}
                for name in WRITERS
            ],
        },
    )


async def decide(api: Api, by: str, *decisions: dict[str, str]) -> tuple[int, Any]:
    patch = {"spec": {"decisions": list(decisions)}}
    return await api.as_(by)("PATCH", f"{GRANTS}/web", patch, Content_Type=MERGE)


def test_nobody_approves_an_own_request_while_nothing_of_ours_runs(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        await guarded(api)
        status, made = await api.as_("ada")("POST", GRANTS, grant())
        assert status == 201, made
        status, refusal = await decide(api, "ada", {"by": "ada", "verdict": "approve"})
        assert status == 403
        assert refusal["message"] == (
            "grants.kpolicy.io \"web\" is forbidden: ValidatingAdmissionPolicy 'kpolicy-grants' with binding "
            "'kpolicy-grants' denied request: nobody approves an own request"
        )
        assert (await decide(api, "ada", {"by": "bob", "verdict": "approve"}))[0] == 403
        assert (await decide(api, "bob", {"by": "bob", "verdict": "approve"}))[0] == 200

    run(tmp_path, test)


def test_a_request_in_the_name_of_somebody_else_is_refused(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        await guarded(api)
        status, refusal = await api.as_("bob")("POST", GRANTS, grant("ada"))
        assert (status, "must be who creates the grant" in refusal["message"]) == (403, True)

    run(tmp_path, test)


BOT = "system:serviceaccount:default:bot"
ACTING = {
    "by its token": ("", "serviceaccounts/token", "create"),
    "by impersonation": ("", "serviceaccounts", "impersonate"),
    "by a Pod": ("", "pods", "create"),
}


async def allow(api: Api, name: str, *rights: tuple[str, str, str], to: tuple[str, ...]) -> None:
    rules = [
        {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
        for group, resource, verb in rights
    ]
    await api.post(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    await api.post(
        f"{RBAC}/clusterrolebindings",
        {
            "metadata": {"name": name},
            "roleRef": {
                "kind": "ClusterRole",
                "name": name,
                "apiGroup": "rbac.authorization.k8s.io",
            },
            "subjects": [
                {"kind": "User", "name": one, "apiGroup": "rbac.authorization.k8s.io"} for one in to
            ],
        },
    )


@pytest.mark.parametrize("way", ACTING)
def test_nobody_agrees_to_the_request_of_a_service_account_that_he_may_act_as(
    tmp_path: Path, way: str
) -> None:
    async def test(api: Api) -> None:
        await guarded(api)
        await allow(
            api,
            "ask",
            *(("kpolicy.io", plural, "*") for plural in ("grants", "onetimecodes")),
            to=(BOT, "cyd", "eve"),
        )
        await allow(api, "act", ACTING[way], to=("bob", "eve"))
        status, made = await api.as_(BOT)("POST", GRANTS, grant(BOT))
        assert status == 201, made
        codes = GRANTS.replace("grants", "onetimecodes")
        for by, code in (("eve", 403), ("cyd", 200), ("bob", 200)):
            status, answer = await decide(api, by, {"by": by, "verdict": "approve"})
            assert status == code, answer
            assert status == 200 or "that he may act as" in answer["message"]
            if status == 200:
                await api("DELETE", f"{GRANTS}/web")
                await api.as_(BOT)("POST", GRANTS, grant(BOT))
            target = {"kind": "Pod", "namespace": "default", "name": "x"}
            spec = {
                "user": BOT,
                "issuedBy": by,
                "expiresAt": "2020-01-01T00:00:00Z",
                "verifier": "approved",
                "binding": {"policy": "p", "rules": ["r"], "object": target},
            }
            made = {
                "apiVersion": "kpolicy.io/v1alpha1",
                "kind": "OneTimeCode",
                "metadata": {"name": f"code-{by}"},
                "spec": spec,
            }
            status, answer = await api.as_(by)("POST", codes, made)
            assert (status == 201) is (code == 200), answer

    run(tmp_path, test)


def test_only_who_may_delete_a_grant_gives_it_owners_with_which_it_goes(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        await guarded(api)
        _, made = await api("POST", MAPS, config_map("c"))
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}
        owners = {"ownerReferences": [{**owner, "uid": made["metadata"]["uid"]}]}
        verbs = (("kpolicy.io", "grants", verb) for verb in ("create", "patch"))
        await allow(api, "ask", *verbs, to=("cyd",))
        cyd, ada = api.as_("cyd"), api.as_("ada")
        owned = {**grant("cyd"), "metadata": {"name": "web", **owners}}
        assert (await cyd("POST", GRANTS, owned))[0] == 403
        assert (await cyd("POST", GRANTS, grant("cyd")))[0] == 201
        for who, body, status in (
            (cyd, {"metadata": owners}, 403),
            (ada, {"metadata": owners}, 200),
            (cyd, {"spec": {"decisions": [{"by": "cyd", "verdict": "withdraw"}]}}, 200),
            (cyd, {"metadata": {"ownerReferences": None}}, 200),
        ):
            found, answer = await who("PATCH", f"{GRANTS}/web", body, Content_Type=MERGE)
            assert found == status, answer

    run(tmp_path, test)


OF_GROUP: dict[str, dict[str, Any]] = {
    "kyverno.io/v2": {"exceptions": [{"policyName": "p", "ruleNames": ["r"]}], "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}},
    "policies.kyverno.io/v1": {"policyRefs": [{"name": "p", "kind": "ValidatingPolicy"}], "expiresAt": "2026-11-21T12:00:00Z"},
}  # fmt: skip
WIDER: dict[str, dict[str, Any]] = {
    "kyverno.io/v2": {"background": False},
    "policies.kyverno.io/v1": {"expiresAt": "2026-11-21T13:00:00Z"},
}


@pytest.mark.parametrize("version", OF_GROUP)
def test_the_end_of_a_granted_exception_only_comes_nearer(tmp_path: Path, version: str) -> None:
    place = f"/apis/{version}/namespaces/default/policyexceptions"

    def ending(hour: int, **spec: Any) -> dict[str, Any]:
        return {
            "apiVersion": version, "kind": "PolicyException",
            "metadata": {"name": "grant-web", "annotations": {"kpolicy.io/grant": "default/web", "kpolicy.io/expires-at": f"2026-11-21T{hour:02}:00:00Z"}},
            "spec": {**OF_GROUP[version], **spec},
        }  # fmt: skip

    async def test(api: Api) -> None:
        await guarded(api)
        keeper = api.as_(account_user("kyverno", Job.GRANTS))
        for other in (api, api.as_(account_user("kyverno", Job.BACKGROUND))):
            assert (await other("POST", place, ending(12)))[0] == 403
        assert (await keeper("POST", place, ending(12)))[0] == 201
        for body, status in ((ending(11), 200), (ending(12), 403), (ending(10, **WIDER[version]), 403)):  # fmt: skip
            answer, _ = await api("PATCH", f"{place}/grant-web", body, Content_Type=MERGE)
            assert answer == status, body

    run(tmp_path, test)


def policy(expression: str, **spec: Any) -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}  # fmt: skip
    given = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}], **spec}  # fmt: skip
    return {"metadata": {"name": "p"}, "spec": given}


def binding(*actions: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": list(actions), **spec}}  # fmt: skip


async def created(api: Api, made: dict[str, Any], bound: dict[str, Any], name: str = "a") -> int:
    await api.post(f"{VAP}/validatingadmissionpolicies", made)
    await api.post(f"{VAP}/validatingadmissionpolicybindings", bound)
    status, _ = await api("POST", MAPS, config_map(name, k="v"))
    return int(status)


def test_a_policy_denies_only_when_it_is_bound_to_deny(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        assert await created(api, policy("false"), binding("Warn")) == 201

    run(tmp_path, test)


def test_variables_and_conditions_count(tmp_path: Path) -> None:
    made = policy(
        "variables.size < 1",
        variables=[{"name": "size", "expression": "size(object.data)"}],
        matchConditions=[{"name": "a", "expression": "object.metadata.name == 'a'"}],
    )

    async def test(api: Api) -> None:
        assert await created(api, made, binding("Deny")) == 422
        assert (await api("POST", MAPS, config_map("other", k="v")))[0] == 201

    run(tmp_path, test)


def test_an_expression_that_fails_denies_unless_failures_are_ignored(tmp_path: Path) -> None:
    for number, (given, status) in enumerate((({}, 422), ({"failurePolicy": "Ignore"}, 201))):

        async def test(api: Api, given: Any = given, status: int = status) -> None:
            assert await created(api, policy("object.nosuch.field == 1", **given), binding("Deny")) == status  # fmt: skip

        run(tmp_path / str(number), test)


def test_a_binding_narrows_a_policy_to_namespaces(tmp_path: Path) -> None:
    narrow = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}

    async def test(api: Api) -> None:
        assert await created(api, policy("false"), binding("Deny", matchResources=narrow)) == 201
        place = MAPS.replace("default", "kube-system")
        assert (await api("POST", place, config_map("a", "kube-system", k="v")))[0] == 422

    run(tmp_path, test)


@needs_kubectl
def test_kubectl_applies_what_install_prints(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        import orjson

        kubectl = Kubectl(api.sandbox)
        text = orjson.dumps({"apiVersion": "v1", "kind": "List", "items": guards()}).decode()
        assert "kpolicy-grants created" in await kubectl.ok("apply", "-f", "-", stdin=text)
        assert "unchanged" in await kubectl.ok("apply", "-f", "-", stdin=text)

    run(tmp_path, test)


OWNER = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]


async def for_writer_and_owner(api: Api) -> None:
    for name, verbs in (("writer", ["get", "create", "update", "patch"]), ("owner", ["*"])):
        rules = [{**OWNER[0], "verbs": verbs}]
        await api.post(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
        await api.post(f"{RBAC}/clusterrolebindings", {
            "metadata": {"name": name}, "roleRef": {"kind": "ClusterRole", "name": name, "apiGroup": "rbac.authorization.k8s.io"},
            "subjects": [{"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}],
        })  # fmt: skip


def test_a_label_that_deletes_is_set_by_who_may_delete_while_nothing_of_ours_runs(tmp_path: Path) -> None:  # fmt: skip
    async def test(api: Api) -> None:
        await guarded(api)
        await for_writer_and_owner(api)
        plain, ends = config_map("plain"), config_map("ends")
        ends["metadata"]["labels"] = {"cleanup.kyverno.io/ttl": "1h"}
        sooner = {"metadata": {"labels": {"cleanup.kyverno.io/ttl": "1s"}}}
        other = {"data": {"a": "changed"}}
        for name, allowed in (("writer", 403), ("owner", 200)):
            by = api.as_(name)
            assert (await by("POST", MAPS, plain))[0] in (201, 409)
            assert (await by("POST", MAPS, ends))[0] == (201 if name == "owner" else 403)
            for target in ("plain", "ends") if name == "owner" else ("plain",):
                status, said = await by("PATCH", f"{MAPS}/{target}", sooner, Content_Type=MERGE)
                assert status == allowed, said
        status, said = await api.as_("writer")("PATCH", f"{MAPS}/ends", other, Content_Type=MERGE)
        assert status == 200, said
        status, said = await api.as_("writer")("PATCH", f"{MAPS}/ends", {"metadata": {"labels": {"cleanup.kyverno.io/ttl": "2s"}}}, Content_Type=MERGE)  # fmt: skip
        assert status == 403
        assert "only who may delete an object may set its label" in said["message"]
        gone = {"metadata": {"labels": {"cleanup.kyverno.io/ttl": None}}}
        status, said = await api.as_("writer")("PATCH", f"{MAPS}/ends", gone, Content_Type=MERGE)
        assert status == 200, said

    run(tmp_path, test)


def test_a_label_that_deletes_is_not_set_through_the_status_either(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        await guarded(api)
        rules = [{"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]}]
        await api.post(f"{RBAC}/clusterroles", {"metadata": {"name": "reporter"}, "rules": rules})
        await api.post(f"{RBAC}/clusterrolebindings", {
            "metadata": {"name": "reporter"}, "roleRef": {"kind": "ClusterRole", "name": "reporter", "apiGroup": "rbac.authorization.k8s.io"},
            "subjects": [{"kind": "User", "name": "reporter", "apiGroup": "rbac.authorization.k8s.io"}],
        })  # fmt: skip
        pods = MAPS.replace("configmaps", "pods")
        pod = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        assert (await api("POST", pods, {"apiVersion": "v1", "kind": "Pod", **pod}))[0] == 201
        reporter = api.as_("reporter")
        for labels, allowed in (({"team": "core"}, 200), ({"cleanup.kyverno.io/ttl": "1s"}, 403)):
            change = {"metadata": {"labels": labels}}
            status, said = await reporter("PATCH", f"{pods}/web/status", change, Content_Type=MERGE)
            assert status == allowed, said
        assert "only who may delete an object may set its label" in said["message"]

    run(tmp_path, test)


def test_what_a_rule_is_said_to_have_made_is_said_by_who_may_delete_it_and_have_rules_carried_out(tmp_path: Path) -> None:  # fmt: skip
    """Synchronising deletes what bears the labels of a rule and is not wanted by it, and makes what is wanted for its trigger."""

    async def test(api: Api) -> None:
        await guarded(api)
        await for_writer_and_owner(api)
        labels = {
            "app.kubernetes.io/managed-by": "kyverno", "generate.kyverno.io/policy-name": "p",
            "generate.kyverno.io/rule-name": "r", "generate.kyverno.io/trigger-uid": "gone",
        }  # fmt: skip
        plain, made = config_map("plain"), config_map("made")
        made["metadata"]["labels"] = labels
        writer, owner = api.as_("writer"), api.as_("owner")
        assert (await writer("POST", MAPS, plain))[0] == 201
        assert (await writer("POST", MAPS, made))[0] == 403
        marked = {"metadata": {"labels": labels}}
        status, said = await writer("PATCH", f"{MAPS}/plain", marked, Content_Type=MERGE)
        assert status == 403
        assert "only who may delete an object and" in said["message"]
        status, said = await owner("POST", MAPS, made)
        assert status == 403
        assert "create UpdateRequests in the engine's namespace" in said["message"]
        asking = [
            {"apiGroups": ["kyverno.io"], "resources": ["updaterequests"], "verbs": ["create"]}
        ]
        await api(
            "PATCH", f"{RBAC}/clusterroles/owner", {"rules": [*OWNER, *asking]}, Content_Type=MERGE
        )
        assert (await owner("POST", MAPS, made))[0] == 201
        for change, allowed in (
            ({"data": {"a": "changed"}}, 200),
            ({"metadata": {"labels": {"generate.kyverno.io/trigger-uid": "another"}}}, 403),
            ({"metadata": {"labels": {"team": "core"}}}, 200),
            ({"metadata": {"labels": dict.fromkeys(labels)}}, 200),
        ):
            status, said = await writer("PATCH", f"{MAPS}/made", change, Content_Type=MERGE)
            assert status == allowed, said
        made["metadata"]["name"] = "ours"
        ours = api.as_("system:serviceaccount:kyverno:kyverno-background-controller")
        assert "only who may delete" not in str(await ours("POST", MAPS, made))

    run(tmp_path, test)
