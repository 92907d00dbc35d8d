"""What people write on policies and objects to hold back a clean-up, and what it holds back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.cleanup.holds import HoldState, hold_on_object, hold_on_run, takes_place

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
RUN = NOW + timedelta(hours=1)
PAST, SOON, LATE = "2026-11-21T09:00:00Z", "2026-11-21T11:00:00Z", "2026-11-21T12:00:00Z"
PAUSED, SKIPPED, POSTPONED = HoldState.PAUSED, HoldState.SKIPPED, HoldState.POSTPONED


def annotated(**annotations: str) -> dict[str, Any]:
    named = {f"kpolicy.io/cleanup-{key}": value for key, value in annotations.items()}
    return {"metadata": {"name": "a", "annotations": named}}


CASES = [
    ({}, None, None),
    ({"pause": ""}, PAUSED, PAUSED),
    ({"pause": "ben; freeze"}, PAUSED, PAUSED),
    ({"after": f"{PAST} ben: wait"}, None, None),
    ({"after": f"{LATE} ben: wait"}, POSTPONED, POSTPONED),
    ({"after": f"{LATE};ben"}, POSTPONED, POSTPONED),
    ({"after": "tomorrow ben: wait"}, POSTPONED, POSTPONED),
    ({"after": ""}, POSTPONED, POSTPONED),
    ({"after": "2026-11-21T09:00:00 ben"}, POSTPONED, POSTPONED),
    ({"skip": f"{PAST} ben"}, SKIPPED, None),
    ({"skip": f"{SOON} ben"}, SKIPPED, SKIPPED),
    ({"skip": f"{LATE} ben"}, SKIPPED, SKIPPED),
    ({"skip": "next ben"}, SKIPPED, SKIPPED),
    ({"skip": f"{SOON} ben", "after": f"{LATE} ben"}, SKIPPED, SKIPPED),
    ({"skip": f"{PAST} ben", "after": f"{LATE} ben"}, SKIPPED, POSTPONED),
    ({"skip": f"{SOON} ben", "after": "tomorrow"}, SKIPPED, POSTPONED),
    ({"pause": "x", "skip": "x", "after": "x"}, PAUSED, PAUSED),
]


@pytest.mark.parametrize(("annotations", "on_object", "on_run"), CASES)
def test_what_an_annotation_holds_back(annotations, on_object, on_run) -> None:
    found = hold_on_object(annotated(**annotations), NOW)
    assert (found and found.state) == on_object
    found = hold_on_run(annotated(**annotations), RUN, NOW)
    assert (found and found.state) == on_run


@pytest.mark.parametrize(
    "annotations", [{"after": "tomorrow"}, {"skip": "next"}, {"skip": SOON, "after": "tomorrow"}]
)
def test_what_cannot_be_read_holds_a_policy_until_somebody_changes_it(annotations) -> None:
    hold = hold_on_run(annotated(**annotations), RUN, NOW)
    assert hold is not None
    assert (hold.until, hold.is_unreadable) == (None, True)
    assert "cannot be read" in hold.reason


def test_an_unknown_run_counts_as_the_one_that_is_skipped() -> None:
    hold = hold_on_run(annotated(skip=PAST), None, NOW)
    assert hold is not None
    assert hold.state is SKIPPED


def test_a_postponed_run_takes_place_when_it_was_postponed_to() -> None:
    assert takes_place(annotated(after=LATE), RUN) == RUN + timedelta(hours=1)
    assert takes_place(annotated(after=PAST), RUN) == RUN
    assert takes_place(annotated(after="tomorrow"), RUN) == RUN


@pytest.mark.parametrize("metadata", [None, [], {"annotations": None}, {"annotations": ["a"]}])
def test_an_object_without_annotations_is_not_held(metadata) -> None:
    assert hold_on_object({"metadata": metadata}, NOW) is None
