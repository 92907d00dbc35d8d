"""What the whole budget of an evaluation can cost: hostile inputs of legal size, timed beside a yardstick of the same run."""

from __future__ import annotations

import gc
import random
import time
from contextlib import contextmanager, suppress

import pytest

from engine.errors import LimitError
from engine.lang import jmes, regex, wildcard
from engine.lang.jmes.values import Env
from engine.lang.operators import compile_condition
from engine.lang.work import BUDGET, FREE, Meter, charge, meter, metered

MIB = 1 << 20
SHARE = 10
"""A tenth of the budget is spent, so that the table does not take minutes."""
SLACK = 6.0
"""How much more than its price a call may take."""
PRICED = 90e-9
"""Seconds of one round of the yardstick on the machine on which the prices were found."""

_chance = random.Random(7)
MIXED = "".join(_chance.choice("ab") for _ in range(MIB))
WORDS = [str(n * 7919 % 1_000_003) for n in range(200_000)]


def query(expression: str, value: object):
    return lambda: jmes.compile(expression)(value, Env())


HOSTILE = {
    "wildcard with question marks": lambda: wildcard.match("*" + "a?" * 100 + "b*", "a" * 200_000),
    "pattern_match twenty times": lambda: [query("pattern_match(p, t)", {"p": "*" + "a?" * 60 + "b*", "t": "a" * 300_000})() for _ in range(20)],
    "expression of many states": lambda: regex.compile("[ab]*a[ab]{900}c").search(MIXED),
    "expression with groups": lambda: regex.compile("([ab]*a[ab]{500}c)").search(MIXED),
    "expression replaced everywhere": lambda: regex.compile("a").replace("a" * MIB, "bb"),
    "parse_yaml": query("parse_yaml(@)", "- a\n" * (MIB // 4)),
    "parse_json of lists": query("parse_json(@)", "[" + "[]," * (MIB // 3) + "0]"),
    "parse_json of numbers": query("parse_json(@)", "[" + "1," * (MIB // 2) + "0]"),
    "to_upper beyond ASCII": query("to_upper(@)", "é" * MIB),
    "equal_fold": query("equal_fold(@, @)", "é" * MIB),
    "split into characters": query("split(@, '')", "a" * 3 * MIB),
    "sort": query("sort(@)", WORDS),
    "sort_by": query("sort_by(@, &@)", WORDS),
    "to_string": query("to_string(@)", [[n] for n in range(300_000)]),
    "wildcards in lists": lambda: compile_condition("AnyIn")([f"x{n}" for n in range(3000)], [f"*{n}?b*" for n in range(3000)]),
    "lists in wildcards": lambda: compile_condition("AnyIn")([f"*{n}?b*" for n in range(3000)], [f"x{n}" for n in range(3000)]),
    "lists compared": query("@ == @[::1]", WORDS),
    "base64_decode": query("base64_decode(@)", "QUFB" * MIB),
    "projections": query("[].[@][].[@][].[@]", WORDS),
}  # fmt: skip


@contextmanager
def left_over(left: int):
    """Count work for a moment."""
    made = Meter(left)
    token = meter.set(made)
    try:
        yield made
    finally:
        meter.reset(token)


def yardstick() -> float:
    """Return the seconds of one round of a plain loop."""
    began = time.process_time()
    for number in range(1_000_000):
        str(number)
    return (time.process_time() - began) / 1_000_000


@pytest.mark.parametrize("call", HOSTILE.values(), ids=HOSTILE)
def test_no_call_takes_much_longer_than_what_it_was_charged(call) -> None:
    allowed = BUDGET / SHARE * 1e-9 * SLACK * max(1.0, yardstick() / PRICED)
    # what other tests left in this process is not looked through for garbage at the expense of the call
    gc.collect()
    gc.freeze()
    with left_over(BUDGET // SHARE):
        began = time.process_time()
        with suppress(LimitError):
            call()
        took = time.process_time() - began

    assert took < allowed


def test_what_is_too_much_is_refused_before_it_is_done() -> None:
    with left_over(1000) as left:
        charge(FREE - 1)
        assert left.left == 1000
        with pytest.raises(LimitError, match="too much work"):
            charge(FREE)
        with pytest.raises(LimitError, match="too much work"):
            regex.compile("[ab]*a[ab]{900}c").search(MIXED)


def test_each_piece_of_work_has_a_budget_of_its_own() -> None:
    for _ in range(3):
        metered(lambda: charge(BUDGET))
    with pytest.raises(LimitError):
        metered(lambda: (charge(BUDGET), charge(FREE)))
    assert meter.get() is None


def test_nothing_is_counted_where_nobody_asked_for_it() -> None:
    charge(10 * BUDGET)


def test_who_lends_the_meter_says_what_happens_when_it_is_empty() -> None:
    token = meter.set(Meter(0, KeyboardInterrupt))
    try:
        with pytest.raises(KeyboardInterrupt):
            charge(FREE)
    finally:
        meter.reset(token)
