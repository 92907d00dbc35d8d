"""Functions that encode, hash and canonicalise texts (row F-05)."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from engine.errors import EvaluationError

from .samples import sample
from .signature import Table
from .values import Env, check_length, spend

table = Table()

BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_DIGITS: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_BREAKS: Final = b"\r\n"
_PAD: Final = ord("=")


@table.function("base64_decode(string) string", "the text that the base64 text stands for")
def base64_decode(env: Env, text: str) -> str:
    """Decode the standard alphabet. Bytes that are not UTF-8 become U+FFFD."""
    spend(env, len(text) >> 6)
    compact = text.replace("\r", "").replace("\n", "")
    if not BASE64.fullmatch(compact):
        place = _first_wrong(text.encode("utf-8", "replace"))
        raise EvaluationError(f"illegal base64 data at input byte {place}")
    return binascii.a2b_base64(compact).decode("utf-8", "replace")


@table.function("base64_encode(string) string", "the text as base64")
def base64_encode(env: Env, text: str) -> str:
    """Encode the UTF-8 form with the standard alphabet and padding."""
    spend(env, len(text) >> 6)
    check_length(len(text) * 4 // 3)
    return base64.b64encode(text.encode()).decode()


@table.function("sha256(string) string", "the SHA-256 digest of the text in hexadecimal")
def sha256(env: Env, text: str) -> str:
    """Hash the UTF-8 form."""
    return _digest("sha256", text, env)


@table.function("sha1(string) string", "the SHA-1 digest of the text in hexadecimal")
def sha1(env: Env, text: str) -> str:
    """Hash the UTF-8 form; for identifiers, not for security."""
    return _digest("sha1", text, env)


@table.function("md5(string) string", "the MD5 digest of the text in hexadecimal")
def md5(env: Env, text: str) -> str:
    """Hash the UTF-8 form; for identifiers, not for security."""
    return _digest("md5", text, env)


def _digest(name: str, text: str, env: Env) -> str:
    import hashlib  # here, because loading OpenSSL takes longer than most policies

    spend(env, len(text) >> 6)

    return hashlib.new(name, text.encode(), usedforsecurity=False).hexdigest()


@table.function("path_canonicalize(string) string", "the shortest path that means the same")
def path_canonicalize(_env: Env, path: str) -> str:
    """Clean a slash-separated path as Go's filepath.Join of it alone does; an empty path stays empty."""
    if not path:
        return ""
    rooted = path.startswith("/")
    parts: list[str] = []
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part != ".." or (not rooted and (not parts or parts[-1] == "..")):
            parts.append(part)
        elif parts:
            parts.pop()
    return f"/{'/'.join(parts)}" if rooted else "/".join(parts) or "."


@table.function(
    "random(string) string", "a text made by chance that matches the regular expression"
)
def random(env: Env, pattern: str) -> str:
    """Make a text from the evaluation's stream of chance, so that a replayed evaluation makes the same one."""
    if not pattern:
        raise EvaluationError("no pattern provided")
    return sample(pattern, env)


def _first_wrong(data: bytes) -> int:
    """Return the index at which Go's decoder gives up."""
    filled = 0
    for index, byte in enumerate(data):
        if byte in _BREAKS:
            continue
        if byte in _DIGITS:
            filled = (filled + 1) % 4
        elif byte == _PAD and filled > 1:
            return _wrong_padding(data, index, filled)
        else:
            return index
    return len(data) - filled


def _wrong_padding(data: bytes, index: int, filled: int) -> int:
    following = _after_breaks(data, index + 1)
    if filled == 2:
        if following == len(data):
            return len(data)
        if data[following] != _PAD:
            return following - 1
        following = _after_breaks(data, following + 1)
    return following


def _after_breaks(data: bytes, index: int) -> int:
    while index < len(data) and data[index] in _BREAKS:
        index += 1
    return index
