"""Times: any year, Go's layouts and Go's errors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import EngineError, EvaluationError
from engine.lang import golayout, gotime


@given(st.datetimes(timezones=st.just(UTC)))
def test_the_calendar_is_that_of_datetime(moment: datetime) -> None:
    instant = gotime.from_datetime(moment)

    clock = instant.clock
    assert (clock.year, clock.month, clock.day) == (moment.year, moment.month, moment.day)
    assert (clock.hour, clock.minute, clock.second) == (moment.hour, moment.minute, moment.second)
    assert clock.weekday == moment.isoweekday() % 7
    assert golayout.parse_rfc3339(instant.rfc3339()).ns == instant.ns - instant.ns % 10**9


@given(st.integers(-(10**9), 10**9))
def test_days_and_dates_are_inverse_for_any_year(days: int) -> None:
    clock = gotime.from_unix(days * 86_400).clock
    again = gotime.from_civil((clock.year, clock.month, clock.day), (0, 0, 0, 0))

    assert again.ns == days * 86_400 * 10**9


@pytest.mark.parametrize(
    ("layout", "text", "expected"),
    [
        ("2006-01-02", "2024-02-29", "2024-02-29T00:00:00Z"),
        ("Jan _2 2006", "Feb  3 2024", "2024-02-03T00:00:00Z"),
        ("January 2, 2006", "february 3, 2024", "2024-02-03T00:00:00Z"),
        ("Monday 2006-002", "tuesday 2024-060", "2024-02-29T00:00:00Z"),
        ("06-1-2 3:4:5 PM", "69-2-3 12:1:2 AM", "1969-02-03T00:01:02Z"),
        ("06-1-2 3:4:5 pm", "68-2-3 1:1:2 pm", "2068-02-03T13:01:02Z"),
        ("2006 -0700", "2024 +0130", "2024-01-01T00:00:00+01:30"),
        ("2006 -07", "2024 -05", "2024-01-01T00:00:00-05:00"),
        ("2006 Z07:00:00", "2024 Z", "2024-01-01T00:00:00Z"),
        ("2006 MST", "2024 UTC", "2024-01-01T00:00:00Z"),
        ("2006 MST", "2024 GMT+3", "2024-01-01T03:00:00+03:00"),
        ("2006 MST", "2024 CEST", "2024-01-01T00:00:00Z"),
        ("2006 __2", "2024  60", "2024-02-29T00:00:00Z"),
        ("2006 __2-", "2024 7-", "2024-01-07T00:00:00Z"),
        ("2006 Z07 -07:00", "2024 Z -07:00", "2024-01-01T00:00:00Z"),
        ("15:04:05.000", "01:02:03.5", None),
        ("15:04:05.999", "01:02:03", "0000-01-01T01:02:03Z"),
        ("15:04:05,000", "01:02:03,500", "0000-01-01T01:02:03Z"),
        ("2006 MST", "2024 cet", None),
        ("2006-01-02", "2023-02-29", None),
        ("2006-01-02", "2023-2-9", None),
        ("15", "24", None),
        ("03", "13", None),
        ("2006-002", "2023-366", None),
        ("2006-002 Jan", "2023-040 Jan", None),
        ("2006 -07:00", "2024 +25:00", None),
        ("2006 -07:00", "2024 +01:61", None),
    ],
)
def test_layouts_are_read_as_in_go(layout: str, text: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(EvaluationError):
            golayout.parse(layout, text)
    else:
        assert golayout.parse(layout, text).rfc3339() == expected


def test_fractions_count() -> None:
    assert golayout.parse_rfc3339("1970-01-01T00:00:00.123456789123Z").ns == 123_456_789


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("x", 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
        ("2024-01-01T00:00:00Zx", 'parsing time "2024-01-01T00:00:00Zx": extra text: "x"'),
        ("2024-00-01T00:00:00Z", 'parsing time "2024-00-01T00:00:00Z": month out of range'),
        ("2024-01-01T00:60:00Z", 'parsing time "2024-01-01T00:60:00Z": minute out of range'),
    ],
)
def test_errors_are_gos(text: str, error: str) -> None:
    with pytest.raises(EvaluationError) as raised:
        golayout.parse_rfc3339(text)

    assert str(raised.value) == error


def test_offsets_of_datetimes_are_kept() -> None:
    east = datetime(2024, 1, 1, tzinfo=UTC).astimezone(datetime(2024, 1, 1).astimezone(UTC).tzinfo)

    assert gotime.from_datetime(east).rfc3339() == "2024-01-01T00:00:00Z"
    assert gotime.Instant(0, -5_400).rfc3339() == "1969-12-31T22:30:00-01:30"


def test_truncating_counts_from_year_one() -> None:
    monday = golayout.parse_rfc3339("2024-01-03T10:00:00Z").truncated(7 * 86_400 * 10**9)

    assert monday.rfc3339() == "2024-01-01T00:00:00Z"


def test_differences_stay_within_64_bits() -> None:
    first, last = golayout.parse_rfc3339("0001-01-01T00:00:00Z"), gotime.from_unix(10**12)

    assert last.since(first) == 2**63 - 1
    assert first.since(last) == -(2**63)
    assert first.plus(timedelta(days=1) // timedelta(microseconds=1) * 1000).clock.day == 2


@given(
    st.text(alphabet="20061-5:T Z0+MSTJanuryPpm._,9", max_size=20),
    st.text(alphabet="0123456789:TZ+-JanPM. ,", max_size=20),
)
def test_any_layout_and_text_give_a_time_or_an_engine_error(layout: str, text: str) -> None:
    try:
        found = golayout.parse(layout, text)
    except EngineError:
        return
    assert found.rfc3339()
