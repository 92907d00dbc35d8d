"""The id of a denial, by which somebody asks for an exception from it: what was denied, told in one word.

It says nothing that the denial beside it does not say, and gives no right to anything: a request made by it is judged like
any other.
"""

from __future__ import annotations

import base64
from typing import Final

import orjson

from engine.record import record

PREFIX: Final = "kb1."
_FIELDS: Final = 5


@record
class Block:
    """One policy's part of a denial."""

    policy: str
    rules: tuple[str, ...]
    kind: str
    name: str
    namespace: str


def block_id(block: Block) -> str:
    """Return the id of a denial."""
    fields = [block.policy, list(block.rules), block.kind, block.name, block.namespace]
    return PREFIX + base64.urlsafe_b64encode(orjson.dumps(fields)).decode().rstrip("=")


def block_of(data: bytes) -> Block | None:
    """Return what the decoded id of a denial says; None for anything else."""
    try:
        fields = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(fields, list) or len(fields) != _FIELDS:
        return None
    policy, rules, kind, name, namespace = fields
    texts = (policy, kind, name, namespace)
    if not isinstance(rules, list) or not all(isinstance(one, str) for one in (*texts, *rules)):
        return None
    return Block(policy, tuple(rules), kind, name, namespace) if policy and rules and kind else None
