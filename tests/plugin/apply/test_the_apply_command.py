from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from engine.errors import Location
from engine.lang import yaml
from kubectl_kpolicy import cli, entry
from kubectl_kpolicy.entry import main
from kubectl_kpolicy.output.findings import Finding, github_lines
from kubectl_kpolicy.session import rerunning

REQUIRE = """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: require-team
  annotations: {policies.kyverno.io/severity: high, policies.kyverno.io/category: Sample}
spec:
  rules:
  - name: check
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate:
      failureAction: Audit
      message: label team is required
      pattern: {metadata: {labels: {team: "?*"}}}
"""
ADD = """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: add-tier}
spec:
  rules:
  - name: add
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {+(tier): "1"}}}}
"""
MAKE = """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: make-quota}
spec:
  rules:
  - name: make
    match: {any: [{resources: {kinds: [Namespace]}}]}
    generate:
      apiVersion: v1
      kind: ConfigMap
      name: made
      namespace: "{{ request.object.metadata.name }}"
      data: {data: {a: b}}
"""
OBJECTS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: good, labels: {team: a, tier: "2"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: bad, namespace: dev}
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(**texts):
        for name, text in {"require": REQUIRE, "objects": OBJECTS, **texts}.items():
            (tmp_path / f"{name}.yaml").write_text(text)
        return tmp_path

    return write


def _apply(capsys, *words, stdin=None, monkeypatch=None):
    if stdin is not None:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
    code = main(["apply", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_text_is_kyverno_s_byte_for_byte(files, capsys):
    files()
    code, out, err = _apply(capsys, "require.yaml", "-r", "objects.yaml")
    assert (code, err) == (1, "")
    assert out == (
        "\nApplying 1 policy rule(s) to 2 resource(s)...\n"
        "policy require-team -> resource dev/ConfigMap/bad failed:\n"
        "1 - check validation error: label team is required. rule check failed at path /metadata/labels/\n"
        "\n"
        "\npass: 1, fail: 1, warn: 0, error: 0, skip: 0 \n"
    )


def test_changed_objects_are_printed_and_skipped_mutation_is_named(files, capsys):
    files(add=ADD)
    code, out, _ = _apply(capsys, "add.yaml", "-r", "objects.yaml")
    assert code == 0
    assert out == (
        "\nApplying 1 policy rule(s) to 2 resource(s)...\n"
        "\npolicy add-tier applied to dev/ConfigMap/bad:\n"
        "apiVersion: v1\n"
        "kind: ConfigMap\n"
        "metadata:\n"
        "  labels:\n"
        '    tier: "1"\n'
        "  name: bad\n"
        "  namespace: dev\n"
        "\n---\n"
        "\nskipped mutate policy add-tier -> resource default/ConfigMap/good\n"
        "\npass: 1, fail: 0, warn: 0, error: 0, skip: 1 \n"
    )


def test_generated_objects_are_printed(files, capsys):
    files(make=MAKE, ns="apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
    code, out, _ = _apply(capsys, "make.yaml", "-r", "ns.yaml")
    assert code == 0
    assert "policy make-quota applied to /Namespace/shop:" in out
    assert "  namespace: shop" in out


def test_from_standard_input_only_the_changed_objects_are_printed(files, capsys, monkeypatch):
    files(add=ADD)
    _, out, _ = _apply(capsys, "add.yaml", "-i", stdin=OBJECTS, monkeypatch=monkeypatch)
    assert "applied to" not in out
    assert "Applying" not in out
    assert 'tier: "1"' in out


def test_policies_may_come_from_standard_input(files, capsys, monkeypatch):
    files()
    code, out, _ = _apply(capsys, "-", "-r", "objects.yaml", stdin=REQUIRE, monkeypatch=monkeypatch)
    assert (code, "fail: 1" in out) == (1, True)


def test_changed_objects_can_go_to_a_file_or_a_folder(files, capsys):
    folder = files(add=ADD)
    (folder / "out.yaml").write_text("old: text\n")
    _, out, _ = _apply(capsys, "add.yaml", "-r", "objects.yaml", "-o", "out.yaml")
    assert "kind: ConfigMap" not in out
    written = [found.value for found in yaml.load_all((folder / "out.yaml").read_text())]
    labels = {one["metadata"]["name"]: one["metadata"]["labels"] for one in written if one}
    assert labels["bad"] == {"tier": "1"}
    assert labels["good"]["tier"] == "2", "an object that is not changed is written, too"
    _apply(capsys, "add.yaml", "-r", "objects.yaml", "-o", "changed")
    assert {path.name for path in (folder / "changed").iterdir()} == {
        "bad-mutated.yaml",
        "good-mutated.yaml",
    }


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], 1),
        (["--fail-on", "none"], 0),
        (["--fail-on", "error"], 0),
        (["--audit-warn"], 0),
        (["--audit-warn", "--fail-on", "warn"], 1),
        (["--audit-warn", "--warn-exit-code", "3"], 3),
    ],
)
def test_exit_codes_follow_what_is_asked(files, capsys, words, code):
    files()
    assert _apply(capsys, "require.yaml", "-r", "objects.yaml", *words)[0] == code


def test_nothing_that_passes_can_be_a_warning(files, capsys):
    files(objects="apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n")
    assert _apply(capsys, "require.yaml", "-r", "objects.yaml")[0] == 0
    words = ["require.yaml", "-r", "objects.yaml", "--warn-no-pass", "--warn-exit-code", "3"]
    assert _apply(capsys, *words)[0] == 3


def test_audit_warnings_are_counted_and_named(files, capsys):
    files()
    _, out, _ = _apply(capsys, "require.yaml", "-r", "objects.yaml", "--audit-warn")
    assert "dev/ConfigMap/bad failed as audit warning:" in out
    assert "pass: 1, fail: 0, warn: 1, error: 0, skip: 0 " in out


def test_unscored_policies_warn(files, capsys):
    text = REQUIRE.replace("annotations: {", 'annotations: {policies.kyverno.io/scored: "false", ')
    files(require=text)
    code, out, _ = _apply(capsys, "require.yaml", "-r", "objects.yaml")
    assert (code, "fail: 0, warn: 1" in out) == (0, True)


def test_a_report_is_merged_and_holds_nothing_but_yaml(files, capsys):
    files()
    code, out, _ = _apply(capsys, "require.yaml", "-r", "objects.yaml", "-p")
    report = yaml.load(out)
    assert code == 1
    assert (report["kind"], report["metadata"]["name"]) == ("ClusterReport", "merged")
    assert report["summary"] == {"pass": 1, "fail": 1, "warn": 0, "error": 0, "skip": 0}
    failed = report["results"][1]
    assert (failed["severity"], failed["category"]) == ("high", "Sample")
    assert failed["resources"] == [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "bad", "namespace": "dev"}
    ]
    assert (failed["message"], failed["properties"]) == (
        "validation error: label team is required. rule check failed at path /metadata/labels/",
        {"process": "background scan"},
    )


def test_a_report_can_be_json(files, capsys):
    files()
    _, out, _ = _apply(
        capsys, "require.yaml", "-r", "objects.yaml", "-p", "--output-format", "json"
    )
    assert json.loads(out)["kind"] == "ClusterReport"


def test_results_of_a_namespaced_policy_have_a_report_of_their_own(files, capsys):
    text = REQUIRE.replace("kind: ClusterPolicy", "kind: Policy").replace(
        "  name: require-team", "  name: require-team\n  namespace: dev"
    )
    files(require=text)
    _, out, _ = _apply(capsys, "require.yaml", "-r", "objects.yaml", "-p")
    report = yaml.load(out)
    assert (report["kind"], report["metadata"]["namespace"]) == ("PolicyReport", "dev")
    assert report["results"][0]["policy"] == "dev/require-team"


POD_RULE = """apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: require}
spec:
  rules:
  - name: is-set
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: asked for, pattern: {spec: {priorityClassName: low}}}
"""


def test_made_exceptions_cover_what_failed(files, capsys, tmp_path):
    files()
    _, out, _ = _apply(capsys, "require.yaml", "-r", "objects.yaml", "--generate-exceptions")
    exception = yaml.load(out)
    assert exception["metadata"]["labels"] == {"cleanup.kyverno.io/ttl": "720h0m0s"}
    (tmp_path / "exception.yaml").write_text(out)
    code, out, _ = _apply(
        capsys, "require.yaml", "-r", "objects.yaml", "--exceptions", "exception.yaml"
    )
    assert code == 0
    assert "with 1 exception(s)..." in out
    assert "pass: 1, fail: 0, warn: 0, error: 0, skip: 1 " in out


@pytest.mark.parametrize("length", [10, 50, 63])
def test_made_exceptions_for_a_cron_job_name_the_rules_for_what_it_makes(
    files, capsys, length: int
):
    rule, shape = "r" * length, "          name: a\n          labels: {app: a}"
    files(
        require=POD_RULE.replace("is-set", rule),
        objects="apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\nspec:\n  jobTemplate:\n    spec:\n      template:\n"
        f"        metadata:\n{shape}\n        spec: {{containers: []}}\n",
    )

    _, out, _ = _apply(capsys, "require.yaml", "-r", "objects.yaml", "--generate-exceptions")

    (named,) = yaml.load(out)["spec"]["exceptions"]
    assert named["ruleNames"] == [f"autogen-cronjob-{rule}"[:63], f"autogen-{rule}"[:63], rule]


def test_exceptions_among_the_resources_count_only_when_asked(files, capsys, tmp_path):
    files()
    _, made, _ = _apply(capsys, "require.yaml", "-r", "objects.yaml", "--generate-exceptions")
    (tmp_path / "objects.yaml").write_text(f"{OBJECTS}---\n{made}")
    assert _apply(capsys, "require.yaml", "-r", "objects.yaml")[0] == 1
    words = ["require.yaml", "-r", "objects.yaml", "--exceptions-with-resources"]
    assert _apply(capsys, *words)[0] == 0


def test_structured_formats_carry_every_result(files, capsys):
    files(add=ADD)
    words = ["require.yaml", "add.yaml", "-r", "objects.yaml", "-o"]
    _, out, err = _apply(capsys, *words, "json")
    found = json.loads(out)
    assert found["summary"]["fail"] == 1
    assert [item["result"] for item in found["items"]] == ["skip", "pass", "pass", "fail"]
    assert found["mutated"][0]["metadata"]["labels"] == {"tier": "1"}
    assert err == "pass: 2, fail: 1, warn: 0, error: 0, skip: 1\n"
    _, out, _ = _apply(capsys, *words, "yaml")
    assert yaml.load(out) == found
    _, out, _ = _apply(capsys, *words, "name")
    assert out == "configmap/bad\n"
    _, out, _ = _apply(capsys, *words, "wide")
    assert "high" in out
    _, out, _ = _apply(capsys, *words, "markdown")
    assert out.count("\n") == 6
    _, out, _ = _apply(capsys, *words, "junit")
    assert len(ET.fromstring(out).findall("testsuite")) == 2
    _, out, _ = _apply(capsys, *words, "sarif")
    (run,) = json.loads(out)["runs"]
    assert (
        run["results"][0]["locations"][0]["logicalLocations"][0]["fullyQualifiedName"]
        == "dev/ConfigMap/bad"
    )
    _, out, _ = _apply(capsys, *words, "table")
    assert "│ 4  │ require-team │ check │ dev/ConfigMap/bad      │ Fail" in out


def test_one_bad_policy_does_not_stop_the_others_and_fails_the_run(files, capsys):
    text = REQUIRE.replace("require-team", "broken").replace("message:", "mesage:")
    files(broken=text, objects="apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n")
    words = ["broken.yaml", "require.yaml", "-r", "objects.yaml"]
    code, out, err = _apply(capsys, *words)
    assert code == 1
    assert "Applying 1 policy rule(s)" in out
    assert "broken.yaml:" in err
    assert "did you mean `message`?" in err
    assert _apply(capsys, *words, "--continue-on-error")[0] == 0


def test_unknown_policy_fields_can_be_a_warning_or_nothing(files, capsys):
    files(require=REQUIRE.replace("validate:", "validat: x\n    validate:"))
    words = ["require.yaml", "-r", "objects.yaml", "--fail-on", "none"]
    code, _, err = _apply(capsys, *words, "--validate", "warn")
    assert code == 0
    assert err.startswith("warning:")
    assert "validat" in err
    assert _apply(capsys, *words, "--validate", "ignore")[::2] == (0, "")


def test_no_resources_are_refused(files, capsys):
    files()
    code, _, err = _apply(capsys, "require.yaml")
    assert code == 1
    assert "no resources given" in err


def test_what_is_not_yaml_is_refused_with_its_line(files, capsys):
    files(objects="a: [\nb")
    code, _, err = _apply(capsys, "require.yaml", "-r", "objects.yaml")
    assert code == 1
    assert "objects.yaml" in err


def test_lists_and_folders_of_objects_are_taken_apart(files, capsys, tmp_path):
    files()
    (tmp_path / "more").mkdir()
    items = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": n}} for n in "ab"]
    document = {"apiVersion": "v1", "kind": "List", "items": items}
    (tmp_path / "more" / "list.json").write_text(json.dumps(document))
    _, out, _ = _apply(capsys, "require.yaml", "-r", "more")
    assert "to 2 resource(s)" in out


def test_what_an_api_server_lists_is_of_the_kind_of_the_list(files, capsys, tmp_path):
    files()
    given = {"apiVersion": "v1", "kind": "ConfigMapList", "items": [{"metadata": {"name": "a"}}]}
    (tmp_path / "list.json").write_text(json.dumps(given))
    code, out, _ = _apply(capsys, "require.yaml", "-r", "list.json")
    assert code == 1
    assert "resource default/ConfigMap/a failed" in out


def test_variables_can_be_set(files, capsys):
    deny = 'deny: {conditions: {all: [{key: "{{ request.operation }}", operator: Equals, value: DELETE}]}}'
    files(require=REQUIRE.replace('pattern: {metadata: {labels: {team: "?*"}}}', deny))
    words = ["require.yaml", "-r", "objects.yaml"]
    assert _apply(capsys, *words)[0] == 0
    assert _apply(capsys, *words, "--set", "request.operation=DELETE")[0] == 1


def test_labels_of_namespace_objects_among_the_resources_count(files, capsys):
    text = REQUIRE.replace(
        "kinds: [ConfigMap]", "kinds: [ConfigMap], namespaceSelector: {matchLabels: {env: prod}}"
    )
    namespace = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: dev, labels: {env: prod}}\n"
    files(require=text, objects=OBJECTS + namespace)
    _, out, _ = _apply(capsys, "require.yaml", "-r", "objects.yaml")
    assert "pass: 0, fail: 1" in out


def test_clean_up_policies_say_what_they_would_delete(files, capsys):
    files(
        clean="""
apiVersion: kyverno.io/v2
kind: ClusterCleanupPolicy
metadata: {name: sweep}
spec:
  schedule: "0 3 * * *"
  match: {any: [{resources: {kinds: [ConfigMap]}}]}
  conditions: {all: [{key: "{{ target.metadata.name }}", operator: Equals, value: b*}]}
"""
    )
    code, out, _ = _apply(capsys, "clean.yaml", "-r", "objects.yaml")
    assert code == 0
    assert "cleanup policy sweep would delete 1 resource(s)" in out
    assert "  delete dev/ConfigMap/bad" in out
    assert "  keep default/ConfigMap/good" in out


def test_the_steps_of_every_rule_can_be_shown(files, capsys):
    files()
    _, out, _ = _apply(capsys, "require.yaml", "-r", "objects.yaml", "--explain")
    assert "require-team / check" in out
    assert "=> fail: validation error: label team is required." in out


def test_explain_shows_only_what_was_asked_for(files, capsys):
    files(add=ADD)
    code = main(
        [
            "explain",
            "configmap/bad",
            "-p",
            "require.yaml",
            "-p",
            "add.yaml",
            "-r",
            "objects.yaml",
            "--policy",
            "require-*",
        ]
    )
    out = capsys.readouterr().out
    assert code == 0
    assert "dev/ConfigMap/bad" in out
    assert "good" not in out
    assert "add-tier" not in out


def test_explain_refuses_an_object_that_is_not_there(files, capsys):
    files()
    code = main(["explain", "Pod/none", "-p", "require.yaml", "-r", "objects.yaml"])
    assert code == 1
    assert "no resource is called Pod/none" in capsys.readouterr().err


def test_a_rule_that_never_stops_asking_is_an_error_and_not_left_out_in_silence(files, capsys):
    names = [f"a{number}" for number in range(101)]
    entries = ", ".join(
        f"{{name: {one}, configMap: {{name: {one}, namespace: dev}}}}" for one in names
    )
    message = " ".join(f"{{{{ {one}.data.x }}}}" for one in names)
    rule = f"{{name: r, match: {{any: [{{resources: {{kinds: [ConfigMap]}}}}]}}, context: [{entries}], validate: {{message: m, deny: {{conditions: {{all: [{{key: '{message}', operator: NotEquals, value: z}}]}}}}}}}}"
    maps = ", ".join(f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {one}, namespace: dev}}, data: {{x: y}}}}" for one in names)  # fmt: skip
    files(
        require=f"apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {{name: p}}\nspec: {{rules: [{rule}]}}\n",
        context=f"apiVersion: cli.kyverno.io/v1alpha1\nkind: Context\nspec: {{resources: [{maps}]}}\n",
    )
    assert main(["apply", "require.yaml", "-r", "objects.yaml", "--context-file", "context.yaml"]) == 1  # fmt: skip
    assert "more answers from outside" in capsys.readouterr().err


def test_sarif_says_in_which_file_and_line_a_finding_is_and_how_bad_its_policy_is(files, capsys):
    files(medium=REQUIRE.replace("severity: high", "severity: medium"))
    _, out, _ = _apply(capsys, "medium.yaml", "-r", "objects.yaml", "-o", "sarif")
    [found] = json.loads(out)["runs"][0]["results"]
    place = found["locations"][0]["physicalLocation"]
    assert found["level"] == "warning"
    assert place["artifactLocation"] == {"uri": "objects.yaml"}
    assert place["region"]["startLine"] > 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("check -f empty.yaml --policies require.yaml", "warning: there are no objects in"),
        ("check -f objects.yaml --policies empty.yaml", "warning: there are no policies to"),
        (
            "check -f objects.yaml --policies require.yaml --policy x",
            "warning: there are no policies called `x`",
        ),
        (
            "explain -r objects.yaml -p require.yaml --policy x",
            "warning: there are no policies called `x`",
        ),
        ("explain -r empty.yaml -p require.yaml", "error: there are no objects in"),
        ("apply require.yaml -r nothing", "warning: there are no objects to"),
        ("apply nothing -r objects.yaml", "warning: there are no policies to"),
        ("test nothing", "warning: no test was found"),
        ("test nothing --require-tests", "error: no test was found"),
    ],
)
def test_that_nothing_was_judged_is_said(files, capsys, words, said):
    files()
    Path("empty.yaml").write_text("---\n---\n")
    Path("nothing").mkdir()
    assert main(words.split()) == int(said.startswith("error"))
    assert capsys.readouterr().err.startswith(said)


@pytest.mark.parametrize("flags", [(), ("-n", "shop")])
def test_checks_of_files_say_in_which_file_and_line_a_finding_is(files, capsys, flags):
    files()
    words = ("check", "-f", "objects.yaml", "--policies", "require.yaml", *flags, "-o")
    assert main([*words, "sarif"]) == 1
    [found] = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    place = found["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "objects.yaml"}
    assert main([*words, "junit"]) == 1
    case = ET.fromstring(capsys.readouterr().out).find("testsuite/testcase")
    assert case.attrib["file"] == "objects.yaml"
    assert int(case.attrib["line"]) == place["region"]["startLine"] > 1


def test_findings_are_workflow_commands_that_no_text_can_end(files, capsys):
    files(two=REQUIRE.replace("severity: high", "severity: low"))
    _, out, _ = _apply(capsys, "two.yaml", "-r", "objects.yaml", "-o", "github")
    (line,) = out.splitlines()
    assert line.startswith("::notice file=objects.yaml,line=")
    hostile = Finding(
        "a:b,c/r%", "", "error", "one\n::error::two", "/Pod/x", Location("./f,1.yaml", 0)
    )
    assert (
        github_lines([hostile])
        == "::error file=f%2C1.yaml,line=1,title=a%3Ab%2Cc/r%25::Pod/x: one%0A::error::two\n"
    )


@pytest.mark.parametrize("locale", ["C", "en_US.ISO-8859-1"])
def test_a_locale_without_lines_gets_them_in_ascii(files, locale):
    files()
    environment = {
        **os.environ,
        "LC_ALL": locale,
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONIOENCODING": "",
        "PYTHONPATH": str(Path(__file__).parents[3]),
    }
    words = [
        sys.executable,
        "-m",
        "kubectl_kpolicy",
        "apply",
        "require.yaml",
        "-r",
        "objects.yaml",
        "--table",
    ]
    done = subprocess.run(words, capture_output=True, env=environment, check=False, timeout=60)
    assert done.returncode == 1, done.stderr
    assert b"|----|" in done.stdout


def test_files_that_are_no_objects_are_passed_over_with_a_word(files, capsys):
    files(values="replicas: 3\n")
    code, out, err = _apply(capsys, "require.yaml", "values.yaml", "-r", "objects.yaml", "-r", "values.yaml", "-o", "json")  # fmt: skip
    assert json.loads(out)["summary"]["fail"] == 1
    assert code == 1
    assert "left out: the document is no Kubernetes object, it has no `kind`" in err
    assert "values.yaml" in err


def test_errors_that_the_text_counts_are_told_on_standard_error(files, capsys):
    files(
        erring="""
        apiVersion: kyverno.io/v1
        kind: ClusterPolicy
        metadata: {name: erring}
        spec:
          rules:
          - name: bad-expression
            match: {any: [{resources: {kinds: [ConfigMap]}}]}
            validate:
              deny: {conditions: {all: [{key: "{{ regex_match('(', 'a') }}", operator: Equals, value: true}]}}
        """
    )
    code, out, err = _apply(capsys, "erring.yaml", "-r", "objects.yaml")
    assert (code, "error: 0" in out) == (1, False)
    assert "error: rule `bad-expression` of policy `erring` on " in err
    assert "missing closing )" in err
    assert "missing closing )" not in out


def test_a_kind_that_is_not_a_string_is_a_mistake(files, capsys):
    files(number="kind: 5\nmetadata: {name: a}\n")
    code, _, err = _apply(capsys, "require.yaml", "-r", "number.yaml")
    assert code == 1
    assert "number.yaml:1: document is not a Kubernetes object: its `kind` is not a string" in err


def test_a_folder_named_like_a_format_is_said_to_be_one(files, capsys):
    files()
    _, _, err = _apply(capsys, "require.yaml", "-r", "objects.yaml", "-o", "csv")
    assert "warning: `-o csv` writes changed objects below `csv`" in err
    assert "as a format there are table, wide, json, yaml" in err


@pytest.mark.parametrize(("flag", "is_table"), [("--table=true", True), ("--table=false", False)])
def test_switches_are_taken_as_upstream_writes_them(files, capsys, flag, is_table):
    files()
    _, out, _ = _apply(capsys, "require.yaml", "-r", "objects.yaml", flag, "--registry=false", "-v", "4")  # fmt: skip
    assert ("POLICY" in out) == is_table


UPSTREAM = {
    "apply": "-r a --resource a --resources a --target-resource a --target-resources a -c --cluster -n a -i --stdin --json a --http-payload a "
    "--envoy-payload a -o a --output a -u a --userinfo a -s a=b --set a=b -f a --values-file a --context-file a -p --policy-report "
    "--output-format yaml --registry --kubeconfig a --context a -b a --git-branch a --username a --password a --audit-warn "
    "--warn-exit-code 3 --warn-no-pass --remove-color --detailed-results -t --table --parameter-resource a -e a --exception a "
    "--exceptions a --exceptions-with-resources --exceptions-within-resources --exceptions-within-policies --generate-exceptions "
    "--generated-exception-ttl 720h --cluster-wide-resources --concurrent 2 --batch-size 100 --continue-on-fail --continue-on-error "
    "--show-performance --crd-paths a --crd-path a --audit-warn=false --registry=false --table=true --stdin=false",
    "test": "-f a --file-name a -b a --git-branch a -t policy=a --test-case-selector policy=a -o json --output-format junit --registry "
    "--registry=false --fail-only --fail-only=false --remove-color=true --detailed-results --require-tests=true",
    "jp query": "-i a --input a -q a --query a -c -u --compact=false --unquoted=true",
    "create exception": "--namespace a --policy-rules a,b --any kind=Pod --all kind=Pod -b=false --background=true -o a",
}
LOGGING = "-v=4 --v=4 --logtostderr=true --alsologtostderr --log_file a --vmodule=a=1 --stderrthreshold 2 --skip_headers"


@pytest.mark.parametrize(
    "words", [UPSTREAM, dict.fromkeys(UPSTREAM, LOGGING)], ids=["own", "logging"]
)
@pytest.mark.parametrize("command", UPSTREAM)
def test_every_flag_of_upstream_is_taken(command, words):
    name, *rest = command.split()
    parser, _ = cli.parser_of(name)
    need = ["--policy-rules", "a,b"] if name == "create" else []
    assert parser.parse_args([*rest, "a", *need, *entry._plain(words[command].split())])
    assert "vmodule" not in parser.format_help()


@pytest.mark.parametrize(
    ("command", "instead"),
    [("fix", "lint"), ("migrate", "kubectl replace"), ("docs", "spec"), ("oci", "oras pull")],
)
def test_commands_of_upstream_that_are_not_here_say_in_a_sentence_what_to_use(
    capsys, command, instead
):
    assert main([command, "policies", "--save"]) == 2
    wrong, advice = capsys.readouterr().err.splitlines()
    assert wrong == f"error: unknown command `{command}`"
    assert instead in advice.removeprefix("help: ")


def test_a_locale_without_the_letters_of_a_name_gets_escapes(files):
    folder = files(objects=OBJECTS.replace("name: bad", "name: 検索"))
    done = subprocess.run(
        [sys.executable, "-m", "kubectl_kpolicy", "apply", "require.yaml", "-r", "objects.yaml"],
        cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": "iso-8859-1", "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    assert r"\u691c\u7d22" in done.stdout


MUTATE = """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: mark}
spec:
  rules:
  - name: mark
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    mutate: {patchStrategicMerge: {data: {marked: "yes"}}}
  - name: companion
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    generate: {apiVersion: v1, kind: Secret, name: companion, namespace: shop, data: {stringData: {a: b}}}
"""
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\ndata: {a: b}\n"


def test_a_difference_shows_what_each_policy_changes_and_makes(files, capsys):
    second = (
        MUTATE.replace("name: mark}", "name: again}")
        .replace('marked: "yes"', 'marked: "no"')
        .split("  - name: companion")[0]
    )
    files(mark=MUTATE + "---" + second, settings=MAP)
    code, out, _ = _apply(capsys, "mark.yaml", "-r", "settings.yaml", "--diff")
    assert code == 0
    lines = out.splitlines()
    assert "--- shop/ConfigMap/settings" in lines
    assert "+++ shop/ConfigMap/settings after mark" in lines
    assert [line for line in lines if "marked" in line] == [
        '+  marked: "yes"',
        '-  marked: "yes"',
        '+  marked: "no"',
    ]
    assert "--- /dev/null" in lines
    assert "+++ shop/Secret/companion after mark" in lines
    assert "+  a: b" in lines
    assert "kind: ConfigMap" not in lines


def test_a_difference_stands_in_place_of_other_outputs(files, capsys):
    files(mark=MUTATE, settings=MAP)
    code, out, err = _apply(capsys, "mark.yaml", "-r", "settings.yaml", "--diff", "-o", "json")
    assert (code, out) == (2, "")
    assert "--diff cannot be combined with other outputs" in err


def test_a_watch_runs_again_after_each_change_and_survives_what_cannot_be_read(
    files, capsys, monkeypatch
):
    folder = files(mark=MUTATE, settings=MAP)
    texts = ["kind: [", MAP.replace("a: b", "a: changed")]

    def pause(_seconds):
        if not texts:
            raise KeyboardInterrupt
        (folder / "settings.yaml").write_text(texts.pop(0))

    monkeypatch.setattr(rerunning.rerun, "__kwdefaults__", {"pause": pause})
    code, out, err = _apply(capsys, "mark.yaml", "-r", "settings.yaml", "--diff", "--watch")
    assert code == 130
    assert out.count("shop/ConfigMap/settings after mark") == 2
    assert err.count("changed: settings.yaml") == 2
    assert "error: settings.yaml" in err


def test_what_cannot_be_watched_is_refused(files, capsys):
    code, _, err = _apply(capsys, "-", "--watch")
    assert code == 2
    assert "--watch needs files or folders" in err
