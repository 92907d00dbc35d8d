"""Digests as words, which name objects that are stored."""

from __future__ import annotations

import hashlib
from base64 import b32encode

import pytest

from engine.digest import spelled, word_of


@pytest.mark.parametrize("text", ["", "ada", "system:serviceaccount:a:b", "größer\0x", "\ud800"])
@pytest.mark.parametrize("length", [1, 26, 32])
def test_a_word_is_how_the_whole_digest_in_base_32_begins(text: str, length: int) -> None:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    assert word_of(text, length) == b32encode(digest).decode().lower()[:length]
    assert len(word_of(text, length)) == length


def test_longer_words_than_a_digest_is_spelled_in_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 32"):
        spelled(bytes(32), 33)
