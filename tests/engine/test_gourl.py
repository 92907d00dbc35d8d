"""URLs as Go's `net/url` reads them: what Go 1.26 answers to the same texts, for JMESPath and CEL alike."""

from __future__ import annotations

import pytest

from engine.errors import EvaluationError
from engine.lang import gourl
from engine.lang.cel.functions.urls import is_url


@pytest.mark.parametrize(
    ("text", "hostname", "port", "path"),
    [
        ("http://h/%41 b", "h", "", "/A%20b"),
        ("http://h/a%2Fb", "h", "", "/a%2Fb"),
        ("postgres://a:b:1/", "a:b", "1", "/"),
        ("http://h:/", "h", "", "/"),
        ("http://[::1]:80", "::1", "80", ""),
        ("http://[fe80::1%25en0]/", "fe80::1%en0", "", "/"),
        ("http://%e4%bd%a0/", "你", "", "/"),
        ("http://u:p@h/", "h", "", "/"),
        ("mailto:a@b", "", "", ""),
    ],
)
def test_an_absolute_url_is_read_alike_by_both_languages(text, hostname, port, path):
    for is_request in (True, False):
        found = gourl.parse(text, is_request=is_request)
        assert (found.hostname, found.port, found.path) == (hostname, port, path)
    assert is_url(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("http://a b/", 'invalid character " " in host name'),
        ("http://h%41/", 'invalid URL escape "%41"'),
        ("http://h:x/", 'invalid port ":x" after host'),
        ("http://a[::1]/", "invalid IP-literal"),
        ("http://[::1/", "missing ']' in host"),
        ("http://[zz]/", 'invalid host: ParseAddr("zz"): unable to parse IP'),
        ("http://u<@h/", "net/url: invalid userinfo"),
        ("http://h/%zz", 'invalid URL escape "%zz"'),
        ("http://h/\x7f", "net/url: invalid control character in URL"),
        (":x", "missing protocol scheme"),
    ],
)
def test_what_is_no_url_is_refused_alike_by_both_languages(text, reason):
    for is_request in (True, False):
        with pytest.raises(EvaluationError) as error:
            gourl.parse(text, is_request=is_request)
        assert error.value.message.endswith(f'": {reason}')
    assert not is_url(text)


def test_a_request_needs_more_than_a_relative_reference():
    assert gourl.parse("a/b").path == "a/b"
    assert not is_url("a/b")
    assert not is_url("")
    assert gourl.parse("//h/p").host == "h"
