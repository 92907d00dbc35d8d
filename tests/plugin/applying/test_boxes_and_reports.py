from __future__ import annotations

import xml.etree.ElementTree as ET

from kubectl_kpolicy.applying.boxes import aligned, markdown_table, table
from kubectl_kpolicy.applying.colors import Colors
from kubectl_kpolicy.applying.junit import junit_text


def test_a_table_has_a_border_as_kyverno_draws_it():
    assert table(("ID", "POLICY"), [("1", "p"), ("2", "long")]) == "\n".join(
        [
            "│────│────────│",
            "│ ID │ POLICY │",
            "│────│────────│",
            "│ 1  │ p      │",
            "│ 2  │ long   │",
            "│────│────────│",
        ]
    )


def test_colours_do_not_count_for_the_width():
    colors = Colors(on=True)
    painted = table(("R",), [(colors.status("Pass"),)], colors=colors)
    assert "\x1b[32;1mPass\x1b[0m │" in painted
    assert all(line.startswith("│") for line in painted.splitlines())


def test_no_colours_are_written_where_they_are_off():
    assert "\x1b" not in Colors().status("Fail") + Colors().name("p")


def test_bars_in_markdown_cells_are_escaped():
    assert markdown_table(("A",), [("x|y\nz",)]).splitlines()[-1] == "| x\\|y z |"


def test_plain_columns_stand_three_blanks_apart():
    assert aligned(("A", "B"), [("xx", "y")]) == "A    B\nxx   y"


def test_junit_counts_failures_and_survives_hostile_text():
    text = junit_text("run", {"a<b": [("r", "x", None), ("r2", "y", "bad \x00 <&>")]})
    suite = ET.fromstring(text).find("testsuite")
    assert suite is not None
    assert suite.attrib == {"name": "a<b", "tests": "2", "failures": "1"}
