from __future__ import annotations

import pytest

from engine.errors import DocumentError
from kubectl_kpolicy.testing.run import parse_selector


def test_everything_is_taken_by_default():
    assert parse_selector("").takes("p", "", "r")


def test_each_part_takes_wildcards_and_order_does_not_matter():
    selector = parse_selector("resource=web-*, policy=require-?")
    assert selector.takes("require-x", "any", "web-1")
    assert not selector.takes("require-xy", "any", "web-1")
    assert not selector.takes("require-x", "any", "db")


def test_an_empty_part_takes_everything():
    assert parse_selector("rule=").takes("p", "r", "n")


@pytest.mark.parametrize("text", ["name=a", "policy", "policy=a,kind=b"])
def test_other_parts_are_refused(text):
    with pytest.raises(DocumentError, match="test case selector"):
        parse_selector(text)
