"""Quantities: the API server's grammar, exact order, canonical text, bounded cost."""

from __future__ import annotations

from fractions import Fraction

import pytest

from engine.errors import EvaluationError, LimitError
from engine.lang.quantity import Quantity, parse


def _read(text: str) -> Quantity:
    quantity = parse(text)
    assert quantity is not None, text
    return quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", Fraction(0)),
        ("1", Fraction(1)),
        ("-1", Fraction(-1)),
        ("+1", Fraction(1)),
        ("100m", Fraction(1, 10)),
        ("1.5", Fraction(3, 2)),
        ("1.", Fraction(1)),
        (".5", Fraction(1, 2)),
        ("1Ki", Fraction(1024)),
        ("1.5Gi", Fraction(3 * 2**29)),
        ("1k", Fraction(1000)),
        ("1E", Fraction(10**18)),
        ("1e3", Fraction(1000)),
        ("1E3", Fraction(1000)),
        ("1e-3", Fraction(1, 1000)),
        ("1e+3", Fraction(1000)),
        ("1n", Fraction(1, 10**9)),
        ("0.1n", Fraction(1, 10**9)),
        ("-0.1n", Fraction(-1, 10**9)),
        ("8Ei", Fraction(2**63 - 1)),
        ("-99Ei", Fraction(1 - 2**63)),
        ("007", Fraction(7)),
        ("12345678901234567890123", Fraction(12345678901234567890123)),
        ("m", Fraction(0)),
    ],
)
def test_a_quantity_is_read_exactly(text: str, value: Fraction) -> None:
    assert _read(text).value == value


@pytest.mark.parametrize(
    "text",
    ["", " 1", "1 ", "1K", "1ki", "1kk", "1e", "1e3m", "1.1.1", "--1", "1x", "0x10", "1_000", "1Mib", "1e3.5", "٣", "1٣", "1e٣",
     "1mi", "1e99999999999999999999", "1u5", "1Ki5", "\n1", "1\n", "Pi", "-.Ei", "e-10"],
)  # fmt: skip
def test_other_text_is_no_quantity(text: str) -> None:
    assert parse(text) is None


def test_quantities_are_ordered_by_number_not_by_text() -> None:
    assert _read("1Gi") == _read("1024Mi")
    assert hash(_read("1")) == hash(_read("1000m"))
    assert _read("1G") < _read("1Gi")
    assert _read("100m") > _read("0.05")
    assert _read("-2") <= _read("-1")
    assert _read("2") >= _read("2000m")
    assert _read("1") != _read("2")
    assert _read("1") != "1"


def test_enormous_exponents_cost_nothing_to_read_and_compare() -> None:
    huge, tiny = _read("1e1000000"), _read("1e-1000000")
    assert huge > _read("8Ei")
    assert huge == _read("10e999999")
    assert tiny == _read("1n")
    assert _read("1e2147483647") > huge
    with pytest.raises(LimitError):
        _ = huge.value
    with pytest.raises(LimitError):
        huge.add(_read("1"))


def test_very_long_numbers_are_read() -> None:
    assert _read("9" * 100_000) > _read("1E")
    assert _read("0." + "0" * 100_000 + "1") == _read("1n")
    assert _read("0" * 100_000 + "1") == _read("1")
    assert _read("1" * 1_000_001 + "Ki") == _read("9223372036854775807")
    assert _read("-" + "1" * 1_000_001 + "Ki") == _read("-9223372036854775807")


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("0Ki", "0"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1.5", "1500m"),
        ("1000", "1k"),
        ("1024", "1024"),
        ("1024Ki", "1Mi"),
        ("1536Mi", "1536Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1023Ki", "1023Ki"),
        ("0.1Ki", "102400m"),
        ("1e3", "1e3"),
        ("1e4", "10e3"),
        ("100e0", "100"),
        ("-2000", "-2k"),
        ("100u", "100u"),
    ],
)
def test_the_canonical_text_has_the_largest_suffix(text: str, canonical: str) -> None:
    assert _read(text).text() == canonical


def test_sums_keep_the_format_of_the_first() -> None:
    assert _read("1Gi").add(_read("1Gi")).text() == "2Gi"
    assert _read("1Gi").subtract(_read("512Mi")).text() == "512Mi"
    assert _read("0").add(_read("1Ki")).text() == "1Ki"
    assert _read("500m").add(_read("500m")).text() == "1"


def test_products_are_exact_and_quotients_round_toward_zero() -> None:
    assert _read("1Gi").multiply(_read("3")).text() == "3Gi"
    assert _read("10").divide(_read("3")).text() == "3"
    assert _read("-10").divide(_read("3")).text() == "-3"
    assert _read("10.00").divide(_read("3")).text() == "3330m"
    with pytest.raises(EvaluationError):
        _read("1").divide(_read("0"))


def test_a_float_near_it_is_given_by_the_api_servers_steps() -> None:
    assert _read("1500m").approximate() == 1.5
    assert _read("2.3").approximate() == 2.3000000000000003
    assert _read("3e99").approximate() == 3e99
    assert _read("6090056385588Ki").approximate() == 6236217738842113
    assert str(_read("-0").approximate()) == "0.0"
    assert _read("1e1000000").approximate() == float("inf")


@pytest.mark.parametrize(
    ("suffix", "factor"),
    [("n", Fraction(1, 10**9)), ("u", Fraction(1, 10**6)), ("m", Fraction(1, 1000)), ("", Fraction(1)),
     ("k", Fraction(10**3)), ("M", Fraction(10**6)), ("G", Fraction(10**9)), ("T", Fraction(10**12)),
     ("P", Fraction(10**15)), ("E", Fraction(10**18)), ("Ki", Fraction(2**10)), ("Mi", Fraction(2**20)),
     ("Gi", Fraction(2**30)), ("Ti", Fraction(2**40)), ("Pi", Fraction(2**50)), ("Ei", Fraction(2**60))],
)  # fmt: skip
def test_every_suffix_has_its_factor(suffix: str, factor: Fraction) -> None:
    quantity = _read(f"7{suffix}")
    assert quantity.value == 7 * factor
    assert quantity.text() == f"7{suffix}"


def test_equal_quantities_are_neither_less_nor_greater() -> None:
    one, same = _read("1Gi"), _read("1024Mi")
    assert not one < same
    assert not one > same
    assert one <= same
    assert one >= same


def test_exponents_wrap_around_in_32_bits_as_in_the_api_server() -> None:
    assert _read("1e4294967296") == _read("1")
    assert _read("1e4294967299") == _read("1000")
    assert _read("1e2147483647") > _read("1e2147483646")
    assert _read("1e2147483648") == _read("1n")
    assert parse("1e9223372036854775808") is None


def test_small_binary_quantities_are_written_as_decimals() -> None:
    assert _read("0.0001Ki").text() == "102400u"
    assert _read("1Ki").text() == "1Ki"
    assert _read("1023.5Ki").text() == "1048064"
    assert _read("0.5Ki").text() == "512"


def test_negative_quotients_keep_their_sign() -> None:
    assert _read("-9").divide(_read("3")).text() == "-3"
    assert _read("9").divide(_read("-3")).text() == "-3"
    assert _read("0").divide(_read("3")).text() == "0"
