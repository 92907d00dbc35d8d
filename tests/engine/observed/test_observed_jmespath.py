"""The observed JMESPath table: every expression on its input, with the exact answer or error text."""

from __future__ import annotations

import json

from tests.engine.observed.jmespath_rows import HERE, difference, jmespath_rows


def test_expressions_answer_as_observed_except_for_the_listed_rows() -> None:
    table = jmespath_rows()
    listed = json.loads((HERE / "jmespath-differences.json").read_text())

    differing = {number: answer for number, row in enumerate(table) if (answer := difference(row))}

    assert differing.keys() == {entry["row"] for entry in listed}, {
        number: (table[number]["expr"], answer) for number, answer in differing.items()
    }
    assert len(differing) <= 0.015 * len(table)
