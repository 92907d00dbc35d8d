from __future__ import annotations

import io
import json
import re
import warnings
import xml.etree.ElementTree as ET
from datetime import UTC, datetime

import pytest

from engine.lang import yaml
from engine.record import replace
from kubectl_kpolicy.entry import main
from kubectl_kpolicy.testing.parallel import Bar, RunOptions, jobs_for
from kubectl_kpolicy.testing.run import Selector

POLICY = """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: require-team}
spec:
  rules:
  - name: check
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: label team is required
      pattern: {metadata: {labels: {team: "?*"}}}
"""
PODS = """
apiVersion: v1
kind: Pod
metadata: {name: good, labels: {team: a}}
spec: {containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: bad}
spec: {containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Service
metadata: {name: other}
"""
HEAD = "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t}\npolicies: [policy.yaml]\nresources: [pods.yaml]\n"
GOOD = "{policy: require-team, rule: check, kind: Pod, resources: [good], result: pass}"
BAD = "{policy: require-team, rule: check, kind: Pod, resources: [bad], result: fail}"


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "pods.yaml").write_text(PODS)

    def write(*results, more="", name="kyverno-test.yaml"):
        text = HEAD + more + f"results: [{', '.join(results)}]\n"
        (tmp_path / name).write_text(text)
        return str(tmp_path)

    return write


def _run(capsys, *words):
    code = main(["test", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def _rows(capsys, *words):
    code, out, _ = _run(capsys, *words, "-o", "json")
    return code, json.loads(out)


def test_rows_have_exactly_the_promised_keys(suite, capsys):
    code, found = _rows(capsys, suite(GOOD, BAD))
    assert code == 0
    assert list(found) == ["summary", "rows"]
    (first, _) = found["rows"]
    file = first.pop("file")
    assert file.endswith("kyverno-test.yaml")
    assert first == {
        "result": 0,
        "declared": "good",
        "policy": "require-team",
        "rule": "check",
        "resource": "default/Pod/good",
        "operation": "CREATE",
        "expected": "pass",
        "actual": "pass",
        "verdict": "ok",
        "strict": "ok",
        "reason": "Ok",
        "message": "validation rule 'check' passed.",
    }


def test_a_wrong_expectation_fails(suite, capsys):
    code, found = _rows(capsys, suite(GOOD.replace("result: pass", "result: fail")))
    assert code == 1
    (row,) = found["rows"]
    assert (row["verdict"], row["strict"], row["reason"]) == ("miss", "miss", "Want fail, got pass")


def test_a_failure_where_a_pass_is_expected_fails(suite, capsys):
    code, _ = _rows(capsys, suite(BAD.replace("result: fail", "result: pass")))
    assert code == 1


def test_a_missing_policy_fails(suite, capsys):
    code, found = _rows(capsys, suite(GOOD.replace("require-team", "require-taem")))
    assert code == 1
    assert found["rows"][0]["reason"] == "Not found"


def test_a_missing_resource_fails(suite, capsys):
    code, found = _rows(capsys, suite(GOOD.replace("[good]", "[goood]")))
    assert code == 1
    assert found["rows"][0]["reason"] == "Not found"


def test_a_misspelt_rule_name_is_excluded_and_fails_when_strict(suite, capsys):
    folder = suite(GOOD.replace("rule: check", "rule: chekc"))
    code, found = _rows(capsys, folder)
    (row,) = found["rows"]
    assert code == 0
    assert (row["actual"], row["verdict"], row["strict"]) == (None, "ok", "miss")
    assert row["reason"] == "Excluded"
    assert _run(capsys, folder, "--strict")[0] == 1


OF_CEL = """\
apiVersion: policies.kyverno.io/v1
kind: {kind}
metadata: {{name: of-cel}}
spec:
  matchConstraints: {{resourceRules: [{{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}}]}}
  matchConditions: [{{name: c, expression: "{condition}"}}]
  {work}
"""
VALIDATION = "validations: [{expression: has(object.metadata.labels), message: m}]"
GENERATION = "generate: [{expression: 'true'}]"


@pytest.mark.parametrize(
    "named", ["rule: any", "isMutatingPolicy: true", "isValidatingAdmissionPolicy: true"]
)
def test_the_one_answer_of_a_policy_in_cel_is_found_by_the_policy_s_name_alone(
    suite, capsys, tmp_path, named
):
    folder = suite(
        f"{{policy: of-cel, {named}, kind: Pod, resources: [good], result: pass}}",
        f"{{policy: of-cel, {named}, kind: Pod, resources: [bad], result: pass}}",
    )
    made = OF_CEL.format(kind="ValidatingPolicy", condition="true", work=VALIDATION)
    (tmp_path / "policy.yaml").write_text(made)

    code, found = _rows(capsys, folder)

    assert code == 1
    assert [row["reason"] for row in found["rows"]] == ["Ok", "Want pass, got fail"]


@pytest.mark.parametrize(
    ("kind", "work", "reason"),
    [("GeneratingPolicy", GENERATION, "Not found"), ("ValidatingPolicy", VALIDATION, "Ok")],
)
def test_conditions_that_do_not_hold_leave_no_answer_of_policies_that_generate(
    suite, capsys, tmp_path, kind, work, reason
):
    folder = suite("{policy: of-cel, kind: Pod, resources: [good], result: skip}")
    made = OF_CEL.format(kind=kind, condition="false", work=work)
    (tmp_path / "policy.yaml").write_text(made)

    _, found = _rows(capsys, folder)

    assert [row["reason"] for row in found["rows"]] == [reason]


def test_no_answer_where_skip_is_expected_is_right_even_when_strict(suite, capsys):
    skip = "{policy: require-team, rule: check, kind: Service, resources: [other], result: skip}"
    assert _run(capsys, suite(skip), "--strict")[0] == 0


def test_a_policy_file_that_does_not_exist_fails_every_row(suite, capsys, tmp_path):
    folder = suite(GOOD, BAD)
    (tmp_path / "policy.yaml").unlink()
    code, found = _rows(capsys, folder)
    assert code == 1
    assert {row["verdict"] for row in found["rows"]} == {"miss"}
    assert len(found["rows"]) == 2


def test_a_policy_with_an_unknown_field_fails_its_rows_and_says_where(suite, capsys, tmp_path):
    folder = suite(GOOD)
    (tmp_path / "policy.yaml").write_text(POLICY.replace("message:", "mesage:"))
    code, found = _rows(capsys, folder)
    assert code == 1
    assert "mesage" in found["rows"][0]["message"]


def test_a_policy_that_a_server_refuses_fails_its_rows(suite, capsys, tmp_path):
    folder = suite(GOOD)
    (tmp_path / "policy.yaml").write_text(POLICY.replace("kinds: [Pod]", "kinds: []"))
    code, found = _rows(capsys, folder)
    assert code == 1
    assert found["rows"][0]["verdict"] == "miss"


def test_kinds_of_a_later_version_give_no_answer_with_a_reason(suite, capsys, tmp_path):
    (tmp_path / "policy.yaml").write_text(
        "apiVersion: policies.kyverno.io/v1\nkind: ComingPolicy\nmetadata: {name: v}\nspec: {}\n"
    )
    result = "{policy: v, kind: Pod, resources: [good], result: pass}"
    code, found = _rows(capsys, suite(result))
    (row,) = found["rows"]
    assert code == 1
    assert row["actual"] is None
    assert "ComingPolicy" in row["message"]


def test_a_broken_test_file_fails_and_the_others_run(suite, capsys, tmp_path):
    folder = suite(GOOD)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "kyverno-test.yaml").write_text(HEAD + "reslts: []\n")
    code, out, err = _run(capsys, folder)
    assert code == 1
    assert "1 tests passed" in out
    assert "reslts" in err
    assert "kyverno-test.yaml:6" in err


def test_the_table_and_the_summary_are_kyverno_s(suite, capsys):
    code, out, err = _run(capsys, suite(GOOD, BAD), "--detailed-results")
    assert (code, err) == (0, "")
    assert "Applying 1 policy to 3 resources with 0 exceptions ..." in out
    assert "│ ID │ POLICY" in out
    assert "default/Pod/bad" in out
    assert "label team is required" in out
    assert "Test Summary: 2 tests passed and 0 tests failed" in out


def test_failures_are_repeated_at_the_end(suite, capsys):
    code, out, _ = _run(capsys, suite(GOOD, BAD.replace("result: fail", "result: pass")))
    assert code == 1
    assert "Test Summary: 1 tests passed and 1 tests failed" in out
    assert "Aggregated Failed Test Cases" in out


def test_fail_only_shows_failures_only(suite, capsys):
    folder = suite(GOOD, BAD.replace("result: fail", "result: pass"))
    _, out, _ = _run(capsys, folder, "--fail-only")
    assert "default/Pod/good" not in out
    assert "Test Summary: 1 out of 2 tests failed" in out
    _, found = _rows(capsys, folder, "--fail-only")
    assert [row["declared"] for row in found["rows"]] == ["bad"]


def test_quietly_and_failures_only_nothing_is_told_of_tests_that_hold(suite, capsys, tmp_path):
    folder = suite(GOOD)
    _, out, err = _run(capsys, folder, "-q", "--fail-only")
    assert (out.split("\n"), err) == (["", "Test Summary: 0 out of 1 tests failed", "", ""], "")
    suite(BAD.replace("result: fail", "result: pass"), name="sub.yaml")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub.yaml").rename(tmp_path / "sub" / "kyverno-test.yaml")
    for name in ("policy.yaml", "pods.yaml"):
        (tmp_path / "sub" / name).write_text((tmp_path / name).read_text())
    code, out, _ = _run(capsys, folder, "-q", "--fail-only")
    assert code == 1
    assert [line for line in out.splitlines() if line.startswith("Loading")] == [
        f"Loading test t ( {tmp_path / 'sub' / 'kyverno-test.yaml'} ) ..."
    ]
    assert "Applying" not in out
    assert "Applying" in _run(capsys, folder, "--fail-only")[1]


def test_quietly_every_row_is_shown_without_the_steps(suite, capsys):
    _, out, _ = _run(capsys, suite(GOOD, BAD), "-q")
    assert "default/Pod/good" in out
    assert "Applying" not in out


def test_a_selector_chooses_rows(suite, capsys):
    folder = suite(GOOD, BAD)
    _, found = _rows(capsys, folder, "-t", "resource=b*")
    assert [row["declared"] for row in found["rows"]] == ["bad"]


def test_another_file_name_can_be_given(suite, capsys):
    folder = suite(GOOD, name="other.yaml")
    assert _rows(capsys, folder)[1]["rows"] == []
    assert len(_rows(capsys, folder, "-f", "other.yaml")[1]["rows"]) == 1


def test_no_test_at_all_fails_only_when_one_is_required(tmp_path, capsys):
    assert _run(capsys, str(tmp_path))[0] == 0
    assert _run(capsys, str(tmp_path), "--require-tests")[0] == 1


def test_other_formats_say_the_same(suite, capsys):
    folder = suite(GOOD, BAD.replace("result: fail", "result: pass"))
    _, text, _ = _run(capsys, folder, "-o", "yaml")
    assert len(yaml.load(text)["rows"]) == 2
    _, text, _ = _run(capsys, folder, "-o", "markdown")
    assert text.count("\n") == 4
    _, text, _ = _run(capsys, folder, "-o", "junit")
    assert ET.fromstring(text).find("testsuite").attrib["failures"] == "1"


def test_values_of_one_resource_do_not_reach_another(suite, capsys, tmp_path):
    (tmp_path / "policy.yaml").write_text(
        POLICY.replace(
            'pattern: {metadata: {labels: {team: "?*"}}}',
            'deny: {conditions: {all: [{key: "{{ request.operation }}", operator: Equals, value: UPDATE}]}}',
        )
    )
    more = "values: {policies: [{name: require-team, resources: [{name: bad, values: {request.operation: UPDATE}}]}]}\n"
    code, found = _rows(capsys, suite(GOOD, BAD, more=more))
    assert code == 0
    assert [row["operation"] for row in found["rows"]] == ["CREATE", "UPDATE"]


def test_prepared_answers_of_services_are_used(suite, capsys, tmp_path):
    (tmp_path / "policy.yaml").write_text(
        """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: require-team}
spec:
  rules:
  - name: check
    match: {any: [{resources: {kinds: [Pod]}}]}
    context:
    - name: said
      apiCall: {service: {url: "https://x.example/{{ request.object.metadata.name }}"}, jmesPath: ok}
    validate:
      message: refused
      deny: {conditions: {all: [{key: "{{ said }}", operator: Equals, value: false}]}}
"""
    )
    more = "apiCallResponses: [{url: https://x.example/good, response: {body: {ok: true}}}, {url: https://x.example/bad, response: {body: {ok: false}}}]\n"
    code, _ = _rows(capsys, suite(GOOD, BAD, more=more))
    assert code == 0


def test_a_prepared_error_is_an_error(suite, capsys, tmp_path):
    (tmp_path / "policy.yaml").write_text(
        """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: require-team}
spec:
  rules:
  - name: check
    match: {any: [{resources: {kinds: [Pod]}}]}
    context:
    - {name: said, apiCall: {urlPath: /api/v1/namespaces}}
    validate:
      message: refused
      deny: {conditions: {all: [{key: "{{ said }}", operator: Equals, value: x}]}}
"""
    )
    more = "apiCallResponses: [{urlPath: /api/v1/namespaces, response: {statusCode: 500}}]\n"
    code, found = _rows(capsys, suite(GOOD.replace("pass", "error"), more=more))
    assert code == 0, found


def test_documents_of_one_file_are_told_apart(suite, capsys, tmp_path):
    folder = suite(GOOD)
    text = (tmp_path / "kyverno-test.yaml").read_text()
    (tmp_path / "kyverno-test.yaml").write_text(f"{text}---\n{text}")
    _, found = _rows(capsys, folder)
    assert [row["file"].rpartition("/")[2] for row in found["rows"]] == [
        "kyverno-test.yaml",
        "kyverno-test.yaml#1",
    ]


def _many(tmp_path, suite, count):
    suite(GOOD)
    for number in range(count):
        folder = tmp_path / f"case-{number:02}"
        folder.mkdir()
        for name in ("policy.yaml", "pods.yaml"):
            (folder / name).write_text((tmp_path / name).read_text())
        head = HEAD.replace("name: t}", f"name: t{number}}}")
        wrong = BAD.replace("result: fail", "result: pass") if number % 3 else GOOD
        (folder / "kyverno-test.yaml").write_text(f"{head}results: [{wrong}]\n")
    (tmp_path / "case-01" / "pods.yaml").unlink()
    (tmp_path / "kyverno-test.yaml").unlink()


@pytest.mark.parametrize("output", ["table", "json"])
def test_several_processes_say_the_same_in_the_same_order(suite, capsys, tmp_path, output):
    _many(tmp_path, suite, 7)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # of newer Pythons, where a test runner has threads
        told = [_run(capsys, str(tmp_path), "-o", output, "-j", jobs) for jobs in ("1", "3")]
    assert told[0] == told[1]
    code, out, err = told[0]
    assert code == 1
    assert re.findall(r"case-\d+", out)[:1] == ["case-00"]
    assert "case-01" in err


def test_processes_are_started_where_they_are_worth_it():
    way = RunOptions(datetime.now(UTC), Selector())
    assert [jobs_for(count, 0, way) for count in (0, 1, 15)] == [1, 1, 1]
    assert jobs_for(5, 3, way) == 3
    assert jobs_for(2, 8, way) == 2
    assert jobs_for(1000, 0, way) >= 1
    assert jobs_for(1000, 8, replace(way, outside=object())) == 1


class _Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_tells_on_a_terminal_how_far_it_is_and_leaves_nothing_behind():
    terminal = _Terminal()
    bar = Bar(terminal, 2, quiet=False)
    bar.step()
    bar.clear()
    bar.step()
    bar.clear()
    assert terminal.getvalue() == f"\r[{'#' * 15}{'-' * 15}] 1/2\r\x1b[K\r[{'#' * 30}] 2/2\r\x1b[K"


@pytest.mark.parametrize(
    ("stream", "total", "quiet"),
    [(io.StringIO, 2, False), (_Terminal, 1, False), (_Terminal, 2, True)],
)
def test_there_is_no_bar_in_a_pipe_for_one_case_or_quietly(stream, total, quiet):
    into = stream()
    bar = Bar(into, total, quiet=quiet)
    bar.step()
    bar.clear()
    assert into.getvalue() == ""
