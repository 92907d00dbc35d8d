"""`lint --fix` writes what has one meaning, leaves everything else of a file as it is, and never makes it worse."""

from __future__ import annotations

import pytest

from kubectl_kpolicy.cli.lint import fixed, mistakes_in
from kubectl_kpolicy.entry import main

WRONG = """\
# kept: a comment
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: enforce-team}
spec:
  background: false
  rules:
  - name: enforce   # a name, not an action
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      failureAction: enforce
      mesage: "{{ request.objct.metadata.name }} of {{request.userInfo.username}}"
      deny:
        conditions:
          all:
          - {key: "{{ reqest.operation }}", operator: Equals, value: DELETE}
"""


def test_what_has_one_meaning_is_written_and_the_rest_is_kept():
    assert fixed(WRONG, mistakes_in) == (
        WRONG.replace("failureAction: enforce", "failureAction: Enforce")
        .replace("mesage:", "message:")
        .replace("request.objct", "request.object")
        .replace("reqest.", "request."),
        4,
    )


@pytest.mark.parametrize(
    "text",
    [
        WRONG.replace("mesage", "zzz")
        .replace("objct", "zzz")
        .replace("reqest", "request")
        .replace("failureAction: enforce", "failureAction: Audit"),
        "kind: [",
        "just: yaml\n",
        "",
    ],
)
def test_what_nobody_can_know_is_left_as_it_is(text):
    assert fixed(text, mistakes_in) == (text, 0)


def test_a_field_that_is_there_already_is_not_written_twice():
    text = WRONG.replace("      mesage:", "      message: x\n      mesage:")
    mended, _ = fixed(text, mistakes_in)
    assert "mesage:" in mended


def test_the_command_writes_files_and_tells_how_many_and_what_is_left(tmp_path, capsys):
    file = tmp_path / "policy.yaml"
    file.write_text(WRONG.replace("background: false", "backgrund: false\n  zzz: 1"))
    other = tmp_path / "other.yaml"
    other.write_text("kind: ConfigMap\n")
    assert main(["lint", "--fix", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert "zzz" in out
    assert err == "6 mended, 1 checked, 1 errors, 0 warnings\n"
    assert "# kept: a comment" in file.read_text()
    assert other.read_text() == "kind: ConfigMap\n"
    assert main(["lint", str(tmp_path)]) == 1
    assert "mended" not in capsys.readouterr().err
