"""Signed words: what an id that people carry from a denial says, and the signature that tells ours from made up ones.

For the ids of denials and of requests for codes, which differ in their fields, prefix and key, so that neither passes for the
other. A word is `PREFIX CONTENT.SIGNATURE`; its content is readable by everybody.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Sequence
from typing import Any, Final

import orjson

_MAC: Final = 16


def signed(prefix: str, fields: Sequence[Any], key: bytes) -> str:
    """Return the word that says these fields (JSON values), signed with a key."""
    said = prefix + _spelled(orjson.dumps(fields))
    return f"{said}.{_signature(said, key)}"


def is_signed(text: str, key: bytes) -> bool:
    """Tell, in constant time, whether a text is a word that was signed with this key."""
    said, _, signature = text.rpartition(".")
    given = signature.encode("utf-8", "surrogatepass")
    return hmac.compare_digest(_signature(said, key).encode(), given)


def fields_of(text: str, prefix: str, longest: int) -> list[Any] | None:
    """Return the fields of a word, whoever signed it; None for what is no word or longer than `longest` characters."""
    content, _, signature = text.removeprefix(prefix).partition(".")
    if not (text.startswith(prefix) and signature) or len(text) > longest:
        return None
    try:
        fields = orjson.loads(base64.urlsafe_b64decode(content + "=" * (-len(content) % 4)))
    except ValueError:
        return None
    return fields if isinstance(fields, list) else None


def _signature(said: str, key: bytes) -> str:
    return _spelled(hmac.digest(key, said.encode("utf-8", "surrogatepass"), "sha256")[:_MAC])


def _spelled(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
