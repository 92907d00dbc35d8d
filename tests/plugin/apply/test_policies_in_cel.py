"""Policies written in CEL on the command line: objects, payloads, params, exceptions, explanations."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.model.kinds import CEL_KINDS
from kubectl_kpolicy.entry import main

REPO = Path(__file__).parents[3]
POLICY = """\
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: team}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
  validations:
  - {expression: "has(object.metadata.labels)", message: labels are needed}
"""
OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: dev}\n"
EXCEPTION = """\
apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: {name: e, namespace: ops}
spec:
  policyRefs: [{name: team, kind: ValidatingPolicy}]
"""


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(words, **files):
        for name, text in files.items():
            (tmp_path / f"{name}.yaml").write_text(text)
        code = main(words.split())
        out, err = capsys.readouterr()
        return code, out, err

    return run


def _items(out):
    return [(item["policy"], item["result"]) for item in json.loads(out)["items"]]


def test_apply_answers_with_the_policy(run):
    code, out, _ = run("apply p.yaml -r o.yaml -o json", p=POLICY, o=OBJECT)

    assert code == 1
    assert _items(out) == [("team", "fail")]


def test_apply_takes_exceptions_of_cel(run):
    code, out, _ = run("apply p.yaml -r o.yaml -e e.yaml -o json", p=POLICY, o=OBJECT, e=EXCEPTION)

    assert (code, _items(out)) == (0, [("team", "skip")])


def test_explain_shows_the_expressions(run):
    code, out, _ = run("explain -p p.yaml -r o.yaml", p=POLICY, o=OBJECT)

    assert code == 0
    assert "no  expression   has(object.metadata.labels)" in out
    assert "=> fail: labels are needed" in out


def test_payloads_meet_the_policies_of_their_mode(run):
    policy = POLICY.replace("matchConstraints:", "evaluation: {mode: JSON}\n  matchConstraints:")
    words = "apply p.yaml --json doc.yaml -o json"

    assert _items(run(words, p=policy, doc="{metadata: {labels: {}}}")[1]) == [("team", "pass")]
    assert _items(run(words, p=policy, doc="{metadata: {}}")[1]) == [("team", "fail")]
    assert _items(run(words, p=POLICY, doc="{metadata: {}}")[1]) == []


def test_a_payload_that_is_no_map_is_refused(run):
    code, _, err = run("apply p.yaml --json doc.yaml", p=POLICY, doc="[1]")

    assert code == 1
    assert "a payload must be a map" in err


def test_native_policies_are_bound_and_given_params(run):
    policy = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: named}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
  validations: [{expression: object.metadata.name == params.data.name}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b}
spec: {policyName: named, paramRef: {name: names, namespace: ops}, validationActions: [Audit]}
"""
    param = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: names, namespace: ops}\ndata: {name: NAME}\n"
    words = "apply p.yaml -r o.yaml --parameter-resource n.yaml -o json"

    found = run(words, p=policy, o=OBJECT, n=param.replace("NAME", "c"))
    assert _items(found[1]) == [("named", "pass")]
    found = run(words, p=policy, o=OBJECT, n=param.replace("NAME", "d"))
    assert _items(found[1]) == [("named", "fail")]


@pytest.mark.parametrize("kind", [one.kind for one in CEL_KINDS if not one.is_evaluated])
def test_other_kinds_of_cel_policies_are_left_out_with_a_warning(run, kind):
    text = f"apiVersion: policies.kyverno.io/v1\nkind: {kind}\nmetadata: {{name: x}}\nspec: {{}}\n"
    _, _, err = run("apply p.yaml -r o.yaml", p=text, o=OBJECT)

    assert f"{kind} `x` is left out: this version does not evaluate its kind" in err


DELETING = """\
apiVersion: policies.kyverno.io/v1
kind: DeletingPolicy
metadata: {name: tidy}
spec:
  schedule: "0 * * * *"
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], resources: [configmaps]}
  conditions: [{name: c, expression: "CONDITION"}]
"""


def test_what_a_deleting_policy_would_delete_passes_and_what_stays_fails(run):
    for condition, said, code in (
        ("!has(object.metadata.labels)", "pass: 1, fail: 0", 0),
        ("has(object.metadata.labels)", "pass: 0, fail: 1", 1),
        ("object.nothing.more == 1", "error: 1", 1),
    ):
        found, out, err = run("apply p.yaml -r o.yaml", p=DELETING.replace("CONDITION", condition), o=OBJECT)  # fmt: skip
        assert (found, said in out) == (code, True), (out, err)
    _, out, _ = run("apply p.yaml -r o.yaml", p=DELETING.replace("CONDITION", "1 == 2"), o=OBJECT)
    assert "1 - tidy resource did not match" in out


def test_a_deleting_policy_judges_objects_as_they_are_and_not_as_mutated(run):
    mutating = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: label}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {late: "yes"}}}}
---
"""
    deleting = DELETING.replace("CONDITION", "!has(object.metadata.labels)")
    _, out, err = run("apply p.yaml -r o.yaml -o json", p=mutating + deleting, o=OBJECT)
    assert ("tidy", "pass") in _items(out), (out, err)


def test_a_policy_that_does_not_compile_is_refused_and_named(run):
    broken = POLICY.replace("has(object.metadata.labels)", "has(")
    code, _, err = run("apply p.yaml -r o.yaml", p=broken, o=OBJECT)

    assert code == 1
    assert "`validations[0]` does not compile" in err


CLASSIC = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: labels}
spec:
  rules:
  - name: team
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {message: a team is needed, pattern: {metadata: {labels: {team: "?*"}}}}
"""
PROBE = """
import sys
from kubectl_kpolicy.entry import main
main(["apply", "p.yaml", "-r", "o.yaml"])
print(sum(name.startswith(("engine.lang.cel", "engine.evaluate.cel", "engine.parse.celpolicies")) for name in sys.modules))
"""


@pytest.mark.parametrize(("policy", "is_loaded"), [(CLASSIC, False), (POLICY, True)])
def test_the_code_of_cel_is_loaded_with_the_first_policy_of_it(tmp_path, policy, is_loaded):
    (tmp_path / "p.yaml").write_text(policy)
    (tmp_path / "o.yaml").write_text(OBJECT)
    done = subprocess.run(
        [sys.executable, "-c", PROBE], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(REPO)},
    )  # fmt: skip

    assert (int(done.stdout.splitlines()[-1]) > 0) is is_loaded
