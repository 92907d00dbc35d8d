"""The driver of evaluations that need answers: it asks until nothing is missing, and never takes less for a decision."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Any

import pytest

from engine.errors import LimitError
from engine.evaluate import Answer, ConfigMapLookup
from engine.evaluate.asking import MOST_ROUNDS, Said, conclude, conclude_later, until_answered
from engine.evaluate.lookups import LookupNeeded


def named(number: int) -> ConfigMapLookup:
    return ConfigMapLookup("shop", f"c{number}")


class Found:
    """A result that lacks the first of some lookups that nobody has answered."""

    def __init__(self, answers: Any, wanted: int) -> None:
        lacking = (named(number) for number in range(wanted) if named(number) not in answers)
        self.missing = list(islice(lacking, 1))


def resolved(lookups: Any) -> dict[Any, Answer]:
    return {one: Answer.found(one.name) for one in lookups}


async def resolved_later(lookups: Any) -> dict[Any, Answer]:
    await asyncio.sleep(0)
    return resolved(lookups)


@pytest.mark.parametrize("rounds", [0, 1, 3, MOST_ROUNDS])
def test_it_asks_as_often_as_something_is_missing(rounds: int) -> None:
    known: dict[Any, Answer] = {}
    found = conclude(until_answered(lambda answers: Found(answers, rounds), known), resolved)
    assert found.missing == []
    assert len(known) == rounds
    later: dict[Any, Answer] = {}
    asking = until_answered(lambda answers: Found(answers, rounds), later)
    assert asyncio.run(conclude_later(asking, resolved_later)).missing == []
    assert later == known


def test_questions_that_never_end_are_an_error_and_no_decision() -> None:
    with pytest.raises(LimitError, match="more answers from outside"):
        conclude(until_answered(lambda answers: Found(answers, 10_000), {}), resolved)
    with pytest.raises(LimitError, match="more answers from outside"):
        asyncio.run(conclude_later(until_answered(lambda answers: Found(answers, 10_000), {}), resolved_later))  # fmt: skip


def test_an_answer_that_does_not_come_is_asked_for_again_and_not_passed_over() -> None:
    asked: list[Any] = []

    def nothing(lookups: Any) -> dict[Any, Answer]:
        asked.extend(lookups)
        return {}

    with pytest.raises(LimitError):
        conclude(until_answered(lambda answers: Found(answers, 1), {}), nothing)
    assert len(asked) == MOST_ROUNDS


def test_what_was_learnt_serves_the_next_decision() -> None:
    known: dict[Any, Answer] = {}
    conclude(until_answered(lambda answers: Found(answers, 2), known), resolved)
    conclude(until_answered(lambda answers: Found(answers, 2), known), lambda _: pytest.fail("again"))  # fmt: skip


def test_an_expression_that_stops_at_a_question_lacks_its_answer() -> None:
    def stop() -> bool:
        raise LookupNeeded(named(1))

    assert Said(stop).missing == (named(1),)
    assert (Said(lambda: True).value, Said(lambda: True).missing) == (True, ())
