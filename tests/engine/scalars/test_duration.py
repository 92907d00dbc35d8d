"""Durations read and written as Go does."""

from __future__ import annotations

import pytest

from engine.lang.duration import parse, text

_S = 1_000_000_000


@pytest.mark.parametrize(
    ("written", "nanoseconds"),
    [
        ("0", 0),
        ("+0", 0),
        ("-0", 0),
        ("0s", 0),
        ("1s", _S),
        ("-1.5h", -5400 * _S),
        ("1h2m3s4ms5us6ns", 3723 * _S + 4_005_006),
        ("1µs", 1000),
        ("1μs", 1000),
        (".5s", _S // 2),
        ("1.s", _S),
        ("3000000h", 3_000_000 * 3600 * _S if 3_000_000 * 3600 * _S < 2**63 else None),
        ("9223372036854775807ns", 2**63 - 1),
        ("9223372036854775808ns", None),
        ("-9223372036854775808ns", -(2**63)),
        ("0.3333333333333333333h", 1200 * _S),
        ("0.100000000000000000000h", 360 * _S),
        ("1.0000000000000000000000000001s", _S),
        ("00000000000000000000000000001s", _S),
        ("99999999999999999999s", None),
        ("", None),
        ("-", None),
        ("+", None),
        ("1", None),
        ("00", None),
        ("s", None),
        (".", None),
        (".s", None),
        ("1d", None),
        ("1 s", None),
        (" 1s", None),
        ("1s ", None),
        ("1S", None),
        ("--1s", None),
        ("1s-1s", None),
        ("1e3s", None),
        ("١s", None),
        ("1.٥s", None),
    ],
)
def test_text_is_read_as_go_reads_it(written: str, nanoseconds: int | None) -> None:
    assert parse(written) == nanoseconds


@pytest.mark.parametrize(
    ("nanoseconds", "written"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1100, "1.1µs"),
        (2_200_000, "2.2ms"),
        (3_300_000_000, "3.3s"),
        (245 * _S, "4m5s"),
        (245 * _S + 1_000_000, "4m5.001s"),
        (3600 * _S, "1h0m0s"),
        (-3600 * _S, "-1h0m0s"),
        (2**63 - 1, "2562047h47m16.854775807s"),
        (-(2**63), "-2562047h47m16.854775808s"),
    ],
)
def test_nanoseconds_are_written_as_go_prints_them(nanoseconds: int, written: str) -> None:
    assert text(nanoseconds) == written
    assert parse(written) == nanoseconds


def test_a_very_long_text_is_no_duration() -> None:
    assert parse("1s" * 100_000) is None


@pytest.mark.parametrize(
    ("nanoseconds", "written"),
    [(999, "999ns"), (1_000, "1µs"), (999_999, "999.999µs"), (1_000_000, "1ms"), (999_999_999, "999.999999ms"),
     (_S, "1s"), (60 * _S - 1, "59.999999999s"), (60 * _S, "1m0s"), (3600 * _S - _S, "59m59s")],
)  # fmt: skip
def test_units_change_exactly_at_their_size(nanoseconds: int, written: str) -> None:
    assert text(nanoseconds) == written


@pytest.mark.parametrize(
    ("written", "nanoseconds"),
    [
        ("9999999999999999999ns", None),
        ("1.9999999999999999999s", 2_000_000_000),
        ("0.9223372036854775807s", 922_337_203),
        ("9223372036.854775807s", 2**63 - 1),
        ("9223372036.854775808s", None),
        ("-9223372036.854775808s", -(2**63)),
        ("2562047h47m16.854775808s", None),
    ],
)
def test_the_largest_durations(written: str, nanoseconds: int | None) -> None:
    assert parse(written) == nanoseconds
