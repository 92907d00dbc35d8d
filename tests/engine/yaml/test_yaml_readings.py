"""Every scalar, key, merge and error reads as `sigs.k8s.io/yaml` 1.4.0 read it; the table holds that library's answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.errors import DocumentError
from engine.lang.yaml import load, load_all

ROWS = [
    json.loads(line) for line in Path(__file__).with_name("readings.jsonl").read_text().splitlines()
]

DIFFERENCES = {
    'a: "\\/"': "libyaml knows YAML 1.2's escaped slash, go-yaml 2 does not; accepting more is harmless",
    "a: ! 12": "libyaml's parser drops the tag `!`; nobody writes it",
    "k: [a:, b]": "libyaml refuses a word that ends in a colon inside brackets; an error, never another value",
    "k: {a:}": "the same",
}
AGREED = [row for row in ROWS if row["text"] not in DIFFERENCES]


def same(one: object, other: object) -> bool:
    """Compare with types: 1, 1.0 and True are three values."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


@pytest.mark.parametrize(
    "row", [row for row in AGREED if "value" in row], ids=lambda row: repr(row["text"])[:50]
)
def test_a_readable_text_has_the_value_that_kubernetes_gives_it(row: dict) -> None:
    value = load(row["text"])

    assert same(value, row["value"]), value


@pytest.mark.parametrize(
    "row", [row for row in AGREED if "value" not in row], ids=lambda row: repr(row["text"])[:50]
)
def test_what_kubernetes_refuses_is_refused(row: dict) -> None:
    with pytest.raises(DocumentError):
        load_all(row["text"])


def test_strict_reading_refuses_exactly_what_kubernetes_strict_reading_refuses() -> None:
    differing = []
    for row in AGREED:
        if "value" not in row:
            continue
        try:
            load_all(row["text"], strict=True)
        except DocumentError:
            accepted = False
        else:
            accepted = True
        if accepted != row["strict"]:
            differing.append(row["text"])

    assert differing == []


def test_every_listed_difference_is_still_one() -> None:
    for row in ROWS:
        if row["text"] not in DIFFERENCES:
            continue
        try:
            differs = "value" not in row or not same(load(row["text"]), row["value"])
        except DocumentError:
            differs = "value" in row

        assert differs, row["text"]
