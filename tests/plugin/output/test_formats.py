"""Formats: tables as kubectl prints them, data without a word beside it, YAML that reads back as it was."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import EngineError
from engine.lang.yaml import load
from kubectl_kpolicy.output.diagnostics import report, visible
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.output.paths import jsonpath
from kubectl_kpolicy.output.structured import json_text, name_of, write_list, yaml_stream, yaml_text
from kubectl_kpolicy.output.table import Column, Table, wanted

PODS = [
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}},
    {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "db-0"}},
]


def table() -> Table:
    made = Table(
        [Column("NAME"), Column("RESULT", roles={"fail": "bad"}), Column("MESSAGE", wide=True)]
    )
    made.add("web", "fail", "no\nlabel | here")
    made.add("数据库", "pass", "")
    return made


def written(form: str, **options: bool) -> str:
    out = io.StringIO()
    write_list(out, PODS, table(), form, **options)
    return out.getvalue()


def test_a_table_is_aligned_by_terminal_cells_and_has_no_trailing_blanks() -> None:
    assert written("table") == "NAME     RESULT\nweb      fail\n数据库   pass\n"


def test_wide_shows_more_on_one_line_each() -> None:
    assert written("wide").splitlines()[1] == "web      fail     no label | here"


def test_heads_can_be_left_out() -> None:
    assert written("table", heads=False).startswith("web")


def test_colour_goes_by_role_and_does_not_move_columns() -> None:
    plain, colored = written("table"), written("table", color=True)

    assert "\x1b[31;1mfail\x1b[0m" in colored
    assert plain == "".join(
        part.partition("m")[2] if index else part
        for index, part in enumerate(colored.split("\x1b["))
    )


def test_markdown_keeps_bars_inside_cells() -> None:
    assert "| web | fail | no label \\| here |" in written("markdown")


def test_json_and_yaml_are_one_list() -> None:
    assert json.loads(written("json"))["items"] == PODS
    assert load(written("yaml"))["items"] == PODS


def test_names_fit_xargs() -> None:
    assert written("name") == "pod/web\ndeployment.apps/db-0\n"
    assert name_of(PODS[1]) == "deployment.apps/db-0"


def test_an_empty_table_prints_nothing() -> None:
    assert Table([Column("NAME")]).text() == ""


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=15,
)


@given(st.dictionaries(st.text(), VALUES, min_size=1))
def test_yaml_reads_back_as_it_was(value: dict) -> None:
    assert load(yaml_text(value)) == value


@pytest.mark.parametrize(
    "text", ["yes", "on", "y", "0644", "1e3", "1_000", "2001-01-01", "12:30:45", "null", "~", "", ".inf", "- a", "a: b", "a #b",
             "a:", "#", "*x", "&x", "!t", "%", "@", "`", "'", '"', " a", "a ", "\t", "a\nb", "a\n", "\na", "a\n\n", " a\nb", "<<", "0x1F", "---", "é", "\x85"],
)  # fmt: skip
def test_texts_that_look_like_something_else_stay_texts(text: str) -> None:
    assert load(yaml_text({"k": text, "l": [text]})) == {"k": text, "l": [text]}


def test_several_documents_are_one_stream() -> None:
    assert yaml_stream([{"a": 1}, {"b": 2}]) == "a: 1\n---\nb: 2\n"


def test_json_ends_with_a_newline() -> None:
    assert json_text({"a": 1}) == '{\n  "a": 1\n}\n'


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("choice", "stream", "environment", "expected"),
    [
        ("auto", Terminal(), {}, True),
        ("auto", io.StringIO(), {}, False),
        ("auto", Terminal(), {"NO_COLOR": "1"}, False),
        ("auto", Terminal(), {"NO_COLOR": ""}, True),
        ("auto", Terminal(), {"TERM": "dumb"}, False),
        ("always", io.StringIO(), {"NO_COLOR": "1"}, True),
        ("never", Terminal(), {}, False),
    ],
)
def test_colour_is_for_terminals_and_people_who_want_it(
    choice, stream, environment, expected
) -> None:
    assert wanted(choice, stream, environment) is expected


@given(st.text())
def test_no_text_steers_the_terminal(text: str) -> None:
    shown = visible(text)

    assert all(char.isprintable() or char in "\n\t" for char in shown)


def test_an_endless_message_is_cut() -> None:
    assert len(visible("x" * 100_000)) < 5_000


def test_an_error_without_place_or_help_is_one_line() -> None:
    err = io.StringIO()
    report(EngineError("nothing to do"), err=err)

    assert err.getvalue() == "error: nothing to do\n"


@pytest.mark.parametrize("template", ["{.items[*", ".items}", "{.a}}", "{{.a}"])
def test_a_brace_without_its_other_one_is_refused(template: str) -> None:
    with pytest.raises(Misuse, match="brace"):
        jsonpath({"a": 1, "items": []}, template)
