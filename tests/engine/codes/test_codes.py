"""Codes: what they are bound to, how they are written, and that nothing else opens."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codes import (
    Binding,
    Key,
    canonical,
    fingerprint,
    mint,
    shown,
    slot_of,
    use_name,
    verify,
)
from engine.codes.minting import issued_code
from engine.codes.requests import approval_name
from engine.codes.signed import fields_of, is_signed, signed
from engine.record import replace

KEY = Key(3, b"k" * 32)
SLOT = 1000
BOUND = Binding(
    cluster="c-1", policy_uid="p-1", policy_hash="ab", rules=("one", "two"), violation="f0", group="apps", version="v1",
    resource="deployments", subresource="", operation="CREATE", namespace="shop", namespace_uid="n-1", object_name="web",
    object_uid="", username="ada@example.com", groups=("dev", "system:authenticated"),
)  # fmt: skip
OTHERS = {
    "cluster": "c-2", "policy_uid": "p-2", "policy_hash": "ac", "rules": ("one",), "violation": "f1", "group": "", "version": "v2",
    "resource": "pods", "subresource": "scale", "operation": "UPDATE", "namespace": "bank", "namespace_uid": "n-2",
    "object_name": "web2", "object_uid": "o-1", "username": "Ada@example.com", "groups": ("dev", "sre", "system:authenticated"),
}  # fmt: skip


def test_a_code_opens_what_it_was_made_for():
    code = mint(KEY, BOUND, SLOT)

    assert verify([KEY], BOUND, shown(code), SLOT) == code
    assert verify([KEY], BOUND, shown(code).lower().replace("-", " "), SLOT) == code


@pytest.mark.parametrize("part", sorted(OTHERS))
def test_a_code_opens_nothing_else(part):
    code = mint(KEY, BOUND, SLOT)

    assert verify([KEY], replace(BOUND, **{part: OTHERS[part]}), code, SLOT) is None


def test_the_order_of_rules_does_not_count():
    code = mint(KEY, BOUND, SLOT)

    assert verify([KEY], replace(BOUND, rules=("two", "one")), code, SLOT) == code


def test_a_code_lives_for_its_slot_and_the_next():
    code = mint(KEY, BOUND, SLOT)

    assert [verify([KEY], BOUND, code, SLOT + later) == code for later in (-1, 0, 1, 2)] == [
        False, True, True, False,
    ]  # fmt: skip


def test_the_same_denial_gives_the_same_code_and_a_burned_one_another():
    assert mint(KEY, BOUND, SLOT) == mint(KEY, BOUND, SLOT)
    second = mint(KEY, BOUND, SLOT, 1)
    assert second != mint(KEY, BOUND, SLOT)
    assert verify([KEY], BOUND, second, SLOT) == second


def test_codes_of_a_key_that_was_taken_away_are_dead():
    code = mint(KEY, BOUND, SLOT)
    new = Key(4, b"n" * 32)

    assert verify([new, KEY], BOUND, code, SLOT) == code
    assert verify([new], BOUND, code, SLOT) is None


def test_a_key_does_not_show_its_secret():
    assert "k" * 4 not in repr(KEY)
    assert "6b6b" not in repr(KEY)


def test_a_hundred_thousand_guesses_open_nothing():
    chance = random.Random(7)
    expected = {mint(KEY, BOUND, SLOT - back, number) for back in (0, 1) for number in range(8)}
    alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    guesses = {"".join(chance.choices(alphabet, k=20)) for _ in range(100_000)}

    assert not guesses & expected
    assert not any(verify([KEY], BOUND, guess, SLOT) for guess in [*guesses][:200])


def test_the_written_form_is_fit_for_a_label():
    text = shown(mint(KEY, BOUND, SLOT))

    assert len(text) == 24
    assert [len(part) for part in text.split("-")] == [4] * 5
    assert text.replace("-", "").isalnum()


@pytest.mark.parametrize(
    "text", ["", "ABCD", "U" * 20, "A" * 21, "é" * 20, "0" * 10_000, "ABCD-EFGH-JKMN-PQRS-TVW!"]
)
def test_what_cannot_be_a_code_is_none(text):
    assert canonical(text) is None
    assert verify([KEY], BOUND, text, SLOT) is None


def test_letters_that_people_confuse_are_read_as_digits():
    assert canonical("oOiIlL" + "A" * 14) == "001111" + "A" * 14


def test_a_use_is_named_after_the_code_without_showing_it():
    code = mint(KEY, BOUND, SLOT)
    name = use_name(code)

    assert name == use_name(code) != use_name(mint(KEY, BOUND, SLOT, 1))
    assert code.lower()[:6] not in name
    assert len(name) <= 63


def test_slots_are_numbered_through():
    at = datetime(2026, 3, 1, tzinfo=UTC)
    slots = [slot_of(at + timedelta(minutes=minutes), timedelta(minutes=15)) for minutes in (0, 14, 15, 30)]  # fmt: skip

    assert [slot - slots[0] for slot in slots] == [0, 0, 1, 2]


@given(st.lists(st.text(), min_size=2, max_size=2, unique=True), st.text())
def test_moving_letters_between_parts_makes_another_binding(parts, rest):
    first, second = parts
    one = replace(BOUND, namespace=first + rest, object_name=second)
    other = replace(BOUND, namespace=first, object_name=rest + second)

    assert (one.bytes() == other.bytes()) is (one == other)


def test_the_fingerprint_goes_by_what_is_wrong_and_by_images():
    wrong = [("one", "/spec/a", "x"), ("two", "/spec/b", None)]

    base = fingerprint(wrong, ["nginx:1", "redis:7"])
    assert fingerprint(reversed(wrong), ["redis:7", "nginx:1"]) == base
    assert fingerprint(wrong[:1], ["nginx:1", "redis:7"]) != base
    assert fingerprint([("one", "/spec/a", "y"), wrong[1]], ["nginx:1", "redis:7"]) != base
    assert fingerprint(wrong, ["nginx:2", "redis:7"]) != base
    assert fingerprint(wrong, ["nginx:1"]) != base


@pytest.mark.parametrize("place", range(20))
def test_every_single_character_counts(place):
    code = mint(KEY, BOUND, SLOT)
    other = "Z" if code[place] != "Z" else "Y"

    assert verify([KEY], BOUND, code[:place] + other + code[place + 1 :], SLOT) is None
    assert verify([KEY], BOUND, "", SLOT) is None


def test_a_text_with_spaces_is_a_code_up_to_sixty_four_characters():
    code = mint(KEY, BOUND, SLOT)

    assert canonical(code.ljust(64)) == code
    assert canonical(code.ljust(65)) is None


def test_an_issued_code_is_made_of_ninety_bits_of_chance():
    assert issued_code(b"\xff" * 12) == "Z" * 18 + "00"
    assert issued_code(b"\0" * 11 + b"\x21") == "0" * 16 + "1100"
    with pytest.raises(ValueError, match="too little chance"):
        issued_code(b"\xff" * 11)


def test_a_word_is_signed_with_sixteen_bytes_and_read_whatever_its_length():
    for length in range(1, 9):
        word = signed("k.", ["x" * length], b"key")
        assert fields_of(word, "k.", 100) == ["x" * length]
        assert is_signed(word, b"key")
        assert len(word.rpartition(".")[2]) == 22
        assert fields_of(word, "k.", len(word) - 1) is None


def test_text_that_no_encoding_has_is_digested_too():
    odd = "\ud800"

    assert replace(BOUND, username=odd).bytes() != replace(BOUND, username="\ud801").bytes()
    assert fingerprint([("r", "/a", odd)], ["x"]) != fingerprint([("r", "/a", "x")], ["x"])
    assert fingerprint([], [odd]) != fingerprint([], ["\ud801"])
    assert approval_name(odd) != approval_name("\ud801")
    assert not is_signed(odd, b"key")
