"""`lint`: findings with file and line, in every format, with exit codes that scripts can trust."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from engine.lang.yaml import load
from kubectl_kpolicy import entry

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: p
spec:
  background: false
  rules:
  - name: r
    match:
      any:
      - resources:
          kinds:
          - ConfigMap
    validate:
      pattern:
        a: b
"""
MISSPELT = GOOD.replace("      pattern:", "      patern:")
REFUSED = GOOD.replace("          kinds:\n          - ConfigMap\n", "          names: [x]\n")
WARNED = GOOD.replace("  background: false\n", "  background: false\n  failurePolicy: Fail\n")


def lint(capsys: Any, *words: str) -> tuple[int, str, str]:
    code = entry.main(["lint", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def make(text: str, name: str = "p.yaml") -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return make


def test_a_sound_policy_gives_no_output(capsys, write) -> None:
    assert lint(capsys, write(GOOD)) == (0, "", "1 checked, 0 errors, 0 warnings\n")


def test_quiet_says_nothing(capsys, write) -> None:
    assert lint(capsys, write(GOOD), "-q") == (0, "", "")


def test_an_unknown_field_is_found_with_its_line_and_the_nearest_name(capsys, write) -> None:
    path = write(MISSPELT)
    code, out, _err = lint(capsys, path)

    assert code == 1
    assert f"{path}:15" in out
    assert "unknown field `spec.rules[0].validate.patern` did you mean `pattern`?" in out


def test_a_refusal_is_found_with_its_line(capsys, write) -> None:
    code, out, err = lint(capsys, write(REFUSED), "-o", "json")
    (finding,) = json.loads(out)["findings"]

    assert code == 1
    assert finding["line"] == 11
    assert finding["object"] == "ClusterPolicy/p"
    assert finding["path"] == "spec.rules[0].match.any[0]"
    assert finding["severity"] == "error"
    assert finding["message"].startswith("at least one element must be specified in a kind block")
    assert err == "1 checked, 1 errors, 0 warnings\n"


def test_warnings_do_not_fail(capsys, write) -> None:
    code, out, _err = lint(capsys, write(WARNED), "-o", "yaml")
    (finding,) = load(out)["findings"]

    assert code == 0
    assert finding["severity"] == "warning"
    assert finding["line"] == 7


@pytest.mark.parametrize(
    ("mode", "severities"), [("strict", ["error"]), ("warn", ["warning"]), ("ignore", [])]
)
def test_the_mode_says_what_an_unknown_field_is(
    capsys, write, mode: str, severities: list[str]
) -> None:
    text = GOOD.replace("    validate:", "    nonsense: 1\n    validate:")
    code, out, _err = lint(capsys, write(text), "-o", "json", f"--validate={mode}")

    assert [item["severity"] for item in json.loads(out)["findings"]] == severities
    assert code == (1 if mode == "strict" else 0)


def test_a_repeated_key_is_an_error_in_strict_mode(capsys, write) -> None:
    path = write(GOOD + "        a: c\n")

    assert lint(capsys, path)[0] == 1
    assert lint(capsys, path, "--validate=warn")[0] == 0


def test_all_findings_of_a_folder_are_listed_and_other_documents_passed_over(
    capsys, write, tmp_path
) -> None:
    write(MISSPELT + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", "a.yaml")
    write(REFUSED, "b.yaml")
    code, out, err = lint(capsys, str(tmp_path), "-o", "json")

    assert code == 1
    assert [item["file"].rpartition("/")[2] for item in json.loads(out)["findings"]] == [
        "a.yaml",
        "a.yaml",
        "b.yaml",
    ]
    assert err.startswith("2 checked, ")


def test_sarif_marks_the_line(capsys, write) -> None:
    path = write(REFUSED)
    _code, out, _err = lint(capsys, path, "-o", "sarif")
    (result,) = json.loads(out)["runs"][0]["results"]

    assert result["level"] == "error"
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": path},
        "region": {"startLine": 11},
    }


def test_a_wrong_type_is_reported_alone(capsys, write) -> None:
    code, out, _err = lint(capsys, write(GOOD.replace("name: r", "name: 5")), "-o", "json")

    assert code == 1
    assert [item["message"] for item in json.loads(out)["findings"]] == [
        "`spec.rules[0].name` must be a string, but is a number"
    ]


def test_a_version_that_is_not_served_is_an_error(capsys, write) -> None:
    code, out, _err = lint(capsys, write(GOOD.replace("kyverno.io/v1", "kyverno.io/v2")))

    assert code == 1
    assert "is not a ClusterPolicy or Policy of a known version" in out


@pytest.mark.parametrize("kind", ["PolicyException", "ClusterCleanupPolicy"])
def test_exceptions_and_cleanup_policies_are_checked_too(capsys, write, kind: str) -> None:
    spec = {"PolicyException": "exceptions: []", "ClusterCleanupPolicy": "schedule: never"}[kind]
    text = f"apiVersion: kyverno.io/v2\nkind: {kind}\nmetadata: {{name: x}}\nspec:\n  match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}\n  {spec}\n"
    code, out, _err = lint(capsys, write(text))

    assert code == 1
    assert f"{kind}/x" in out


def test_text_that_is_no_yaml_is_reported_with_its_line(capsys, write) -> None:
    path = write("a: [b\n")
    code, out, _err = lint(capsys, path)

    assert code == 1
    assert path in out


def test_nothing_to_check_is_a_wrong_command_line(capsys, write) -> None:
    code, out, err = lint(capsys, write("kind: ConfigMap\n"))

    assert (code, out) == (2, "")
    assert "no policies, exceptions or cleanup policies found" in err


def test_wrong_flags_are_wrong_usage(capsys) -> None:
    assert lint(capsys)[0] == 2
    assert lint(capsys, "x", "-o", "html")[0] == 2
