"""No file makes `apply` end in anything but an answer or an error of its own."""

from __future__ import annotations

import json

import pytest

from kubectl_kpolicy.entry import main

POLICY = """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  background: false
  rules:
  - name: r
    match: {any: [{resources: {kinds: ["*"], namespaces: ["*"], selector: {matchLabels: {"a*": "*"}}}}]}
    validate: {message: m, pattern: {metadata: {name: "?*"}}}
  - name: m
    match: {any: [{resources: {kinds: ["*"]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {x: "1"}}}}
"""
HOSTILE = [
    {"kind": "Pod"},
    {"kind": "Pod", "metadata": None},
    {"kind": "Pod", "metadata": []},
    {"kind": "Pod", "metadata": "x"},
    {"kind": "Pod", "metadata": {"name": 5, "namespace": {}, "labels": []}},
    {"kind": "Pod", "apiVersion": 7, "metadata": {"name": ["a"]}},
    {"kind": {"a": 1}, "metadata": {"labels": {"a": 1}}},
    {"kind": "List", "items": None},
    {"kind": "PodList", "items": [{"kind": "Pod"}, {"kind": "ConfigMapList", "items": []}]},
    {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "n", "labels": [1]}},
    {"kind": "Pod", "metadata": {"name": "\x1b[2J", "labels": {"a": "\x00"}}},
]


@pytest.mark.parametrize("obj", HOSTILE, ids=str)
@pytest.mark.parametrize("form", ["", "json", "wide", "table", "junit", "sarif", "name"])
def test_odd_objects_are_answered_or_refused(obj, form, tmp_path, capsys):
    (tmp_path / "p.yaml").write_text(POLICY)
    (tmp_path / "o.json").write_text(json.dumps(obj))
    words = ["-o", form] if form else ["--explain"]
    code = main(["apply", str(tmp_path / "p.yaml"), "-r", str(tmp_path / "o.json"), *words])
    captured = capsys.readouterr()
    assert code in (0, 1)
    assert "internal error" not in captured.err


@pytest.mark.parametrize("text", ["5", "[1]", "x", "{}", "kind: ''", "- kind: Pod"])
def test_documents_that_are_no_objects_are_refused(text, tmp_path, capsys):
    (tmp_path / "p.yaml").write_text(POLICY)
    (tmp_path / "o.yaml").write_text(text)
    code = main(["apply", str(tmp_path / "p.yaml"), "-r", str(tmp_path / "o.yaml")])
    assert code == 1
    assert "o.yaml:1: document is not a Kubernetes object" in capsys.readouterr().err


def test_an_empty_file_holds_no_resources(tmp_path, capsys):
    (tmp_path / "p.yaml").write_text(POLICY)
    (tmp_path / "o.yaml").write_text("---\n# nothing\n---\n")
    assert main(["apply", str(tmp_path / "p.yaml"), "-r", str(tmp_path / "o.yaml")]) == 0
    assert "to 0 resource(s)" in capsys.readouterr().out


def test_the_terminal_cannot_be_steered_by_names(tmp_path, capsys):
    (tmp_path / "p.yaml").write_text(POLICY)
    hostile = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "\x1b[2Jx", "labels": {"a": "b"}},
    }
    (tmp_path / "o.json").write_text(json.dumps(hostile))
    for form in ("table", "wide", "markdown"):
        main(["apply", str(tmp_path / "p.yaml"), "-r", str(tmp_path / "o.json"), "-o", form])
        assert "\x1b" not in capsys.readouterr().out
