"""ValidatingAdmissionPolicies in the sandbox as a real API server judges by them: bindings, parameters, words, creation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .serving import Api, Kubectl, config_map, needs_kubectl, run

if TYPE_CHECKING:
    from pathlib import Path

VAP = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
NAMED = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}  # fmt: skip
SMALL = "!has(object.data) || size(object.data) < 2"


def policy(*validations: dict[str, Any], **spec: Any) -> dict[str, Any]:
    given = {"matchConstraints": {"resourceRules": [RULE]}, "validations": list(validations)}
    return {"metadata": {"name": "p"}, "spec": {**given, **spec}}


def binding(name: str = "b", *, of: str = "p", actions: Any = ("Deny",), **spec: Any) -> dict[str, Any]:  # fmt: skip
    given = {"policyName": of, "validationActions": list(actions)}
    return {"metadata": {"name": name}, "spec": {**given, **spec}}


async def install(api: Api, *objects: dict[str, Any]) -> None:
    for obj in objects:
        is_binding = "policyName" in obj["spec"]
        kind = "policybindings" if is_binding else "policies"
        await api.post(f"{VAP}/validatingadmission{kind}", obj)


async def refusal(api: Api, obj: dict[str, Any]) -> dict[str, Any]:
    status, answer = await api("POST", MAPS, obj)
    assert status == answer["code"], answer
    return answer


def big(name: str = "x", **labels: str) -> dict[str, Any]:
    made = config_map(name, a="1", b="2")
    made["metadata"]["labels"] = labels
    return made


def test_a_policy_that_nothing_binds_does_nothing(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        await install(api, policy({"expression": SMALL}), binding(of="another"))
        await api.post(MAPS, big())

    run(tmp_path, test)


def test_a_denial_is_worded_as_the_api_server_words_it(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        await install(api, policy({"expression": SMALL}), binding())
        answer = await refusal(api, big())
        message = f"{NAMED}failed expression: {SMALL}"
        assert (answer["code"], answer["reason"]) == (422, "Invalid")
        assert answer["message"] == f'configmaps "x" is forbidden: {message}'
        assert answer["details"] == {"name": "x", "kind": "configmaps", "causes": [{"message": message}]}  # fmt: skip

    run(tmp_path, test)


def test_the_validation_that_is_not_met_gives_message_and_reason(tmp_path: Path) -> None:
    checks = (
        {"expression": "object.metadata.name != 'y'", "message": "no y"},
        {"expression": SMALL, "messageExpression": "'too many: ' + string(size(object.data))", "reason": "RequestEntityTooLarge"},
    )  # fmt: skip

    async def test(api: Api) -> None:
        await install(api, policy(*checks), binding())
        answer = await refusal(api, big())
        assert (answer["code"], answer["reason"]) == (413, "RequestEntityTooLarge")
        assert answer["message"].endswith(f"{NAMED}too many: 2")
        answer = await refusal(api, big("y"))
        assert (answer["reason"], answer["message"].endswith(f"{NAMED}no y")) == ("Invalid", True)

    run(tmp_path, test)


def test_an_error_denies_unless_failures_are_ignored(tmp_path: Path) -> None:
    broken = {"expression": "object.spec.x == 1", "reason": "Forbidden"}

    async def test(api: Api) -> None:
        await install(api, policy(broken), binding())
        answer = await refusal(api, big())
        assert answer["reason"] == "Invalid"
        assert f"{NAMED}expression 'object.spec.x == 1' resulted in error: " in answer["message"]
        await api("PUT", f"{VAP}/validatingadmissionpolicies/p", policy(broken, failurePolicy="Ignore"))  # fmt: skip
        await api.post(MAPS, big())

    run(tmp_path, test)


def test_warnings_are_given_and_audit_says_nothing(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        check = {"expression": SMALL, "message": "too many"}
        await install(api, policy(check), binding(actions=["Warn"]), binding("c", actions=["Audit"]))  # fmt: skip
        async with api.open("POST", MAPS, big()) as answer:
            assert answer.status == 201
            [said] = answer.headers.getall("Warning")
        assert "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': too many" in said  # fmt: skip

    run(tmp_path, test)


def test_a_binding_narrows_what_its_policy_concerns(tmp_path: Path) -> None:
    selector = {"namespaceSelector": {"matchLabels": {"env": "prod"}}, "objectSelector": {"matchLabels": {"a": "b"}}}  # fmt: skip

    async def test(api: Api) -> None:
        await install(api, policy({"expression": "false"}), binding(matchResources=selector))
        await api.post("/api/v1/namespaces", {"metadata": {"name": "live", "labels": {"env": "prod"}}})  # fmt: skip
        await api.post(MAPS, big(a="b"))
        live = "/api/v1/namespaces/live/configmaps"
        for labels, status in (({"a": "b"}, 422), ({"a": "c"}, 201)):
            obj = big(**labels)
            obj["metadata"]["namespace"] = "live"
            assert (await api("POST", live, obj))[0] == status

    run(tmp_path, test)


def test_params_are_read_by_name_and_their_absence_is_what_the_binding_says(tmp_path: Path) -> None:
    kind = {"paramKind": {"apiVersion": "v1", "kind": "Secret"}}
    check = {"expression": "object.metadata.name == params.data.only", "message": "not the one"}
    reference = {"name": "limits", "parameterNotFoundAction": "Deny"}

    async def test(api: Api) -> None:
        await install(api, policy(check, **kind), binding(paramRef=reference))
        answer = await refusal(api, big())
        assert answer["message"].endswith(
            f"{NAMED}failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
        )
        secret = {"metadata": {"name": "limits"}, "data": {"only": "aWF0"}}
        await api.post("/api/v1/namespaces/default/secrets", secret)
        assert (await refusal(api, big()))["message"].endswith(f"{NAMED}not the one")
        await api("DELETE", f"{VAP}/validatingadmissionpolicybindings/b")
        await install(api, binding(paramRef={**reference, "name": "none", "parameterNotFoundAction": "Allow"}))  # fmt: skip
        await api.post(MAPS, big())

    run(tmp_path, test)


def test_every_selected_parameter_has_to_be_met(tmp_path: Path) -> None:
    kind = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
    reference = {
        "selector": {"matchLabels": {"limit": "yes"}},
        "namespace": "default",
        "parameterNotFoundAction": "Allow",
    }
    check = {"expression": "params.data.name != object.metadata.name", "message": "taken"}

    async def test(api: Api) -> None:
        await install(api, policy(check, **kind), binding(paramRef=reference))
        for name in ("one", "two"):
            made = config_map(f"limit-{name}")
            made["data"] = {"name": name}
            made["metadata"]["labels"] = {"limit": "yes"}
            await api.post(MAPS, made)
        assert (await refusal(api, big("two")))["message"].endswith(f"{NAMED}taken")
        await api.post(MAPS, big("three"))

    run(tmp_path, test)


def test_expressions_may_read_the_namespace_and_ask_for_rights(tmp_path: Path) -> None:
    rights = "authorizer.group('').resource('secrets').namespace('default').check('get').allowed()"
    check = {"expression": f"namespaceObject.metadata.name == 'default' && {rights}", "message": "no"}  # fmt: skip
    role = {"kind": "ClusterRole", "name": "edit", "apiGroup": "rbac.authorization.k8s.io"}
    rbac = "/apis/rbac.authorization.k8s.io/v1"

    async def test(api: Api) -> None:
        await install(api, policy(check), binding())
        rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]
        await api.post(f"{rbac}/clusterroles", {"metadata": {"name": "maps"}, "rules": rules})
        subject = {"kind": "User", "name": "ada", "apiGroup": "rbac.authorization.k8s.io"}
        await api.post(f"{rbac}/clusterrolebindings", {
            "metadata": {"name": "maps"}, "roleRef": {**role, "name": "maps"}, "subjects": [subject],
        })  # fmt: skip
        await api.post(MAPS, big())
        assert (await api.as_("ada")("POST", MAPS, big("y")))[0] == 422

    run(tmp_path, test)


def test_policies_and_bindings_are_not_judged_themselves(tmp_path: Path) -> None:
    everything = {"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]}  # fmt: skip

    async def test(api: Api) -> None:
        await install(api, policy({"expression": "false"}, matchConstraints=everything), binding())
        assert (await api("POST", MAPS, big()))[0] == 422
        assert (await api("DELETE", f"{VAP}/validatingadmissionpolicybindings/b"))[0] == 200
        await api.post(MAPS, big())

    run(tmp_path, test)


def test_expressions_that_do_not_compile_are_refused_at_creation(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        status, answer = await api("POST", f"{VAP}/validatingadmissionpolicies", policy({"expression": "object.("}))  # fmt: skip
        assert status == 422
        [cause] = answer["details"]["causes"]
        assert (cause["field"], cause["reason"]) == ("spec.validations[0].expression", "FieldValueInvalid")  # fmt: skip
        assert 'Invalid value: "object.(": compilation failed: ERROR: <input>:1:8' in answer["message"]  # fmt: skip
        for bad in (policy(), policy({"expression": "true"}, matchConstraints={})):
            assert (await api("POST", f"{VAP}/validatingadmissionpolicies", bad))[0] == 422
        for bad in (binding(actions=[]), binding(actions=["Deny", "Warn"])):
            assert (await api("POST", f"{VAP}/validatingadmissionpolicybindings", bad))[0] == 422

    run(tmp_path, test)


@needs_kubectl
def test_kubectl_prints_what_it_prints_of_a_real_one(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        kubectl = Kubectl(api.sandbox)
        await install(api, policy({"expression": SMALL, "message": "too many"}), binding())
        answer = await kubectl("apply", "-f", "-", stdin=big())
        assert answer.err == f'The configmaps "x" is invalid: : {NAMED}too many\n'

    run(tmp_path, test)


def mutating(*expressions: str, **spec: Any) -> dict[str, Any]:
    mutations = [
        {"patchType": "JSONPatch", "jsonPatch": {"expression": one}} for one in expressions
    ]
    given = {"matchConstraints": {"resourceRules": [RULE]}, "mutations": mutations}
    return {"metadata": {"name": "p"}, "spec": {"reinvocationPolicy": "Never", **given, **spec}}


def adding(name: str, value: str) -> str:
    return f'[JSONPatch{{op: "add", path: "/data/{name}", value: "{value}"}}]'


async def install_mutating(api: Api, policy: dict[str, Any]) -> None:
    await api.post(f"{VAP}/mutatingadmissionpolicies", policy)
    bound = {"metadata": {"name": "b"}, "spec": {"policyName": "p"}}
    await api.post(f"{VAP}/mutatingadmissionpolicybindings", bound)


def test_a_mutating_policy_changes_what_validating_ones_then_see(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        await install_mutating(api, mutating(adding("x", "1"), adding("y", "2")))
        await install(api, policy({"expression": "'y' in object.data"}), binding())
        made = await api.post(MAPS, config_map("c", a="b"))
        assert made["data"] == {"a": "b", "x": "1", "y": "2"}

    run(tmp_path, test)


def test_a_mutation_that_fails_denies_unless_failures_are_ignored(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        broken = adding("x", "1").replace("/data/x", "/nowhere/x")
        await install_mutating(api, mutating(broken))
        answer = await refusal(api, config_map("c"))
        assert "MutatingAdmissionPolicy 'p' with binding 'b' denied request: " in answer["message"]
        await api("DELETE", f"{VAP}/mutatingadmissionpolicies/p")
        await api.post(f"{VAP}/mutatingadmissionpolicies", mutating(broken, failurePolicy="Ignore"))
        await api.post(MAPS, config_map("c"))

    run(tmp_path, test)
