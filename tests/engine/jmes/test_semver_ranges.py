"""Semantic versions: order, ranges, and the library's habits."""

from __future__ import annotations

import pytest

from engine.errors import EvaluationError
from engine.lang import semver

ORDERED = [
    "0.0.0", "0.0.1", "0.10.0", "1.0.0-1", "1.0.0-2", "1.0.0-10", "1.0.0-alpha", "1.0.0-alpha.1",
    "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "2.0.0",
]  # fmt: skip


def test_versions_have_the_order_of_semver_org() -> None:
    orders = [semver.parse(text).order() for text in ORDERED]

    assert orders == sorted(orders)
    assert len(set(map(str, orders))) == len(ORDERED)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "Version string empty"),
        ("1.2", "No Major.Minor.Patch elements found"),
        ("x.1.1", 'Invalid character(s) found in major number "x"'),
        ("1.01.1", 'Minor number must not contain leading zeroes "01"'),
        ("1.1.", 'strconv.ParseUint: parsing "": invalid syntax'),
        ("1.1.1-", "Prerelease is empty"),
        ("1.1.1-01", 'Numeric PreRelease version must not contain leading zeroes "01"'),
        ("1.1.1-ä", 'Invalid character(s) found in prerelease "ä"'),
        ("1.1.1+", "Build meta data is empty"),
        ("1.1.1+a_b", 'Invalid character(s) found in build meta data "a_b"'),
        ("18446744073709551616.0.0", 'strconv.ParseUint: parsing "18446744073709551616": value out of range'),
    ],
)  # fmt: skip
def test_wrong_versions_are_errors(text: str, error: str) -> None:
    with pytest.raises(EvaluationError) as raised:
        semver.parse(text)

    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("wanted", "inside", "outside"),
    [
        ("1.2.3", "1.2.3", "1.2.4"),
        ("!=1.2.3", "1.2.4", "1.2.3"),
        (">1.0.0 <2.0.0", "1.5.0", "2.0.0"),
        (">= 1.0.0", "1.0.0", "0.9.9"),
        ("<1.0.0 || >2.0.0", "2.0.1", "1.5.0"),
        ("1.x", "1.9.9", "2.0.0"),
        ("1.2.x", "1.2.9", "1.3.0"),
        (">1.x", "2.0.0", "1.9.9"),
        ("<=1.2.x", "1.2.9", "1.3.0"),
        ("<1.2.x", "1.1.9", "1.2.0"),
        (">=1.x.x", "1.0.0", "0.9.9"),
    ],
)
def test_ranges_hold_and_exclude(wanted: str, inside: str, outside: str) -> None:
    test = semver.parse_range(wanted)

    assert test(semver.parse(inside))
    assert not test(semver.parse(outside))


@pytest.mark.parametrize(
    "wanted", ["", "x", "||", "1.0.0 ||", "1.0.0 || || 2.0.0", "abc", ">>1.0.0", "1" * 20_000]
)
def test_wrong_ranges_are_errors(wanted: str) -> None:
    with pytest.raises(EvaluationError):
        semver.parse_range(wanted)


def test_wildcards_are_rewritten_before_versions_are_read() -> None:
    with pytest.raises(EvaluationError) as raised:
        semver.parse_range(">1.1 ^x")

    assert str(raised.value) == 'Could not get version from string: "^x"'


def test_build_metadata_has_no_order() -> None:
    assert semver.parse_range("=1.0.0+a")(semver.parse("1.0.0+b"))
