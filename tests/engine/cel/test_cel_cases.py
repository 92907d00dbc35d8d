"""The table of the language: every row gives its value, of its type, or its kind of error."""

from __future__ import annotations

import pytest

from tests.engine.cel.rows import Row, all_rows, evaluated, holds

ROWS = all_rows()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.place)
def test_the_row_gives_what_the_language_definition_says(row: Row) -> None:
    assert holds(row), f"{row.expression} gives {evaluated(row)}, not {row.expected}"


def test_the_table_has_at_least_600_rows_and_none_twice() -> None:
    distinct = {(row.expression, repr(row.bindings)) for row in ROWS}

    assert len(ROWS) >= 600
    assert len(distinct) == len(ROWS)
