"""Ids of denials: what they say is read again, and only those of the engine are taken for such."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.grants.blocks import Block, block_id, is_signed, read_block_id, target_of

KEY = b"a key"
BLOCK = Block("no-root", ("r", "autogen-r"), "Deployment", "web", "shop")
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(st.lists(WORDS, min_size=1, max_size=3), WORDS.filter(bool), WORDS.filter(bool), WORDS)
def test_what_an_id_says_is_read_again(rules: list[str], policy: str, kind: str, name: str):
    block = Block(policy, tuple(rules), kind, name, "shop")
    assert read_block_id(block_id(block, KEY)) == block


@given(st.text(max_size=80))
def test_any_text_is_read_as_no_id(text: str):
    assert read_block_id(text) is None
    assert not is_signed(text, KEY)


def test_an_id_is_signed_by_one_key_only():
    made = block_id(BLOCK, KEY)
    assert is_signed(made, KEY)
    assert not is_signed(made, b"another key")


def test_every_changed_character_breaks_the_signature():
    made = block_id(BLOCK, KEY)
    for place in range(len(made)):
        for other in ("A", "B", "."):
            changed = made[:place] + other + made[place + 1 :]
            assert changed == made or not is_signed(changed, KEY), place


def test_without_a_signature_an_id_is_not_read():
    assert read_block_id(block_id(BLOCK, KEY).rpartition(".")[0]) is None


@pytest.mark.parametrize(
    ("metadata", "is_new", "name"),
    [
        ({"name": "web"}, True, "web"),
        ({"generateName": "web-"}, True, "web-*"),
        ({"generateName": "web-", "name": "web-x7k2p"}, True, "web-*"),
        ({"generateName": "web-", "name": "web-x7k2p"}, False, "web-x7k2p"),
        ({"generateName": "web-", "name": "db"}, True, "db"),
        ({}, True, "*"),
    ],
)
def test_a_denied_object_is_asked_for_by_the_name_that_it_will_have_again(metadata, is_new, name):
    assert target_of(metadata, is_new=is_new) == name
