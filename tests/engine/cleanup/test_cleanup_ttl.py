"""When objects are due by their own label, and what is said about labels that cannot be read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cleanup.ttl import due_at, propagation, warning
from engine.errors import EvaluationError

CREATED = datetime(2023, 2, 6, 19, 24, 30, tzinfo=UTC)


def labelled(value: Any, created: Any = "2023-02-06T19:24:30Z") -> dict[str, Any]:
    return {"metadata": {"creationTimestamp": created, "labels": {"cleanup.kyverno.io/ttl": value}}}


@pytest.mark.parametrize(
    ("value", "length"),
    [
        ("30s", timedelta(seconds=30)),
        ("2m", timedelta(minutes=2)),
        ("1h30m", timedelta(minutes=90)),
        ("1.5h", timedelta(minutes=90)),
        ("0", timedelta()),
        ("2d", timedelta(days=2)),
        ("1w", timedelta(weeks=1)),
        ("3days", timedelta(days=3)),
        ("3DAYS", timedelta(days=3)),
        ("1d12h", timedelta(hours=36)),
        ("1.5d", timedelta(hours=36)),
        ("1 day 2 hours", timedelta(hours=26)),
        ("2wk", timedelta(weeks=2)),
        ("10min", timedelta(minutes=10)),
        ("90sec", timedelta(seconds=90)),
        ("-1d", timedelta(days=-1)),
    ],
)
def test_a_length_of_time_counts_from_creation(value: str, length: timedelta) -> None:
    assert due_at(labelled(value)) == CREATED + length


@pytest.mark.parametrize(
    ("value", "instant"),
    [
        ("2024-02-29T131415Z", datetime(2024, 2, 29, 13, 14, 15, tzinfo=UTC)),
        ("2024-02-29T131415.5Z", datetime(2024, 2, 29, 13, 14, 15, tzinfo=UTC)),
        ("2024-02-29", datetime(2024, 2, 29, tzinfo=UTC)),
        ("0000-01-01", datetime(1, 1, 1, tzinfo=UTC)),
    ],
)
def test_an_instant_does_not_depend_on_creation(value: str, instant: datetime) -> None:
    assert due_at(labelled(value, created=None)) == instant


def test_an_object_without_the_label_is_never_due() -> None:
    assert due_at({}) is None
    assert due_at({"metadata": {"labels": {"ttl": "1d"}}}) is None
    assert warning({"metadata": {"labels": None}}) is None


def test_a_length_of_time_has_no_end_for_an_object_that_was_never_stored() -> None:
    assert due_at(labelled("1h", created=None)) is None


def test_a_creation_time_with_an_offset_is_read_as_the_same_instant() -> None:
    assert due_at(labelled("0", "2023-02-06T20:24:30+01:00")) == CREATED


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("abc", 'parsing time "abc" as "2006-01-02": cannot parse "abc" as "2006"'),
        ("", 'parsing time "" as "2006-01-02": cannot parse "" as "2006"'),
        ("2023-13-01", 'parsing time "2023-13-01": month out of range'),
        ("2023-00-10", 'parsing time "2023-00-10": month out of range'),
        ("2023-13", 'parsing time "2023-13": month out of range'),
        ("2023-02-30", 'parsing time "2023-02-30": day out of range'),
        ("2023-01-01x", 'parsing time "2023-01-01x": extra text: "x"'),
        ("2023-01-01T250000Z", 'parsing time "2023-01-01T250000Z": extra text: "T250000Z"'),
        ("2023-1-01", 'parsing time "2023-1-01" as "2006-01-02": cannot parse "1-01" as "01"'),
        ("2023", 'parsing time "2023" as "2006-01-02": cannot parse "" as "-"'),
        ("2023-01-", 'parsing time "2023-01-" as "2006-01-02": cannot parse "" as "02"'),
        ("2023_01_01", 'parsing time "2023_01_01" as "2006-01-02": cannot parse "_01_01" as "-"'),
        ('a"b', r'parsing time "a\"b" as "2006-01-02": cannot parse "a\"b" as "2006"'),
        ("é", r'parsing time "\xc3\xa9" as "2006-01-02": cannot parse "\xc3\xa9" as "2006"'),
        ("5apples", 'parsing time "5apples" as "2006-01-02": cannot parse "5apples" as "2006"'),
        ("1d-2d", 'parsing time "1d-2d" as "2006-01-02": cannot parse "1d-2d" as "2006"'),
    ],
)
def test_an_unreadable_value_is_warned_of_in_upstreams_words(value: str, reason: str) -> None:
    text = (
        f"cleanup.kyverno.io/ttl label value cannot be parsed as any recognizable format ({reason})"
    )

    assert warning(labelled(value)) == text
    with pytest.raises(EvaluationError) as raised:
        due_at(labelled(value))
    assert raised.value.message == text


def test_a_readable_value_is_not_warned_of() -> None:
    assert warning(labelled("3days")) is None


def test_a_length_beyond_the_calendar_is_its_end_and_not_the_past() -> None:
    far = due_at(labelled("106751d", "9999-01-01T00:00:00Z"))

    assert far == datetime.max.replace(tzinfo=UTC)
    assert due_at(labelled("-106751d", "0001-01-02T00:00:00Z")) == datetime.min.replace(tzinfo=UTC)


def test_a_length_that_does_not_fit_is_unreadable_rather_than_negative() -> None:
    assert "cannot be parsed" in (warning(labelled("200000d")) or "")
    assert "cannot be parsed" in (warning(labelled("99999999999999999999d")) or "")
    assert "cannot be parsed" in (warning(labelled("1d" * 500)) or "")


@pytest.mark.parametrize("value", ["Foreground", "Background", "Orphan"])
def test_the_propagation_annotation_is_read(value: str) -> None:
    key = "cleanup.kyverno.io/propagation-policy"

    assert propagation({"metadata": {"annotations": {key: value}}}) == value
    assert propagation({"metadata": {"annotations": {key: value.lower()}}}) == ""
    assert propagation({"metadata": {"labels": {key: value}}}) == ""


@given(
    st.text(max_size=40) | st.from_regex(r"[0-9]{1,25}(\.[0-9]{1,25})? ?(d|weeks|h|ns)?"),
    st.text(max_size=30),
)
def test_no_value_breaks_the_reading(value: str, created: str) -> None:
    obj = labelled(value, created)
    if warning(obj) is None:
        due_at(obj)
    else:
        with pytest.raises(EvaluationError):
            due_at(obj)
