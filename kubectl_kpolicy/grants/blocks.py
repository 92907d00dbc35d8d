"""Block ids: what a denial names, so that whoever was denied can ask for exactly that.

Everything in an id is checked as if it had been typed; that it is signed by the engine is checked by the API server's side,
which has the key, when the request is tried.
"""

from __future__ import annotations

from engine.errors import EngineError
from engine.grants.blocks import Block, read_block_id


def read_block(text: str) -> Block:
    """Read a block id; raises EngineError."""
    found = read_block_id(text)
    if found is None:
        raise EngineError(f"`{text[:40]}` is no id of a denial", help="copy it from the denial, or name POLICY/RULE and KIND/NAME")  # fmt: skip
    return found
