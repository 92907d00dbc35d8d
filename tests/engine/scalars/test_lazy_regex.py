"""Regular expressions that are compiled with their first use."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.lang.lazy_regex import compiled_late, regex


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


def test_expressions_are_compiled_late_by_the_thread_that_imports_and_at_once_by_others() -> None:
    with compiled_late(), ThreadPoolExecutor(1) as others:
        late = re.compile("b+")
        at_once = others.submit(re.compile, "b+").result()

    assert not isinstance(late, re.Pattern)
    assert late.search("abb")[0] == "bb"
    assert isinstance(at_once, re.Pattern)
    assert isinstance(re.compile("b+"), re.Pattern)
