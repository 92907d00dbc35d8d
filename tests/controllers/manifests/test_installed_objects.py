"""What `kubectl kpolicy install` and `uninstall` print: kinds, rights, and how the controllers run."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest
import yaml

from controllers.kube.accounts import ACCOUNTS, CONTROLLERS, Job
from controllers.manifests import SAMPLES, deploy, rbac
from controllers.manifests.bundle import Choice, installed, removed
from controllers.manifests.crds import all_kinds, definitions
from controllers.runtime.configuration import read_configuration
from engine.parse import SPECS
from engine.parse.schema import Later, ListOf, MapOf, MapOrList, Node, Shape
from kpolicy_sandbox.custom.definitions import rule_causes
from kpolicy_sandbox.custom.structural import validate
from kubectl_kpolicy.entry import main
from kubectl_kpolicy.session.expressions import EngineExpressions

EVERYTHING = Choice(with_report_store=True)
KIND_OF_EVERYTHING = {one["kind"] for one in installed(EVERYTHING)}


def _named(kind: str, objects: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
    return [one for one in objects or installed(Choice()) if one["kind"] == kind]


def _rules() -> list[dict[str, Any]]:
    return [
        rule
        for one in rbac.roles()
        if one["kind"] in {"ClusterRole", "Role"}
        for rule in one.get("rules", ())
    ]


def _printed(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    assert main(list(words)) == 0
    return list(yaml.safe_load_all(capsys.readouterr().out))


# --- kinds -----------------------------------------------------------------------------------------------------------


def test_no_two_kinds_answer_to_one_short_name() -> None:
    named = [short for one in definitions() for short in one["spec"]["names"].get("shortNames", ())]
    assert len(named) > 20
    assert sorted(named) == sorted(set(named))


@pytest.mark.parametrize(
    ("name", "short", "stored", "served"),
    [
        ("clusterpolicies.kyverno.io", "cpol", "v1", {"v1", "v2beta1"}),
        ("policies.kyverno.io", "pol", "v1", {"v1", "v2beta1"}),
        ("policyexceptions.kyverno.io", "polex", "v2", {"v2", "v2beta1", "v2alpha1"}),
        ("cleanuppolicies.kyverno.io", "cleanpol", "v2", {"v2", "v2beta1", "v2alpha1"}),
        ("clustercleanuppolicies.kyverno.io", "ccleanpol", "v2", {"v2", "v2beta1", "v2alpha1"}),
        ("updaterequests.kyverno.io", "ur", "v2", {"v2"}),
        ("globalcontextentries.kyverno.io", "gctxentry", "v2", {"v2", "v2beta1", "v2alpha1"}),
        ("policyreports.wgpolicyk8s.io", "polr", "v1alpha2", {"v1alpha2"}),
        ("clusterpolicyreports.wgpolicyk8s.io", "cpolr", "v1alpha2", {"v1alpha2"}),
        ("ephemeralreports.reports.kyverno.io", "ephr", "v1", {"v1"}),
        ("clusterephemeralreports.reports.kyverno.io", "cephr", "v1", {"v1"}),
        ("validatingpolicies.policies.kyverno.io", "vpol", "v1beta1", {"v1", "v1beta1", "v1alpha1"}),
    ],
)  # fmt: skip
def test_a_kind_has_upstreams_name_short_name_and_versions(
    name: str, short: str, stored: str, served: set[str]
) -> None:
    (found,) = [one for one in definitions() if one["metadata"]["name"] == name]
    spec = found["spec"]
    assert spec["names"]["shortNames"] == [short]
    assert {one["name"] for one in spec["versions"] if one["served"]} == served
    assert [one["name"] for one in spec["versions"] if one["storage"]] == [stored]


def test_policies_have_the_columns_that_people_know() -> None:
    (found,) = [kind for kind in all_kinds() if kind.name == "clusterpolicies.kyverno.io"]
    narrow = [column.name for column in found.columns if not column.priority]
    assert narrow == ["ADMISSION", "BACKGROUND", "READY", "AGE", "MESSAGE"]
    wide = [column.name for column in found.columns]
    assert wide[4:9] == ["FAILURE POLICY", "VALIDATE", "MUTATE", "GENERATE", "VERIFY IMAGES"]


def test_what_policies_on_images_ask_for_is_stored_with_them() -> None:
    kinds = ("ImageValidatingPolicy", "NamespacedImageValidatingPolicy")
    for one in definitions():
        if one["spec"]["names"]["kind"] in kinds:
            for version in one["spec"]["versions"]:
                spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
                block = spec["properties"]["validationConfigurations"]
                fields = {name: part["default"] for name, part in block["properties"].items()}
                assert block["default"] == {}
                assert fields == {"mutateDigest": True, "verifyDigest": True, "required": True}


def test_an_api_server_refuses_two_conditions_of_one_name_where_upstream_s_does() -> None:
    kinds = {one["spec"]["names"]["kind"]: one for one in definitions()}
    condition = {"name": "n", "expression": "true"}

    def causes(kind: str, **spec: Any) -> list[str]:
        schema = kinds[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        document = {"spec": {"policyRefs": [], "attestors": [], "validations": [], **spec}}
        return [
            one["reason"]
            for one in validate(schema, document, partial(rule_causes, EngineExpressions()))
        ]

    once, twice = {"matchConditions": [condition]}, {"matchConditions": [condition, condition]}
    assert causes("ValidatingPolicy", **once) == []
    assert causes("ValidatingPolicy", **twice) == ["FieldValueDuplicate"]
    assert causes("MutatingPolicy", variables=twice["matchConditions"]) == ["FieldValueDuplicate"]
    assert causes("ImageValidatingPolicy", **twice) == []
    assert causes("ValidatingPolicy", validationActions=["Deny", "Deny"]) == ["FieldValueDuplicate"]


def test_only_what_a_column_shows_has_a_stored_default() -> None:
    (policy,) = [one for one in definitions() if one["metadata"]["name"] == "policies.kyverno.io"]
    schema = policy["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    fields = schema["properties"]["spec"]["properties"]
    assert {name for name, field in fields.items() if "default" in field} == {
        "admission",
        "background",
    }


@pytest.mark.parametrize("kind", SPECS)
def test_the_schema_of_a_kind_knows_every_field_that_the_engine_reads(kind: str) -> None:
    (found,) = [one for one in definitions() if one["metadata"]["name"].endswith(".kyverno.io")
                and one["spec"]["names"]["kind"] == kind and one["spec"]["group"] == "kyverno.io"]  # fmt: skip
    for version in found["spec"]["versions"]:
        schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        assert _missing(SPECS[kind][version["name"]], schema, "spec") == []


def _missing(node: Node, schema: dict[str, Any], path: str) -> list[str]:
    """Return the paths of the table that the schema has no place for."""
    if schema.get("x-kubernetes-preserve-unknown-fields") or isinstance(node, MapOrList | Later):
        return []
    match node:
        case Shape():
            below = schema.get("properties", {})
            lost = [f"{path}.{name}" for name in node.fields if name not in below]
            return lost + [
                deeper
                for name, field in node.fields.items()
                if name in below
                for deeper in _missing(field, below[name], f"{path}.{name}")
            ]
        case ListOf():
            return _missing(node.items, schema["items"], f"{path}[]")
        case MapOf():
            return _missing(node.values, schema["additionalProperties"], f"{path}[*]")
        case _:
            return []


def test_every_schema_is_structural() -> None:
    for one in definitions():
        for version in one["spec"]["versions"]:
            _assert_structural(version["schema"]["openAPIV3Schema"], one["metadata"]["name"])


def _assert_structural(schema: dict[str, Any], path: str) -> None:
    assert schema.get("type") or schema.get("x-kubernetes-preserve-unknown-fields"), path
    assert not ("properties" in schema and "additionalProperties" in schema), path
    for name, field in schema.get("properties", {}).items():
        _assert_structural(field, f"{path}.{name}")
    for part in ("items", "additionalProperties"):
        if part in schema:
            _assert_structural(schema[part], f"{path}.{part}")


@pytest.mark.parametrize(
    ("given", "is_valid"),
    [(["apiCall"], True), (["kubernetesResource"], True), ([], False), (["apiCall", "kubernetesResource"], False)],
)  # fmt: skip
def test_a_global_entry_comes_from_exactly_one_source(given: list[str], is_valid: bool) -> None:
    parts = {
        "apiCall": {"urlPath": "/api/v1/pods"},
        "kubernetesResource": {"version": "v1", "resource": "pods"},
    }
    entry = {"spec": {name: parts[name] for name in given}}
    (found,) = [
        one for one in definitions() if one["metadata"]["name"] == "globalcontextentries.kyverno.io"
    ]
    for version in found["spec"]["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        found = validate(schema, entry, partial(rule_causes, EngineExpressions()))
        assert (found == []) is is_valid


# --- rights ----------------------------------------------------------------------------------------------------------


def test_no_role_has_wildcards_or_ways_to_more_rights() -> None:
    for rule in _rules():
        assert "*" not in (*rule["apiGroups"], *rule["resources"], *rule["verbs"]), rule
        assert not {"escalate", "bind", "impersonate"} & set(rule["verbs"]), rule


def test_secrets_are_read_in_the_own_namespace_only() -> None:
    cluster = [one for one in rbac.roles() if one["kind"] == "ClusterRole"]
    assert not [
        one for one in cluster for rule in one.get("rules", ()) if "secrets" in rule["resources"]
    ]


def test_reports_read_no_more_of_a_cluster_than_who_views_it() -> None:
    read = {name for rule in rbac.rules.CLUSTER[Job.REPORTS] for name in rule["resources"]}
    of_the_cluster = {"nodes", "persistentvolumes", "storageclasses", "ingressclasses"}
    rights = {"roles", "rolebindings", "clusterroles", "clusterrolebindings"}

    assert {"pods", "deployments", "namespaces", "clusterpolicies"} <= read
    assert not read & (of_the_cluster | rights | {"secrets", "pods/exec"})


@pytest.mark.parametrize(
    ("part", "labels"),
    [
        ("admission-controller", {"app": "kyverno", "app.kubernetes.io/instance": "kyverno",
                                  "app.kubernetes.io/name": "kyverno"}),
        ("background-controller", {"app": "kyverno", "app.kubernetes.io/instance": "kyverno",
                                   "app.kubernetes.io/name": "kyverno"}),
        ("cleanup-controller", {"app.kubernetes.io/component": "cleanup-controller",
                                "app.kubernetes.io/instance": "kyverno",
                                "app.kubernetes.io/name": "kyverno-cleanup-controller"}),
        ("background-controller", {"rbac.kyverno.io/aggregate-to-background-controller": "true"}),
        ("reports-controller", {"rbac.kyverno.io/aggregate-to-reports-controller": "true"}),
    ],
)  # fmt: skip
def test_rights_that_people_wrote_for_kyverno_take_effect(
    part: str, labels: dict[str, str]
) -> None:
    (role,) = [one for one in _named("ClusterRole") if one["metadata"]["name"] == f"kyverno:{part}"]
    selectors = role["aggregationRule"]["clusterRoleSelectors"]
    assert any(one["matchLabels"].items() <= labels.items() for one in selectors)


def test_every_collected_role_reaches_the_account_of_its_job_and_no_other() -> None:
    bound = {one["roleRef"]["name"] for one in _named("ClusterRoleBinding")}
    collecting = {
        one["metadata"]["name"] for one in _named("ClusterRole") if "aggregationRule" in one
    }
    assert bound == collecting
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        for binding in _named(kind):
            job = CONTROLLERS[binding["roleRef"]["name"].removeprefix("kyverno:")]
            assert binding["subjects"] == [
                {"kind": "ServiceAccount", "name": ACCOUNTS[job], "namespace": "kyverno"}
            ]


def test_there_is_an_account_for_each_job_and_only_that_of_admission_is_in_a_pod() -> None:
    accounts = {one["metadata"]["name"]: one for one in _named("ServiceAccount")}
    assert set(accounts) == set(ACCOUNTS.values())
    assert {name for name, one in accounts.items() if one.get("automountServiceAccountToken", True)} == {ACCOUNTS[Job.ADMISSION]}  # fmt: skip
    assert deploy.deployment()["spec"]["template"]["spec"]["serviceAccountName"] == ACCOUNTS[Job.ADMISSION]  # fmt: skip


WRITES = {"create", "update", "patch", "delete", "deletecollection"}


def _written(job: Job) -> set[tuple[str, str, str]]:
    """Return what a job may write: group, resource, verb."""
    rules = [*rbac.rules.CLUSTER[job], *rbac.rules.OWN_NAMESPACE.get(job, ())]
    return {
        (group, resource, verb)
        for one in rules
        for group in one["apiGroups"]
        for resource in one["resources"]
        for verb in one["verbs"]
        if verb in WRITES
    }


def test_only_the_grants_account_creates_exceptions_and_nobody_changes_one() -> None:
    for job in Job:
        verbs = {verb for _, resource, verb in _written(job) if resource == "policyexceptions"}
        assert verbs == {Job.GRANTS: {"create", "delete"}, Job.CLEANUP: {"delete"}}.get(job, set())


def test_nobody_writes_policies_grants_or_codes() -> None:
    kinds = {"clusterpolicies", "policies", "cleanuppolicies", "clustercleanuppolicies", "validatingpolicies",
             "namespacedvalidatingpolicies", "grants", "grantpolicies", "onetimecodes",
             "clusterroles", "clusterrolebindings", "serviceaccounts"}  # fmt: skip
    for job in Job:
        assert not {one for one in _written(job) if one[1] in kinds}


@pytest.mark.parametrize(
    ("resource", "jobs"),
    [
        ("secrets", {Job.ADMISSION, Job.GRANTS}),
        ("leases", {Job.ADMISSION}),
        ("auditsegments", {Job.GRANTS}),
        ("grants/status", {Job.GRANTS}),
        ("onetimecodes/status", {Job.GRANTS}),
        ("codeuses/status", {Job.GRANTS}),
        ("serviceaccounts/token", {Job.ADMISSION}),
        ("updaterequests/status", {Job.BACKGROUND}),
        ("policyreports", {Job.REPORTS}),
        ("configmaps", {Job.BACKGROUND, Job.REPORTS}),
        ("validatingwebhookconfigurations", {Job.ADMISSION}),
        ("validatingadmissionpolicies", {Job.ADMISSION}),
        ("validatingadmissionpolicybindings", {Job.ADMISSION}),
        ("mutatingadmissionpolicies", {Job.ADMISSION}),
        ("mutatingadmissionpolicybindings", {Job.ADMISSION}),
    ],
)
def test_what_is_one_job_s_is_written_by_its_account_only(resource: str, jobs: set[Job]) -> None:
    assert {job for job in Job if any(one[1] == resource for one in _written(job))} == jobs


def test_tokens_are_asked_for_by_name_and_webhooks_of_others_are_out_of_reach() -> None:
    for one in (*rbac.rules.OWN_NAMESPACE[Job.ADMISSION], *rbac.rules.CLUSTER[Job.ADMISSION]):
        if one["resources"] == ["serviceaccounts/token"]:
            assert set(one["resourceNames"]) == set(ACCOUNTS.values()) - {ACCOUNTS[Job.ADMISSION]}
        native = set(one["resources"]) <= set(rbac.rules.NATIVE_KINDS)
        if "update" in one["verbs"] and one["apiGroups"] == ["admissionregistration.k8s.io"] and not native:  # fmt: skip
            assert all(name.endswith("-webhook-cfg") for name in one["resourceNames"])


def test_every_configuration_that_is_written_may_be_updated_and_removed() -> None:
    from controllers.manifests.webhooks import WEBHOOKS
    from tests.controllers.webhook.test_configurations import made

    written = {(one["kind"], one["metadata"]["name"]) for one in made().values()}
    assert written <= {(kind, name) for kind, names in WEBHOOKS.items() for name in names}


def test_names_of_secrets_and_config_maps_are_those_that_are_used() -> None:
    from controllers.loops import notices
    from controllers.loops.reports import resuming
    from controllers.store import code_keys

    assert rbac.rules.SCAN == resuming.NAME

    assert rbac.rules.CODE_KEYS == code_keys.SECRET_NAME
    assert rbac.rules.NOTIFY == notices.SECRET_NAME


def test_a_collecting_role_leaves_its_rules_to_the_cluster() -> None:
    assert not [one for one in _named("ClusterRole") if "aggregationRule" in one and "rules" in one]


def test_namespace_admins_do_not_write_exceptions() -> None:
    for role in _named("ClusterRole"):
        if role["metadata"]["name"].startswith("kyverno:rbac:admin"):
            written = [name for rule in role["rules"] for name in rule["resources"]]
            assert "policyexceptions" not in written


# --- running ---------------------------------------------------------------------------------------------------------


def test_our_own_restricted_policies_pass_what_is_installed(
    capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    objects = installed(Choice(with_kinds=False))
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(objects))
    policies = sorted(str(path) for path in (SAMPLES / "pod-security-standards").glob("*.yaml"))
    assert main(["apply", *policies, "--resource", str(tmp_path / "all.yaml")]) == 0
    said = capsys.readouterr().out
    assert re.search(r"pass: ([1-9][0-9]*), fail: 0, warn: 0, error: 0, skip: \d+", said), said


def test_a_container_that_could_write_its_root_would_be_noticed() -> None:
    (container,) = deploy.deployment()["spec"]["template"]["spec"]["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["resources"]["limits"] == {"memory": "512Mi"}


def test_replicas_spread_and_leave_one_at_a_time() -> None:
    (one,) = _named("Deployment")
    pod = one["spec"]["template"]["spec"]
    assert one["spec"]["replicas"] == 3
    assert [spread["topologyKey"] for spread in pod["topologySpreadConstraints"]] == [
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
    ]
    (budget,) = _named("PodDisruptionBudget")
    assert budget["spec"]["selector"] == one["spec"]["selector"]
    assert budget["spec"]["maxUnavailable"] == 1


def test_the_settings_keep_system_objects_out_of_policies() -> None:
    (settings,) = _named("ConfigMap")
    filters = settings["data"]["resourceFilters"]
    for entry in ("[Event,*,*]", "[*/*,kube-system,*]", "[*/*,kyverno,*]", "[Lease,*,*]"):
        assert entry in filters


# --- commands --------------------------------------------------------------------------------------------------------


def test_install_prints_kinds_first_and_the_deployment_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    printed = _printed(capsys, "install")
    assert printed == installed(Choice())
    kinds = [one["kind"] for one in printed]
    assert kinds[0] == "CustomResourceDefinition"
    assert kinds[-1] == "Deployment"
    assert kinds.index("Namespace") < kinds.index("ServiceAccount")


def test_install_follows_its_flags(capsys: pytest.CaptureFixture[str]) -> None:
    printed = _printed(
        capsys, "install", "-n", "policy", "--image", "own/kpolicy:1", "--replicas", "2", "--skip-crds"
    )  # fmt: skip
    assert not _named("CustomResourceDefinition", printed)
    (deployment,) = _named("Deployment", printed)
    assert deployment["metadata"]["namespace"] == "policy"
    assert deployment["spec"]["replicas"] == 2
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "own/kpolicy:1"
    placed = {one["metadata"]["namespace"] for one in printed if "namespace" in one["metadata"]}
    assert placed == {"policy"}


@pytest.mark.parametrize(
    ("image", "is_fine"),
    [
        (f"own/kpolicy@sha256:{'a' * 64}", True),
        (f"own/kpolicy:1@sha256:{'a' * 64}", True),
        ("own/kpolicy:1", False),
        ("own/kpolicy", False),
        ("own/kpolicy@sha256:abc", False),
        (f"own/kpolicy:sha256:{'a' * 64}", False),
    ],
)
def test_install_warns_of_an_image_by_tag(capsys: pytest.CaptureFixture[str], image: str, is_fine: bool) -> None:  # fmt: skip
    assert main(["install", "--image", image]) == 0
    assert ("is named by a tag" in capsys.readouterr().err) is not is_fine
    assert main(["install", "--image", image, "--crds-only"]) == 0
    assert capsys.readouterr().err == ""


def test_install_of_kinds_only_prints_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    printed = _printed(capsys, "install", "--crds-only")
    assert {one["kind"] for one in printed} == {"CustomResourceDefinition"}
    assert len(printed) == len(all_kinds())


def test_the_settings_that_are_installed_are_read_without_a_problem() -> None:
    (one,) = (one for one in _named("ConfigMap") if one["metadata"]["name"] == deploy.CONFIG_MAP)
    settings = read_configuration(one)
    assert settings.problems == ()
    assert settings.webhook_annotations == {"admissions.enforcer/disabled": "true"}


def test_install_refuses_no_replicas(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["install", "--replicas", "0"]) == 2
    assert "`0` is not a number of one or more" in capsys.readouterr().err


def test_uninstall_takes_the_right_to_write_webhooks_and_then_every_webhook(
    capsys: pytest.CaptureFixture[str],
) -> None:
    printed = _printed(capsys, "uninstall", "--unchecked")
    kinds = [one["kind"] for one in printed]
    assert (kinds[0], printed[0]["metadata"]["name"]) == (
        "ClusterRoleBinding",
        "kyverno:admission-controller",
    )
    webhooks = [kind.endswith("WebhookConfiguration") for kind in kinds]
    assert webhooks[1 : 1 + sum(webhooks)] == [True] * sum(webhooks)
    assert sum(webhooks) == 11


def test_uninstall_keeps_kinds_and_takes_the_namespace_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    kinds = [one["kind"] for one in _printed(capsys, "uninstall", "--unchecked")]
    assert "CustomResourceDefinition" not in kinds
    assert kinds[-1] == "Namespace"


def test_uninstall_names_all_that_install_brings(capsys: pytest.CaptureFixture[str]) -> None:
    gone = {
        (one["kind"], one["metadata"]["name"])
        for one in _printed(capsys, "uninstall", "--unchecked", "--crds")
    }
    brought = {(one["kind"], one["metadata"]["name"]) for one in installed(EVERYTHING)}
    assert brought <= gone
    assert {kind for kind, _ in gone} - KIND_OF_EVERYTHING == {
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    }


def test_removal_of_kinds_only_still_begins_with_webhooks() -> None:
    made = removed(Choice(with_controllers=False))
    assert made[0]["kind"] == "ValidatingWebhookConfiguration"
    assert made[-1]["kind"] == "CustomResourceDefinition"
