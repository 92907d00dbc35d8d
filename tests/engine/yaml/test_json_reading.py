"""Strict JSON: one value, numbers as written, depth and size bounded, one kind of error."""

from __future__ import annotations

import pytest

from engine.errors import DocumentError
from engine.lang import json
from engine.lang.work import Limits


def test_numbers_stay_as_written() -> None:
    value = json.load('{"a": 1.0, "b": 1, "c": 18446744073709551616}')

    assert [type(part) for part in value.values()] == [float, int, float]


@pytest.mark.parametrize(
    "text",
    ["", "nan", "[1] [2]", "{'a': 1}", "[1e400]", '"\\ud800"', "[1,]", "\ud800", "9" * 5_000],
)
def test_what_is_not_strict_json_is_an_error(text: str) -> None:
    with pytest.raises(DocumentError):
        json.load(text, file="review.json")


def test_an_error_names_file_and_line() -> None:
    with pytest.raises(DocumentError) as caught:
        json.load('{\n"a": x}', file="review.json")

    assert (caught.value.at.file, caught.value.at.line) == ("review.json", 2)


@pytest.mark.parametrize("levels", [201, 1_000, 10_000])
def test_deep_json_is_one_clear_error(levels: int) -> None:
    with pytest.raises(DocumentError, match="nested deeper than 200 levels"):
        json.load("[" * levels + "]" * levels)


def test_json_up_to_the_bound_is_read() -> None:
    assert json.load("[" * 200 + "]" * 200) is not None


def test_json_beyond_the_size_limit_is_refused_unread() -> None:
    with pytest.raises(DocumentError, match="larger than 3 bytes"):
        json.load(b"[1, 2]", limits=Limits(size=3))
