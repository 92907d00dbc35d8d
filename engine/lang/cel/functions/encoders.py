"""Base64 of bytes and texts (the encoders extension)."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from typing import Final

from engine.lang.cel.errors import CelError

from .registry import Library

LIBRARY: Final = Library()
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9+/\r\n]")


@LIBRARY.add("base64.encode(bytes) -> string")
def _encode(value: bytes) -> str:
    return b64encode(value).decode()


@LIBRARY.add("base64.decode(string) -> bytes")
def _decode(text: str) -> bytes:
    text = text.replace("\n", "").replace("\r", "")
    padded = text if text.endswith("=") else text + "=" * (-len(text) % 4)
    try:
        return b64decode(padded.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise CelError(f"illegal base64 data at input byte {_bad_byte(text)}") from error


def _bad_byte(text: str) -> int:
    """Return where a text stops being base64 without padding: its first foreign byte, else the last one, which is left alone."""
    foreign = _FOREIGN.search(text)
    return len(text[: foreign.start()].encode()) if foreign else len(text) - 1
