from __future__ import annotations

import xml.etree.ElementTree as ET

from engine.errors import Location
from kubectl_kpolicy.apply.boxes import Brush, boxed
from kubectl_kpolicy.output.findings import Case, junit_text

TABLE = """\
│────│────────│
│ ID │ POLICY │
│────│────────│
│ 1  │ p      │
│ 2  │ long   │
│────│────────│"""


def test_a_table_has_a_border_as_kyverno_draws_it():
    assert boxed(("ID", "POLICY"), [("1", "p"), ("2", "long")]) == TABLE


def test_a_table_without_rows_is_a_head():
    assert boxed(("ID",), []) == "│────│\n│ ID │\n│────│\n│────│"


def test_colours_do_not_count_for_the_width():
    brush = Brush(on=True)
    painted = boxed(("R",), [(brush.status("Pass"),)], brush=brush)
    assert "\x1b[32;1mPass\x1b[0m │" in painted
    assert all(line.startswith("│") for line in painted.splitlines())


def test_no_colours_are_written_where_they_are_off():
    assert "\x1b" not in Brush().status("Fail") + Brush().name("p")


def test_names_cannot_steer_the_terminal():
    assert "\x1b" not in Brush().name("\x1b[2J")


def test_junit_counts_failures_and_survives_hostile_text():
    text = junit_text(
        "run",
        {"a<b": [Case("r", "x", None, Location("./a.yaml", 3)), Case("r2", "y", "bad \x00 <&>")]},
    )
    suite = ET.fromstring(text).find("testsuite")
    assert suite is not None
    assert suite.attrib == {"name": "a<b", "tests": "2", "failures": "1", "errors": "0"}
    assert suite[0].attrib == {"name": "r", "classname": "x", "file": "a.yaml", "line": "3"}
    assert ET.fromstring(text).attrib == {"name": "run", "tests": "2", "failures": "1", "errors": "0"}  # fmt: skip
