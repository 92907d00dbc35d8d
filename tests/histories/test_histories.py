"""Histories keep what is promised, a seed tells the same one twice, and each promise that is broken is seen in some of them."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from controllers.loops.grants.reconciler import GrantReconciler
from controllers.store import uses as stored_uses
from controllers.webhook.grant_usage import GrantUsage
from controllers.webhook.one_time_codes import OneTimeCodes
from engine.grants import approvals

from .play import play

SEEDS = range(1, 13)

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("uncollected_heap")]
"""Up to 59 histories in one test, each of a second or two of computing on a machine that does nothing else."""


@pytest.fixture(autouse=True)
def silent():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def found(seeds: range = SEEDS) -> str:
    """Return what is broken in the first history in which something is."""
    return next((str(told) for seed in seeds if (told := play(seed)).broken), "")


def test_histories_by_chance_keep_what_is_promised():
    told = [play(seed) for seed in SEEDS]

    assert [str(one) for one in told if one.broken] == []
    # what a seed tells changes with each call that is added: six objects come to be stored in a history, from one to fourteen
    assert sum(one.stored for one in told) > 2 * len(told)
    assert sum(one.uses for one in told) > 2 * len(told)
    assert sum(one.deaths for one in told) > 5


def test_a_seed_tells_the_same_history_twice():
    assert play(7).history.lines() == play(7).history.lines()


def test_a_code_that_is_not_recorded_is_seen(monkeypatch):
    async def taken(*_: Any) -> bool:
        return True

    monkeypatch.setattr(stored_uses.Uses, "take", taken)

    assert "I2" in found()


def test_a_code_that_two_may_use_is_seen(monkeypatch):
    monkeypatch.setattr(stored_uses, "is_same", lambda *_: True)

    assert "I1" in found() or "I2" in found()


def test_a_code_without_its_owner_s_approver_is_seen(monkeypatch):
    from controllers.webhook import approvals as at_admission

    monkeypatch.setattr(at_admission, "_is_let", lambda *_: True)

    assert "four eyes" in found(range(1, 60))


def test_a_grant_that_its_requester_approves_is_seen(monkeypatch):
    from controllers.webhook import grants as desk

    monkeypatch.setattr(approvals, "may_approve", lambda *_: True)
    monkeypatch.setattr(desk, "_wrong_decision", lambda *_: iter(()))

    assert "four eyes" in found(range(1, 60))


def test_a_limited_grant_that_counts_nothing_is_seen(monkeypatch):
    async def settled(self: Any, asked: Any, waived: Any, ruling: Any, budget: float) -> Any:
        return ruling, waived.results

    monkeypatch.setattr(GrantUsage, "settle", settled)

    assert "I2" in found(range(1, 60))


def test_a_failure_of_codes_that_opens_the_gate_is_seen(monkeypatch):
    judge = OneTimeCodes.judge

    async def opens(self: Any, review: Any, request: Any, ruling: Any, budget: float) -> Any:
        said = await judge(self, review, request, ruling, budget)
        return said if said.lead or not ruling.denial or review.dry_run else type(ruling)()

    monkeypatch.setattr(OneTimeCodes, "judge", opens)

    assert "I2" in found()


def test_a_grant_that_never_ends_is_seen(monkeypatch):
    async def stays(*_: Any) -> None:
        return None

    monkeypatch.setattr(GrantReconciler, "_remove_exception", stays)

    assert "is there when everything is over" in found(range(1, 60))
