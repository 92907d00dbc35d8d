from __future__ import annotations

import pytest

from engine.errors import DocumentError
from engine.lang import yaml
from kubectl_kpolicy.apply.shapes import ANY, FLAG, LABELS, NUMBER, TEXT, check_shape, shown

SHAPE = {
    "name": TEXT,
    "on": FLAG,
    "count": NUMBER,
    "labels": LABELS,
    "free": ANY,
    "list": [{"x": TEXT}],
}


def _read(text):
    return check_shape(yaml.load_all(text, file="f.yaml")[0], SHAPE, what="file")


def test_a_value_that_fits_is_returned():
    text = "{name: a, 'on': true, count: 3, labels: {a: b}, free: [1, {}], list: [{x: z}]}"
    assert _read(text)["list"] == [{"x": "z"}]


def test_null_fits_everywhere():
    assert _read("name:\nlist:\n") == {"name": None, "list": None}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: 1", "`name` of file must be a string, not `1`"),
        ("'on': 1", "`on` of file must be true or false, not `1`"),
        ("count: true", "`count` of file must be a whole number, not `true`"),
        ("labels: {a: 1}", "`labels` of file must be a map of strings, not a map"),
        ("list: {}", "`list` of file must be a list, not a map"),
        ("list: [a]", "`list[0]` of file must be a map, not `a`"),
        ("list: [{z: a}]", "unknown field `list[0].z` in file"),
        ("[]", "file must be a map, not a list"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(text, message):
    with pytest.raises(DocumentError) as caught:
        _read(text)
    assert caught.value.message == message
    assert (caught.value.at.file, caught.value.at.line) == ("f.yaml", 1)


def test_paths_are_written_as_people_write_them():
    assert shown(("results", 0, "policy")) == "results[0].policy"
