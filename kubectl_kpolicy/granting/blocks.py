"""Block ids: what a denial names, so that whoever was denied can ask for exactly that.

An id is `kb1.` and the base64 of a small JSON list; everything in it is checked as if it had been typed.
"""

from __future__ import annotations

import base64
import binascii

from engine.errors import EngineError
from engine.grants.blocks import PREFIX, Block, block_of

_LONGEST = 4096


def read_block(text: str) -> Block:
    """Read a block id; raises EngineError."""
    found = None
    if text.startswith(PREFIX) and len(text) <= _LONGEST:
        padded = text.removeprefix(PREFIX)
        try:
            found = block_of(base64.urlsafe_b64decode(padded + "=" * (-len(padded) % 4)))
        except (binascii.Error, ValueError):
            found = None
    if found is None:
        raise EngineError(f"`{text[:40]}` is no id of a denial", help="copy it from the denial, or name POLICY/RULE and KIND/NAME")  # fmt: skip
    return found
