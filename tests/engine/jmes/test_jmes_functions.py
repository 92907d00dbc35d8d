"""Functions at the edges that the observed table does not reach."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from engine.errors import LimitError
from engine.lang import jmes
from tests.engine.jmes.evaluating import error, value

NOW = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)


def test_there_are_the_51_functions_of_policies_and_26_of_the_standard() -> None:
    standard = {
        "abs", "avg", "ceil", "contains", "ends_with", "floor", "join", "keys", "length", "map", "max",
        "max_by", "merge", "min", "min_by", "not_null", "reverse", "sort", "sort_by", "starts_with",
        "to_array", "to_number", "to_string", "type", "values", "sum",
    }  # fmt: skip

    assert standard <= jmes.functions.table().keys()
    assert len(jmes.functions.table().keys() - standard | {"sum"}) == 51


def test_signatures_read_as_jp_prints_them() -> None:
    found = jmes.functions.table()

    assert found["truncate"].signature == "truncate(string, number) string"
    assert found["merge"].signature == "merge(object...) object"


def test_arguments_are_evaluated_before_they_are_counted_and_counted_before_types() -> None:
    assert error("abs(abs('x'), `1`)") == error("abs('x')")
    assert error("abs('x', 'y')") == "incorrect number of args"
    assert error("nosuch(abs('x'))") == error("abs('x')")
    assert error("nosuch()") == "unknown function: nosuch"


def test_the_present_comes_from_the_caller() -> None:
    assert value("time_now()", now=NOW) == "2026-11-21T12:00:30Z"
    east = NOW.astimezone(timezone(timedelta(hours=2)))
    assert value("time_now()", now=east) == "2026-11-21T14:00:30+02:00"
    assert value("time_now_utc()", now=east) == "2026-11-21T12:00:30Z"
    assert value("time_since('', '2026-11-21T12:00:00Z', '')", now=NOW) == "30s"


def test_host_names_are_the_callers_to_look_up() -> None:
    asked: list[str] = []

    def look_up(host: str) -> bool:
        asked.append(host)
        return host == "example.org"

    url = "is_external_url(@)"
    assert value(url, "https://example.org:8443/a?b#c", is_external_host=look_up) is True
    assert value(url, "http://user@internal/", is_external_host=look_up) is False
    assert asked == ["example.org", "internal"]
    assert "`example.org`" in error(url, "http://example.org/")


@pytest.mark.parametrize(
    "url",
    ["http://10.0.0.1/", "http://[::1]:80/", "http://[::ffff:127.0.0.1]/", "http://172.31.255.255",
     "http://[::ffff:192.168.1.1]/", "http://127.1.2.3:1", "http://[fd12::1]"],
)  # fmt: skip
def test_private_and_loopback_addresses_are_not_external(url: str) -> None:
    assert value("is_external_url(@)", url) is False


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("%zz", 'parse "%zz": invalid URL escape "%zz"'),
        ("//u%@8.8.8.8#f", 'parse "//u%@8.8.8.8": invalid URL escape "%"'),
        ("//u<@8.8.8.8", 'parse "//u<@8.8.8.8": net/url: invalid userinfo'),
        ("//8.8.8.8#%zz", 'parse "//8.8.8.8#%zz": invalid URL escape "%zz"'),
        ("//a[::1]", 'parse "//a[::1]": invalid IP-literal'),
        ("x:%zz", "lookup : no such host"),
    ],
)
def test_wrong_urls_are_refused_in_gos_words(url: str, text: str) -> None:
    assert error("is_external_url(@)", url) == text


@pytest.mark.parametrize("url", ["http://a b/", "http://x\x00/", ":x", "a:b:c//d", "http://h:1x/"])
def test_what_is_no_url_is_an_error(url: str) -> None:
    assert error("is_external_url(@)", url, is_external_host=lambda host: not host)[:1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1.5", 1.5), ("-1e2", -100), ("0x1p4", 16), ("1__0", None), ("_1", None), ("1_", None), ("0b1", None),
     ("nanx", None), ("-nan", None), ("1_e5", None), ("1e_5", None), ("1_000", 1000), ("1e400", None), ("", None), (".", None), ("+.5", 0.5), ("1" * 5_000, None)],
)  # fmt: skip
def test_texts_become_numbers_as_in_go(text: str, expected: float | None) -> None:
    assert value("to_number(@)", text) == expected


def test_whole_results_are_integers() -> None:
    assert repr(value("add(`1`, `2`)")) == "3"
    assert repr(value("divide(`1`, `2`)")) == "0.5"
    assert repr(value("floor(`-0.5`)")) == "-1"
    assert repr(value("ceil(`-0.5`)")) == "-0.0"
    assert value("`1e20`") == 1e20


def test_quantities_come_before_durations() -> None:
    assert value("add('5m', '5m')") == "10m"
    assert value("add('5m0s', '5m0s')") == "10m0s"
    assert error("add('1h', '5m')") == "JMESPath function 'add': Types mismatch"
    assert error("divide(`1`, '2')") == "JMESPath function 'divide': Types mismatch"
    assert value("divide('1', `1e-300`)") == "1G"


def test_durations_wrap_around_as_64_bits_do() -> None:
    longest = "2562047h47m16.854775807s"

    assert value(f"add('{longest}', '1ns')") == "-2562047h47m16.854775808s"
    assert value(f"subtract('-{longest}', '2ns')") == longest
    assert error("modulo('1h', '0s')") == "JMESPath function 'modulo': Zero divisor passed"


def test_extremes_take_the_first_of_equals() -> None:
    data = [{"k": 1, "n": "a"}, {"k": 1, "n": "b"}, {"k": 0, "n": "c"}, {"k": 0, "n": "d"}]

    assert value("max_by(@, &k).n", data) == "a"
    assert value("min_by(@, &k).n", data) == "c"


def test_a_lone_element_is_first_and_last_whatever_its_key() -> None:
    for lone in ([{"a": 1}], [None], [[2]]):
        assert value("sort_by(@, &nokey)", lone) == lone
        assert value("max_by(@, &nokey)", lone) == value("min_by(@, &nokey)", lone) == lone[0]
    assert error("sort_by(@, &nokey)", [{"a": 1}, {"a": 2}])


def test_labels_match_by_equality() -> None:
    assert value("label_match(@, @)", {"a": 1}) is True
    assert value('label_match(@, `{"a": true}`)', {"a": 1}) is False
    assert value("label_match(@, `{}`)", {"a": None}) is False


@pytest.mark.parametrize(
    ("image", "expected"),
    [("nginx", "docker.io/nginx:latest"), ("localhost:5000/a", "localhost:5000/a:latest"), ("A/b", "A/b:latest")],
)  # fmt: skip
def test_images_are_written_in_full(image: str, expected: str) -> None:
    assert value("image_normalize(@)", image) == expected


@pytest.mark.parametrize("image", ["a@sha256:" + "A" * 64, "a@sha256:" + "a" * 32, "a/" * 300 + "a", "a:" + "t" * 129,
    "a@md5:" + "a" * 32, "x" * 10_000])  # fmt: skip
def test_wrong_images_are_errors(image: str) -> None:
    assert error("image_normalize(@)", image).startswith(
        "JMESPath function 'image_normalize': bad image"
    )


@pytest.mark.parametrize(
    ("path", "expected"), [("a/../..", ".."), ("/..", "/"), ("a/..", "."), ("../../a", "../../a"), ("/a/b/../c/", "/a/c")]
)  # fmt: skip
def test_paths_become_canonical(path: str, expected: str) -> None:
    assert value("path_canonicalize(@)", path) == expected


def test_replacing_counts_from_the_left() -> None:
    assert value("replace('aaaa', 'a', 'b', `2`)") == "bbaa"
    assert value("replace('ab', '', '-', `2`)") == "-a-b"


def test_texts_longer_than_the_bound_are_refused_before_they_are_built() -> None:
    with pytest.raises(LimitError):
        value('join(@, parse_json(\'["","",""]\'))', "x" * (8 << 20))


def test_parse_yaml_reads_the_first_document_alone() -> None:
    assert value("parse_yaml(@)", "# c\n---\na: 1\n---\n{") == {"a": 1}
    assert value("parse_yaml(@)", "---\n---\n1") is None
    assert value("parse_yaml(@)", "a: |\n  ---\n  x\n") == {"a": "---\nx\n"}
    assert error("parse_yaml(@)", "a: 1\nb: [\n").startswith("yaml: line ")


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("1µs٣", r'time: unknown unit "\xc2\xb5s\xd9\xa3" in duration "1\xc2\xb5s\xd9\xa3"'),
        ("99999999999999999999us3x", 'time: invalid duration "99999999999999999999us3x"'),
        ("1.5.5s", 'time: missing unit in duration "1.5.5s"'),
        ("9h2562047h48m1x", 'time: invalid duration "9h2562047h48m1x"'),
        ('"', r'time: invalid duration "\""'),
    ],
)
def test_wrong_durations_are_refused_in_gos_words(expression: str, text: str) -> None:
    assert error("time_add('2024-01-01T00:00:00Z', @)", expression) == text


def test_what_is_no_ascii_stands_in_errors_of_times_as_bytes() -> None:
    assert error("time_utc('é')").startswith(r'parsing time "\xc3\xa9" as ')
    assert error("time_parse('2006 -07', '2024 599')") == (
        'parsing time "2024 599": time zone offset hour out of range'
    )


def test_letters_whose_capital_is_another_letter_alone_are_mapped_as_in_go() -> None:
    assert value("to_upper(@)", "ᾳßᾀ") == "ᾼßᾈ"
    assert value("equal_fold('ᾳ', 'ᾼ')") is True
    assert value("equal_fold('ß', 'ẞ')") is True


def test_quotients_of_quantities_are_those_of_the_api_servers_floats() -> None:
    assert value("divide('2.3', '1')") == 2.3000000000000003


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x: 1\na: [1, 2\nb: 1", "yaml: line 2: did not find expected ',' or ']'"),
        ("*a: 1", "yaml: unknown anchor 'a' referenced"),
    ],
)
def test_errors_of_yaml_name_gos_line_and_anchor(text: str, expected: str) -> None:
    assert error("parse_yaml(@)", text) == expected


def test_the_certificate_functions_refuse_what_is_none() -> None:
    block = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

    assert error("x509_decode(@)", block) == "failed to parse certificate"
    assert error("x509_decode(@)", block.replace("CERTIFICATE", "PRIVATE KEY"))
    assert error("x509_decode(@)", "x" * 300_000)
    assert error("x509_decode(@)", block.replace("AAAA", "AAA"))
