"""The Helm chart and the kustomize base: the same objects as `kubectl kpolicy install`, for every option that it has."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import fields

import pytest
import yaml

from controllers import installation
from controllers.manifests.bundle import installed
from controllers.manifests.choice import Choice
from kubectl_kpolicy.entry import main
from tests.packaging import chart, helm, templates

HELM = helm.program()
needs_helm = pytest.mark.skipif(HELM is None, reason="helm is not here; `python -m tests.packaging.helm` builds it")  # fmt: skip
needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not here")
PINNED = f"registry.local/kpolicy@sha256:{'ab' * 32}"

OPTIONS = {
    "nothing": ({}, []),
    "image by digest": ({"image": PINNED}, ["--image", PINNED]),
    "replicas": ({"replicas": 5}, ["--replicas", "5"]),
    "flags": (
        {"flags": ["--omitEvents=PolicyApplied,PolicySkipped", "--roles=webhook"]},
        ["--flag=--omitEvents=PolicyApplied,PolicySkipped", "--flag=--roles=webhook"],
    ),
    "a flag that YAML and templates would read otherwise": (
        {"flags": ['--seed={{ "x": yes }} # "']}, ['--flag=--seed={{ "x": yes }} # "']),
    "resources": (
        {"cpu": "2", "memory": "1Gi", "memoryLimit": "3Gi"},
        ["--cpu", "2", "--memory", "1Gi", "--memory-limit", "3Gi"],
    ),
    "pull secrets": ({"pullSecrets": ["a", "b"]}, ["--pull-secret", "a", "--pull-secret", "b"]),
    "priority class": (
        {"priorityClass": "system-cluster-critical"},
        ["--priority-class", "system-cluster-critical"],
    ),
    "no namespace": ({"namespace": False}, ["--skip-namespace"]),
    "no roles for people": ({"peopleRoles": False}, ["--skip-people-roles"]),
    "no network policy": ({"networkPolicy": False}, ["--skip-network-policy"]),
    "no disruption budget": ({"disruptionBudget": False}, ["--skip-disruption-budget"]),
    "no topology spread": ({"topologySpread": False}, ["--skip-topology-spread"]),
    "service monitor": ({"serviceMonitor": True}, ["--service-monitor"]),
    "alerts": ({"prometheusRule": True}, ["--prometheus-rule"]),
    "dashboard": ({"dashboard": True}, ["--dashboard"]),
    "report store": (
        {"reportStore": True, "reportStorage": "1Ti"},
        ["--reports=store", "--report-storage", "1Ti"],
    ),
    "report store on PostgreSQL": (
        {"reportStore": True, "reportDatabaseSecret": "reports"},
        ["--reports=store", "--report-database-secret", "reports"],
    ),
}  # fmt: skip
"""Values of the chart, and what says the same to `install`."""


def printed(*words: str) -> list[dict]:
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        assert main(["install", *words, "-o", "json"]) == 0
    return json.loads(out.getvalue())["items"]


def by_name(objects: list[dict]) -> dict[tuple[str, ...], dict]:
    named = {
        (one["apiVersion"], one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): one
        for one in objects
    }  # fmt: skip
    assert len(named) == len(objects)
    return named


def rendered(values: dict, *words: str, namespace: str = "kyverno") -> list[dict]:
    done = subprocess.run(
        [HELM, "template", "any", chart.CHARTS / chart.CHART, "-n", namespace, "-f", "-", *words],
        input=json.dumps(values), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.load_all(done.stdout, yaml.CSafeLoader) if one]


@pytest.mark.parametrize("name", OPTIONS)
@needs_helm
def test_helm_and_install_give_the_same_objects(name):
    values, words = OPTIONS[name]
    assert by_name(rendered(values, "--no-hooks")) == by_name(printed(*words, "--skip-crds"))


@needs_helm
def test_helm_and_install_give_the_same_objects_in_another_namespace_and_with_everything_chosen_at_once():
    values = {name: value for given, _ in OPTIONS.values() for name, value in given.items()}
    words = [word for _, given in OPTIONS.values() for word in given]
    flags = [f"--flag={flag}" for flag in values["flags"]]
    words = [word for word in words if not word.startswith("--flag=")] + flags
    made = rendered(values, "--no-hooks", "--include-crds", namespace="policies-of-ours")
    assert by_name(made) == by_name(printed(*words, "-n", "policies-of-ours"))


def test_every_choice_is_a_value_of_the_chart_and_a_row_of_this_table():
    named = {name for values, _ in OPTIONS.values() for name in values}
    assert named == set(templates.values())
    kept = {
        templates.value_name(one.name)
        for one in fields(Choice)
        if one.name not in templates.NOT_VALUES
    }
    assert kept == named


@needs_helm
def test_the_chart_passes_helms_own_strict_check():
    done = subprocess.run([HELM, "lint", "--strict", chart.CHARTS / chart.CHART], capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("values", [{"replicas": 0}, {"replicas": "3"}, {"image": ""}, {"replica": 2}, {"flags": "--x"}, {"removeKinds": "yes"}])  # fmt: skip
@needs_helm
def test_values_that_mean_nothing_are_refused(values):
    with pytest.raises(AssertionError, match="don't meet the specifications of the schema"):
        rendered(values)


@needs_helm
def test_a_release_runs_a_job_before_it_is_deleted_and_one_before_it_is_upgraded():
    plain = by_name(rendered({}, "--no-hooks")).keys()
    for values, removes, brings in (({}, False, True), ({"removeKinds": True, "bringKinds": False}, True, False)):  # fmt: skip
        made = [one for key, one in by_name(rendered(values)).items() if key not in plain]
        jobs = {one["metadata"]["name"]: one for one in made if one["kind"] == "Job"}
        assert set(jobs) == {"kpolicy-leave", *(["kpolicy-kinds"] if brings else [])}
        (container,) = jobs["kpolicy-leave"]["spec"]["template"]["spec"]["containers"]
        assert ("--kinds" in container["args"]) is removes
        deletable = {name for one in made if one["kind"] == "ClusterRole" and one["metadata"]["name"] == "kpolicy-leave"
                     for rule in one["rules"] for name in rule["resourceNames"]}  # fmt: skip
        assert ("clusterpolicies.kyverno.io" in deletable) is removes
        assert all("helm.sh/hook" in one["metadata"]["annotations"] for one in made)


@needs_kubectl
def test_kustomize_and_install_give_the_same_objects():
    done = subprocess.run(["kubectl", "kustomize", chart.CHARTS], capture_output=True, text=True, check=True)  # fmt: skip
    assert by_name(list(yaml.load_all(done.stdout, yaml.CSafeLoader))) == by_name(printed())


def test_hooks_may_do_only_what_they_name():
    for hook in (
        installation.leaving(),
        installation.leaving(Choice(with_kinds=False)),
        installation.bringing_kinds(),
    ):
        for rule in (*hook.rules, *hook.own_rules):
            assert "*" not in (*rule["apiGroups"], *rule["resources"], *rule["verbs"])
            assert not {"escalate", "bind", "impersonate", "deletecollection"} & set(rule["verbs"])
            assert rule.get("resourceNames") or set(rule["verbs"]) <= {"create", "list"}
    brought = {one["kind"] for one in installed(Choice(with_kinds=False))}
    deleted = {name for one in installation.leaving(Choice(with_kinds=False)).rules for name in one["resources"]}  # fmt: skip
    assert deleted & {f"{kind.lower()}s" for kind in brought} == {"clusterrolebindings"}


def test_a_template_that_would_lose_a_difference_is_refused():
    def made(choice: Choice) -> list[dict]:
        return [{"kind": "A", "text": "on" if choice.with_network_policy else "off"}]

    with pytest.raises(AssertionError, match="is another one without a choice"):
        templates.templates(made)


def test_texts_that_look_like_templates_are_written_as_texts():
    (text,) = templates.templates(lambda choice: [{"a": "{{ request.object }}", "b": [choice.image]}])  # fmt: skip
    assert text == '---\na: "{{ "{{" }} request.object }}"\nb:\n- {{ .Values.image | quote }}\n'
