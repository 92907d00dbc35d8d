"""Base64 of bytes and texts (the encoders extension)."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from typing import Final

from engine.lang.cel.errors import CelError

from .registry import Library

LIBRARY: Final = Library("encoders")


@LIBRARY.add("base64.encode(bytes) -> string")
def _encode(value: bytes) -> str:
    return b64encode(value).decode()


@LIBRARY.add("base64.decode(string) -> bytes")
def _decode(text: str) -> bytes:
    padded = text if text.endswith("=") else text + "=" * (-len(text) % 4)
    try:
        return b64decode(padded.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise CelError("illegal base64 data") from error
