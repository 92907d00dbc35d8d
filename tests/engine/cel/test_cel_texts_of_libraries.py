"""What the libraries of Kubernetes and of the Go implementation say of values that they do not take, and how they write values."""

from __future__ import annotations

import math

import pytest

from engine.lang import cel

PARSE = "parse error during conversion from string"
NETWORK = f"network address {PARSE}: network address {PARSE}: netip.ParsePrefix"
REFUSED = [
    ("int(x)", "a", "type conversion error from 'string' to 'int'"),
    ("int(x)", "9223372036854775808", "type conversion error from 'string' to 'int'"),
    ("uint(x)", "-1", "type conversion error from 'string' to 'uint'"),
    ("double(x)", "1,5", "type conversion error from 'string' to 'double'"),
    ("bool(x)", "yes", "type conversion error from 'string' to 'bool'"),
    ("duration(x)", "1", "type conversion error from 'string' to 'google.protobuf.Duration'"),
    ("timestamp(x)", "x", "type conversion error from 'string' to 'google.protobuf.Timestamp'"),
    ("[1, 2][x]", 1.5, "unsupported index value 1.5 in list"),
    ("[1, 2][x]", "a", "unsupported index type 'string' in list"),
    ("[1, 2][x]", True, "unsupported index type 'bool' in list"),
    ("x.sort()", [1, "a"], "list elements must have the same type"),
    ("x.sort()", [1, 1.5], "list elements must have the same type"),
    ("x.sort()", [{}], "list elements must be comparable"),
    ("x.sort()", [None], "list elements must be comparable"),
    ("x.sortBy(e, e.n)", [{"n": 1}, {"n": "b"}], "list elements must have the same type"),
    ("x.sortBy(e, e)", [[]], "list elements must be comparable"),
    ("x.slice(0, 3)", [1], "cannot slice(0, 3), list is length 1"),
    ("x.slice(-1, 1)", [1], "cannot slice(-1, 1), negative indexes not supported"),
    (
        "x.slice(2, 1)",
        [1, 2],
        "cannot slice(2, 1), start index must be less than or equal to end index",
    ),
    ("x.flatten(-1)", [], "level must be non-negative"),
    ("x.min()", [], "min called on empty list"),
    ("math.greatest(x)", [], "math.@max(list) argument must not be empty"),
    ("math.least(x)", [], "math.@min(list) argument must not be empty"),
    ("math.greatest(x, 1)", "a", "no such overload: math.@max(string, int)"),
    ("math.least(x)", ["a"], "no such overload: math.@min"),
    ("math.bitShiftLeft(x, -1)", 1, "math.bitShiftLeft() negative offset: -1"),
    ("x.join()", [1], "join: invalid input: 1"),
    ("x.join(',')", ["a", 1.5], "join: invalid input: 1.5"),
    ("x.charAt(4)", "abc", "index out of range: 4"),
    ("x.substring(2, 1)", "abc", "invalid substring range. start: 2, end: 1"),
    ("base64.decode(x)", "!!", "illegal base64 data at input byte 0"),
    ("base64.decode(x)", "YWJ!", "illegal base64 data at input byte 3"),
    ("base64.decode(x)", "YWJjZ", "illegal base64 data at input byte 4"),
    ("[?x]", 1, "cannot initialize optional list element from non-optional value 1"),
    ("{?'a': x}", "b", "cannot initialize optional entry 'a' from non-optional value b"),
    ("Object{?a: x}", 1, "cannot initialize optional entry 'a' from non-optional value 1"),
    ("'x'.find(x)", "(", "Illegal regex: error parsing regexp: missing closing ): `(`"),
    ("'x'.findAll(x)", "[", "Illegal regex: error parsing regexp: missing closing ]: `[`"),
    ("cidr('::1/128').containsIP(x)", "1.2.3", "no such overload"),
    ("base64.encode(x)", "a", "no such overload: base64.encode(string)"),
    ("sets.contains(x, [1])", "a", "no such overload: sets.contains(string, list)"),
    (
        "url(x).getPort()",
        "http://h:x/",
        'URL parse error during conversion from string: parse "http://h:x/": invalid port ":x" after host',
    ),
    (
        "url(x).getPort()",
        "http://h h/",
        'URL parse error during conversion from string: parse "http://h h/": invalid character " " in host name',
    ),
    ("x[0]", "abc", "no such key: 0"),
    (
        "timestamp(x) - timestamp('0001-01-01T00:00:00Z')",
        "9999-12-31T23:59:59Z",
        "integer overflow",
    ),
    ("'x'.matches(x)", "(", "error parsing regexp: missing closing ): `(`"),
    ("regex.replace('a', x, 'b')", "(", "error parsing regexp: missing closing ): `(`"),
    (
        "regex.replace('a', 'a', x)",
        "\\3",
        "replacement string references group 3 but regex has only 0 group(s)",
    ),
    (
        "regex.replace('a', 'a', x)",
        "\\x",
        "invalid replacement string: '\\x' \\ must be followed by a digit or \\",
    ),
    (
        "regex.extract('ab', x)",
        "(a)(b)",
        'regular expression has more than one capturing group: "(a)(b)"',
    ),
    ("ip(x)", "x", f'IP Address "x" {PARSE}: ParseAddr("x"): unable to parse IP'),
    ("ip(x)", "1.2.3", f'IP Address "1.2.3" {PARSE}: ParseAddr("1.2.3"): IPv4 address too short'),
    (
        "ip(x)",
        "1.2.3.4.5",
        f'IP Address "1.2.3.4.5" {PARSE}: ParseAddr("1.2.3.4.5"): IPv4 address too long',
    ),
    (
        "ip(x)",
        "1.2.3.256",
        f'IP Address "1.2.3.256" {PARSE}: ParseAddr("1.2.3.256"): IPv4 field has value >255',
    ),
    (
        "ip(x)",
        "01.2.3.4",
        f'IP Address "01.2.3.4" {PARSE}: ParseAddr("01.2.3.4"): IPv4 field has octet with leading zero',
    ),
    (
        "ip(x)",
        "1..2.3",
        f'IP Address "1..2.3" {PARSE}: ParseAddr("1..2.3"): IPv4 field must have at least one digit (at ".2.3")',
    ),
    (
        "ip(x)",
        "1.2.3.a",
        f'IP Address "1.2.3.a" {PARSE}: ParseAddr("1.2.3.a"): unexpected character (at "a")',
    ),
    ("ip(x)", "fe80::1%eth0", 'IP address "fe80::1%eth0" with zone value is not allowed'),
    ("ip(x)", "::ffff:1.2.3.4", 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'),
    ("cidr(x)", "10.0.0.0", f"{NETWORK}(\"10.0.0.0\"): no '/'"),
    ("cidr(x)", "10.0.0.0/33", f'{NETWORK}("10.0.0.0/33"): prefix length out of range'),
    ("cidr(x)", "10.0.0.0/08", f'{NETWORK}("10.0.0.0/08"): bad bits after slash: "08"'),
    ("cidr(x)", "10.0.0/8", f'{NETWORK}("10.0.0/8"): ParseAddr("10.0.0"): IPv4 address too short'),
    (
        "cidr(x)",
        "fe80::1%a/64",
        f'{NETWORK}("fe80::1%a/64"): IPv6 zones cannot be present in a prefix',
    ),
    (
        "cidr(x)",
        "::ffff:10.0.0.0/104",
        f'network address {PARSE}: IPv4-mapped IPv6 address "::ffff:10.0.0.0/104" is not allowed',
    ),
    ("url(x)", "x", f'URL {PARSE}: parse "x": invalid URI for request'),
    ("url(x)", "", f'URL {PARSE}: parse "": empty url'),
    (
        "'%d'.format([x])",
        "a",
        "error during formatting: decimal clause can only be used on integers, was given string",
    ),
    (
        "'%d'.format([x])",
        1.5,
        "error during formatting: decimal clause can only be used on integers, was given double",
    ),
    (
        "'%f'.format([x])",
        1,
        "error during formatting: fixed-point clause can only be used on doubles, was given int",
    ),
    (
        "'%e'.format([x])",
        1,
        "error during formatting: scientific clause can only be used on doubles, was given int",
    ),
    (
        "'%b'.format([x])",
        "a",
        "error during formatting: only integers and bools can be formatted as binary, was given string",
    ),
    (
        "'%o'.format([x])",
        1.5,
        "error during formatting: octal clause can only be used on integers, was given double",
    ),
    (
        "'%x'.format([x])",
        1.5,
        "error during formatting: only integers, byte buffers, and strings can be formatted as hex, was given double",
    ),
    (
        "'%q'.format([x])",
        1,
        'could not parse formatting clause: unrecognized formatting clause "q"',
    ),
    ("'%'.format([x])", 1, "unexpected end of string"),
    ("'%s %s'.format([x])", 1, "index 1 out of range"),
]
WRITTEN = [
    ("'%s'.format([x])", ["a", 1, 1.5, None, True], '["a", 1, 1.500000, null, true]'),
    ("'%s'.format([x])", {"b": "c", "a": [1]}, '{"a":[1], "b":"c"}'),
    ("'%s'.format([x])", 'a"b', 'a"b'),
    ("'%s'.format([x])", ['a"b'], '["a\\"b"]'),
    ("'%s'.format([x])", [], "[]"),
    ("'%s'.format([x])", {}, "{}"),
    ("'%s'.format([x])", 1.0, "1"),
    ("'%s'.format([x.map(y, duration(y))])", ["1h"], '[duration("3600s")]'),
    (
        "'%s'.format([x.map(y, timestamp(y))])",
        ["2024-01-01T00:00:00Z"],
        '[timestamp("2024-01-01T00:00:00Z")]',
    ),
    ("'%s'.format([x.map(y, bytes(y))])", ["a"], '[b"a"]'),
    ("'%.2f'.format([x])", 1234567.891, "1,234,567.89"),
    ("'%.1e'.format([x])", 0.000123, "1.230000\u00d710\u207b\u2070\u2074"),
    ("'%e'.format([x])", -math.inf, "-\u221e"),
    ("'%f'.format([x])", -0.5, "-0.500000"),
    ("'%e'.format([x])", 2.71828, "2.718280\u00d710\u2070\u2070"),
]


@pytest.mark.parametrize(("expression", "value", "text"), REFUSED)
def test_what_is_refused_is_refused_in_the_words_of_go(expression, value, text):
    with pytest.raises(cel.CelError) as caught:
        cel.compile(expression)({"x": value}, cel.CelEnv())

    assert caught.value.message == text


@pytest.mark.parametrize(("expression", "value", "text"), WRITTEN)
def test_values_are_written_as_by_the_version_that_kubernetes_has(expression, value, text):
    assert cel.compile(expression)({"x": value}, cel.CelEnv()) == text
