"""The checker of use-once registers knows what can have happened and what cannot."""

from __future__ import annotations

from .register import Operation, is_linearizable


def test_one_who_took_it_and_others_who_did_not():
    assert is_linearizable([Operation(0, 1, "a", True), Operation(2, 3, "b", False)])


def test_two_cannot_have_taken_it():
    assert not is_linearizable([Operation(0, 5, "a", True), Operation(1, 6, "b", True)])


def test_the_same_may_take_it_again():
    assert is_linearizable([Operation(0, 1, "a", True), Operation(2, 3, "a", True)])


def test_nobody_is_refused_what_is_still_free():
    assert not is_linearizable([Operation(0, 1, "b", False), Operation(2, 3, "a", True)])


def test_a_refusal_at_the_same_time_is_explained_by_who_took_it():
    assert is_linearizable([Operation(0, 5, "b", False), Operation(1, 3, "a", True)])


def test_who_was_told_nothing_may_have_taken_it():
    lost = Operation(0, 1, "lost", None)

    assert is_linearizable([lost, Operation(2, 3, "b", False)])
    assert is_linearizable([lost, Operation(2, 3, "b", True)])
    assert not is_linearizable([lost, Operation(2, 3, "b", False), Operation(4, 5, "c", True)])


def test_who_has_not_begun_yet_explains_nothing():
    assert not is_linearizable([Operation(0, 1, "b", False), Operation(2, 3, "lost", None)])
