"""`apply --cluster` and `--registry`: objects and answers from a running API server and a running registry."""

from __future__ import annotations

import asyncio

import pytest

from controllers.kube import connect, load_access
from controllers.kube.kinds import CONFIG_MAPS, NAMESPACES
from kpolicy_sandbox.server import Sandbox
from kubectl_kpolicy.entry import main
from kubectl_kpolicy.session.expressions import EngineExpressions
from tests.controllers.kube.apiserver import serving
from tests.controllers.lookups.fake_registry import FakeRegistry

from .backgrounds import in_background

POLICY = """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: require-team}
spec:
  rules:
  - name: check
    match:
      any:
      - resources:
          kinds: [ConfigMap]
          names: ["c-*"]
          namespaceSelector: {matchLabels: {checked: "yes"}}
    context:
    - name: teams
      configMap: {name: teams, namespace: ops}
    - name: count
      apiCall: {urlPath: "/api/v1/namespaces/{{ request.namespace }}/configmaps", jmesPath: "length(items)"}
    validate:
      message: "{{ request.object.metadata.labels.team || 'none' }} of {{ count }} is not in {{ teams.data.all }}"
      deny:
        conditions:
          all:
          - {key: "{{ request.object.metadata.labels.team || 'none' }}", operator: NotEquals, value: "{{ teams.data.all }}"}
"""
IMAGES = """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: no-root}
spec:
  rules:
  - name: check
    match: {any: [{resources: {kinds: [Pod]}}]}
    context:
    - name: image
      imageRegistry: {reference: "{{ request.object.spec.containers[0].image }}"}
    validate:
      message: "runs as {{ image.configData.config.User }}"
      deny:
        conditions:
          all:
          - {key: "{{ image.configData.config.User }}", operator: Equals, value: root}
"""


def config_map(name: str, namespace: str, team: str = "", **data: str):
    metadata = {"name": name, "namespace": namespace, "labels": {"team": team} if team else {}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def filled(kubeconfig) -> None:
    async with connect(load_access(kubeconfig)) as client:
        for name, labels in (("dev", {"checked": "yes"}), ("ops", {"checked": "yes"}), ("free", {})):  # fmt: skip
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}  # fmt: skip
            await client.create(NAMESPACES, namespace)
        for obj in (
            config_map("teams", "ops", all="blue"),
            config_map("c-good", "dev", "blue"),
            config_map("c-bad", "dev"),
            config_map("c-other", "ops", "red"),
            config_map("c-free", "free"),
        ):
            await client.create(CONFIG_MAPS, obj)


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory):
    """Return the kubeconfig of a sandbox with some ConfigMaps."""
    folder = tmp_path_factory.mktemp("sandbox")
    with in_background(Sandbox.start(folder, expressions=EngineExpressions())) as sandbox:
        asyncio.run(filled(sandbox.kubeconfig))
        yield sandbox.kubeconfig


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return str(path)


def applied(capsys, kubeconfig, *words: str) -> tuple[int, str, str]:
    code = main(["apply", "--cluster", "--kubeconfig", str(kubeconfig), *words])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_the_objects_of_a_cluster_are_judged_with_its_answers(kubeconfig, policy, capsys) -> None:
    code, out, err = applied(capsys, kubeconfig, policy)

    assert (code, err) == (1, "")
    assert "policy require-team -> resource dev/ConfigMap/c-bad failed:" in out
    assert "none of 3 is not in blue" in out
    assert "resource ops/ConfigMap/c-other failed:" in out
    assert "c-free" not in out
    assert "pass: 1, fail: 2" in out


def test_one_namespace_can_be_named(kubeconfig, policy, capsys) -> None:
    code, out, _ = applied(capsys, kubeconfig, policy, "-n", "ops")

    assert code == 1
    assert "pass: 0, fail: 1" in out


def test_objects_can_be_named(kubeconfig, policy, capsys) -> None:
    code, out, _ = applied(capsys, kubeconfig, policy, "-r", "c-good")

    assert code == 0
    assert "pass: 1, fail: 0" in out


def test_files_are_judged_beside_the_cluster(kubeconfig, policy, capsys, tmp_path) -> None:
    path = tmp_path / "object.yaml"
    path.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c-new, namespace: dev}\n")

    _, out, _ = applied(capsys, kubeconfig, policy, "-r", str(path))

    assert "resource dev/ConfigMap/c-new failed:" in out
    assert "pass: 1, fail: 3" in out


def test_what_was_given_by_hand_comes_before_the_cluster(kubeconfig, policy, capsys, tmp_path) -> None:  # fmt: skip
    path = tmp_path / "context.yaml"
    path.write_text(
        "apiVersion: cli.kyverno.io/v1alpha1\nkind: Context\nmetadata: {name: c}\nspec:\n  resources:\n"
        "  - {apiVersion: v1, kind: ConfigMap, metadata: {name: teams, namespace: ops}, data: {all: red}}\n"
    )

    _, out, _ = applied(capsys, kubeconfig, policy, "-n", "ops", "--context-file", str(path))

    assert "pass: 1, fail: 0" in out


def test_a_cluster_that_cannot_be_reached_is_an_error(capsys, tmp_path, policy) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(
        '{"current-context": "x", "clusters": [{"name": "x", "cluster": {"server": "http://127.0.0.1:1"}}],'
        ' "contexts": [{"name": "x", "context": {"cluster": "x"}}]}'
    )

    code, out, err = applied(capsys, path, policy)

    assert (code, out) == (1, "")
    assert "cannot be reached" in err


def test_a_context_that_does_not_exist_is_an_error(kubeconfig, policy, capsys) -> None:
    code, _, err = applied(capsys, kubeconfig, policy, "--context", "none")

    assert code == 1
    assert "there is no context `none`" in err


@pytest.mark.parametrize(("user", "code"), [("root", 1), ("app", 0)])
def test_registries_are_asked_where_the_flag_says_so(capsys, tmp_path, monkeypatch, user, code) -> None:  # fmt: skip
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    fake = FakeRegistry()
    with in_background(serving(fake.handle)) as server:
        fake.server = server
        fake.image("v1", User=user)
        (tmp_path / "policy.yaml").write_text(IMAGES)
        (tmp_path / "pod.yaml").write_text(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
            f"spec: {{containers: [{{name: c, image: '{fake.host}/acme/app:v1'}}]}}\n"
        )
        words = ["apply", str(tmp_path / "policy.yaml"), "-r", str(tmp_path / "pod.yaml")]
        assert main([*words, "--registry"]) == code
        assert ("runs as root" in capsys.readouterr().out) is bool(code)
        asked = len(server.requests)
        main(words)
        assert len(server.requests) == asked
