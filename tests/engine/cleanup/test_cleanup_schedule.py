"""Which schedules are accepted, and the instants they name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cleanup.schedule import moment_after, next_after, parse_schedule
from engine.errors import LimitError, PolicyError

NOW = datetime(2023, 2, 6, 19, 24, 30, tzinfo=UTC)


def days(schedule: str, count: int = 4) -> list[str]:
    return [f"{at:%Y-%m-%d %H:%M}" for at in next_after(schedule, NOW, count)]


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("24 19 11 2 6", ["2023-02-11 19:24", "2023-02-18 19:24", "2023-02-25 19:24", "2024-02-03 19:24"]),
        ("24 19 20 2 1", ["2023-02-13 19:24", "2023-02-20 19:24", "2023-02-27 19:24", "2024-02-05 19:24"]),
        ("*/15 9-17 * * mon-fri", ["2023-02-07 09:00", "2023-02-07 09:15", "2023-02-07 09:30", "2023-02-07 09:45"]),
        ("0 0 29 2 *", ["2024-02-29 00:00", "2028-02-29 00:00", "2032-02-29 00:00", "2036-02-29 00:00"]),
        ("5/20 * * * *", ["2023-02-06 19:25", "2023-02-06 19:45", "2023-02-06 20:05", "2023-02-06 20:25"]),
        ("1,,2 * * * *", ["2023-02-06 20:01", "2023-02-06 20:02", "2023-02-06 21:01", "2023-02-06 21:02"]),
        ("0 12 1,15 jan,JUL sun", ["2023-07-01 12:00", "2023-07-02 12:00", "2023-07-09 12:00", "2023-07-15 12:00"]),
        ("? ? ? ? ?", ["2023-02-06 19:25", "2023-02-06 19:26", "2023-02-06 19:27", "2023-02-06 19:28"]),
        ("@yearly", ["2024-01-01 00:00", "2025-01-01 00:00", "2026-01-01 00:00", "2027-01-01 00:00"]),
        ("@annually", ["2024-01-01 00:00", "2025-01-01 00:00", "2026-01-01 00:00", "2027-01-01 00:00"]),
        ("@monthly", ["2023-03-01 00:00", "2023-04-01 00:00", "2023-05-01 00:00", "2023-06-01 00:00"]),
        ("@weekly", ["2023-02-12 00:00", "2023-02-19 00:00", "2023-02-26 00:00", "2023-03-05 00:00"]),
        ("@daily", ["2023-02-07 00:00", "2023-02-08 00:00", "2023-02-09 00:00", "2023-02-10 00:00"]),
        ("@midnight", ["2023-02-07 00:00", "2023-02-08 00:00", "2023-02-09 00:00", "2023-02-10 00:00"]),
        ("@hourly", ["2023-02-06 20:00", "2023-02-06 21:00", "2023-02-06 22:00", "2023-02-06 23:00"]),
    ],
)  # fmt: skip
def test_a_schedule_names_its_instants(schedule: str, expected: list[str]) -> None:
    assert days(schedule) == expected


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("0 0 1-31 * 1", ["2023-02-07", "2023-02-08"]),
        ("0 0 5 * 0-6", ["2023-02-07", "2023-02-08"]),
        ("0 0 5 * */2", ["2023-02-07", "2023-02-09"]),
        ("0 0 */2 * 1", ["2023-02-07", "2023-02-09"]),
        ("0 0 */1 * 1", ["2023-02-13", "2023-02-20"]),
        ("0 0 * * 1", ["2023-02-13", "2023-02-20"]),
        ("0 0 8 * *", ["2023-02-08", "2023-03-08"]),
        ("0 0 8 * */1", ["2023-02-08", "2023-03-08"]),
    ],
)
def test_two_restricted_day_fields_are_either_or_and_one_alone_decides(
    schedule: str, expected: list[str]
) -> None:
    assert [day[:10] for day in days(schedule, 2)] == expected


def test_an_interval_counts_whole_seconds_from_the_instant_given() -> None:
    start = NOW.replace(microsecond=7)

    assert next_after("@every 90s", start, 2) == (
        NOW + timedelta(seconds=90),
        NOW + timedelta(seconds=180),
    )
    assert next_after("@every 1500ms", start) == (NOW + timedelta(seconds=1),)


def test_the_instant_itself_does_not_count() -> None:
    sharp = NOW.replace(second=0)

    assert next_after("24 19 * * *", sharp) == (sharp + timedelta(days=1),)


def test_instants_are_utc_whatever_zone_is_asked_in() -> None:
    east = NOW.astimezone(timezone(timedelta(hours=14)))

    assert next_after("0 0 * * *", east) == (datetime(2023, 2, 7, tzinfo=UTC),)
    assert next_after("0 0 * * *", NOW.replace(tzinfo=None))[0].tzinfo is UTC


@pytest.mark.parametrize("schedule", ["0 0 30 2 *", "0 0 31 4,6,9,11 *"])
def test_a_day_that_never_comes_has_no_instants(schedule: str) -> None:
    assert next_after(schedule, NOW) == ()
    assert moment_after(schedule, NOW) is None


def test_the_ends_of_the_calendar_end_the_list() -> None:
    last = datetime(9999, 12, 31, 23, 58, tzinfo=UTC)

    assert next_after("* * * * *", last, 5) == (last + timedelta(minutes=1),)
    assert next_after("@every 1h", last) == ()


@pytest.mark.parametrize(
    ("schedule", "why"),
    [
        ("", "schedule is empty"),
        ("  ", "schedule is empty"),
        ("* " * 1000, "schedule is too long"),
        ("* * * *", "schedule `* * * *`: expected 5 fields, found 4"),
        ("0 * * * * *", "schedule `0 * * * * *`: expected 5 fields, found 6"),
        ("60 * * * *", "schedule `60 * * * *`: minute: `60` is not within 0 to 59"),
        ("* 24 * * *", "schedule `* 24 * * *`: hour: `24` is not within 0 to 23"),
        ("* * 0 * *", "schedule `* * 0 * *`: day of month: `0` is not within 1 to 31"),
        ("* * * 13 *", "schedule `* * * 13 *`: month: `13` is not within 1 to 12"),
        ("* * * * 7", "schedule `* * * * 7`: day of week: `7` is not within 0 to 6"),
        ("*/0 * * * *", "schedule `*/0 * * * *`: minute: the step of `*/0` must not be 0"),
        ("5-1 * * * *", "schedule `5-1 * * * *`: minute: `5-1` begins after its end"),
        (", * * * *", "schedule `, * * * *`: minute: `,` names nothing"),
        ("* * * foo *", "schedule `* * * foo *`: month: `foo` is not a number or name"),
        ("jan * * * *", "schedule `jan * * * *`: minute: `jan` is not a number"),
        ("H * * * *", "schedule `H * * * *`: minute: `H` is not a number"),
        ("R * * * *", "schedule `R * * * *`: minute: `R` is not a number"),
        ("* * L * *", "schedule `* * L * *`: day of month: `L` is not a number"),
        ("* * * * 1#2", "schedule `* * * * 1#2`: day of week: `1#2` is not a number or name"),
        ("1/2/3 * * * *", "schedule `1/2/3 * * * *`: minute: `2/3` is not a number"),
        ("١ * * * *", "schedule `١ * * * *`: minute: `١` is not a number"),
        ("@reboot", "schedule `@reboot`: unknown name"),
        ("@every soon", "schedule `@every soon`: not a duration such as `1h30m`"),
        ("@every 5ms", "schedule `@every 5ms`: the interval must be at least one second"),
        ("@every -1h", "schedule `@every -1h`: the interval must be at least one second"),
        (
            "TZ=Europe/Berlin * * * * *",
            "schedule `TZ=Europe/Berlin * * * * *`: time zones are not supported, schedules are in UTC",
        ),
    ],
)
def test_a_wrong_schedule_is_refused_with_the_field_and_the_reason(schedule: str, why: str) -> None:
    with pytest.raises(PolicyError) as raised:
        next_after(schedule, NOW)
    assert raised.value.message == why


def test_a_flood_of_instants_is_refused() -> None:
    assert len(next_after("* * * * *", NOW, 1000)) == 1000
    with pytest.raises(LimitError):
        next_after("* * * * *", NOW, 1001)


def test_a_schedule_made_of_a_date_means_that_date() -> None:
    assert moment_after("24 19 20 2 1", NOW) == datetime(2023, 2, 20, 19, 24, tzinfo=UTC)
    assert moment_after("24 19 11 2 6", NOW) == datetime(2023, 2, 11, 19, 24, tzinfo=UTC)
    assert moment_after("@every 1h", NOW) == NOW + timedelta(hours=1)
    assert moment_after("0 0 * * 1", NOW) == datetime(2023, 2, 13, tzinfo=UTC)
    assert moment_after("0 0 * * *", NOW) == datetime(2023, 2, 7, tzinfo=UTC)


def test_a_date_that_does_not_come_within_a_year_is_read_as_cron_reads_it() -> None:
    assert moment_after("24 19 20 2 2", NOW) == datetime(2023, 2, 7, 19, 24, tzinfo=UTC)


@given(st.text(alphabet="0123456789*/,-?@ LW#HRmon", max_size=30))
def test_no_text_breaks_the_reading(text: str) -> None:
    try:
        parse_schedule(text)
    except PolicyError:
        return
    next_after(text, NOW, 2)
    moment_after(text, NOW)
