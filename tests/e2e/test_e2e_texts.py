"""Texts with gaps compare as they say."""

from __future__ import annotations

import pytest

from tests.e2e import scenario, texts


def test_a_gap_takes_what_it_matches_and_remembers_it() -> None:
    assert texts.whole("code <<code=[a-z]{3}>>.", "code abc.\n", {}) == {"code": "abc"}


def test_a_remembered_value_must_come_again() -> None:
    assert texts.whole("<<code>> is used", "abc is used", {"code": "abc"}) == {"code": "abc"}
    assert texts.whole("<<code>> is used", "abd is used", {"code": "abc"}) is None


def test_a_value_taken_twice_in_one_text_is_the_same() -> None:
    assert texts.whole("<<a=.>> <<a>>", "x x", {}) == {"a": "x"}
    assert texts.whole("<<a=.>> <<a>>", "x y", {}) is None


def test_the_whole_text_counts_where_it_is_asked_for() -> None:
    assert texts.whole("a.c", "abc", {}) is None
    assert texts.part("b", "abc", {}) == {}
    assert texts.whole("b", "abc", {}) is None


def test_what_nobody_remembered_is_an_error() -> None:
    with pytest.raises(texts.UnknownNameError):
        texts.filled("<<code>>", {})


@pytest.mark.parametrize("name", scenario.names())
def test_every_scenario_can_be_read(name: str) -> None:
    assert scenario.load(name).steps
