"""Regular expressions that are compiled with their first use."""

from __future__ import annotations

import re

import pytest

from engine.lang.lazy_regex import regex


def test_an_expression_has_the_methods_of_a_compiled_one() -> None:
    made = regex(r"(?P<word>[a-z]+)-\d", re.IGNORECASE)

    found = made.fullmatch("Ab-1")
    assert found is not None
    assert found["word"] == "Ab"
    assert made.findall("a-1 b-2") == ["a", "b"]
    assert made.groups == 1


def test_what_is_no_expression_is_told_with_the_first_use() -> None:
    made = regex("(")

    with pytest.raises(re.error):
        made.search("")
